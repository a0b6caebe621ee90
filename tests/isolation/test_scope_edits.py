"""Edits of audiences: in bulk and with cascade, all or nothing, followed by all that is derived, and on record."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors, sql

from tests.memory.conftest import ingest
from tests.support.concurrency import in_thread, wait_until_blocked
from tests.support.databases import Connection, Database, as_caller

numbers = itertools.count(1)


@pytest.fixture
def tenant(admin_conn: Connection) -> str:
    slug = f"tenant {next(numbers)}"
    admin_conn.execute("select graphium.create_tenant(slug => %s, dimensions => 3)", [slug])
    return slug


def say(
    conn: Connection, content: str, vector: list[float], scopes: list[str], family: str = "work", specimen: str = "Ada"
) -> UUID:
    [row] = ingest(
        conn,
        [{"content": content, "embedding": vector, "required_scopes": scopes}],
        family=family,
        specimen=specimen,
        required_scopes=[],
    )
    assert isinstance(row[1], UUID)
    return row[1]


def seen(conn: Connection) -> set[str]:
    return {row[0] for row in conn.execute("select content from graphium.recall_context()")}


def family_id(conn: Connection, name: str) -> UUID:
    row = conn.execute("select id from graphium.dh_families where name = %s", [name]).fetchone()
    assert row is not None
    assert isinstance(row[0], UUID)
    return row[0]


def edits(conn: Connection) -> list[tuple[Any, ...]]:
    return conn.execute(
        "select kind, row_id, old_scopes, new_scopes, login, caller_tenant, caller_role, caller_scopes"
        "  from graphium.scope_edits order by id"
    ).fetchall()


def test_many_at_once_or_none(app_conn: Connection, admin_conn: Connection, tenant: str) -> None:
    with as_caller(app_conn, tenant, ["hr"]):
        one = say(app_conn, "one", [1, 0, 0], [])
        two = say(app_conn, "two", [0, 1, 0], [], family="leisure")
        three = say(app_conn, "three", [0, 0, 1], ["hr"], family="leisure")
        call = "select graphium.set_many_required_scopes(kind => 'statement', ids => %s, required_scopes => '{hr}')"
        assert app_conn.execute(call, [[two, one, two, three]]).fetchone() == (2,)  # three was so already
        assert app_conn.execute(call, [[]]).fetchone() == (0,)
        assert app_conn.execute("select graphium.set_many_required_scopes('statement', %s, '{}')", [[two]]).fetchone()
    with as_caller(app_conn, tenant):
        assert seen(app_conn) == {"two"}
        with pytest.raises(psycopg.Error) as caught, app_conn.transaction():  # one of them is hidden: none is changed
            app_conn.execute(
                "select graphium.set_many_required_scopes('statement', %s, '{public}')", [[two, three, one]]
            )
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (
        "MG007",
        f"ids: no statement with the id {three}",
    )
    with as_caller(admin_conn, tenant):
        assert admin_conn.execute(
            "select content, required_scopes from graphium.recall_context() order by 1"
        ).fetchall() == [
            ("one", ["hr"]),
            ("three", ["hr"]),
            ("two", []),
        ]
        recorded = [row[:4] for row in edits(admin_conn)]
        # rows of one UPDATE are recorded in the order in which it found them
        assert sorted(recorded[:2]) == sorted(("statement", id, [], ["hr"]) for id in (one, two))
        assert recorded[2:] == [("statement", two, ["hr"], [])]


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ("'statement', null, '{}'", "MG008", "ids must"),
        ("'statement', '{null}', '{}'", "MG007", "NULL"),
        ("'statement', array[gen_random_uuid()], null", "MG008", "required_scopes must"),
        ("'statement', array[gen_random_uuid()], '{\" \"}'", "MG008", "required_scopes: a scope"),
        ("'genus', array[gen_random_uuid()], '{}'", "MG008", "kind must"),
        ("null, array[gen_random_uuid()], '{}'", "MG008", "kind must"),
        ("'family', array[gen_random_uuid()], '{}'", "MG007", "no family"),
    ],
)
def test_bad_arguments(app_conn: Connection, tenant: str, arguments: str, code: str, named: str) -> None:
    with pytest.raises(psycopg.Error) as caught, as_caller(app_conn, tenant):
        app_conn.execute(f"select graphium.set_many_required_scopes({arguments})".encode())
    assert caught.value.sqlstate == code
    assert named in (caught.value.diag.message_primary or "")
    assert caught.value.diag.message_hint


def test_an_audience_that_the_editor_does_not_hold(app_conn: Connection, tenant: str) -> None:
    with as_caller(app_conn, tenant, ["hr"]):
        one = say(app_conn, "one", [1, 0, 0], [])
        with pytest.raises(psycopg.Error) as caught, app_conn.transaction():
            app_conn.execute("select graphium.set_many_required_scopes('statement', %s, '{legal}')", [[one]])
        assert caught.value.sqlstate == "MG006"
        assert seen(app_conn) == {"one"}


def test_a_cascade_takes_everything_along(
    db: Database, app_conn: Connection, admin_conn: Connection, superuser: Connection, tenant: str
) -> None:
    """What the editor does not see stays; summaries, vectors' copies, words, dedup audience and graph agree."""
    with as_caller(app_conn, tenant, ["hr", "legal"]):
        open_one = say(app_conn, "Ada runs a marathon", [1, 0, 0], [])
        hidden = say(app_conn, "Ada signs contracts", [0, 1, 0], ["legal"])
        other = say(app_conn, "Bob rides a bicycle", [0, 0, 1], [], specimen="Bob")
        work = family_id(app_conn, "work")
    with as_caller(app_conn, tenant, ["hr"]):
        call = "select graphium.set_many_required_scopes('family', %s, '{hr}', cascade => true)"
        assert app_conn.execute(call, [[work]]).fetchone() == (5,)  # the family, two specimens, two statements
        assert app_conn.execute(call, [[work]]).fetchone() == (0,)
        # The same sentence again, with the call's audience, is the same statement; an open one is another.
        [again] = ingest(
            app_conn,
            [{"content": "Ada runs a marathon", "embedding": [1, 0, 0]}],
            family="work",
            required_scopes=["hr"],
        )
        assert again[1:3] == (open_one, True)
    with as_caller(app_conn, tenant):
        assert seen(app_conn) == set()
        assert app_conn.execute("select graphium.cypher('MATCH (n) RETURN n.name')").fetchall() == []
        for query in ("query_text => 'marathon'", "query_embedding => '[1,0,0]'"):
            assert app_conn.execute(f"select * from graphium.search_context({query})".encode()).fetchall() == []
    with as_caller(app_conn, tenant, ["hr"]):
        assert seen(app_conn) == {"Ada runs a marathon", "Bob rides a bicycle"}
        assert {r[0] for r in app_conn.execute("select graphium.cypher('MATCH (n) RETURN n.name')")} == {
            "work",
            "feedback",
            "Ada",
            "Bob",
        }
        assert app_conn.execute(
            "select statement_count, summary_embedding::text from graphium.dh_families"
        ).fetchall() == [(2, "[0.5,0,0.5]")]
    copies = superuser.execute(
        "select s.id, s.required_scopes, e.required_scopes, array_agg(distinct p.required_scopes::text)"
        "  from graphium.kg_statements s join graphium.kg_embeddings e on e.statement_id = s.id"
        "  join graphium_private.postings p on p.statement_id = s.id where s.family_id = %s group by 1, 2, 3 order by 1",
        [work],
    ).fetchall()
    assert copies == [
        (id, [scope], [scope], [f"{{{scope}}}"]) for id, scope in ((open_one, "hr"), (hidden, "legal"), (other, "hr"))
    ]
    with as_caller(admin_conn, tenant):
        found = edits(admin_conn)
        assert sorted((kind, old, new) for kind, _, old, new, *_ in found) == [
            ("family", [], ["hr"]),
            ("specimen", [], ["hr"]),
            ("specimen", [], ["hr"]),
            ("statement", [], ["hr"]),
            ("statement", [], ["hr"]),
        ]
        assert {row[1] for row in found if row[0] == "statement"} == {open_one, other}
        assert {row[4:] for row in ((*r[:7], tuple(r[7])) for r in found)} == {
            (db.cluster.role("app"), tenant, "app", ("hr",))
        }


def test_the_record_says_who(db: Database, admin_conn: Connection, superuser: Connection, tenant: str) -> None:
    analyst = db.principal(tenant, ["hr", "legal"])
    one = say(analyst, "one", [1, 0, 0], [])
    analyst.execute("set graphium.scopes = '{hr}'")
    analyst.execute("select graphium.set_required_scopes('statement', %s, '{hr}')", [one])
    login = analyst.info.user
    with as_caller(admin_conn, tenant):
        admin_conn.execute("select graphium.set_required_scopes('statement', %s, '{legal}')", [one])
    superuser.execute("update graphium.kg_statements set required_scopes = '{}' where id = %s", [one])
    with as_caller(admin_conn, tenant):
        assert edits(admin_conn) == [
            ("statement", one, [], ["hr"], login, tenant, "principal", ["hr"]),
            ("statement", one, ["hr"], ["legal"], db.cluster.role("admin"), tenant, "admin", None),
            ("statement", one, ["legal"], [], superuser.info.user, None, None, None),
        ]
        # Of a transaction that came to nothing there is no record; of a statement that is gone there is.
        with admin_conn.transaction(force_rollback=True):
            admin_conn.execute("select graphium.set_required_scopes('statement', %s, '{hr}')", [one])
            assert len(edits(admin_conn)) == 4
        admin_conn.execute("select graphium.forget_context(%s)", [[one]])
        assert len(edits(admin_conn)) == 3


def test_the_record_is_for_the_tenants_admin(
    db: Database, app_conn: Connection, admin_conn: Connection, tenant: str
) -> None:
    analyst = db.principal(tenant, ["hr"])
    one = say(analyst, "one", [1, 0, 0], [])
    analyst.execute("select graphium.set_required_scopes('statement', %s, '{hr}')", [one])
    admin_conn.execute("select graphium.create_tenant(slug => %s, dimensions => 3)", [f"{tenant}, another"])
    for other in (f"{tenant}, another", None):
        with admin_conn.transaction():
            if other:
                admin_conn.execute("select graphium.set_caller(%s)", [other])
            assert edits(admin_conn) == []
    for conn in (analyst, app_conn):
        with pytest.raises(errors.InsufficientPrivilege):
            edits(conn)
    for statement in (
        "delete from graphium.scope_edits",
        "update graphium.scope_edits set login = 'nobody'",
        "truncate graphium.scope_edits",
    ):
        with pytest.raises(errors.InsufficientPrivilege), as_caller(admin_conn, tenant):
            admin_conn.execute(sql.SQL(statement))
    # An admin himself is on record and cannot take himself off it; the tenant's end is the record's.
    admin_conn.execute("select graphium.drop_tenant(%s)", [tenant])
    assert db.connect().execute("select count(*) from graphium.scope_edits where row_id = %s", [one]).fetchone() == (0,)


def test_two_bulk_edits_crosswise_do_not_deadlock(db: Database, app_conn: Connection, tenant: str) -> None:
    with as_caller(app_conn, tenant):
        ids = [say(app_conn, name, [1, n, 0], [], family=name) for n, name in enumerate(("a", "b", "c"))]
    first, second = db.connect("app"), db.connect("app")
    call = "select graphium.set_many_required_scopes('statement', %s, %s)"

    def edit() -> Any:
        with as_caller(second, tenant, ["hr", "legal"]):
            return second.execute(call, [ids[::-1], ["hr", "legal"]]).fetchone()

    first.execute("begin")
    first.execute("select graphium.set_caller(%s, '{hr}')", [tenant])
    assert first.execute(call, [ids, ["hr"]]).fetchone() == (3,)
    with in_thread(edit) as result:
        wait_until_blocked(db.connect(), waiter=second, by=first)
        assert first.execute(call, [ids[1:], ["public"]]).fetchone() == (2,)
        first.execute("commit")
        assert result.result(timeout=30) == (3,)
    with as_caller(app_conn, tenant, ["legal"]):
        assert seen(app_conn) == {"a", "b", "c"}
