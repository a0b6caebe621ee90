"""The worst of 45 combinations of filters in the largest tenant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.bench import Bench, Statement
from benchmarks.data import CALLER_SCOPES
from benchmarks.filters import SEARCH, combinations
from benchmarks.measure import Bar, Line, percentile, seconds
from benchmarks.truth import Truth

BAR = Bar("p95 ≤ 40 ms", lambda p95, _: p95 <= 40)


def run(bench: Bench) -> Iterator[Line]:
    memory = bench.searched(bench.sizes.largest)
    half = bench.sizes.worst_queries // 2
    queries = np.concatenate(list(bench.topics(memory, half).values()))
    truth = Truth(memory, queries)
    p95: dict[str, float] = {}
    recall: dict[str, float] = {}
    with bench.database.connect_as(memory.tenant.slug, CALLER_SCOPES) as caller:
        search = Statement(caller, SEARCH)
        for filter in combinations(memory):
            admitted = filter.admitted(memory)
            found: list[list[str]] = []
            times = [
                1000 * seconds(lambda i: found.append(filter.search(search, queries[i])), i)
                for i in range(len(queries))
            ]
            p95[filter.name] = percentile(times, 0.95)
            recall[filter.name] = float(np.mean([truth.recall(i, ids, admitted) for i, ids in enumerate(found)]))
    slowest = sorted(p95, key=lambda name: -p95[name])
    poorest = min(recall, key=lambda name: recall[name])
    yield Line(
        f"{memory.size:,} rows",
        "ms",
        p95[slowest[0]],
        bar=BAR,
        note="slowest: "
        + "; ".join(f"{name} {p95[name]:.1f}" for name in slowest[:3])
        + f"; lowest recall: {poorest} {recall[poorest]:.3f}",
        extra=p95,
    )
