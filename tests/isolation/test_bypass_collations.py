"""A caller's own collation, under which other words are the same, decides nothing inside of our functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.isolation.attack import World, build
from tests.memory.conftest import ingest
from tests.support.databases import Connection, Database, as_caller

EVIL = r"""create collation evil.evil (provider = icu, locale = 'und', deterministic = false, rules =
  $$&n=b&family=statement=specimen=genus=everything&acme=nobody&fact=factual&related\_to=knows&on\_demand=whenever&another='all-MiniLM-L6-v2'$$)"""


@pytest.fixture(scope="module")
def world(db: Database) -> World:
    made = build(db)
    made.boss.execute("create schema evil; grant usage on schema evil to public")
    try:
        made.boss.execute(EVIL)
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("this server was built without ICU, so it has no nondeterministic collation")
    assert made.boss.execute("select bool_and(a collate evil.evil = b) from (values ('statement', 'family'), ('nobody', 'acme'), ('knows', 'related_to'), ('whenever', 'on_demand'), ('another', 'all-MiniLM-L6-v2'), ('nn', 'bb')) as t(a, b)").fetchone() == (True,)  # fmt: skip
    with as_caller(made.app, "acme"):
        said = [{"content": f"public note {n}", "embedding": [n, 1, 1]} for n in range(1, 6)]
        ingest(made.app, said, family="notes", genus="g", specimen="s", required_scopes=["public"])
    return made


def test_an_edit_of_one_statement_is_of_one(world: World) -> None:
    """Read as 'family', it was of all five, and of their specimen."""
    builder = world.attacker("builder").conn
    edit = "select graphium.set_required_scopes('statement'{}, (select id from graphium.kg_statements where content = 'public note 3'), '{{}}')"
    open_ones = (
        "select content from graphium.kg_statements where content like 'public note%' and required_scopes = '{}'"
    )
    for collation in ("", " collate evil.evil"):
        with builder.transaction(force_rollback=True):
            assert builder.execute(edit.format(collation).encode()).fetchone() == (1,)
            assert builder.execute(open_ones.encode()).fetchall() == [("public note 3",)]


# With ! behind each text of the caller's. What makes the collation lie is in them: a wrong keyword or name that it takes for a right one.
INGEST = """'[{"content": "new", "embedding": [1, 0, 0], "memory_type": "fact", "layer_kind": "on_demand", "family": "nn", "genus": "g", "specimen": "s"},
              {"content": "newer", "embedding": [0, 1, 0], "memory_type": "fact", "layer_kind": "on_demand", "family": "bb", "genus": "g", "specimen": "s"}]'"""
NOTE = "(select id from graphium.kg_statements where content = 'public note 3')"
SPECIMEN = "(select specimen_id from graphium.kg_statements where content = 'public note 3')"
CALLS = {
    "builder": [
        f"select graphium.set_required_scopes('statement'!, {NOTE}, '{{}}')",
        f"select graphium.set_required_scopes('everything'!, {NOTE}, '{{}}')",
        f"select graphium.set_many_required_scopes('statement'!, array[{NOTE}], '{{}}')",
        f"select graphium.set_many_required_scopes('genus'!, array[{NOTE}], '{{}}')",
        f"select graphium.set_required_scopes('statement', {NOTE}, '{{nn}}'!)",
        """select deduplicated from graphium.ingest_context('notes'!, 'g', 's', '[{"content": "new"}]', '{}')""",
        """select deduplicated from graphium.ingest_context('notes', 'g', 's', '[{"content": "new"}]', '{nn}'!)""",
        """select deduplicated from graphium.ingest_context('notes', 'g', 's', '[{"content": "new"}]', null, 'another'!)""",
        f"select (select f.name from graphium.dh_families f join graphium.kg_statements s on s.family_id = f.id where s.id = statement_id) from graphium.ingest_many({INGEST}, null, 'all-MiniLM-L6-v2'!)",
        f"select count(*) from graphium.ingest_many({INGEST}, null, 'another'!)",
        f"select count(*) from graphium.ingest_many({INGEST}, '{{nn}}'!)",
        "select content from graphium.search_context('[1,1,1]', families => '{botes}'!)",
        "select content from graphium.search_context('[1,1,1]', genera => '{g}'!, layer_kinds => '{whenever}')",
        "select content from graphium.search_context('[1,1,1]', memory_types => '{factual}'!)",
        "select content from graphium.search_context('[1,1,1]', layer_kinds => '{on_demand}'!, families => '{notes}')",
        "select content from graphium.search_context(query_text => 'note'!)",
        "select content from graphium.search_context('[1,1,1]', 'what does s say in the note'!)",
        "select content from graphium.search_context('[1,1,1]', embedding_model => 'another'!)",
        "select admitted from graphium.explain_search('[1,1,1]', families => '{botes}'!)",
        "select admitted from graphium.explain_search('[1,1,1]', layer_kinds => '{whenever}'!)",
        "select admitted from graphium.explain_search('[1,1,1]', embedding_model => 'another'!)",
        "select content from graphium.recall_context(family => 'botes'!)",
        "select content from graphium.recall_context(family => 'notes'!, genus => 'g', specimen => 's')",
        "select content from graphium.recall_context(memory_types => '{factual}'!)",
        "select content from graphium.recall_context(layer_kinds => '{on_demand}'!)",
        "select content from graphium.recall_context(required_scopes => '{nn}'!)",
        f"select matched_words from graphium.statement_details(array[{NOTE}], 'note'!)",
        f"select row_count from graphium.preview_required_scopes('statement'!, array[{NOTE}], '{{}}')",
        f"select row_count from graphium.preview_required_scopes('everything'!, array[{NOTE}], '{{}}')",
        f"select row_count from graphium.preview_required_scopes('statement', array[{NOTE}], '{{nn}}'!)",
        "select content from graphium.wake_up_context(families => '{botes}'!)",
        "select family from graphium.search_families('[1,1,1]', embedding_model => 'another'!)",
        "select specimens from graphium.prepare_query('what does s say'!)",
        "select memory_type from graphium.classify('I prefer tea'!)",
        "select graphium.cypher('MATCH (n:Family) RETURN n.name'!)",
        "select graphium.set_caller('acme'!, '{}')",
        "select graphium.set_caller('nobody'!, '{}')",
    ],
    "admin": [
        f"select graphium.forget_taxon('specimen'!, {SPECIMEN})",
        f"select graphium.forget_taxon('genus'!, {SPECIMEN})",
        f"select graphium.forget_taxon('everything'!, {SPECIMEN})",
        f"select graphium.rename_taxon('genus'!, {SPECIMEN}, 'another name')",
        f"select graphium.rename_taxon('specimen', {SPECIMEN}, 'another name'!)",
        """select graphium.link_symbiosis('knows'!, '{"family": "notes"}', '{"family": "kitchen of acme"}')""",
        """select 1 from (select graphium.link_symbiosis('related_to', '{"family": "notes"}', '{"family": "kitchen of acme"}', 'a note'!)) as l""",
        "select * from graphium.check_memory('nobody'!)",
        "select graphium.rebuild_memory('nobody'!)",
        "select * from graphium.check_graph('nobody'!)",
        "select graphium.rebuild_graph('nobody'!)",
        "select graphium.drop_tenant('nobody'!)",
        "select 1 from (select graphium.create_tenant('nobody'!)) as t",
        "select graphium.add_principal('nobody'!, 'acme', '{}')",
        "select graphium.remove_principal('nobody'!)",
    ],
}


def outcome(conn: Connection, call: str) -> Any:
    """Rows, or the SQLSTATE; nothing is left of it."""
    try:
        with conn.transaction(force_rollback=True):
            if conn.info.user.endswith("_admin"):
                conn.execute("select graphium.set_caller('acme')")
            return sorted(map(repr, conn.execute(call.encode()).fetchall()))
    except psycopg.Error as error:
        return error.sqlstate


@pytest.fixture(scope="module")
def callers(world: World) -> Iterator[dict[str, Connection]]:
    made = {"builder": world.attacker("builder").conn, "admin": world.admin}
    for conn in made.values():
        conn.execute(
            "set statement_timeout = '20s'"
        )  # an ingest that waited for a name to be there would wait for ever
    yield made


@pytest.mark.parametrize(("who", "call"), [(who, call) for who, calls in CALLS.items() for call in calls])
def test_what_a_call_does_is_the_same_or_it_is_refused(callers: dict[str, Connection], who: str, call: str) -> None:
    under = outcome(callers[who], call.replace("!", " collate evil.evil"))
    assert under == outcome(callers[who], call.replace("!", "")) or under in ("0A000", "42P22")


def test_no_function_is_left_out(world: World) -> None:
    """With an argument that has a collation."""
    called = {name for calls in CALLS.values() for call in calls for name in re.findall(r"graphium\.(\w+)\(", call)}
    there = world.boss.execute(
        sql.SQL(
            "select distinct p.proname from pg_proc p where p.pronamespace = 'graphium'::regnamespace"
            " and exists (select from unnest(p.proargtypes::oid[]) as a join pg_type t on t.oid = a where t.typcollation <> 0)"
        )
    )
    assert called == {name for (name,) in there}
