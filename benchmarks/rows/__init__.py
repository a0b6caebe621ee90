"""The rows, in the order in which they run: those that only read come before those that write into the same tenants."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.bench import Bench
from benchmarks.measure import Line

MODULES = (
    "search", "recall", "worst_case", "security", "symbiosis", "reading",
    "ingest", "dedup", "sessions", "bulk_import", "mirror", "many_tenants", "embedding", "growth",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row of the table: what it measures, and how."""

    key: str
    title: str
    run: Callable[[Bench], Iterator[Line]]
    table: Callable[[list[Line]], str] | None = None  # where it shows its lines in a way of its own


def rows() -> list[Row]:
    """One per module: its docstring's first line is the title, its `run` yields the lines, its `table` may show them."""
    found = []
    for name in MODULES:
        module = importlib.import_module(f"{__name__}.{name}")
        title = (module.__doc__ or name).strip().splitlines()[0].rstrip(".")
        found.append(Row(name, title, module.run, getattr(module, "table", None)))
    return found
