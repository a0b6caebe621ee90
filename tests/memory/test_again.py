"""What memory gives out and gets back: only counts go up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.memory.conftest import ingest
from tests.support.databases import Connection, as_caller

INPUTS = [
    {
        "content": "Ada prefers written feedback.",
        "embedding": [1, 2, 3],
        "memory_type": "preference",
        "layer_kind": "preloaded",
    },
    {
        "content": "Ada moved to Riga in 2019!",
        "embedding": [1, 2, 3],
        "exact_only": True,
        "occurred_at": "2019-05-01T00:00:00Z",
    },
    {"content": "She said: “two  spaces”", "embedding": [3, 1, 0], "source": "talk", "metadata": {"from": ["a", None]}},
    {"content": "Only words", "source": "talk", "position": 9},
    {"content": "🍎", "embedding": [0, 0, 1], "exact_only": True},
    {"content": "🍌", "embedding": [0, 0, 1], "exact_only": True},
]


def state(boss: Connection) -> list[tuple[Any, ...]]:
    return boss.execute(
        "select id, content, source, position, occurred_at, metadata, exact_only, required_scopes"
        " from graphium.kg_statements order by id"
    ).fetchall()


@pytest.mark.parametrize(
    "door",
    [
        "recall_context()",
        "search_context('[1,2,3]', match_count => 100)",
        "search_context(query_text => 'ada riga said words', match_count => 100)",
        "wake_up_context()",
    ],
)
def test_read_and_ingested_again(
    app: Connection, boss: Connection, new_tenant: Callable[[int], str], door: str
) -> None:
    tenant = new_tenant(3)
    with as_caller(app, tenant):
        ingest(app, INPUTS)
    before = state(boss)
    with as_caller(app, tenant):
        read = app.execute(f"select statement_id, content from graphium.{door}".encode()).fetchall()
        assert read
        rows = ingest(app, [{"content": content} for _, content in read])
        assert [r[1:3] for r in rows] == [(id_, True) for id_, _ in read]
        everything = app.execute(
            "select content, source, position, occurred_at, metadata, required_scopes"
            " from graphium.recall_context(statement_ids => %s)",
            [[r[0] for r in read]],
        ).fetchall()
        keys = ("content", "source", "position", "occurred_at", "metadata", "required_scopes")
        again = [
            {k: v.isoformat() if k == "occurred_at" and v else v for k, v in zip(keys, row, strict=True)}
            for row in everything
        ]
        assert all(r[2] for r in ingest(app, again))
        assert app.execute("select count(*) from graphium.kg_statement_variants").fetchone() == (0,)
        counts = app.execute(
            "select count(*), sum(access_count), min(access_count), max(access_count)"
            " from graphium.kg_statements where access_count > 0"
        ).fetchone()
    assert counts == (len(read), 2 * len(read), 2, 2)
    assert state(boss) == before


def test_three_times_in_one_call(app: Connection, new_tenant: Callable[[int], str]) -> None:
    tenant = new_tenant(3)
    with as_caller(app, tenant):
        rows = ingest(app, [INPUTS[0]] * 3)
        assert len({r[1] for r in rows}) == 1
        assert [r[2:4] for r in rows] == [(False, None), (True, 1.0), (True, 1.0)]
        assert app.execute("select access_count from graphium.kg_statements").fetchall() == [(2,)]


def test_nothing_that_was_said_is_lost(app: Connection, new_tenant: Callable[[int], str]) -> None:
    """By hand: which wordings, sources, places and times end up as variants, and how often."""
    tenant = new_tenant(3)
    with as_caller(app, tenant):
        ingest(app, [{"content": "Ada likes tea", "embedding": [1, 2, 3], "source": "mail", "position": 4}])
        ingest(
            app,
            [
                {"content": "Ada likes tea"},
                {"content": "Ada likes tea", "source": "mail"},
                {"content": "Ada likes tea", "source": "mail", "position": 4},
                {"content": "Ada likes tea", "source": "mail", "position": 5},
                {"content": "ada likes tea.", "source": "mail", "position": 4},
                {"content": "ada likes tea."},
                {
                    "content": "Tea is what Ada likes",
                    "embedding": [1, 2, 3.001],
                    "source": "talk",
                    "position": 1,
                    "occurred_at": "2026-01-01T00:00:00Z",
                },
                {"content": "ada likes tea.", "metadata": {"k": 1}},
            ],
        )
        ingest(app, [{"content": "ada likes tea."}], specimen="Bob")
        found = app.execute(
            "select content, source, position, occurred_at is not null, metadata::text, specimen_id is not null,"
            " seen_count from graphium.kg_statement_variants"
        ).fetchall()
        assert sorted(found, key=repr) == sorted(
            [
                ("Tea is what Ada likes", "talk", 1, True, "{}", False, 1),
                ("ada likes tea.", None, None, False, "{}", False, 2),
                ("ada likes tea.", None, None, False, '{"k": 1}', False, 1),
                ("ada likes tea.", None, None, False, "{}", True, 1),
                (None, "mail", 5, False, "{}", False, 1),
            ],
            key=repr,
        )
        assert app.execute("select access_count from graphium.kg_statements").fetchall() == [(9,)]


def tea_of_two(conn: Connection) -> list[Any]:
    """A statement about Ada, into which one about Bob is folded; he is the older specimen. Returns ids of both."""
    ingest(conn, [{"content": "Bob is tall"}], specimen="Bob")
    ingest(conn, [{"content": "Ada likes tea"}], specimen="Ada")
    ingest(conn, [{"content": "ada likes tea."}], specimen="Bob")
    query = (
        "select id from graphium.dh_specimens s where s.tenant_id = graphium_private.caller_tenant_id() order by name"
    )
    return [id for (id,) in conn.execute(query)]


@pytest.mark.parametrize("table", ["dh_families", "dh_genera", "dh_specimens"])
def test_what_was_filled_in_this_transaction_can_be_deleted_by_sql(
    boss: Connection, new_tenant: Callable[[int], str], table: str
) -> None:
    """The variant loses Bob before the statement goes; PostgreSQL then checks it again, and the statement is gone."""
    with as_caller(boss, new_tenant(3)):
        tea_of_two(boss)
        mine = "where tenant_id = graphium_private.caller_tenant_id()"
        left = f"select (select count(*) from graphium.kg_statements {mine}), (select count(*) from graphium.kg_statement_variants {mine})"
        assert boss.execute(left.encode()).fetchone() == (2, 1)
        boss.execute(f"delete from graphium.{table} {mine}".encode())
        assert boss.execute(left.encode()).fetchone() == (0, 0)


def test_a_variant_outlives_the_specimen_that_it_was_said_about(
    boss: Connection, new_tenant: Callable[[int], str]
) -> None:
    """As far as SQL goes; graphium.forget_taxon() means what was said about it as well."""
    with as_caller(boss, new_tenant(3)):
        _, bob = tea_of_two(boss)
        boss.execute("delete from graphium.dh_specimens where id = %s", [bob])
        assert boss.execute(
            "select s.content, v.content, v.specimen_id from graphium.kg_statements s"
            " left join graphium.kg_statement_variants v on v.statement_id = s.id"
            " where s.tenant_id = graphium_private.caller_tenant_id()"
        ).fetchall() == [("Ada likes tea", "ada likes tea.", None)]


def test_lossy_vectors_merge_nothing_but_equal_text(app: Connection, new_tenant: Callable[[int], str]) -> None:
    tenant = new_tenant(3)
    with as_caller(app, tenant):
        texts = ["🍎", "🍌", "/srv/Data", "/srv/data", "ฉันชอบชา", "ฉันชอบกาแฟ"]
        rows = ingest(app, [{"content": t, "embedding": [1, 0, 0], "exact_only": True} for t in texts])
        assert [r[2] for r in rows] == [False] * 6
        # From the other side: an ordinary input does not match them by its vector, nor do they it.
        rows = ingest(
            app,
            [
                {"content": "ordinary", "embedding": [1, 0, 0]},
                {"content": "lossy", "embedding": [1, 0, 0], "exact_only": True},
            ],
        )
        assert [r[2] for r in rows] == [False, False]
        rows = ingest(app, [{"content": t, "embedding": [0, 1, 0]} for t in texts])
        assert [r[2] for r in rows] == [True] * 6


def test_default_places(app: Connection, new_tenant: Callable[[int], str]) -> None:
    """After the last of that source that this caller sees, across specimens, families and calls."""
    tenant = new_tenant(3)

    def place(content: str, scopes: list[str] | None = None, **where: Any) -> Any:
        with as_caller(app, tenant, ["hr"] if scopes is None else scopes):
            [row] = ingest(app, [{"content": content, "source": "talk", **where.pop("more", {})}], **where)
            return app.execute("select position from graphium.kg_statements where id = %s", [row[1]]).fetchone()[0]  # type: ignore[index]

    assert place("a") == 1
    assert place("b", specimen="Bob") == 2
    assert place("c", family="another") == 3
    assert place("d", more={"position": 40}) == 40
    assert place("e") == 41
    assert place("f", more={"required_scopes": ["hr"]}) == 42
    assert place("g", scopes=[]) == 42  # who does not see f does not learn of it
    assert place("h") == 43
    with as_caller(app, tenant):
        rows = ingest(
            app,
            [
                {"content": "a", "source": "talk", "position": 90},
                {"content": "i", "source": "talk"},
                {"content": "j", "source": "other"},
                {"content": "k", "source": "talk"},
            ],
        )
        places = app.execute(
            "select position from graphium.kg_statements where id = any(%s) order by id", [[r[1] for r in rows[1:]]]
        ).fetchall()
    assert places == [(91,), (1,), (92,)]
    # no further than a place can be given, or an export could not be imported
    assert place("l", more={"position": 999_999_999_999_999_998}) == 999_999_999_999_999_998
    assert [place("m"), place("n")] == [999_999_999_999_999_999] * 2


def test_a_label_that_the_caller_chose_wins_over_the_stored_one(
    app: Connection, new_tenant: Callable[[int], str]
) -> None:
    """Also of a sentence that is known: it is how one makes it preloaded. The latest wins, one label leaves the other."""
    tenant = new_tenant(3)
    office = {"content": "The office is in Riga", "embedding": None}
    with as_caller(app, tenant):
        ingest(app, [{**office, "memory_type": "fact", "layer_kind": "on_demand"}])
        assert app.execute("select content from graphium.wake_up_context()").fetchall() == []
        (row,) = ingest(app, [{**office, "layer_kind": "preloaded"}])
        assert row[2] is True
        assert tuple(row[4:6]) == ("fact", "preloaded")
        assert app.execute("select content from graphium.wake_up_context()").fetchall() == [("The office is in Riga",)]
        rows = ingest(app, [{**office, "memory_type": "decision"}, office, {**office, "memory_type": "event"}])
        assert [tuple(row[4:6]) for row in rows] == [("event", "preloaded")] * 3
        assert app.execute("select count(*) from graphium.kg_statement_variants").fetchone() == (0,)
