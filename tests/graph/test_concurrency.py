"""Several sessions at one graph, and one session at many: watched, not slept for."""

from __future__ import annotations

from uuid import uuid4

import pytest
from psycopg import errors
from psycopg.types.json import Jsonb

from tests.graph.mirror import Taxonomy, tenant_id
from tests.support.concurrency import all_at_once, in_thread, wait_until_blocked
from tests.support.databases import Connection, Database, as_caller


def ingest(conn: Connection, family: str, genus: str, specimen: str) -> None:
    conn.execute(
        "select graphium.ingest_context(%s, %s, %s, %s)",
        [family, genus, specimen, Jsonb([{"content": f"about {specimen}", "embedding": None}])],
    )


def count(conn: Connection, query: str = "MATCH (n) RETURN count(*)") -> int:
    row = conn.execute("select graphium.cypher(%s)", [query]).fetchone()
    assert row is not None
    return int(row[0])


def test_two_sessions_create_in_one_tenant(db: Database, tenant: str, superuser: Connection) -> None:
    one, two = db.connect("app"), db.connect("app")
    with as_caller(one, tenant), as_caller(two, tenant):
        ingest(one, "f one", "g", "s")
        ingest(two, "f two", "g", "s")  # does not wait: nothing in the graph is shared
        assert (count(one), count(two)) == (3, 3)
    taxonomy = Taxonomy(superuser, tenant)
    assert len(taxonomy.assert_mirrored().vertices) == 6


def test_two_sessions_create_the_same_family(db: Database, tenant: str, superuser: Connection) -> None:
    one, two, observer = db.connect("app"), db.connect("app"), db.connect()
    with as_caller(one, tenant):
        ingest(one, "f", "g", "s one")

        def second() -> None:
            with as_caller(two, tenant):
                ingest(two, "f", "g", "s two")

        with in_thread(second) as done:
            wait_until_blocked(observer, two, by=one)
            one.execute("commit")
            done.result(20)
            one.execute("begin")
    assert len(Taxonomy(superuser, tenant).assert_mirrored().vertices) == 1 + 1 + 2


def test_twenty_sessions(db: Database, tenant: str, superuser: Connection) -> None:
    conns = [db.connect("app") for _ in range(20)]

    def work(n: int) -> None:
        for i in range(5):
            with as_caller(conns[n], tenant):
                ingest(conns[n], f"f{(n + i) % 3}", f"g{i % 2}", f"s{n}")

    all_at_once([lambda n=n: work(n) for n in range(20)])
    Taxonomy(superuser, tenant).assert_mirrored()


def test_readers_do_not_wait_and_see_what_is_committed(db: Database, tenant: str) -> None:
    writer, reader = db.connect("app"), db.connect("app")
    with as_caller(writer, tenant):
        ingest(writer, "f", "g", "s")
        with as_caller(reader, tenant):
            assert count(reader) == 0
        assert count(writer) == 3
    with as_caller(reader, tenant):
        assert count(reader) == 3


@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_a_new_genus_under_a_family_whose_audience_changes(
    db: Database, tenant: str, superuser: Connection, level: str
) -> None:
    """Nothing of the family's audience is copied into the graph, so no order of commits can leave it stale."""
    taxonomy = Taxonomy(superuser, tenant)
    [family] = taxonomy.families("f")
    one, two, reader = db.connect(), db.connect(), db.connect("app")
    one.execute("begin")
    two.execute(f"begin isolation level {level}".encode())
    two.execute("select 1 from graphium.dh_families")  # takes the snapshot
    one.execute(
        "insert into graphium.dh_genera (tenant_id, id, family_id, name) values (%s, %s, %s, 'g')",
        [taxonomy.tenant, uuid4(), family],
    )
    two.execute("update graphium.dh_families set required_scopes = '{hr}' where id = %s", [family])
    one.execute("commit")
    two.execute("commit")
    taxonomy.assert_mirrored()
    with as_caller(reader, tenant):
        assert count(reader) == 0
    with as_caller(reader, tenant, ["hr"]):
        assert count(reader) == 2


def test_a_rebuild_waits_for_writers_and_they_for_it(db: Database, tenant: str, superuser: Connection) -> None:
    taxonomy = Taxonomy(superuser, tenant)
    [family] = taxonomy.families("f")
    writer, admin, late, observer = db.connect(), db.connect("admin"), db.connect(), db.connect()
    insert = "insert into graphium.dh_genera (tenant_id, id, family_id, name) values (%s, %s, %s, %s)"
    writer.execute("begin")
    writer.execute(insert, [taxonomy.tenant, uuid4(), family, "before"])
    with in_thread(lambda: admin.execute("select graphium.rebuild_graph(%s)", [tenant])) as rebuilt:
        wait_until_blocked(observer, admin, by=writer)
        with in_thread(lambda: late.execute(insert, [taxonomy.tenant, uuid4(), family, "after"])) as written:
            wait_until_blocked(observer, late)
            writer.execute("commit")
            rebuilt.result(20)
            written.result(20)
    assert {v[2] for v in taxonomy.assert_mirrored().vertices} == {"f", "before", "after"}


def test_a_session_with_warm_caches_after_another_ones_rebuild(
    db: Database, tenant: str, superuser: Connection
) -> None:
    """AGE caches graphs and labels by oid in each backend."""
    Taxonomy(superuser, tenant).small()
    reader, admin = db.connect("app"), db.connect("admin")
    for _ in range(3):
        with as_caller(reader, tenant):
            assert count(reader) == 18
            assert count(reader, "MATCH (f:Family)-[:HAS_GENUS]->(g) RETURN count(*)") == 4
        admin.execute("select graphium.rebuild_graph(%s)", [tenant])


def test_create_and_drop_a_tenant_fifty_times_in_one_session(db: Database) -> None:
    admin, other = db.connect("admin"), db.connect("app")
    for n in range(50):
        admin.execute("select graphium.create_tenant('again')")
        with as_caller(admin, "again"):
            if n % 2:
                ingest(admin, "f", "g", f"s{n}")
            assert count(admin) == (3 if n % 2 else 0)
        with as_caller(other, "again"):
            assert count(other) == (3 if n % 2 else 0)
        admin.execute("select graphium.drop_tenant('again')")
        with pytest.raises(errors.Error), as_caller(other, "again"):
            count(other)
    superuser = db.connect()
    assert superuser.execute(
        "select count(*) from ag_catalog.ag_graph where name not in (select graph_name from graphium.tenants)"
    ).fetchone() == (0,)
    assert (
        superuser.execute("select count(*) from pg_namespace where nspname ~ '^graphium_[0-9a-f]{32}$'").fetchone()
        == superuser.execute("select count(*) from graphium.tenants").fetchone()
    )


def test_tenants_created_at_once(db: Database) -> None:
    admins = [db.connect("admin") for _ in range(8)]
    all_at_once(
        [lambda n=n: admins[n].execute("select graphium.create_tenant(%s)", [f"at once {n}"]) for n in range(8)]
    )
    reader = db.connect("app")
    for n in range(8):
        with as_caller(reader, f"at once {n}"):
            ingest(reader, "f", "g", "s")
            assert count(reader) == 3


def test_the_first_use_of_a_tenant_at_once(db: Database, tenant: str, superuser: Connection) -> None:
    conns = [db.connect("app") for _ in range(8)]

    def first(n: int) -> int:
        with as_caller(conns[n], tenant):
            ingest(conns[n], f"f{n}", "g", "s")
            return count(conns[n], f"MATCH (f:Family {{name: 'f{n}'}}) RETURN count(*)")

    assert all_at_once([lambda n=n: first(n) for n in range(8)]) == [1] * 8
    assert len(Taxonomy(superuser, tenant).assert_mirrored().vertices) == 24


def test_dropping_a_tenant_while_it_is_read_and_written(
    db: Database, admin_conn: Connection, superuser: Connection
) -> None:
    admin_conn.execute("select graphium.create_tenant('leaving')")
    id = tenant_id(superuser, "leaving")
    writer, observer = db.connect("app"), db.connect()
    with as_caller(writer, "leaving"):
        ingest(writer, "f", "g", "s")
        assert count(writer) == 3
        dropper = db.connect("admin")
        with in_thread(lambda: dropper.execute("select graphium.drop_tenant('leaving')")) as dropped:
            wait_until_blocked(observer, dropper, by=writer)
            writer.execute("commit")
            dropped.result(20)
            writer.execute("begin")
    assert superuser.execute("select to_regnamespace(%s)", [f"graphium_{id.hex}"]).fetchone() == (None,)


def test_a_session_that_has_read_vertices_can_rebuild_and_drop(db: Database, admin_conn: Connection) -> None:
    """AGE keeps what it knows of a graph for the session; AGE 1.7 then refused to let the schema go."""
    admin_conn.execute("select graphium.create_tenant('read before', dimensions => 3)")
    with as_caller(admin_conn, "read before"):
        admin_conn.execute("select graphium.ingest_context('f', 'g', 's', '[]')")
    query = "select graphium.cypher('MATCH (f:Family) RETURN f.name')"
    for _ in range(2):
        with as_caller(admin_conn, "read before"):
            assert admin_conn.execute(query.encode()).fetchall() == [("f",)]
        admin_conn.execute("select graphium.rebuild_graph('read before')")
    with as_caller(admin_conn, "read before"):
        assert admin_conn.execute(query.encode()).fetchall() == [("f",)]
    admin_conn.execute("select graphium.drop_tenant('read before')")
