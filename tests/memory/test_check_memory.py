"""check_memory lists every kind of damage, and nothing else. A superuser does it with triggers out of the way."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.memory.conftest import ingest
from tests.support.databases import Connection, Database, as_caller

DAMAGE = [
    ("statement_count", "update graphium.dh_families set statement_count = statement_count + 1 where name = 'f'"),
    (
        "counter of statements",
        "update graphium_private.family_counters c set statements = 7 from graphium.dh_families f"
        " where f.id = c.family_id and f.name = 'f'",
    ),
    (
        "counter of statements",
        "delete from graphium_private.family_counters c using graphium.dh_families f where f.id = c.family_id"
        " and f.name = 'f'",
    ),
    (
        "counter of embeddings",
        "update graphium_private.family_counters c set embeddings = 7 from graphium.dh_families f"
        " where f.id = c.family_id and f.name = 'f'",
    ),
    (
        "summed embeddings",
        "update graphium_private.family_sums u set embeddings = 1 from graphium.dh_families f"
        " where f.id = u.family_id and f.name = 'f'",
    ),
    (
        "running sum",
        "update graphium_private.family_sums u set state[2] = state[2] + 1 from graphium.dh_families f"
        " where f.id = u.family_id and f.name = 'f'",
    ),
    (
        "running sum",
        "update graphium_private.family_sums u set state = null from graphium.dh_families f"
        " where f.id = u.family_id and f.name = 'f'",
    ),
    ("summary_embedding", "update graphium.dh_families set summary_embedding = '[1,2,4]' where name = 'f'"),
    ("summary_embedding", "update graphium.dh_families set summary_embedding = null where name = 'f'"),
    ("summary_embedding", "update graphium.dh_families set summary_embedding = '[1,2,4]' where name = 'empty'"),
    ("embedding", "update graphium.kg_embeddings set required_scopes = '{hr}'"),
    ("embedding", "update graphium.kg_embeddings set happened_at = happened_at + interval '1 second'"),
    ("embedding", "update graphium.kg_embeddings set layer_kind = 'preloaded'"),
    ("embedding", "update graphium.kg_statements set memory_type = 'decision'"),
    ("words", "delete from graphium_private.postings where word_key = (graphium_private._keys_of('{tea}'))[1]"),
    ("words", "update graphium_private.postings set required_scopes = '{hr}'"),
    ("orphan", "delete from graphium.kg_statements where content = 'Ada likes tea'"),
    ("orphan", "delete from graphium.dh_specimens where name = 'Bob'"),
    ("orphan", "delete from graphium.dh_genera where name = 'h'"),
    ("orphan", "delete from graphium.dh_families where name = 'f'"),
    ("orphan", "update graphium.dh_symbioses set source_statement_id = gen_random_uuid()"),
]


@pytest.fixture(scope="module")
def memory(shared: Database, admin: Connection) -> str:
    for tenant in ("acme", "umbrella"):
        admin.execute("select graphium.create_tenant(%s, dimensions => 3)", [tenant])
        with as_caller(admin, tenant):
            ingest(
                admin,
                [
                    {"content": "Ada likes tea", "embedding": [1, 2, 3]},
                    {"content": "ada likes tea."},
                    {"content": "Ada likes coffee", "embedding": [0, 1, 0], "occurred_at": "2026-01-01T00:00:00Z"},
                ],
                family="f",
                genus="g",
                specimen="Ada",
            )
            ingest(
                admin,
                [{"content": "Bob", "embedding": [3, 1, 1], "required_scopes": ["hr"]}],
                family="f",
                genus="h",
                specimen="Bob",
            )
            ingest(admin, [], family="empty")
            admin.execute(
                "select graphium.link_symbiosis('related_to', jsonb_build_object('statement_id', id), '{\"family\":"
                " \"empty\"}') from graphium.kg_statements where content = 'Ada likes coffee'"
            )
    return "acme"


def check(admin: Connection, tenant: str) -> list[tuple[Any, ...]]:
    return admin.execute("select problem, family, id, detail from graphium.check_memory(%s)", [tenant]).fetchall()


def test_healthy(admin: Connection, memory: str) -> None:
    assert check(admin, memory) == []
    with as_caller(admin, memory):
        assert admin.execute("select * from graphium.check_memory()").fetchall() == []


@pytest.mark.parametrize(("problem", "damage"), DAMAGE)
def test_damage_is_found(shared: Database, memory: str, problem: str, damage: str) -> None:
    conn = shared.connect()
    conn.autocommit = False
    conn.execute("set session_replication_role = replica")
    assert conn.execute(damage.encode()).rowcount > 0
    found = check(conn, memory)
    assert problem in {row[0] for row in found}
    assert all(row[3] and row[2] for row in found)
    conn.rollback()
    conn.close()


@pytest.mark.parametrize(("problem", "damage"), DAMAGE)
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_rebuilding_mends_what_is_derived(shared: Database, memory: str, problem: str, damage: str, role: str) -> None:
    conn = shared.connect()
    conn.autocommit = False
    conn.execute("set session_replication_role = replica")
    conn.execute(damage.encode())
    conn.execute(f"set session_replication_role = {role}".encode())
    before = check(conn, memory)
    mended = conn.execute("select graphium.rebuild_memory(%s)", [memory]).fetchone()
    left = check(conn, memory)
    assert mended == (len(before) - len(left),)
    if problem != "orphan":
        assert left == []
    assert {row[0] for row in left} <= {"orphan"}
    assert not any("embedding" in row[3] for row in left)
    assert conn.execute("select graphium.rebuild_memory(%s)", [memory]).fetchone() == (0,)
    conn.rollback()
    conn.close()


def test_what_was_ingested_without_triggers_can_be_forgotten_once_it_is_rebuilt(db: Database) -> None:
    admin, superuser = db.connect("admin"), db.connect()
    admin.execute("select graphium.create_tenant('acme', dimensions => 3)")
    for table, trigger in (("kg_statements", "statements_inserted"), ("kg_embeddings", "embeddings_inserted")):
        superuser.execute(f"alter table graphium.{table} disable trigger {trigger}".encode())
    with as_caller(admin, "acme"):
        ingest(admin, [{"content": "Ada likes tea", "embedding": [1, 2, 3]}], family="f", genus="g", specimen="Ada")
    for table, trigger in (("kg_statements", "statements_inserted"), ("kg_embeddings", "embeddings_inserted")):
        superuser.execute(f"alter table graphium.{table} enable trigger {trigger}".encode())
    forget = "select graphium.forget_context(array(select id from graphium.kg_statements))"
    with as_caller(admin, "acme"), pytest.raises(psycopg.errors.CheckViolation):
        admin.execute(forget)
    # the family's two counts, that of its embeddings, how many were summed, the sum and the summary
    assert admin.execute("select graphium.rebuild_memory('acme')").fetchone() == (6,)
    assert check(admin, "acme") == []
    with as_caller(admin, "acme"):
        assert admin.execute("select statement_count from graphium.dh_families").fetchone() == (1,)
        assert admin.execute(forget).fetchone() == (1,)
    assert check(admin, "acme") == []


def test_rebuilding_needs_a_snapshot_that_sees_the_last_writers(admin: Connection, memory: str) -> None:
    with admin.transaction(force_rollback=True):
        admin.execute("set transaction isolation level repeatable read")
        with pytest.raises(psycopg.errors.InvalidTransactionState):
            admin.execute("select graphium.rebuild_memory(%s)", [memory])


def test_who_may_ask(app: Connection, admin: Connection, memory: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        check(app, memory)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute("select graphium.rebuild_memory(%s)", [memory])
    with pytest.raises(psycopg.Error) as caught:
        check(admin, "no such tenant")
    assert caught.value.sqlstate == "MG002"
