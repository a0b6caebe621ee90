"""Filters of a search as the caller gives them, and which rows they admit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import Statement, column
from benchmarks.data import MEMORY_TYPES, Floats, Memory, binary

SEARCH = """
select * from graphium.search_context(query_embedding => $1::vector, match_count => 10, families => $2, specimens => $3,
  memory_types => $4, since => date_trunc('day', now()) - make_interval(days => $5))
"""


@dataclass(frozen=True)
class Filter:
    """Ordinals of families, specimens and memory types, and a number of days; empty or None: no filter."""

    name: str
    families: tuple[int, ...] = ()
    specimens: tuple[int, ...] = ()
    memory_types: tuple[int, ...] = ()
    days: int | None = None

    def admitted(self, memory: Memory) -> NDArray[np.bool_]:
        """Rows that the caller sees and the filter lets through."""
        rows = memory.rows
        admitted: NDArray[np.bool_] = memory.seen.copy()
        for wanted, have in (
            (self.families, rows.family),
            (self.specimens, rows.specimen),
            (self.memory_types, rows.memory_type),
        ):
            if wanted:
                admitted &= np.isin(have, wanted)
        if self.days is not None:
            admitted &= rows.days_ago <= self.days
        return admitted

    def arguments(self, query: Floats) -> tuple[str | bytes | None, ...]:
        """Of SEARCH."""
        return (
            binary(query),
            _array([f"family {n}" for n in self.families]),
            _array([f"specimen {n}" for n in self.specimens]),
            _array([MEMORY_TYPES[n] for n in self.memory_types]),
            None if self.days is None else str(self.days),
        )

    def search(self, statement: Statement, query: Floats) -> list[str]:
        """Ids that SEARCH finds under this filter."""
        return column(statement(*self.arguments(query)), "statement_id")


def _array(names: Sequence[str]) -> str | None:
    return "{" + ",".join(f'"{name}"' for name in names) + "}" if names else None


def by_size(counts: NDArray[np.int64], size: int) -> int:
    """The ordinal of the family or specimen whose size is nearest to the one wanted."""
    return int(np.argmin(np.abs(counts - size)))


def usual(memory: Memory) -> list[Filter]:
    """One filter of each kind: families from small to the largest, a specimen, labels from rare to common, a month."""
    families = np.bincount(memory.rows.family, minlength=len(memory.family_ids))
    specimens = np.bincount(memory.rows.specimen, minlength=len(memory.specimen_ids))
    some = dict.fromkeys(by_size(families, size) for size in (100, 1_000, memory.size))
    return [
        Filter("no filter"),
        *(Filter(f"family of {families[n]:,}", families=(n,)) for n in some),
        Filter("specimen", specimens=(by_size(specimens, int(families.max()) // 4),)),
        *(Filter(MEMORY_TYPES[n], memory_types=(n,)) for n in (0, 2, 5)),
        Filter("30 days", days=30),
    ]


def combinations(memory: Memory) -> list[Filter]:
    """Every kind of filter with every other, at sizes where an exact scan is dear and where an index runs dry."""
    families = np.bincount(memory.rows.family, minlength=len(memory.family_ids))
    largest = tuple(int(n) for n in np.argsort(-families)[:5])
    taxa = {
        "any family": (),
        "largest family": largest[:1],
        "second family": largest[1:2],
        "five largest families": largest,
        "family of 1,000": (by_size(families, 1_000),),
    }
    return [
        Filter(", ".join((taxon, label, time)), families=ordinals, memory_types=types, days=days)
        for taxon, ordinals in taxa.items()
        for label, types in {"any type": (), "fact": (0,), "decision": (5,)}.items()
        for time, days in {"any time": None, "90 days": 90, "5 days": 5}.items()
    ]
