from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphium_db import server
from graphium_db.cli import main
from tests.deploy.conftest import blank
from tests.support.databases import Database
from tests.support.shared import db, tenant

__all__ = ["acme", "blank", "db", "environment", "filled", "graphium", "run", "tenant"]

ROOT = Path(__file__).resolve().parents[2]
LINES = [
    {"family": "relationships", "genus": "team", "specimen": "Tomasz", "content": "Tomasz prefers small pull requests.",
     "memory_type": "preference", "layer_kind": "preloaded", "embedding": None, "source": "kick-off"},
    {"family": "projects", "genus": "Harbour", "specimen": "Ferry app", "content": "We decided to ship the ferry app.",
     "memory_type": "decision", "layer_kind": "on_demand", "occurred_at": "2026-02-02T09:30:00Z", "embedding": None},
    {"family": "performance", "genus": "reviews", "specimen": "Tomasz", "content": "The raise is six percent.",
     "memory_type": "fact", "layer_kind": "on_demand", "required_scopes": ["hr"], "embedding": None,
     "metadata": {"confidential": True}},
]  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No setting of whoever runs the tests gets in, and none of the tests' gets out."""
    for name in ("GRAPHIUM_DSN", "GRAPHIUM_TENANT", "GRAPHIUM_SCOPES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    server.remember(tmp_path / "no server here")
    return monkeypatch


@pytest.fixture
def run(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command in this process, as its output would be piped."""

    def run(*arguments: str, stdin: str | None = None) -> Ran:
        if stdin is not None:
            import io

            environment.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        code = main(arguments)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


@pytest.fixture
def graphium(environment: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run a command as a process of its own."""

    def graphium(*arguments: str, stdin: str = "", **variables: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "graphium_db.cli", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"} | variables,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return graphium


@pytest.fixture
def acme(db: Database, tenant: str, environment: pytest.MonkeyPatch) -> str:
    """The shell of an application that speaks for the tenant and holds the scope hr."""
    environment.setenv("GRAPHIUM_DSN", db.dsn("app"))
    environment.setenv("GRAPHIUM_TENANT", tenant)
    environment.setenv("GRAPHIUM_SCOPES", "hr")
    return tenant


@pytest.fixture
def filled(acme: str, run: Callable[..., Ran]) -> str:
    """The same, with three statements in memory."""
    ran = run("ingest", "--jsonl", "-", stdin="".join(json.dumps(line) + "\n" for line in LINES))
    assert ran.code == 0, ran.err
    return acme
