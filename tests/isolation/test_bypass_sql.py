"""Everything that plain SQL offers, by a principal of acme without scopes who may create schemas: none of it shows a secret."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors, sql

from tests.isolation.attack import SECRET, TEA, Attacker, World, build, ids
from tests.support.concurrency import in_thread, wait_until_blocked
from tests.support.databases import Database, as_caller

DENIED = "42501"


@pytest.fixture(scope="module")
def world(db: Database) -> World:
    return build(db)


@pytest.fixture(scope="module")
def shell(world: World) -> Attacker:
    return world.attacker("builder")


@pytest.fixture
def attacker(shell: Attacker) -> Attacker:
    shell.reset()
    return shell


def test_the_secrets_are_there(world: World, attacker: Attacker) -> None:
    """What the tests of this file look for can be found, and their ear for it works."""
    superuser = Attacker(world.boss)
    for statement in (
        "select content from graphium.kg_statements",
        "select relname from pg_class where relname = 'zanzibar' union select 'x' from pg_stats where 'zanzibar' = any (most_common_vals::text::text[])",
        "do $$ begin raise notice '%', (select max(content) from graphium.kg_statements); end $$",
    ):
        superuser.heard.clear()
        superuser.tries(statement)
        if "pg_class" not in statement:
            with pytest.raises(AssertionError):
                superuser.assert_heard_nothing()
    assert attacker.rows("select content from graphium.kg_statements") == [TEA]
    attacker.assert_heard_nothing()


# ------------------------------------------------------------------------------------------ objects of the attacker's own
# Each: what he runs, and the SQLSTATE with which the last of it fails; None: it is allowed, and shows nothing.
OBJECTS: list[tuple[str, str | None]] = [
    ("create table mine.t () inherits (graphium.kg_statements)", DENIED),
    ("create table mine.t partition of graphium.kg_embeddings for values with (modulus 16, remainder 0)", DENIED),
    ("create table mine.t (like graphium.kg_embeddings_p00); alter table graphium.kg_embeddings attach partition mine.t for values with (modulus 32, remainder 0)", DENIED),
    ("alter table graphium.kg_embeddings detach partition graphium.kg_embeddings_p00", DENIED),
    ("create table mine.t (like graphium.kg_statements including all); alter table graphium.kg_statements inherit mine.t", DENIED),
    ("create table mine.t (like graphium.kg_statements including all); alter table mine.t inherit graphium.kg_statements", DENIED),
    ("create temp table t (x uuid references graphium.kg_statements)", "42P16"),
    ("create table mine.t (t uuid, i uuid, foreign key (t, i) references graphium.kg_statements)", DENIED),
    ("create table mine.t (t uuid references graphium.tenants)", DENIED),
    ("create statistics mine.s on content, source from graphium.kg_statements", DENIED),
    ("create rule r as on select to graphium.kg_statements do instead select 1", DENIED),
    ("create rule r as on update to graphium.kg_statements do also select 1", DENIED),
    ("create policy p on graphium.kg_statements using (true)", DENIED),
    ("alter policy tenant_and_scope_isolation on graphium.kg_statements using (true)", DENIED),
    ("drop policy tenant_and_scope_isolation on graphium.kg_statements", DENIED),
    ("alter table graphium.kg_statements disable row level security", DENIED),
    ("alter table graphium.kg_statements no force row level security", DENIED),
    ("alter table graphium.kg_statements owner to current_user", DENIED),
    ("alter table graphium.kg_statements add column x int", DENIED),
    ("alter table graphium.kg_statements alter column content set statistics 1000", DENIED),
    ("create trigger t after insert on graphium.kg_statements execute function suppress_redundant_updates_trigger()", DENIED),
    ("create index on graphium.kg_statements (mine.hear(content))", DENIED),
    ("create event trigger e on ddl_command_start execute function mine.hear()", DENIED),
    ("create publication p for table graphium.kg_statements", DENIED),
    ("create publication p for all tables", DENIED),
    ("create publication p for tables in schema graphium", DENIED),
    ("create subscription s connection 'dbname=x' publication p with (connect = false)", DENIED),
    ("select pg_create_logical_replication_slot('s', 'pgoutput')", DENIED),
    ("alter default privileges for role graphium_owner grant select on tables to public", DENIED),
    ("alter default privileges in schema graphium grant select on tables to public", None),
    ("grant select on graphium.kg_statements to public", DENIED),
    ("grant graphium_app to current_user", DENIED),
    ("grant graphium_user to graphium_app", DENIED),
    ("create role x", DENIED),
    ("reassign owned by graphium_owner to current_user", DENIED),
    ("drop owned by graphium_owner", DENIED),
    ("create function graphium.f() returns int return 1", DENIED),
    ("create or replace function graphium.classify(content text) returns int return 1", DENIED),
    ("alter function graphium.caller() reset all", DENIED),
    ("alter function graphium.caller() set role = graphium_admin", DENIED),
    ("alter function graphium_private.is_seen(uuid, text[], uuid, text[]) cost 100", DENIED),
    ("create function mine.f() returns int language sql set role = graphium_owner return 1; select mine.f()", DENIED),
    ("create function mine.f() returns int language sql set session_authorization = postgres return 1", DENIED),
    ("create function mine.f() returns int language sql set row_security = off return (select 1 from graphium.kg_statements); select mine.f()", DENIED),
    ("create function mine.f() returns bool language internal leakproof as 'booleq'", DENIED),
    ("create function mine.f(text) returns bool language sql immutable leakproof return true", DENIED),
    ("create function mine.f() returns int language c as 'age'", DENIED),
    ("alter function pg_catalog.texteq(text, text) leakproof", DENIED),
    ("create operator class mine.o for type text using btree as operator 1 <", DENIED),
    ("alter operator family text_ops using btree add operator 1 < (text, int)", DENIED),
    ("alter operator <(text, text) set (restrict = none)", DENIED),
    ("create cast (text as uuid) with inout as implicit", DENIED),
    ("create access method a type table handler heap_tableam_handler", DENIED),
    ("create extension plpython3u", "any"),
    ("create server s foreign data wrapper postgres_fdw", "any"),
    ("load 'age'", DENIED),
    ("insert into graphium.kg_statements default values", DENIED),
    ("update graphium.kg_statements set required_scopes = '{}'", DENIED),
    ("delete from graphium.kg_statements", DENIED),
    ("merge into graphium.kg_statements k using (values (1)) v on true when matched then delete", DENIED),
    ("truncate graphium.kg_statements", DENIED),
    ("insert into graphium.principals (role_name) values (current_user)", DENIED),
    ("select * from graphium.principals", DENIED),
    ("select * from graphium.scope_edits", DENIED),
    ("update graphium_private.settings set value = 0", DENIED),
    ("select * from graphium_private.postings", DENIED),
    ("select * from graphium.kg_embeddings_p00", DENIED),
    ("select graphium_private.caller_tenant_id()", DENIED),
    ("lock graphium.kg_statements in access exclusive mode", DENIED),
    ("lock graphium.kg_statements in row share mode", DENIED),
    ("select * from graphium.kg_statements for update", DENIED),
    ("select * from graphium.kg_statements for no key update", DENIED),
    ("select * from graphium.kg_statements for share", DENIED),
    ("select * from graphium.dh_families for key share", DENIED),
    ("select ctid, content from graphium.kg_statements", DENIED),
    ("select xmin, cmin, tableoid from graphium.kg_statements", DENIED),
    ("analyze graphium.kg_statements", None),
    ("cluster graphium.kg_statements using kg_statements_pkey", DENIED),
    ("reindex table graphium.kg_statements", DENIED),
    ("comment on table graphium.kg_statements is 'x'", DENIED),
    ("security label on table graphium.kg_statements is 'x'", "any"),
    ("alter table mine.t set schema graphium", "any"),
    ("create schema graphium_private", "42P06"),
    ("create table graphium.t (x int)", DENIED),
    ("create table ag_catalog.t (x int)", DENIED),
    ("create table graphium_private.t (x int)", DENIED),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "code"), OBJECTS, ids=ids(OBJECTS))
def test_objects_and_rights(attacker: Attacker, statement: str, code: str | None) -> None:
    with attacker.conn.transaction(force_rollback=True):
        attacker.tries("create function mine.hear(text) returns text language sql immutable return $1")
        found = attacker.tries(statement)
    assert found == code or (code == "any" and found), attacker.heard
    attacker.assert_heard_nothing()


def test_what_does_not_run_in_a_transaction(world: World, attacker: Attacker) -> None:
    assert attacker.tries("vacuum (full, verbose) graphium.kg_statements") is None  # a warning, and nothing is done
    assert "permission denied to vacuum" in attacker.heard[-1]
    for statement in (
        "alter system set row_security = off",
        f"alter database {world.db.name} set row_security = off",
        f"alter database {world.db.name} set graphium.tenant = 'other'",
        "reindex system",
    ):
        assert attacker.tries(statement) == DENIED


def test_a_member_cannot_revoke_what_his_group_has(world: World, attacker: Attacker) -> None:
    """DROP OWNED BY takes rights away from a role, and a member may say it; but only those that he himself gave. It would take
    away policies for the role too, and asks no right for that: only that it cannot take the rights to columns away stops it."""
    policies = (
        "select c.oid::regclass::text, p.polname from pg_policy p join pg_class c on c.oid = p.polrelid order by 1, 2"
    )
    before = world.boss.execute(policies).fetchall()
    for group in ("graphium_reader", "graphium_user"):
        attacker.tries(f"drop owned by {group}", f"drop owned by {group} cascade")
    assert world.boss.execute(policies).fetchall() == before
    assert any(name == "before_conditions_of_callers" for _, name in before)
    assert attacker.rows("select content from graphium.kg_statements") == [TEA]
    assert attacker.rows("select content from graphium.recall_context()") == [TEA]
    assert attacker.tries("select graphium.ingest_context('kitchen of acme', 'g', 's', '[]')") is None


# ------------------------------------------------------------------------------------------ code of the attacker's own
# Cheap, chatty, and not leakproof: says what it is shown.
CHATTY = """
  create or replace function mine.hear(x {type}) returns boolean language plpgsql immutable cost 0.0000001 parallel safe
    as $$ begin raise notice 'heard %', x; return true; end $$"""
OPERATORS = """
  create or replace function mine.alike(a text, b text) returns boolean language plpgsql immutable cost 0.0000001
    as $$ begin raise notice 'heard % %', a, b; return true; end $$;
  create operator mine.=== (leftarg = text, rightarg = text, procedure = mine.alike, restrict = eqsel, join = eqjoinsel, commutator = operator(mine.===));
  create operator mine.<<< (leftarg = text, rightarg = text, procedure = mine.alike, restrict = scalarltsel);
  create or replace function mine.shared(a text[], b text[]) returns boolean language plpgsql immutable as $$ begin raise notice 'heard % %', a, b; return true; end $$;
  create operator mine.&&& (leftarg = text[], rightarg = text[], procedure = mine.shared, restrict = eqsel)"""
TABLES = ("kg_statements", "kg_statement_variants", "kg_embeddings", "dh_families", "dh_genera", "dh_specimens", "dh_symbioses", "tenants")  # fmt: skip
FUNCTIONS = (
    "recall_context()",
    "context_tree()",
    "wake_up_context()",
    "search_context(query_text => 'zanzibar tea euros')",
    "search_context(query_embedding => '[1,2,3]')",
    "search_families('[1,2,3]')",
    "prepare_query('the person, and tea')",
    "cypher('MATCH (n) RETURN n')",
    "caller()",
)


def test_a_chatty_condition_hears_visible_rows_only(world: World, attacker: Attacker) -> None:
    attacker.tries(*(CHATTY.format(type=t) for t in ("text", "text[]", "record", "jsonb")))
    for settings in (
        "",
        "set enable_indexscan = off; set enable_bitmapscan = off",
        "set debug_parallel_query = on; set parallel_setup_cost = 0; set min_parallel_table_scan_size = 0",
    ):
        attacker.tries(*filter(None, settings.split("; ")))
        for table in TABLES:
            attacker.rows(f"select * from graphium.{table} t where mine.hear(t::text)")
            attacker.rows(f"select count(*) from graphium.{table} t where mine.hear(t::text) or random() < 2")
        for function in FUNCTIONS:
            attacker.rows(f"select * from graphium.{function} t where mine.hear(t::text)")
        attacker.rows(
            "select * from graphium.kg_statements where mine.hear(content) and mine.hear(required_scopes) and mine.hear(metadata)"
        )
        attacker.rows(
            "select a.content from graphium.kg_statements a join graphium.kg_statements b on mine.hear(b.content) and a.id <> b.id right join graphium.dh_families f on mine.hear(f.name)"
        )
        attacker.rows(
            "select 1 from graphium.kg_statements where case when mine.hear(content) then true end group by content having mine.hear(content) order by mine.hear(content)"
        )
    assert any(TEA in line and "heard" in line for line in attacker.heard)
    attacker.assert_heard_nothing()
    with world.unguarded("builder", "alter table graphium.kg_statements disable row level security") as other:
        other.rows("select * from graphium.kg_statements t where mine.hear(t::text)")
        with pytest.raises(AssertionError):
            other.assert_heard_nothing()


def test_statistics_are_not_shown_to_an_operator_of_ones_own(world: World, attacker: Attacker) -> None:
    """A selectivity estimator calls the operator on sampled values (CVE-2017-7484, CVE-2025-8713)."""
    assert attacker.tries(OPERATORS) is None, attacker.heard
    for column in ("content", "source"):
        attacker.rows(f"explain select * from graphium.kg_statements where {column} operator(mine.===) 'x'")
        attacker.rows(f"explain select * from graphium.kg_statements where {column} operator(mine.<<<) 'x'")
        attacker.rows(
            f"explain select * from graphium.kg_statements a join graphium.kg_statements b on a.{column} operator(mine.===) b.{column}"
        )
    attacker.rows("explain select * from graphium.dh_families where name operator(mine.===) 'x'")
    attacker.rows("explain select * from graphium.kg_embeddings where required_scopes operator(mine.&&&) '{hr}'")
    attacker.rows("select * from graphium.kg_statements where content operator(mine.===) 'x'")
    attacker.assert_heard_nothing()


IMPOSTORS = """
  create temp table tenants (id uuid, slug text, dimensions int, embedding_model text);
  create temp table principals (role_name name, tenant text, scopes text[], read_only boolean, role_oid oid);
  create temp table new_rows (id uuid); create temp table old_rows (id uuid); create temp table added (id uuid); create temp table removed (id uuid);
  create temp table dh_families (id uuid); create temp table kg_statements (id uuid);
  create domain pg_temp.text as pg_catalog.text check (mine.hear(value));
  create domain pg_temp.uuid as pg_catalog.uuid; create domain pg_temp.jsonb as pg_catalog.jsonb; create domain pg_temp.vector as pg_catalog.text;
  create type pg_temp.agtype as (x int);
  create function pg_temp.cardinality(pg_catalog.text[]) returns int language sql return 0;
  create function pg_temp.current_setting(pg_catalog.text, boolean) returns pg_catalog.text language sql return 'other';
  create function mine.cardinality(pg_catalog.text[]) returns int language sql return 0;
  create function mine.format(pg_catalog.text, pg_catalog.text) returns pg_catalog.text language plpgsql as $$ begin raise notice 'ran as %', current_user; return $1; end $$;
  create function mine.format(pg_catalog.text, pg_catalog.uuid) returns pg_catalog.text language plpgsql as $$ begin raise notice 'ran as %', current_user; return $1; end $$;
  create function mine.same(pg_catalog.uuid, pg_catalog.uuid) returns boolean language plpgsql as $$ begin raise notice 'ran as %', current_user; return true; end $$;
  create operator mine.= (leftarg = pg_catalog.uuid, rightarg = pg_catalog.uuid, procedure = mine.same);
  create function mine.overlap(pg_catalog.text[], pg_catalog.text[]) returns boolean language plpgsql as $$ begin raise notice 'ran as %', current_user; return true; end $$;
  create operator mine.&& (leftarg = pg_catalog.text[], rightarg = pg_catalog.text[], procedure = mine.overlap);
  create operator mine.|| (leftarg = pg_catalog.text, rightarg = pg_catalog.text, procedure = pg_catalog.textcat);
  create aggregate mine.array_agg(pg_catalog.uuid) (sfunc = pg_catalog.array_append, stype = pg_catalog.uuid[])"""


def test_names_like_ours_in_early_schemas(world: World, attacker: Attacker) -> None:
    """Tables, types, functions and operators that stand before ours and PostgreSQL's own are looked at by nobody else."""
    attacker.tries(CHATTY.format(type="pg_catalog.text"))
    with attacker.conn.transaction(force_rollback=True):
        for statement in IMPOSTORS.split(";\n"):
            assert attacker.tries(statement) is None, attacker.heard[-1]
        assert attacker.tries("set local search_path = mine, pg_temp, pg_catalog, graphium") is None
        for function in FUNCTIONS:
            attacker.conn.execute(f"select * from graphium.{function}".encode())
        for table in TABLES:
            attacker.conn.execute(f"select * from graphium.{table}".encode())
        attacker.conn.execute(
            "select graphium.ingest_context('kitchen of acme', 'new genus', 'new specimen', '[{\"content\": \"Soup\", \"embedding\": [1, 1, 1]}]')"
        )
        attacker.conn.execute(
            "select graphium.set_required_scopes('statement', s.id, '{public}') from graphium.kg_statements s"
        )
        attacker.conn.execute("select graphium.forget_context(array(select s.id from graphium.kg_statements s))")
        assert attacker.tries("select graphium.cypher('MATCH (n) RETURN n')") is None
    assert [line for line in attacker.heard if "ran as" in line or "heard" in line] == []
    attacker.assert_heard_nothing()


def test_arguments_with_code_in_them_run_as_the_caller(world: World, attacker: Attacker) -> None:
    """Domains, casts, defaults and set-returning functions are done with before our function starts."""
    attacker.tries(
        "create function mine.who(x anyelement) returns boolean language plpgsql as $$ begin raise notice 'ran as %', current_user; return true; end $$",
        "create domain mine.words as text check (mine.who(value))",
        "create domain mine.list as uuid[] check (mine.who(value))",
        "create domain mine.json as jsonb check (mine.who(value))",
        "create type mine.box as (x text)",
        "create function mine.unbox(mine.box) returns text language plpgsql as $$ begin raise notice 'ran as %', current_user; return ($1).x; end $$",
        "create cast (mine.box as text) with function mine.unbox as implicit",
        "create function mine.many() returns setof text language plpgsql as $$ begin raise notice 'ran as %', current_user; return query select content from graphium.kg_statements; end $$",
    )
    for call in (
        "recall_context(family => 'x'::mine.words)",
        "recall_context(statement_ids => '{}'::mine.list)",
        "recall_context(family => row('x')::mine.box)",
        "search_context(query_text => mine.many())",
        "search_context(query_text => 'x', families => array(select mine.many()))",
        "classify(row('I prefer tea')::mine.box)",
        """cypher('RETURN $x', '{"x": 1}'::mine.json)""",
        """ingest_context('kitchen of acme', 'g'::mine.words, row('s')::mine.box, '[]'::mine.json)""",
        "forget_context('{}'::mine.list)",
        "set_caller('acme'::mine.words)",
    ):
        attacker.conn.execute(f"select graphium.{call}".encode())
    ran = {
        line.rsplit(" ", 1)[-1]
        for line in attacker.heard
        if "NOTICE | ran as" in line
        for line in [line.split(" | ")[1]]
    }
    assert ran == {world.role("builder")}
    attacker.assert_heard_nothing()


# ------------------------------------------------------------------------------------------ views and functions of others
def test_views_and_functions_of_a_more_powerful_role(world: World, attacker: Attacker) -> None:
    """Through an admin's view or function one stays who one is: identity is the session's. A superuser's view is a hole, and
    his to make; with security_invoker it is none."""
    admin = sql.Identifier(world.db.cluster.role("admin")).as_string()
    views = {
        "plain": f"create view open.plain as select content from graphium.kg_statements; alter view open.plain owner to {admin}",
        "barrier": f"create view open.barrier with (security_barrier) as select content from graphium.kg_statements; alter view open.barrier owner to {admin}",
        "owners": "create view open.owners as select content from graphium.kg_statements; alter view open.owners owner to graphium_owner",
        "invoker": "create view open.invoker with (security_invoker) as select content from graphium.kg_statements",
        "definer()": f"create function open.definer() returns setof text language sql security definer begin atomic select content from graphium.kg_statements; end; alter function open.definer() owner to {admin}",
        "recalled": f"create view open.recalled as select content from graphium.recall_context(); alter view open.recalled owner to {admin}",
    }
    world.boss.execute(
        "create schema open; grant usage on schema open to public; grant create on schema open to graphium_owner, graphium_admin"
    )
    for name, definition in views.items():
        world.boss.execute(definition.encode())
        if "()" not in name:
            world.boss.execute(f"grant select on open.{name} to public".encode())
        assert attacker.rows(f"select * from open.{name}") == [TEA]
    world.boss.execute(
        "create view open.superusers as select content from graphium.kg_statements; grant select on open.superusers to public"
    )
    assert len(attacker.rows("select * from open.superusers")) > 1
    world.boss.execute("drop schema open cascade")


@pytest.mark.parametrize("group", ["graphium_user", "graphium_app", "graphium_admin"])
def test_nobody_fills_a_materialized_view(world: World, attacker: Attacker, group: str) -> None:
    """The price of being nobody in code that maintenance runs: docs/security.md tells the way round it."""
    if group == "graphium_user":
        reader, schema = attacker, "mine"
    else:
        login = world.db.login(group)
        world.boss.execute(f"create schema reports authorization {world.db.cluster.role(login)}".encode())
        reader, schema = Attacker(world.db.connect(login)), "reports"
        reader.tries("select graphium.set_caller('acme', is_local => false)")
    query = "select content from graphium.kg_statements"
    assert reader.tries(f"create materialized view {schema}.m as {query}") == "42501"
    with pytest.raises(errors.InsufficientPrivilege, match="nobody is a caller in what a materialized view") as told:
        reader.conn.execute(f"create materialized view {schema}.n as {query}".encode())
    assert told.value.diag.message_hint == "Keep a plain table instead, and fill it by insert … select."
    assert reader.tries(f"create materialized view {schema}.m as {query} with no data") is None
    assert reader.tries(f"refresh materialized view {schema}.m") == "42501"
    with pytest.raises(errors.InsufficientPrivilege, match="security-restricted operation"):
        world.boss.execute(f"refresh materialized view {schema}.m")
    assert reader.tries(f"create table {schema}.t (content text)", f"insert into {schema}.t {query}") is None
    assert sorted(reader.rows(f"select content from {schema}.t")) == sorted(reader.rows(query)) != []
    attacker.assert_heard_nothing()
    attacker.tries("drop table mine.t", "drop materialized view mine.m")
    world.boss.execute("drop schema if exists reports cascade")


# ------------------------------------------------------------------------------------------ ways to get rows out
LOOKS = [
    "select query_to_xml('select * from graphium.kg_statements', true, true, '')",
    "select table_to_xml('graphium.kg_statements', true, true, '')",
    "select schema_to_xml('graphium', true, true, '')",
    "select cursor_to_xml('c', 1, true, true, '')",
    "select row_to_json(s) from graphium.kg_statements s",
    "select s from graphium.kg_statements s tablesample system (100)",
    "select s from graphium.kg_statements s tablesample bernoulli (100) repeatable (1)",
    "select * from only graphium.kg_statements",
    "with recursive r as (select content from graphium.kg_statements union select content from r) select * from r",
    "select * from pg_stats where schemaname ~ '^graphium'",
    "select * from pg_stats_ext",
    "select * from pg_stats_ext_exprs",
    "select * from pg_statistic",
    "select * from pg_statistic_ext_data",
    "select stavalues1 from pg_statistic",
    "select * from pg_stat_activity",
    "select * from pg_stat_user_tables",
    "select * from pg_statio_user_tables",
    "select * from pg_stat_statements",
    "select * from pg_locks",
    "select * from pg_cursors",
    "select * from pg_prepared_statements",
    "select * from pg_prepared_xacts",
    "select * from pg_settings",
    "select * from pg_sequences",
    "select * from pg_policies",
    "select pg_get_expr(polqual, polrelid) from pg_policy",
    "select pg_get_functiondef(oid) from pg_proc where pronamespace::regnamespace::text ~ '^graphium'",
    "select * from pg_description",
    "select * from pg_db_role_setting",
    "select * from pg_class where relnamespace::regnamespace::text ~ '^graphium'",
    "select * from pg_index",
    "select * from information_schema.columns where table_schema ~ '^graphium'",
    "select * from information_schema.routines where routine_schema = 'graphium'",
    "select * from pg_user_mappings",
    "select * from pg_authid",
    "select * from pg_largeobject",
    "select * from pg_largeobject_metadata",
    "select lo_get(lo_from_bytea(0, 'mine'))",
    "select lo_import('/etc/passwd')",
    "select lo_export(1, '/tmp/x')",
    "select pg_read_file('global/pg_control')",
    "select pg_read_binary_file(pg_relation_filepath('graphium.kg_statements'))",
    "select pg_ls_dir('base')",
    "select pg_stat_file('base')",
    "copy graphium.kg_statements to '/tmp/x'",
    "copy (select 1) to program 'cat'",
    "copy mine.x from '/etc/passwd'",
    "select currtid2('graphium.kg_statements', '(0,1)')",
    "select pg_relation_size('graphium.kg_statements')",
    "select brin_summarize_new_values('graphium.kg_statements_pkey')",
    "select gin_clean_pending_list('graphium.kg_statements_pkey')",
    "select pg_export_snapshot()",
    "select pg_backend_memory_contexts from pg_backend_memory_contexts",
    "select pg_log_backend_memory_contexts(pg_backend_pid())",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename <> current_user",
    "select pg_cancel_backend(pid) from pg_stat_activity where usename <> current_user",
    "select pg_reload_conf()",
    "select pg_promote()",
    "select pg_current_logfile()",
    "select pg_logical_emit_message(false, 'x', 'y')",
    "select pg_stat_reset()",
    "select pg_clear_relation_stats('graphium', 'kg_statements')",
    "explain (analyze, verbose, buffers, settings, wal) select * from graphium.kg_statements",
    "explain (verbose) select * from graphium.recall_context()",
    "explain (generic_plan) select * from graphium.kg_statements where content = $1",
    "explain analyze select * from graphium.search_context(query_text => 'zanzibar')",
    "prepare p as select * from graphium.kg_statements; execute p; explain analyze execute p",
    "do $$ declare r record; begin for r in select * from graphium.kg_statements loop raise notice '%', r; end loop; end $$",
    "set debug_print_plan = on; set client_min_messages = log; select * from graphium.recall_context()",
    "set client_min_messages = debug5; select * from graphium.search_context(query_text => 'zanzibar')",
    "set row_security = off; select * from graphium.kg_statements",
    "set row_security = off; select * from graphium.recall_context()",
    "set row_security = off; select * from graphium.cypher('MATCH (n) RETURN n')",
    "set session_replication_role = replica",
    "set session authorization postgres",
    "set role postgres",
    "reset session authorization; select * from graphium.recall_context()",
    "set plpgsql.extra_errors = 'all'; select * from graphium.recall_context()",
    "set plpgsql.print_strict_params = on; select * from graphium.search_context(query_text => 'zanzibar')",
    "listen graphium; notify graphium, 'x'; select pg_notification_queue_usage()",
]  # fmt: skip


@pytest.mark.parametrize("statements", LOOKS, ids=ids(LOOKS))
def test_looks(world: World, attacker: Attacker, statements: str) -> None:
    """Refused, or without a secret; and nothing of it changes what the next statement sees."""
    if "generic_plan" in statements:
        statements = statements.replace("$1", "$1::text")
    attacker.tries(*(statements.split("; ") if not statements.startswith("do") else [statements]))
    # Asking for a word says the word.
    attacker.heard = [line for line in attacker.heard if f"'{SECRET}'" not in line]
    attacker.assert_heard_nothing()
    attacker.tries("reset all")
    assert attacker.rows("select content from graphium.kg_statements") == [TEA]


def test_copy(attacker: Attacker) -> None:
    for table in TABLES:
        attacker.copies(f"copy graphium.{table} to stdout")
        attacker.copies(f"copy (select * from graphium.{table}) to stdout with (format csv, header)")
        attacker.copies(f"copy graphium.{table} to stdout with (format binary)") if table == "tenants" else None
    assert any(TEA in line for line in attacker.heard)
    attacker.assert_heard_nothing()


# ------------------------------------------------------------------------------------------ settings that change how SQL is read
SETTINGS = [
    *("standard_conforming_strings = off", "backslash_quote = on", "escape_string_warning = off", "xmloption = document", "datestyle = 'SQL, DMY'"),
    *("intervalstyle = sql_standard", "bytea_output = escape", "extra_float_digits = -15", "timezone = 'Pacific/Kiritimati'", "transform_null_equals = on"),
    *("default_text_search_config = 'pg_catalog.german'", "array_nulls = off", "quote_all_identifiers = on", "plan_cache_mode = force_generic_plan"),
    *("plan_cache_mode = force_custom_plan", "check_function_bodies = off", "debug_parallel_query = on", "jit = on; set jit_above_cost = 0"),
    *("enable_seqscan = off", "enable_indexscan = off; set enable_bitmapscan = off", "enable_hashjoin = off; set enable_mergejoin = off", "constraint_exclusion = on"),
    *("cursor_tuple_fraction = 0", "from_collapse_limit = 1", "cpu_operator_cost = 0", "cpu_operator_cost = 1e10; set jit = off", "work_mem = '64kB'", "client_encoding = latin1"),
    *("default_transaction_isolation = 'repeatable read'", "default_transaction_read_only = on", "lc_messages = 'C'", "geqo_threshold = 2", "enable_partition_pruning = off"),
    *("session_replication_role = replica", "lo_compat_privileges = on", "zero_damaged_pages = on", "allow_system_table_mods = on", "ignore_system_indexes = on"),
]  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_change_nothing(attacker: Attacker, setting: str) -> None:
    attacker.tries(*f"set {setting}".split("; "))
    for _ in range(2):
        for table in ("kg_statements", "dh_families", "tenants"):
            attacker.rows(f"select * from graphium.{table}")
        for function in FUNCTIONS:
            attacker.rows(f"select * from graphium.{function}")
    attacker.heard = [line for line in attacker.heard if f"'{SECRET}'" not in line]
    attacker.assert_heard_nothing()
    assert sum(TEA in line for line in attacker.heard) == 2 * 3


# ------------------------------------------------------------------------------------------ opened under one caller, used under another
def test_cursors_and_plans_follow_the_caller(world: World) -> None:
    """An application's session: what was opened, prepared or planned for one caller shows another one's rows, never both."""
    conn = world.db.connect("app")
    conn.execute(
        "prepare p as select content from graphium.kg_statements; prepare q as select content from graphium.recall_context();"
        " prepare r as select v from graphium.cypher('MATCH (f:Family) RETURN f.name') v"
    )
    for mode in ("auto", "force_generic_plan"):
        conn.execute(f"set plan_cache_mode = {mode}".encode())
        for tenant, scopes in [("acme", []), ("acme", ["hr"]), ("other", [])] * 3:
            with as_caller(conn, tenant, scopes):
                for _ in range(3):
                    for name in "pqr":
                        found = repr(conn.execute(f"execute {name}".encode()).fetchall()).lower()
                        assert (SECRET in found) == (scopes == ["hr"] or tenant == "other"), (name, mode, found)
                        assert not (f"{SECRET} of acme" in found and f"{SECRET} of other" in found)
            assert conn.execute("execute p").fetchall() == []
    # Protocol-level statements are planned once too.
    for tenant, scopes, count in [("acme", [], 1), ("other", [], 2), ("acme", ["hr"], 2)] * 4:
        with as_caller(conn, tenant, scopes):
            assert conn.execute(
                "select count(*) from graphium.kg_statements where content <> %s", ["x"], prepare=True
            ).fetchone() == (count,)


@pytest.mark.parametrize("kind", ["cursor", "scroll cursor", "cursor with hold", "scroll cursor with hold"])
def test_a_cursor_opened_under_another_caller(world: World, kind: str) -> None:
    conn = world.db.connect("app")
    with conn.transaction():
        conn.execute("select graphium.set_caller('other')")
        conn.execute(f"declare c {kind} for select content from graphium.kg_statements order by 1".encode())
        if "hold" not in kind:
            conn.execute("select graphium.set_caller('acme')")
            found = conn.execute("fetch all from c").fetchall()
            assert found == [(TEA,)] or (len(found) == 2 and TEA not in repr(found))
    if "hold" in kind:  # holds what its own caller saw, as a temporary table would; a pool says `discard all`
        with as_caller(conn, "acme"):
            assert TEA not in repr(conn.execute("fetch all from c").fetchall())
        conn.execute("discard all")
        with pytest.raises(psycopg.errors.InvalidCursorName):
            conn.execute("fetch all from c")


def test_a_caller_changed_in_mid_statement(world: World, attacker: Attacker) -> None:
    """A function that narrows, or claims to widen, while its own query runs: never more than one holds."""
    for scopes in ("{hr}", "{}", "{hr,legal}", "{public}", ""):
        attacker.rows(
            f"select set_config('graphium.scopes', '{scopes}', false), set_config('graphium.tenant', 'other', false), content from graphium.kg_statements"
        )
        attacker.rows(
            f"select r.content from (select set_config('graphium.scopes', '{scopes}', false)) x, lateral (select * from graphium.kg_statements where x is not null) r"
        )
        attacker.rows(
            f"select r.content from (values ('{scopes}')) v(x), lateral (select set_config('graphium.scopes', v.x, true)) s, graphium.recall_context(page_size => 10) r"
        )
        attacker.tries(
            "begin",
            "savepoint a",
            f"set local graphium.scopes = '{scopes}'",
            "rollback to a",
            "select content from graphium.kg_statements",
            "commit",
        )
    attacker.assert_heard_nothing()


# ------------------------------------------------------------------------------------------ holding others up
def test_advisory_locks_hold_up_no_caller(world: World) -> None:
    """No function of ours takes one; only `graphium migrate` does, which says who holds it."""
    holder = world.db.connect(world.db.login("pg_monitor"))  # whom hardening.sql lets take them
    holder.execute("select pg_advisory_lock(k) from generate_series(0, 300) k")
    with as_caller(world.app, "acme", ["hr"]):
        world.app.execute("set local lock_timeout = '2s'")
        world.app.execute(
            """select graphium.ingest_context('held', 'g', 's', '[{"content": "Held up by nobody"}]', '{hr}')"""
        )
    holder.close()


def test_a_reader_holds_up_nobody(world: World) -> None:
    """An open transaction of a reader keeps only share locks: everybody else writes on."""
    reader = world.attacker("reader")
    reader.tries(
        "begin",
        "select * from graphium.kg_statements",
        "select * from graphium.recall_context()",
        "select * from graphium.cypher('MATCH (n) RETURN n')",
    )
    with as_caller(world.app, "acme", ["hr"]):
        world.app.execute("set local lock_timeout = '2s'")
        world.app.execute(
            """select graphium.ingest_context('held', 'g', 's2', '[{"content": "Held up by no reader"}]', '{hr}')"""
        )
        world.app.execute(
            "select graphium.forget_context(array(select id from graphium.kg_statements where content ~ '^Held'))"
        )
    reader.tries("commit")


def test_a_writer_who_does_not_commit_holds_up_his_own_family_only(world: World, attacker: Attacker) -> None:
    """docs/security.md, "Row locks"; idle_in_transaction_session_timeout is what ends it."""
    with attacker.conn.transaction(force_rollback=True):
        attacker.conn.execute(
            """select graphium.ingest_context('kitchen of acme', 'g', 's', '[{"content": "Mine"}]')"""
        )
        with as_caller(world.app, "acme", ["hr"]):
            world.app.execute("set local lock_timeout = '2s'")
            world.app.execute(
                """select graphium.ingest_context('elsewhere', 'g', 's', '[{"content": "Theirs"}]', '{hr}')"""
            )
        other = world.db.connect("app")
        with in_thread(lambda: _ingest_into_kitchen(other)) as waiting:
            wait_until_blocked(world.boss, other, attacker.conn)
            world.boss.execute("select pg_terminate_backend(%s)", [other.info.backend_pid])
            assert isinstance(waiting.exception(timeout=20), psycopg.OperationalError)


LOCKS_FIRST = {  # and asks for rights afterwards: what a session of the login's own holds, and what waits for it
    "create rule": ("select from graphium.kg_statements", "create rule r as on insert to graphium.kg_statements do nothing"),
    "create rule, on what it may not read": ("prepare held as select from graphium.principals", "create rule r as on insert to graphium.principals do nothing"),
    "create rule, on a catalog": ("select from pg_catalog.pg_publication_rel", "create rule r as on insert to pg_catalog.pg_publication_rel do nothing"),
    "create trigger": ("prepare held as delete from graphium.kg_statements", "create trigger t before insert on graphium.kg_statements for each row execute function tsvector_update_trigger()"),
    "a partition": ("select from graphium.kg_embeddings", "create temp table p partition of graphium.kg_embeddings for values with (modulus 16, remainder 0)"),
}  # fmt: skip


@pytest.mark.parametrize("case", LOCKS_FIRST)
def test_a_command_that_locks_before_it_asks_waits_for_a_moment_only(world: World, case: str) -> None:
    """Else all who come after it wait behind it, for as long as the holder likes."""
    hold, command = LOCKS_FIRST[case]
    holder, login = world.attacker("reader"), world.attacker("reader")
    login.tries("set lock_timeout = '1h'")
    assert login.tries(command) in ("42501", "42809")
    assert holder.tries("begin", hold) is None
    found = login.tries(command)
    holder.tries("rollback")
    assert found == "55P03"
    assert login.rows("show lock_timeout") == ["1h"]


def test_other_commands_of_a_login_wait_as_long_as_it_says(world: World) -> None:
    """Also after it has made a table of its own in the same transaction, and where a query makes it."""
    login = world.attacker("reader")
    assert (
        login.tries("set lock_timeout = '1h'", "begin", "create temp table mine (a int)", "create index on mine (a)")
        is None
    )
    assert login.rows("show lock_timeout") == ["1h"]
    assert (
        login.tries(
            "create temp table told as select current_setting('lock_timeout') as t", "alter table mine add b int"
        )
        is None
    )
    assert login.rows("select t from told") == ["1h"]
    assert login.tries("commit") is None
    assert login.rows("show lock_timeout") == ["1h"]


@pytest.mark.parametrize("role", ["app", "admin", "deployer"])
def test_commands_of_those_who_run_the_place_wait_as_long_as_they_say(world: World, role: str) -> None:
    conn = world.db.connect(role)
    conn.execute("set lock_timeout = '1h'")
    holder = world.boss
    holder.execute("begin; create table public.in_use (a int); commit; begin; select from public.in_use")
    with in_thread(lambda: conn.execute("create rule r as on insert to public.in_use do nothing")) as waiting:
        wait_until_blocked(world.db.connect(), conn, holder)
        holder.execute("rollback; drop table public.in_use")
        assert isinstance(waiting.exception(timeout=20), psycopg.Error)


def _ingest_into_kitchen(conn: psycopg.Connection[object]) -> None:
    with as_caller(conn, "acme"):
        conn.execute("""select graphium.ingest_context('kitchen of acme', 'g', 's', '[{"content": "Mine"}]')""")
