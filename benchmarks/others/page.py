"""The page."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.others.compare import BATCH, MORE, Compared
from benchmarks.others.systems import COUNT

_INTRODUCTION = """<!-- Written by `make bench-others`. Do not edit: benchmarks/others/page.py has the text. -->
# Beside what one would use instead

`make bench-others` makes this page, `make bench-others-quick` a small one of it in `build/`. It installs LangGraph into an
environment of its own (`benchmarks/others/constraints.txt`); `benchmarks/others/systems.py` shows how each is called.

- **Graphium**: `graphium_db.Graphium`, a login of an application, policies in force. Nothing is tuned.
- **LangGraph**: `PostgresStore` of langgraph-checkpoint-postgres with its HNSW index (`ann_index_config`), which `setup()` makes
  before anything is stored. The namespace is (tenant, family), a search names the tenant; a batch is one `store.batch()` of puts.
  *Nothing tuned* is how it comes; for the other line its connection has the settings of the next.
- **A table by hand**: as pgvector's README has it: `COPY`, the HNSW index after the first load, a B-tree on the tenant, iterative scans; planned anew
  for each tenant, since a prepared plan for any tenant takes the index for small ones too (17 ms instead of 0.4, in one of the runs).

All run on the same server, on the same vectors; Graphium under its policies, the others as the superuser, whom none touches. No text
is embedded while the clock runs: LangGraph's embedding function looks vectors up, the others are handed them. Calls take turns, another
system first each time. A time is that of the Python call, from arguments to results, so it includes each client's own work; *server CPU*
is what its backend used, which depends less on what else the machine does. A small tenant stands beside the large one, and everything is
open to everybody in the tenant, for the others know no audiences. *On topic* asks a tenant about its own families, *off topic* about the
other tenant's, whose statements are nearest. Recall is against brute force. `hnsw.ef_search` of the tuned ones is the least of 40, 100, 200,
400 with a mean recall of 0.99 over trial queries of all kinds, else the best.

## What each does besides

| | Graphium | LangGraph's PostgresStore | a table by hand |
|---|---|---|---|
| keeps tenants apart | in the database: forced row-level security, whatever the client sends | no: the namespace is an argument, and whoever has the login reads all of them | no: a `where` that nobody may forget |
| audiences inside a tenant | scopes, by the same policies | no (a filter on a value's field, by the client) | no |
| says the same thing twice | kept once, counted, other wordings and sources kept as variants; never by an approximate index | kept twice, unless the key is the same: then overwritten | kept twice |
| what an ingest also does | classifies, indexes words, keeps a family's summary and counts, mirrors the taxonomy as a graph | — | — |
| search by words, with vectors | yes | no | no |
| changes a stored text | no: forget it and ingest the new wording | yes, by key; values are any JSON, several fields can be embedded | yes |
| expires by itself | no | yes (TTL) | no |
| filters | taxonomy, type, layer, time | any field of the value, by comparison | what one writes |
| vectors of several models in one database | yes, a model for each tenant | one dimension for each store | one for each table |
| needs | pgvector, Apache AGE, a bootstrap by a superuser | pgvector | pgvector |
"""


def markdown(machine: dict[str, str], found: Sequence[Compared]) -> str:
    where = "## Where\n\n| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in machine.items())
    return "\n".join([_INTRODUCTION, where + "\n", *(tables(one) for one in found)])


def tables(one: Compared) -> str:
    """The tables of one size."""
    parts = [
        f"## {one.size:,} statements, and a tenant of {one.small:,} beside them\n",
        *(f"{system} settled for {setting}.  " for system, setting in one.settled.items()),
        f"\nIngest in batches of {BATCH}, each a family of its own; *then* {MORE} more batches into what is indexed. Spread: medians of five slices of the run.\n",
        "| | first load, with the index, statements/s | spread of batches | server CPU, ms a batch | the index, s | then, statements/s | spread | server CPU, ms a batch | on disk |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for line in one.loaded:
        parts.append(
            f"| {line.system} | {line.load:,.0f} | {_range(line.load_spread, 0)} | {_ms(line.load_cpu, 0)} | {line.index_seconds:.1f} | {line.more:,.0f} | {_range(line.more_spread, 0)} | {_ms(line.more_cpu, 0)} | {line.megabytes:,.0f} MB |"
        )
    for case in dict.fromkeys(line.case for line in one.searched):
        parts += [
            f"\nThe {COUNT} nearest: {case}\n",
            f"| | p50, ms | spread | p95, ms | server CPU, ms | recall@{COUNT} | too few rows |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for found in (line for line in one.searched if line.case == case):
            parts.append(
                f"| {found.system} | {found.p50:.2f} | {_range(found.spread, 2)} | {found.p95:.2f} | {_ms(found.cpu, 2)} | {found.recall:.3f} | {found.fewer or ''} |"
            )
    return "\n".join(parts) + "\n"


def _range(pair: tuple[float, float], digits: int) -> str:
    return f"{pair[0]:,.{digits}f}–{pair[1]:,.{digits}f}"


def _ms(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
