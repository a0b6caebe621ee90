"""The channels that stay, pinned: what exactly each of them tells, to whom, and that it tells no more. docs/side-channels.md lists
them. And those beside the answers that are closed: system columns, the catalog, sequences, the bits of an id."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from tests.isolation.two_worlds import World
from tests.support.databases import Connection, Database, as_caller

numbers = itertools.count(1)
SAY = "select statement_id from graphium.ingest_context(%s, %s, %s, %s, %s)"


@pytest.fixture(scope="module")
def make(db: Database) -> Callable[[], World]:
    app, admin, boss = db.connect("app"), db.connect("admin"), db.connect()
    return lambda: World(db, f"pinned {next(numbers)}", app, admin, boss)


@pytest.fixture
def world(make: Callable[[], World]) -> World:
    return make()


def error(conn: Connection, query: str, *arguments: Any) -> tuple[str | None, str | None, str | None]:
    with pytest.raises(psycopg.Error) as caught, conn.transaction():
        conn.execute(query.encode(), list(arguments))
    assert "secret" not in str(caught.value.diag.context)
    return caught.value.sqlstate, caught.value.diag.message_primary, caught.value.diag.message_hint


def scalar(conn: Connection, query: str, *arguments: Any) -> Any:
    row = conn.execute(query.encode(), list(arguments)).fetchone()
    assert row is not None
    return row[0]


# ------------------------------------------------------------------------------------------ names
def test_the_name_of_a_hidden_family_shows_to_who_may_write_and_guesses_it(make: Callable[[], World]) -> None:
    world, other = make(), make()
    world.say(
        "A secret.", [1, 0, 0, 0], ["board", "secret"], family="merger", genus="secret targets", specimen="secret Zed"
    )
    writer, reader = world.db.principal(world.slug, ["hr"]), read_only(world, ["hr"])
    one = Jsonb([{"content": "Anything."}])
    taken = (
        "MG006",
        'family: the name "merger" belongs to a family that the caller may not see',
        "Choose another name, or ask an administrator for one of its scopes.",
    )
    # whatever he says beside the name, he learns that it is taken and nothing else
    assert error(writer, SAY, "merger", "secret targets", "secret Zed", one, None) == taken
    assert error(writer, SAY, " merger\n", "nothing", "nobody", one, ["hr"]) == taken
    # a scope that he does not hold is refused in the same words whether the name is taken or not
    for name in ("merger", "no such family"):
        code, message, _ = error(writer, SAY, name, "g", "s", one, ["board"])
        assert (code, message) == (
            "MG006",
            "required_scopes: the caller holds none of the scopes {board}, so could not read what it writes",
        )
    # names that are not the name are free: nothing is told about what is alike
    for name in ("Merger", "merger 2", "merge"):
        assert writer.execute(SAY.encode(), [name, "g", "s", one, None]).fetchall()
    # who only reads is told nothing, nor is another tenant
    for name in ("merger", "no such family"):
        assert error(reader, SAY, name, "g", "s", one, None)[0] == "42501"
    with as_caller(other.app, other.slug, ["hr"]):
        assert other.app.execute(SAY.encode(), ["merger", "g", "s", one, None]).fetchall()


def test_the_name_of_a_hidden_specimen_likewise(world: World) -> None:
    world.say("Open.", None)
    world.say("A secret.", None, ["secret"], specimen="Zed")
    writer = world.db.principal(world.slug)
    one = Jsonb([{"content": "Anything."}])
    code, message, _ = error(writer, SAY, "work", "notes", "Zed", one, None)
    assert (code, message) == ("MG006", 'specimen: the name "Zed" belongs to a specimen that the caller may not see')
    for genus, specimen in (("notes", "zed"), ("elsewhere", "Zed")):
        assert writer.execute(SAY.encode(), ["work", genus, specimen, one, None]).fetchall()
    assert error(read_only(world, []), SAY, "work", "notes", "Zed", one, None)[0] == "42501"


def test_the_name_of_a_genus_is_as_open_as_its_family(world: World) -> None:
    """Whatever is in it: file secrets in a family of their own."""
    world.say("Open.", None)
    world.say("A secret.", None, ["secret"], genus="layoffs", specimen="Zed")
    with as_caller(world.app, world.slug):
        assert world.app.execute("select genus, specimen, statements from graphium.context_tree()").fetchall() == [
            ("layoffs", None, 0),
            ("notes", "Ada", 1),
        ]


def read_only(world: World, scopes: list[str]) -> Connection:
    login = world.db.login()
    world.admin.execute(
        "select graphium.add_principal(%s, %s, %s, read_only => true)",
        [world.db.cluster.role(login), world.slug, scopes],
    )
    return world.db.connect(login)


# ------------------------------------------------------------------------------------------ what a statement carries
def test_a_number_left_to_the_default_says_how_far_its_writer_sees(world: World) -> None:
    """Places are counted over what the writer sees, so that they are right for him; so the gap shows to all readers."""
    world.say("First.", None, source="minutes")
    world.say("A secret.", None, ["board"], source="minutes")
    for scopes, position in ((["board"], 3), ([], 4)):  # the second, who sees less, goes on from what he sees
        with as_caller(world.app, world.slug, scopes):
            content = Jsonb([{"content": f"Said by one with {scopes}.", "source": "minutes"}])
            world.app.execute(SAY.encode(), ["work", "notes", "Ada", content, []])
            assert scalar(world.app, "select max(position) from graphium.kg_statements") == position


def test_a_statement_without_the_names_of_its_taxa_has_their_ids(world: World) -> None:
    """Which of them hang on the same hidden family or specimen, and since when there is one."""
    [a] = world.say("For all.", None, family="merger", specimen="Zed", born=["board"])
    with as_caller(world.app, world.slug):
        assert world.app.execute(
            "select family, genus, specimen, statements from graphium.context_tree()"
        ).fetchall() == [(None, None, None, 1)]
        ids = world.app.execute(
            "select family_id, genus_id, specimen_id from graphium.kg_statements where id = %s", [a]
        ).fetchone()
    assert ids == (
        world.id_of("dh_families", "merger"),
        world.id_of("dh_genera", "notes"),
        world.id_of("dh_specimens", "Zed"),
    )


def test_an_id_tells_when_its_row_was_made_and_nothing_else(world: World) -> None:
    boss = world.boss
    before = time.time()
    ids: list[UUID] = [r[0] for r in boss.execute("select graphium_private.new_id() from generate_series(1, 1000)")]
    assert {id.version for id in ids} == {7}
    for id in ids:
        assert before - 5 < (id.int >> 80) / 1000 < time.time() + 5
    # The last 62 bits are dice: no bit is a counter's, a machine's or a session's.
    for bit in range(62):
        assert 400 < sum(id.int >> bit & 1 for id in ids) < 600
    steps = {b.int % (1 << 62) - a.int % (1 << 62) for a, b in itertools.pairwise(ids)}
    assert len(steps) == 999


# ------------------------------------------------------------------------------------------ locks
def test_a_serializable_writer_learns_that_somebody_wrote_to_the_family(world: World) -> None:
    """A duplicate must not slip in, so REPEATABLE READ fails (40001) after any write to the family that it is to write to,
    and after no other."""
    world.say("Open.", None)
    conn = world.db.principal(world.slug)
    one = Jsonb([{"content": "Anything."}])
    for family, is_refused in (("work", True), ("elsewhere", False)):
        conn.execute("begin isolation level repeatable read")
        assert scalar(conn, "select count(*) from graphium.kg_statements") == 1
        world.say(
            f"A secret {next(numbers)}.", None, ["secret"], family=family, born=["secret"] if family != "work" else []
        )
        try:
            assert scalar(conn, "select count(*) from graphium.kg_statements") == 1
            if is_refused:
                assert error(conn, SAY, "work", "notes", "Ada", one, None)[:2] == (
                    "40001",
                    "could not serialize access due to concurrent update",
                )
            else:
                conn.execute(SAY.encode(), ["work", "notes", "Ada", one, None])
        finally:
            conn.execute("rollback")


# ------------------------------------------------------------------------------------------ system columns
SYSTEM_COLUMNS = ("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid")


def readable(boss: Connection) -> list[tuple[str, list[str]]]:
    """Tables of which graphium_reader reads something, with all their columns."""
    return boss.execute(
        "select c.oid::regclass::text, array_agg(quote_ident(a.attname) order by a.attnum) from pg_class c"
        "  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
        " where c.relkind in ('r', 'p', 'v', 'm') and c.relnamespace::regnamespace::text ~ '^graphium'"
        "   and has_any_column_privilege('graphium_reader', c.oid, 'select') group by 1 order by 1"
    ).fetchall()


def test_system_columns_are_nobodys_to_read(world: World) -> None:
    """xmax of a family is whoever wrote into it last; xmin and ctid of two rows tell what was written between them."""
    world.say("Open.", [1, 0, 0, 0])
    tables = readable(world.boss)
    assert len(tables) == 8
    principal = world.db.principal(world.slug)
    world.app.execute("select graphium.set_caller(%s, is_local => false)", [world.slug])
    for table, columns in tables:
        for conn in (principal, world.app):
            for column in SYSTEM_COLUMNS:
                with pytest.raises(errors.InsufficientPrivilege):
                    conn.execute(f"select {column} from {table}".encode())
                with pytest.raises(errors.InsufficientPrivilege):
                    conn.execute(f"select 1 from {table} where {column} is not null".encode())
            with pytest.raises(errors.InsufficientPrivilege), conn.transaction():
                conn.execute(f"lock table {table} in access share mode".encode())
            # everything else works as on a table that is granted as a whole
            found = conn.execute(f"select * from {table}".encode())
            assert [c.name for c in found.description or ()] == [c.strip('"') for c in columns]
            count = len(found.fetchall())
            assert scalar(conn, f"select count(*) from {table}") == count
            assert len(conn.execute(f"select t, to_jsonb(t) from {table} t".encode()).fetchall()) == count
    world.app.execute("reset all")


def test_with_a_grant_of_the_whole_table_they_would_show(world: World) -> None:
    world.say("Open.", None)
    principal = world.db.principal(world.slug)
    granted = dict(readable(world.boss))
    world.boss.execute("grant select on graphium.dh_families to graphium_reader")
    try:
        before = scalar(principal, "select xmax::text from graphium.dh_families")
        world.say("A secret.", None, ["secret"])
        assert scalar(principal, "select xmax::text from graphium.dh_families") != before
    finally:
        world.boss.execute("revoke select on graphium.dh_families from graphium_reader")  # and with it its columns
        columns = sql.SQL(", ".join(granted["graphium.dh_families"]))
        world.boss.execute(sql.SQL("grant select ({}) on graphium.dh_families to graphium_reader").format(columns))
    assert dict(readable(world.boss)) == granted


# ------------------------------------------------------------------------------------------ the catalog
def test_no_catalog_or_statistics_view_has_a_word_of_anybodys_memory(make: Callable[[], World]) -> None:
    """Everything in pg_catalog and information_schema that a principal can select, searched for what was planted: in
    another tenant, and hidden in his own. What there is are ids of tenants, names of logins, and counts."""
    mine, other = make(), make()
    mine.say("Open.", [1, 0, 0, 0])
    for n in range(30):  # often enough for the statistics
        for world, scopes in ((mine, ["zqscope"]), (other, [])):
            world.say(
                [{"content": f"Zqcontent number {n}.", "embedding": [0.77753111, n, 0, 1], "source": "zqsource", "metadata": {"zqkey": "zqvalue"}, "exact_only": True}],
                scopes=scopes, family="zqfamily", genus="zqgenus", specimen="zqspecimen", born=scopes,
            )  # fmt: skip
    mine.boss.execute(
        "analyze graphium.dh_families, graphium.dh_genera, graphium.dh_specimens, graphium.kg_statements, graphium.kg_embeddings, graphium_private.postings"
    )
    busy = mine.db.connect("app")
    busy.execute("begin")
    busy.execute("select graphium.set_caller(%s), 'zqliteral'", [other.slug])
    principal = mine.db.principal(mine.slug)
    relations = principal.execute(
        "select c.oid::regclass::text from pg_class c where c.relnamespace in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
        "   and c.relkind in ('r', 'v') and has_table_privilege(c.oid, 'select') order by 1"
    ).fetchall()
    assert len(relations) > 150
    seen: dict[str, str] = {}
    for (relation,) in relations:
        try:
            seen[relation] = scalar(principal, f"select coalesce(string_agg(t::text, E'\\n'), '') from {relation} t")
        except errors.InsufficientPrivilege:  # of a function behind the view
            continue
    busy.execute("rollback")
    assert len(seen) > 150
    for word in ("zq", "0.777531", other.slug):
        assert [relation for relation, text in seen.items() if word in text.lower()] == []
    # What the principal does find, so that the search is known to have looked.
    other_id = scalar(other.boss, "select id from graphium.tenants where slug = %s", other.slug)
    assert f"graphium_{other_id.hex}" in seen["pg_namespace"]
    assert f"graphium_{other_id.hex}" not in seen["information_schema.schemata"]
    assert mine.db.cluster.role("admin") in seen["pg_roles"]
    assert mine.db.cluster.role("app") in seen["pg_stat_activity"]


def test_graphs_have_sequences_that_nobody_draws_from_or_reads(world: World) -> None:
    world.say("Open.", None)
    world.say("A secret.", None, ["secret"], family="merger", born=["secret"])
    drawn = world.boss.execute(
        "select schemaname, sequencename, last_value from pg_sequences where schemaname ~ '^graphium' and last_value is not null"
    ).fetchall()
    # AGE numbers the labels of a graph by one, six of them and two parents in each
    assert {(name, last) for _, name, last in drawn} == {("_label_id_seq", 8)}
    principal = world.db.principal(world.slug)
    assert (
        scalar(principal, "select count(*) from pg_sequences where schemaname ~ '^graphium' and last_value is not null")
        == 0
    )
    graph = scalar(principal, "select graph_name from graphium.tenants")
    with pytest.raises(errors.InsufficientPrivilege):
        principal.execute(sql.SQL('select last_value from {}."_label_id_seq"').format(sql.Identifier(graph)))
    with pytest.raises(psycopg.Error) as caught:
        principal.execute("select graphium.cypher('MATCH (n) RETURN id(n)')")
    assert caught.value.sqlstate == "MG010"


# ------------------------------------------------------------------------------------------ plans and counters
def removed(conn: Connection, query: str) -> int:
    [[plan]] = (scalar(conn, f"explain (analyze, format json, timing off, summary off) {query}"),)
    return sum(int(n) for n in re.findall(r"'Rows Removed by (?:Filter|Index Recheck)': (\d+)", str(plan)))


def test_explain_analyze_counts_what_is_hidden(make: Callable[[], World]) -> None:
    """PostgreSQL tells whoever may read a table how many rows the policy took away. Where an index serves the condition that is a
    guess confirmed. It serves none on a name, a source or a sentence. The tenant's id stands in front of every index."""
    world, other = make(), make()
    world.say("Open.", None)
    world.say(
        "The budget is cut.", None, ["secret"], family="merger", specimen="Zed", source="minutes", born=["secret"]
    )
    other.say("Theirs.", None, family="acquisition", source="their minutes")
    principal = world.db.principal(world.slug)
    principal.execute("set enable_seqscan = off; set enable_bitmapscan = off")
    for query, guesses in (
        ("dh_families where name = {}", ("merger", "acquisition", "nothing")),
        ("kg_statements where source = {}", ("minutes", "their minutes", "nothing")),
    ):
        calls = [
            sql.SQL("select from graphium." + query).format(sql.Literal(guess)).as_string(principal)
            for guess in guesses
        ]
        assert len({removed(principal, call) for call in calls}) == 1, query
    # Without an index for it, as many rows are taken away whether one of them is the sentence or not.
    hash = "kg_statements where content_hash = substring(sha256({}) for 16)"
    counts = [
        removed(principal, sql.SQL("select from graphium." + hash).format(sql.Literal(guess)).as_string(principal))
        for guess in ("the budget is cut", "something else")
    ]
    assert scalar(
        world.boss,
        "select count(*) from graphium.kg_statements where content_hash = substring(sha256('the budget is cut') for 16)",
    )
    assert counts[0] == counts[1] > 0


TOUCHED = """
select json_object_agg(c.relname, pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid)
                                + pg_stat_get_xact_tuples_inserted(c.oid) + pg_stat_get_xact_tuples_updated(c.oid) order by c.relname)
  from pg_class c where c.relnamespace::regnamespace::text in ('graphium', 'graphium_private') and c.relkind in ('r', 'i')"""


def test_a_sentence_that_somebody_guesses_is_not_touched(world: World) -> None:
    """Rows read from each table and index, which PostgreSQL tells anybody about his own transaction, are as many for a guess
    that is right as for a wrong one of as many words; for a sentence that the caller sees they are more."""
    world.say("The sky is blue.", None)
    world.say("The budget is cut.", None, ["secret"])
    world.say(
        [{"content": f"Item {n} of the plan.", "embedding": None} for n in range(500)]
    )  # so that indexes are used
    world.boss.execute("vacuum analyze")
    principal = world.db.principal(world.slug)
    touched: dict[str, dict[str, int]] = {}
    for _ in range(2):  # the first makes the plans
        for content in ("The carpet is red!", "The budget is cut!", "The sky is blue!"):
            guess = Jsonb([{"content": content, "embedding": None}])
            world.boss.execute("vacuum")  # of what the attempt before rolled back
            principal.execute("begin")
            before = scalar(principal, TOUCHED)
            assert principal.execute(SAY.encode(), ["work", "notes", "Ada", guess, None]).fetchall()
            after = scalar(principal, TOUCHED)
            principal.execute("rollback")
            touched[content] = {name: after[name] - before[name] for name in after}
    wrong, right, known = touched.values()
    assert right == wrong
    assert right["postings"] == 3
    assert known != wrong
