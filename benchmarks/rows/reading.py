"""wake_up_context, context_tree and recall_context, in a tenant where all is preloaded."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench, Statement, column
from benchmarks.data import CALLER_SCOPES, load
from benchmarks.measure import Bar, Line, alone, times

WAKE_UP = Bar("≤ 5 ms", lambda ours, _: ours <= 5)
TREE = Bar("≤ 30 ms", lambda ours, _: ours <= 30)
PAGE = Bar("≤ 1 ms", lambda ours, _: ours <= 1)


def run(bench: Bench) -> Iterator[Line]:
    size, families = bench.sizes.preloaded, bench.sizes.families
    memory = bench.generator.memory(bench.tenant("reading"), size, family_sizes=[size // families] * families)
    with bench.superuser() as conn:
        load(conn, memory, layer_kind="preloaded")
    with bench.database.connect_as("reading", CALLER_SCOPES) as caller:
        wake_up = Statement(caller, "select * from graphium.wake_up_context()")
        tree = Statement(caller, "select * from graphium.context_tree()")
        page = Statement(caller, "select * from graphium.recall_context(after => $1)")

        yield alone(f"wake_up_context, {size:,} preloaded", times(lambda _: wake_up(), bench.sizes.queries), WAKE_UP)
        yield alone(
            f"context_tree, {families:,} families, {tree().ntuples:,} specimens, {size:,} statements",
            times(lambda _: tree(), bench.sizes.queries // 3),
            TREE,
        )
        ids = sorted(str(id) for id, seen in zip(memory.rows.ids, memory.seen, strict=True) if seen)
        assert column(page(None), "statement_id")[0] == ids[-1]
        for depth in (0.0, 0.5, 0.99):
            after = ids[int(len(ids) * (1 - depth)) - 1]
            yield alone(
                f"recall_context, a page of 50 at {depth:.0%} of {size:,}",
                times(lambda _: page(after), bench.sizes.queries),
                PAGE,
            )
