"""Attempts to be the caller that a search remembers (docs/decisions/0120), and what each of its guards keeps out."""

from __future__ import annotations

import re

import psycopg
import pytest
from psycopg import sql

from tests.isolation.attack import SECRET, TEA, Attacker, World, build
from tests.isolation.test_bypass_identity import assert_still_himself
from tests.support.databases import Connection, Database, as_caller

PATH = "pg_catalog, pg_temp, pg_caller"
READING = [
    "select content from graphium.recall_context()",
    "select content from graphium.search_context(query_embedding => '[1,2,3]', match_count => 100)",
    f"select content from graphium.search_context(query_text => '{SECRET} tea', families => '{{{SECRET} acme}}')",
    "select content from graphium.wake_up_context()",
    "select family from graphium.context_tree()",
    "select family from graphium.search_families('[1,2,3]')",
    f"select specimens from graphium.prepare_query('{SECRET} person')",
    "select content from graphium.kg_statements",
    "select name from graphium.dh_genera",
    "select slug from graphium.tenants",
    "select embedding from graphium.kg_embeddings",
]
# A function of ours that looks the caller up as ever: what each guard keeps out is shown by it.
PEEK = """create function graphium.peek() returns setof text language plpgsql stable security definer {}
            as 'begin return query select name from graphium.dh_families; end';
          alter function graphium.peek() owner to graphium_owner; grant execute on function graphium.peek() to public"""
FAMILIES = "select * from graphium.peek()"
HIDDEN = "zanzibar acme"


@pytest.fixture(scope="module")
def world(db: Database) -> World:
    return build(db)


def tenant_id(world: World, slug: str) -> str:
    [(found,)] = world.boss.execute("select id from graphium.tenants where slug = %s", [slug]).fetchall()
    return str(found)


def forged(world: World, slug: str, is_local: bool = False) -> str:
    """A statement that sets all that a search would have set."""
    return f"""select set_config('graphium.remembered_tenant', '{tenant_id(world, slug)}', {is_local}),
                      set_config('graphium.remembered_scopes', 'all', {is_local}), set_config('search_path', '{PATH}', {is_local})"""


# ------------------------------------------------------------------------------------------ forging
@pytest.mark.parametrize("who", ["principal", "reader"])
@pytest.mark.parametrize("slug", ["acme", "other"])
def test_what_a_client_sets_is_believed_by_no_function_and_no_policy(world: World, who: str, slug: str) -> None:
    attacker = world.attacker(who)
    for statement in READING:
        attacker.tries(forged(world, slug), statement)
        attacker.tries("begin", statement, forged(world, slug, True), statement, "commit")
        attacker.tries("rollback")
    assert_still_himself(attacker)


def test_nor_is_what_he_sets_at_connecting(world: World) -> None:
    for slug in ("acme", "other"):
        options = f"-c graphium.remembered_tenant={tenant_id(world, slug)} -c graphium.remembered_scopes=all -c search_path=pg_catalog,\\ pg_temp,\\ pg_caller"
        attacker = world.attacker("principal", options=options)
        assert attacker.rows("select current_setting('search_path')") == [PATH]
        assert_still_himself(attacker)


def test_nor_what_a_function_of_his_own_sets(world: World) -> None:
    """In its head or its body, as its owner or as whoever calls it."""
    attacker = world.attacker("builder")
    attacker.tries("create schema mine")
    id = tenant_id(world, "acme")
    for security in ("definer", "invoker"):
        body = f"""perform set_config('graphium.remembered_tenant', '{id}', true), set_config('graphium.remembered_scopes', 'all', true);
                   return query select r.content from graphium.recall_context() r union all select s.content from graphium.kg_statements s"""
        assert (
            attacker.tries(
                f"""create or replace function mine.f() returns setof text language plpgsql security {security}
                    set search_path = {PATH} as $f$ begin {body}; end $f$"""
            )
            is None
        )
        assert attacker.rows("select * from mine.f()") == [TEA, TEA]
    attacker.tries(f"create view mine.v as {READING[7]}", forged(world, "other"), "select * from mine.v")
    assert_still_himself(attacker)


def test_nor_what_is_set_between_two_rows_of_a_cursor(world: World) -> None:
    attacker = world.attacker("principal")
    for statement in READING:
        attacker.tries(
            "begin", f"declare c no scroll cursor for {statement}", forged(world, "other", True), "fetch 1 from c",
            READING[1], "fetch all from c", "commit",
        )  # fmt: skip
        attacker.tries("rollback")
    assert_still_himself(attacker)


def test_nobody_may_make_the_schema_that_the_path_ends_in(world: World) -> None:
    attacker = world.attacker("builder")
    attacker.tries("create schema mine")
    assert attacker.tries("create schema pg_caller") == "42939"
    assert attacker.tries("alter schema mine rename to pg_caller") == "42939"


def test_callers_cannot_call_what_remembers(world: World) -> None:
    for who in ("principal", "reader", "builder"):
        attacker = world.attacker(who)
        for function in ("_remember_caller", "remembered_tenant_id", "remembered_scopes", "resolve_caller"):
            assert attacker.tries(f"select graphium_private.{function}()") == "42501"


# ------------------------------------------------------------------------------------------ what is left behind
LEFT = "select current_setting('search_path'), coalesce(current_setting('graphium.remembered_tenant', true), '')"


def test_the_path_ends_with_the_function_and_with_an_error(world: World) -> None:
    attacker = world.attacker("principal")
    before = attacker.rows(LEFT)
    [(path, _)] = before
    for call in (READING[0], READING[1]):
        attacker.tries("begin", call)
        assert attacker.rows(LEFT) == [(path, tenant_id(world, "acme"))]  # he may know his own tenant
        assert_still_himself(attacker)
        # errors after the caller was remembered
        for error in ("search_context(query_embedding => '[1]')", "search_context()", "recall_context(page_size => 0)"):
            assert attacker.tries("savepoint a", f"select * from graphium.{error}") in ("MG005", "MG008")
            attacker.tries("rollback to a")
            assert attacker.rows(LEFT)[0][0] == path
            assert_still_himself(attacker)
        attacker.tries("commit")
        assert attacker.rows(LEFT) == before


def test_two_callers_in_one_transaction_and_in_one_statement(world: World) -> None:
    """An application names one after the other, and what the first was remembered as counts for nothing."""
    search = "(select count(*) from graphium.search_context(query_embedding => '[1,2,3]', match_count => 100))"
    page = "(select count(*) from graphium.recall_context())"
    rows = "(select count(*) from graphium.kg_statements)"
    seen = {("acme", "{hr}"): (1, 2, 2), ("acme", "{}"): (0, 1, 1), ("other", "{}"): (1, 2, 2)}
    app = world.app
    with app.transaction(force_rollback=True):
        for (slug, scopes), counts in [*seen.items(), *reversed(seen.items())]:
            app.execute("select graphium.set_caller(%s, %s)", [slug, scopes])
            assert app.execute(f"select {search}, {page}, {rows}".encode()).fetchall() == [counts]
        callers = "(values (1, 'acme', '{}'::text[]), (2, 'other', '{}'), (3, 'acme', '{hr}')) as c(n, slug, scopes)"
        each = "lateral (select count(*) as found from graphium.recall_context(page_size => 50 + n + length(said)))"
        found = app.execute(
            f"select n, found from {callers}, lateral (select graphium.set_caller(c.slug, c.scopes)::text as said) as s, {each} as r order by n".encode()
        ).fetchall()
        assert found == [(1, 1), (2, 2), (3, 2)]


def test_behind_a_pooler_nothing_is_remembered_for_the_next_transaction(world: World) -> None:
    app = world.db.connect("app", options="-c graphium.pooled=on")
    app.autocommit = False
    app.execute("select graphium.set_caller('acme', '{hr}')")
    assert app.execute("select count(*) from graphium.recall_context()").fetchone() == (2,)
    app.commit()
    for set_before in ("select 1", forged(world, "acme")):
        app.execute(set_before.encode())
        with pytest.raises(psycopg.Error) as refused:
            app.execute("select * from graphium.recall_context()")
        assert refused.value.sqlstate == "MG001"
        app.rollback()
        app.execute(set_before.encode())
        assert app.execute("select count(*) from graphium.kg_statements").fetchone() == (0,)
        app.commit()


def test_an_admin_is_remembered_as_one(world: World) -> None:
    with as_caller(world.admin, "acme"):
        assert world.admin.execute("select count(*) from graphium.recall_context()").fetchone() == (2,)
    with pytest.raises(psycopg.Error) as refused:
        world.admin.execute("select * from graphium.recall_context()")
    assert refused.value.sqlstate == "MG001"


# ------------------------------------------------------------------------------------------ the guards
def believes(attacker: Attacker, forgery: str, statement: str = FAMILIES) -> bool:
    """Whether he sees what is hidden from him, once he has set all there is to set."""
    assert HIDDEN not in attacker.rows(statement)
    attacker.tries(forgery)
    return HIDDEN in attacker.rows(statement)


def redefined(conn: Connection, function: str, old: str, new: str) -> str:
    row = conn.execute("select pg_get_functiondef(%s::regproc)", [f"graphium_private.{function}"]).fetchone()
    assert row is not None
    text = str(row[0])
    assert text.count(old) == 1
    return text.replace(old, new)


def test_a_function_of_ours_without_a_path_in_its_head_would_believe_a_client(world: World) -> None:
    with world.unguarded("principal", PEEK.format("")) as attacker:
        assert believes(attacker, forged(world, "acme"))
    with world.unguarded("principal", PEEK.format("set search_path = pg_catalog, pg_temp")) as attacker:
        assert not believes(attacker, forged(world, "acme"))


def test_policies_that_do_not_ask_who_runs_would_believe_a_client(world: World) -> None:
    raw = "select name from graphium.dh_families"
    removals = [
        redefined(world.boss, name, "CURRENT_USER = 'graphium_owner'::name", "true")
        for name in ("caller_tenant_id", "caller_scopes")
    ]
    with world.unguarded("principal", *removals) as attacker:
        attacker.tries(forged(world, "acme"))
        assert HIDDEN in attacker.rows(raw)
    with world.unguarded("principal") as attacker:
        assert not believes(attacker, forged(world, "acme"), raw)


def test_policies_that_do_not_ask_for_the_path_would_believe_whoever_remembered_nothing(world: World) -> None:
    removals = [
        redefined(world.boss, name, f"current_setting('search_path') = '{PATH}'", "true")
        for name in ("remembered_tenant_id", "remembered_scopes")
    ]
    removals.append(PEEK.format("set search_path = pg_catalog, pg_temp"))
    with world.unguarded("principal", *removals) as attacker:
        attacker.tries(forged(world, "acme"))
        assert HIDDEN in attacker.rows(FAMILIES)


def test_only_functions_of_ours_with_a_path_of_their_own_remember(world: World) -> None:
    """So that what they believe ends with them. And the word is where it is set, and where it is asked for."""
    functions = world.boss.execute(
        """select p.proname, p.prosecdef, p.proowner::regrole::text, array_to_string(p.proconfig, ';'), pg_get_functiondef(p.oid)
             from pg_proc p where p.prokind = 'f' and p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)"""
    ).fetchall()
    saying = {name for name, *_, text in functions if "pg_caller" in text}
    assert saying == {"_remember_caller", "remembered_tenant_id", "remembered_scopes"}
    calling = {name: rest for name, *rest, text in functions if re.search(r"_remember_caller\(\)", text) and name != "_remember_caller"}  # fmt: skip
    reading = {"search_context", "explain_search", "recall_context", "wake_up_context", "search_families", "context_tree", "prepare_query", "plan_reclassification", "statement_details", "list_symbioses", "scopes_in_use", "preview_required_scopes"}  # fmt: skip
    assert set(calling) == reading
    for definer, owner, config in calling.values():
        assert (definer, owner) == (True, "graphium_owner")
        assert "search_path=pg_catalog, pg_temp" in config.split(";")
    writing = {name for name, *_, text in functions if "graphium.remembered_" in text}
    assert writing == saying
    [(grantees,)] = world.boss.execute(
        "select proacl::text from pg_proc where oid = 'graphium_private._remember_caller()'::regprocedure"
    ).fetchall()
    assert grantees == "{graphium_owner=X/graphium_owner}"


def test_a_path_that_says_it_is_refused_in_the_head_of_a_function_of_ours(world: World) -> None:
    with world.boss.transaction(force_rollback=True):
        world.boss.execute(
            sql.SQL("alter function graphium.context_tree() set search_path = pg_catalog, pg_temp, pg_caller")
        )
        found = world.boss.execute("select object from graphium.check_security() where lint = 'function_search_path'")
        assert found.fetchall() == [("graphium.context_tree()",)]


# ------------------------------------------------------------------------------------------ looking up
LOOKUPS = "select coalesce(sum(pg_stat_get_xact_numscans(i.indexrelid)), 0)::int from pg_index i where i.indrelid in ('graphium.principals'::regclass, 'graphium.tenants'::regclass)"


@pytest.mark.parametrize("statement", [
    "select graphium.search_context('[1,2,3]', {filters})",
    "select graphium.search_context(query_text => 'Tea', {filters})",
    "select graphium.search_context('[1,2,3]', 'Tea of {family} person', explain => true, {filters})",
    "select graphium.explain_search('[1,2,3]', 'Tea', {filters})",
    "select graphium.recall_context({filters})",
    "select graphium.wake_up_context(families => '{{{family}}}')",
    "select graphium.search_families('[1,2,3]')",
    "select graphium.context_tree()",
    "select graphium.prepare_query('{family} person')",
])  # fmt: skip
def test_how_often_he_is_looked_up_says_nothing_of_what_is_hidden(world: World, statement: str) -> None:
    """Policies ask for the scopes when they come upon a row that has an audience: filters that admit a hidden one, or none, cost the same."""
    attacker = world.attacker("principal")
    took = set()
    for filters in ("memory_types => '{fact}'", "memory_types => '{decision}'", "since => '2999-01-01'", f"families => '{{{HIDDEN}}}'", "families => '{nowhere}'"):  # fmt: skip
        if "families" in filters and "recall" in statement:
            filters = filters.replace("families", "family").replace("{", "").replace("}", "")
        for family in (HIDDEN, "nowhere"):
            [before] = attacker.rows(LOOKUPS)
            assert attacker.tries(statement.format(filters=filters, family=family)) is None, attacker.heard[-1]
            took.add(attacker.rows(LOOKUPS)[0] - before)
    assert len(took) == 1
