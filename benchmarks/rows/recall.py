"""recall@10 against brute force, on and off topic, with and without filters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.bench import Bench, Statement
from benchmarks.data import CALLER_SCOPES
from benchmarks.filters import SEARCH, usual
from benchmarks.measure import Bar, Line
from benchmarks.truth import Truth

# 10 rows whenever 10 match is part of it: a row that is missing is a miss
BAR = Bar("≥ 0.99, and 10 rows where 10 match", lambda recall, _: recall >= 0.99)


def run(bench: Bench) -> Iterator[Line]:
    count = bench.sizes.recall_queries
    for memory in bench.everybody():
        with bench.database.connect_as(memory.tenant.slug, CALLER_SCOPES) as caller:
            search = Statement(caller, SEARCH)
            for topic, queries in bench.topics(memory, count).items():
                truth = Truth(memory, queries)
                short = 0
                shares: dict[str, float] = {}
                for filter in usual(memory):
                    admitted = filter.admitted(memory)
                    found = [filter.search(search, query) for query in queries]
                    short += sum(len(ids) < min(10, int(admitted.sum())) for ids in found)
                    shares[filter.name] = float(
                        np.mean([truth.recall(i, ids, admitted) for i, ids in enumerate(found)])
                    )
                worst = min(shares, key=lambda name: shares[name])
                yield Line(
                    f"{memory.size:,} rows, {topic}",
                    "recall",
                    shares[worst] if not short else 0.0,
                    bar=BAR,
                    note=f"worst of {len(shares)} filters: {worst}; no filter: {shares['no filter']:.3f}; "
                    f"answers with too few rows: {short}",
                    series=topic,
                    at=memory.size,
                    extra=shares,
                )
