"""Many tenants: what one costs to make, and what the others then pay.

Two databases, one with ten tenants and one with many, each with the same small memory in its first: searches of it and
new connections to it take turns.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg

from benchmarks.bench import Bench, Database, Statement, Tenant
from benchmarks.data import CALLER_SCOPES, binary, load
from benchmarks.measure import Bar, Line, alone, compared, interleave, times
from benchmarks.rows.search import OURS

CREATE = Bar("≤ 15 ms", lambda ours, _: ours <= 15)
NO_SLOWER = Bar("no slower (≤ 1.05×)", lambda ours, few: ours <= 1.05 * few)
FEW = 10


def run(bench: Bench) -> Iterator[Line]:
    if bench.server is None:
        return
    many = bench.sizes.many_tenants
    few_db, many_db = bench.server.database(), bench.server.database()
    memory = bench.generator.memory(_create(few_db, 0), 100)
    with few_db.connect() as conn:
        load(conn, memory)
    memory.tenant = _create(many_db, 0)
    with many_db.connect() as conn:
        load(conn, memory)

    with few_db.connect() as conn:
        create = Statement(conn, "select graphium.create_tenant($1)")
        times(lambda i: create(f"tenant {i + 1}"), FEW - 1, warm_up=0)
    with many_db.connect() as conn:
        create = Statement(conn, "select graphium.create_tenant($1)")
        taken = times(lambda i: create(f"tenant {i + 1}"), many - 1, warm_up=0)
    yield alone(f"create_tenant, {many:,} of them", taken, CREATE, f"the last ten: {sum(taken[-10:]) / 10:.1f} each")

    queries = [binary(q) for q in bench.generator.on_topic(memory, 100)]
    with many_db.connect_as("tenant 0", CALLER_SCOPES) as one, few_db.connect_as("tenant 0", CALLER_SCOPES) as other:
        ours, reference = Statement(one, OURS), Statement(other, OURS)
        yield compared(
            f"search of 100 rows, {many:,} tenants against {FEW}",
            interleave(lambda i: ours(queries[i % 100]), lambda i: reference(queries[i % 100]), bench.sizes.queries),
            NO_SLOWER,
        )
    yield compared(
        f"connect, name the caller and search once, {many:,} tenants against {FEW}",
        interleave(
            lambda i: _connect(many_db, queries[i % 100]),
            lambda i: _connect(few_db, queries[i % 100]),
            bench.sizes.queries // 2,
        ),
        NO_SLOWER,
    )


def _create(database: Database, number: int) -> Tenant:
    slug = f"tenant {number}"
    with database.connect() as conn:
        row = conn.execute("select graphium.create_tenant(%s)", [slug]).fetchone()
    assert row is not None
    return Tenant(slug, row[0])


def _connect(database: Database, query: bytes) -> None:
    conn: psycopg.Connection[tuple[object, ...]] = database.connect_as("tenant 0", CALLER_SCOPES)
    Statement(conn, OURS)(query)
    conn.close()
