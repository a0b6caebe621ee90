"""Row-level security, against the same query that filters by hand.

One statement, run twice: under the policy as our functions are (as graphium_owner, for an application's caller), and by
a superuser, whom no policy touches, with the policy's conditions written out. A caller's own SQL is under one more
policy, which keeps his conditions behind ours (docs/decisions/0060-callers-conditions-come-last.md) and costs a
microsecond a row: a line says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from psycopg import sql

from benchmarks.bench import Bench, Connection, Statement
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
                by_hand = Statement(conn, QUERY.format(tenant=memory.tenant.id, by_hand=BY_HAND, order=order))
                for who, bar in (("as our functions do", BAR), ("as a caller's own query", None)):
                    if scan == "HNSW" and bar is None:
                        continue  # callers cannot read along the index
                    if bar is not None:
                        _become_owner(conn, caller)
                    policy = Statement(caller, QUERY.format(tenant=memory.tenant.id, by_hand="", order=order))
                    taken = interleave(
                        _asking(policy, sent),
                        _asking(by_hand, sent),
                        count,
                        backends=(caller.info.backend_pid, conn.info.backend_pid),
                    )
                    caller.execute("reset role")
                    yield compared(f"{memory.size:,} rows, {scan}, {who}", taken, bar)


def _asking(statement: Statement, sent: list[bytes]) -> Callable[[int], object]:
    return lambda i: statement(sent[i])


def _become_owner(superuser: Connection, caller: Connection) -> None:
    """Who calls is still the application: that is decided by the login."""
    login = sql.Identifier(caller.info.user)
    superuser.execute(sql.SQL("grant graphium_owner to {} with inherit false, set true").format(login))
    caller.execute("set role graphium_owner")
    superuser.execute(sql.SQL("revoke graphium_owner from {}").format(login))
