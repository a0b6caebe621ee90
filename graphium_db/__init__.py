"""Graphium DB: the memory of agents, in PostgreSQL.

from graphium_db import Graphium

with Graphium(tenant="acme", scopes=["hr"]) as memory:
    memory.ingest_context("performance", "feedback", "Aisha", ["Aisha prefers written feedback."])
    print(memory.search_context("How does Aisha like feedback?")[0].content)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphium_db.aio import AsyncGraphium
    from graphium_db.classification import classify
    from graphium_db.client import Graphium
    from graphium_db.errors import GraphiumError

__all__ = ["AsyncGraphium", "Graphium", "GraphiumError", "classify"]

# Loaded when first asked for: a deploy needs no client, and `classify` needs no database driver.
_HOME = {"AsyncGraphium": "aio", "Graphium": "client", "GraphiumError": "errors", "classify": "classification"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
