"""Runs shell blocks of the docs as a reader does: pasted into a shell, with graphium and PostgreSQL's programs on its path."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.support.psql import libpq_environment, psql
from tests.support.server import ROOT


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page that are in `language`; `page` is relative to the repository."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)


def as_logins(script: str, dsns: Mapping[str, str]) -> str:
    """`script` with the logins' real names and DSNs for those that the docs have."""
    for name, dsn in dsns.items():
        script = re.sub(rf'--dsn "[^"]*user={name}"', f"--dsn {shlex.quote(dsn)}".replace("\\", r"\\"), script)
        script = re.sub(rf"\b{name}\b", str(conninfo_to_dict(dsn)["user"]), script)
    return script


def paste(script: str, dsn: str, folder: Path) -> str:
    """Run `script` in `folder`, where libpq's programs connect with `dsn`; returns what it printed."""
    graphium = folder / "graphium"
    graphium.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m graphium_db.cli "$@"\n', "utf-8")
    graphium.chmod(0o755)
    path = f"{folder}:{Path(psql()).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=libpq_environment(dsn) | {"PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def paste_into_psql(script: str, dsn: str) -> str:
    """What psql prints, unaligned, when `script` is pasted into it; an error is a failure."""
    command = [psql(), "-XAtq", "-v", "ON_ERROR_STOP=1", "--file=-", dsn]
    done = subprocess.run(command, input=script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout
