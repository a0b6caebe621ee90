"""What a statement keeps of its classification, and how a new rule set labels again what an older one labelled."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from graphium_db.classification import rule_set
from graphium_db.resources import db_path
from tests.memory.conftest import ingest
from tests.support.concurrency import in_thread, wait_until_blocked
from tests.support.databases import Connection, Database, as_caller

VERSION = rule_set().version
KEPT = "select rule, rules_version, is_type_chosen, is_layer_chosen from graphium.kg_statements where content = %s"
LABELS = "select content, memory_type, layer_kind, rule, rules_version from graphium.kg_statements order by id"


@pytest.fixture(scope="module")
def boss(db: Database) -> Connection:
    return db.connect()


@pytest.fixture(scope="module")
def app(db: Database) -> Connection:
    return db.connect("app")


def store(app: Connection, tenant: str, *statements: Any, scopes: tuple[str, ...] = ()) -> list[UUID]:
    with as_caller(app, tenant, list(scopes)):
        rows = ingest(app, [{"content": s} if isinstance(s, str) else s for s in statements])
    return [row[1] for row in rows]


def as_an_older_set_did(boss: Connection, *ids: UUID) -> None:
    """As if rule "event.old" of version 0 had made events of them; what a caller chose stays his."""
    boss.execute(
        "update graphium.kg_statements set rule = 'event.old', rules_version = 0,"
        " memory_type = case when is_type_chosen then memory_type else 'event' end,"
        " layer_kind = case when is_layer_chosen then layer_kind else 'on_demand' end where id = any (%s)",
        [list(ids)],
    )


def labels(boss: Connection, *ids: UUID) -> list[tuple[Any, ...]]:
    found = boss.execute(
        "select id, memory_type, layer_kind, rule, rules_version from graphium.kg_statements where id = any (%s)",
        [list(ids)],
    )
    by_id = {row[0]: row[1:] for row in found}
    return [by_id[id_] for id_ in ids]


def reclassify(app: Connection, **arguments: Any) -> tuple[int, int, UUID | None]:
    given = ", ".join(f"{name} => %({name})s" for name in arguments)
    row = app.execute(f"select statements, changed, last_id from graphium.reclassify({given})".encode(), arguments)
    found = row.fetchone()
    assert found is not None
    return found


def plan(app: Connection, count: int = 3) -> list[tuple[Any, ...]]:
    return app.execute(
        "select rule_before, version_before, memory_type_before, layer_kind_before, rule_after, version_after,"
        " memory_type_after, layer_kind_after, statements, samples from graphium.plan_reclassification(%s)",
        [count],
    ).fetchall()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, ("preference.like", VERSION, False, False)),
        ({"memory_type": "advice"}, ("preference.like", VERSION, True, False)),
        ({"layer_kind": "on_demand"}, ("preference.like", VERSION, False, True)),
        ({"memory_type": "preference"}, ("preference.like", VERSION, True, False)),  # as the rule says, and yet chosen
        ({"memory_type": "advice", "layer_kind": "preloaded"}, (None, None, True, True)),
    ],
)
def test_a_statement_says_which_rule_decided_and_what_was_chosen(
    app: Connection, boss: Connection, tenant: str, given: dict[str, str], kept: tuple[Any, ...]
) -> None:
    content = f"I love tea at {tenant}."
    [id_] = store(app, tenant, {"content": content, **given})
    assert boss.execute(KEPT, [content]).fetchall() == [kept]
    with as_caller(app, tenant):  # and whoever sees it sees that
        assert app.execute(KEPT, [content]).fetchall() == [kept]
    assert store(app, tenant, content) == [id_]  # said again: nothing more was chosen
    assert boss.execute(KEPT, [content]).fetchall() == [kept]


def test_what_is_chosen_when_it_is_said_again_counts(app: Connection, boss: Connection, tenant: str) -> None:
    content = f"I love tea at {tenant}."
    store(app, tenant, content, {"content": content, "layer_kind": "on_demand"})
    assert boss.execute(KEPT, [content]).fetchall() == [("preference.like", VERSION, False, True)]
    store(app, tenant, {"content": content, "memory_type": "fact"})
    assert boss.execute(KEPT, [content]).fetchall() == [(None, None, True, True)]


def test_plan_and_apply(app: Connection, boss: Connection, tenant: str) -> None:
    ids = store(
        app,
        tenant,
        "I love tea.",
        "I love rain.",
        "We decided to renew the lease.",
        "The shop is on the second floor.",
        {"content": "I love chess.", "memory_type": "fact"},
        {"content": "I love cake.", "layer_kind": "on_demand"},
        {"content": "I love jazz.", "memory_type": "fact", "layer_kind": "on_demand"},
        {"content": "I love milk."},
    )
    as_an_older_set_did(boss, *ids[:6])
    old = ("event.old", 0, "event", "on_demand")
    expected = [
        (*old, "preference.like", VERSION, "preference", "preloaded", 2, ["I love tea.", "I love rain."]),
        (*old, "decision.chosen", VERSION, "decision", "on_demand", 1, ["We decided to renew the lease."]),
        (*old, "fact.default", VERSION, "fact", "on_demand", 1, ["The shop is on the second floor."]),
        (*old, "preference.like", VERSION, "preference", "on_demand", 1, ["I love cake."]),
        ("event.old", 0, "fact", "on_demand", "preference.like", VERSION, "fact", "preloaded", 1, ["I love chess."]),
    ]
    state = boss.execute(LABELS).fetchall()
    with as_caller(app, tenant):
        app.execute("set transaction read only")
        planned = plan(app)
        assert sorted(planned) == sorted(expected)
        assert planned[0] == expected[0]  # most statements first
        assert plan(app, 1)[0][-1] == ["I love tea."]
        assert plan(app, 0)[0][-1] == []
    assert boss.execute(LABELS).fetchall() == state

    with as_caller(app, tenant):
        assert reclassify(app) == (6, 6, ids[5])
        assert reclassify(app) == (0, 0, None)
        assert plan(app) == []
    assert labels(boss, *ids) == [
        ("preference", "preloaded", "preference.like", VERSION),
        ("preference", "preloaded", "preference.like", VERSION),
        ("decision", "on_demand", "decision.chosen", VERSION),
        ("fact", "on_demand", "fact.default", VERSION),
        ("fact", "preloaded", "preference.like", VERSION),
        ("preference", "on_demand", "preference.like", VERSION),
        ("fact", "on_demand", None, None),
        ("preference", "preloaded", "preference.like", VERSION),
    ]
    with as_caller(app, tenant):  # wake-up goes by the new labels
        woken = {content for (content,) in app.execute("select content from graphium.wake_up_context()")}
    assert woken == {"I love tea.", "I love rain.", "I love chess.", "I love milk."}


def test_copies_of_the_labels_follow(app: Connection, boss: Connection, admin_conn: Connection) -> None:
    admin_conn.execute("select graphium.create_tenant('small vectors', dimensions => 2)")
    [id_] = store(app, "small vectors", {"content": "I love tea.", "embedding": [1, 2]})
    as_an_older_set_did(boss, id_)
    copy = "select memory_type, layer_kind from graphium.kg_embeddings where statement_id = %s"
    assert boss.execute(copy, [id_]).fetchall() == [("event", "on_demand")]
    with as_caller(app, "small vectors"):
        assert reclassify(app)[:2] == (1, 1)
    assert boss.execute(copy, [id_]).fetchall() == [("preference", "preloaded")]


def test_batches_go_on_where_the_last_one_ended(app: Connection, boss: Connection, tenant: str) -> None:
    ids = store(app, tenant, *(f"I love tea number {n}." for n in range(5)), "The shop is open.")
    as_an_older_set_did(boss, *ids)
    boss.execute("update graphium.kg_statements set memory_type = 'fact' where id = %s", [ids[5]])  # as it will be
    with as_caller(app, tenant):
        assert reclassify(app, batch_size=2) == (2, 2, ids[1])
    with as_caller(app, tenant):  # somebody broke it off: what is done is done
        assert reclassify(app, batch_size=2) == (2, 2, ids[3])
        assert reclassify(app, batch_size=2, after=ids[3]) == (2, 1, ids[5])
        assert reclassify(app, batch_size=2, after=ids[5]) == (0, 0, None)
    assert {row[3] for row in labels(boss, *ids)} == {VERSION}


def test_only_what_the_caller_sees(app: Connection, boss: Connection, tenant: str, admin_conn: Connection) -> None:
    admin_conn.execute("select graphium.create_tenant(%s)", [f"not {tenant}"])
    [open_] = store(app, tenant, "I love tea.")
    [gated] = store(app, tenant, {"content": "I love secrets.", "required_scopes": ["hr"]}, scopes=("hr",))
    [foreign] = store(app, f"not {tenant}", "I love gossip.")
    as_an_older_set_did(boss, open_, gated, foreign)
    with as_caller(app, tenant):
        assert [row[8:] for row in plan(app)] == [(1, ["I love tea."])]
        assert reclassify(app) == (1, 1, open_)
    assert labels(boss, gated, foreign) == [("event", "on_demand", "event.old", 0)] * 2
    with as_caller(app, tenant, ["hr"]):
        assert [row[8:] for row in plan(app)] == [(1, ["I love secrets."])]
        assert reclassify(app) == (1, 1, gated)
    assert labels(boss, foreign) == [("event", "on_demand", "event.old", 0)]


def test_a_label_that_is_chosen_meanwhile_wins(app: Connection, boss: Connection, db: Database, tenant: str) -> None:
    [one, other] = store(app, tenant, "I love tea.", "I love rain.")
    as_an_older_set_did(boss, one, other)
    second = db.connect("app")
    with as_caller(app, tenant):
        ingest(app, [{"content": "I love tea.", "memory_type": "decision", "layer_kind": "on_demand"}])
        ingest(app, [{"content": "I love rain.", "memory_type": "decision"}])

        def run() -> tuple[int, int, UUID | None]:
            with as_caller(second, tenant):
                return reclassify(second)

        with in_thread(run) as found:
            wait_until_blocked(boss, second, app)
            app.execute("commit")
            assert found.result()[1] == 1
    assert labels(boss, one, other) == [
        ("decision", "on_demand", None, None),
        ("decision", "preloaded", "preference.like", VERSION),
    ]


def test_what_was_stored_before_there_was_a_version(app: Connection, boss: Connection, tenant: str) -> None:
    """Migration 0028, on statements as they were before it: labels that are not their rule's were chosen."""
    ids = store(app, tenant, *(f"Statement {n}" for n in range(5)))
    old = [
        ("preference", "preloaded", "preference.like"),
        ("fact", "preloaded", "preference.like"),
        ("preference", "on_demand", "preference.like"),
        ("event", "preloaded", "decision.plan"),
        ("decision", "on_demand", None),
    ]
    migration = db_path() / "migrations"
    with boss.transaction(force_rollback=True):
        boss.execute((migration / "0028_which_rules_decided.rollback.sql").read_bytes())
        boss.execute("reset role")
        for id_, (memory_type, layer_kind, rule) in zip(ids, old, strict=True):
            boss.execute(
                "update graphium.kg_statements set memory_type = %s, layer_kind = %s, rule = %s where id = %s",
                [memory_type, layer_kind, rule, id_],
            )
        for _ in range(2):  # twice changes nothing
            boss.execute((migration / "0028_which_rules_decided.sql").read_bytes())
            boss.execute("reset role")
            found = boss.execute(
                "select rules_version, is_type_chosen, is_layer_chosen from graphium.kg_statements"
                " where id = any (%s) order by id",
                [ids],
            ).fetchall()
            assert found == [
                (1, False, False),
                (1, True, False),
                (1, False, True),
                (1, True, True),
                (None, True, True),
            ]
