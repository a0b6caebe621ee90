"""The synchronous client is the asynchronous one, and the pages of docs/ are what their sources say."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphium_db import AsyncGraphium, Graphium

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("script", ["make_sync_client.py", "make_docs.py"])
def test_generated_files_are_current(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, "--check"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def public(cls: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    }


def test_both_clients_have_the_same_methods_and_arguments() -> None:
    def arguments(cls: type) -> dict[str, list[tuple[str, object]]]:
        return {
            name: [(p.name, p.default) for p in signature.parameters.values()]
            for name, signature in public(cls).items()
        }

    assert arguments(Graphium) == arguments(AsyncGraphium)
    assert all(inspect.iscoroutinefunction(getattr(AsyncGraphium, name)) for name in public(AsyncGraphium))
    assert not any(inspect.iscoroutinefunction(getattr(Graphium, name)) for name in public(Graphium))
