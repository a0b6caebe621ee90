"""The command line `graphium`."""

from __future__ import annotations

from graphium_db.cli.main import main

__all__ = ["main"]
