"""Row-level security, against the same query that filters by hand.

One statement, run twice: by an application's login, under the policy, and by a superuser, whom no policy touches, with
the policy's conditions written out.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench, Statement
from benchmarks.data import CALLER_SCOPES, binary
from benchmarks.measure import Bar, Line, compared, interleave
from benchmarks.rows.search import EXACT, HNSW, has_index

BAR = Bar("≤ 1.05×", lambda ours, raw: ours <= 1.05 * raw)

QUERY = """
select e.statement_id, e.embedding <=> $1::vector as distance
  from graphium.kg_embeddings e
 where e.tenant_id = '{tenant}' {by_hand}
 order by {order}
 limit 10
"""
BY_HAND = (
    "and (cardinality(e.required_scopes) = 0 or 'public' = any (e.required_scopes) or e.required_scopes && '{hr}')"
)


def run(bench: Bench) -> Iterator[Line]:
    count = bench.sizes.queries
    for memory in bench.everybody():
        sent = [binary(q) for q in bench.generator.on_topic(memory, count)]
        with bench.superuser() as conn, bench.database.connect_as(memory.tenant.slug, CALLER_SCOPES) as caller:
            for scan, order in {"exact": EXACT, **({"HNSW": HNSW} if has_index(conn, memory) else {})}.items():
                for session in (conn, caller):
                    session.execute("select '[1]'::vector")  # loads the library, so that its settings are known
                    session.execute("select set_config('hnsw.ef_search', '400', false)")
                    session.execute("select set_config('hnsw.iterative_scan', 'relaxed_order', false)")
                policy = Statement(caller, QUERY.format(tenant=memory.tenant.id, by_hand="", order=order))
                by_hand = Statement(conn, QUERY.format(tenant=memory.tenant.id, by_hand=BY_HAND, order=order))
                taken = interleave(lambda i: policy(sent[i]), lambda i: by_hand(sent[i]), count)
                yield compared(f"{memory.size:,} rows, {scan}", *taken, BAR)
