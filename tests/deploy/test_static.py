"""Conventions of the SQL tree that a reviewer should not have to look for. See db/README.md for the why."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import psycopg
import pytest
import sqlparse
from pglast import parse_sql, split
from pglast.enums import ObjectType

from graphium_db.deploy import Tree
from graphium_db.deploy.plan import expression_reads
from graphium_db.deploy.tree import SqlFile, statements
from tests.support.databases import Cluster

TREE = Tree.default()
MIGRATIONS = TREE.migrations()
ROLLBACKS = sorted((TREE.root / "migrations").glob("*.rollback.sql"))
REPEATABLES = TREE.repeatables("public")
FUNCTION_FILES = [f for f in REPEATABLES if f.path.startswith("functions/")]


def path(file: SqlFile) -> str:
    return file.path


@pytest.mark.parametrize("folder", ["functions", "policies"])
def test_prefixes_are_three_digits_and_unique(folder: str) -> None:
    names = sorted(p.name for p in (TREE.root / folder).glob("*.sql"))
    assert [n for n in names if not re.fullmatch(r"\d{3}_[a-z0-9_]+\.sql", n)] == []
    assert [n for n, count in Counter(n[:3] for n in names).items() if count > 1] == []


def test_migrations_are_numbered_without_gaps_and_can_be_rolled_back() -> None:
    names = [p.name for p in MIGRATIONS]
    assert [n for n in names if not re.fullmatch(r"\d{4}_[a-z0-9_]+\.sql", n)] == []
    assert [int(n[:4]) for n in names] == list(range(1, len(names) + 1))
    assert [p.name.replace(".rollback", "") for p in ROLLBACKS] == names


@pytest.mark.parametrize("file", MIGRATIONS + ROLLBACKS, ids=lambda p: p.name)
def test_yoyo_splits_a_migration_as_postgres_does(file: Path) -> None:
    text = file.read_text("utf-8")
    by_yoyo = [s for s in sqlparse.split(text) if not s.lstrip().startswith("--") or parse_sql(s)]
    assert len(by_yoyo) == len(split(text))
    for statement in by_yoyo:
        assert len(parse_sql(statement)) == 1
    assert "transactional:" not in text, "the deployer marks a migration in the transaction that runs it"


@pytest.mark.parametrize("file", REPEATABLES, ids=path)
def test_our_reading_of_a_file_is_postgres_own(file: SqlFile) -> None:
    by_postgres = [re.sub(r"\A(\s*(--.*)?\n)+", "", s) for s in split(file.text)]
    assert [s.text for s in statements(file.text)] == by_postgres


@pytest.mark.parametrize(
    "file", [*REPEATABLES, *MIGRATIONS], ids=lambda f: f.path if isinstance(f, SqlFile) else f.name
)
def test_a_file_says_as_whom_it_runs(file: SqlFile | Path) -> None:
    text = file.text if isinstance(file, SqlFile) else file.read_text("utf-8")
    assert str(next(statements(text))) in {
        "set local role graphium_owner",
        "set local role graphium_keeper",
        "set local role graphium_cypher",
    }


@pytest.mark.parametrize("file", FUNCTION_FILES, ids=path)
def test_a_function_has_comment_revoke_and_grant_beside_it(file: SqlFile) -> None:
    made, commented, revoked = Counter[str](), Counter[str](), Counter[str]()
    for raw in parse_sql(file.text):
        statement = raw.stmt
        kind = type(statement).__name__
        if kind == "CreateFunctionStmt":
            made[".".join(n.sval for n in statement.funcname)] += 1
        elif kind == "DefineStmt" and statement.kind == ObjectType.OBJECT_AGGREGATE:
            made[".".join(n.sval for n in statement.defnames)] += 1
        elif kind == "CommentStmt" and statement.objtype in (ObjectType.OBJECT_FUNCTION, ObjectType.OBJECT_AGGREGATE):
            commented[".".join(n.sval for n in statement.object.objname)] += 1
        elif kind == "GrantStmt" and statement.objtype == ObjectType.OBJECT_FUNCTION and not statement.is_grant:
            for function in statement.objects:
                revoked[".".join(n.sval for n in function.objname)] += 1
    assert commented == made
    assert revoked == made


@pytest.mark.parametrize("file", FUNCTION_FILES, ids=path)
def test_a_function_states_what_it_is(file: SqlFile) -> None:
    """Language, volatility, parallel safety and security are written out, not left to a default."""
    for raw in parse_sql(file.text):
        if type(raw.stmt).__name__ == "CreateFunctionStmt":
            stated = {option.defname for option in raw.stmt.options}
            name = raw.stmt.funcname[-1].sval
            assert {"language", "volatility", "parallel", "security"} - stated == set(), name


@pytest.fixture(scope="module")
def conn(cluster: Cluster) -> psycopg.Connection:
    with psycopg.connect(cluster.dsn(cluster.take()), autocommit=True) as conn:
        yield conn


OURS = "p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace) and p.prokind = 'f'"


@pytest.mark.parametrize("file", FUNCTION_FILES, ids=path)
def test_names_are_looked_up_before_a_query_and_not_in_its_condition(file: SqlFile) -> None:
    """A plan that reads many rows would look them up for each: an import took ten times as long beside a large tenant."""
    assert re.findall(r"= any \((?:\(?select )?graphium_private\._\w+\(", file.text) == []


def test_public_functions_are_definers(conn: psycopg.Connection) -> None:
    """Application roles have no right on the tables but SELECT, so a public function must act for them."""
    rows = conn.execute(
        "select p.proname from pg_proc p join pg_language l on l.oid = p.prolang"
        f" where {OURS} and p.pronamespace = 'graphium'::regnamespace and not p.prosecdef"
        "   and p.provolatile <> 'i' order by 1"
    ).fetchall()
    assert rows == []


def test_what_the_server_prints_inside_a_public_function_reaches_no_client(conn: psycopg.Connection) -> None:
    """debug_print_plan prints a trigger's variables, counts of hidden rows too, and trace_sort how much was sorted."""
    rows = conn.execute(
        f"select p.proname from pg_proc p where {OURS} and p.pronamespace = 'graphium'::regnamespace"
        "   and p.provolatile <> 'i' and not coalesce('client_min_messages=warning' = any (p.proconfig), false) order by 1"
    ).fetchall()
    assert rows == []


def test_application_roles_can_only_read_tables(conn: psycopg.Connection) -> None:
    rows = conn.execute(
        "select c.oid::regclass::text, r.rolname, x.privilege_type from pg_class c"
        " cross join lateral aclexplode(c.relacl) as x join pg_roles r on r.oid = x.grantee"
        " where c.relnamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)"
        "   and r.rolname in ('graphium_reader', 'graphium_user', 'graphium_app')"
        "   and (x.privilege_type <> 'SELECT' or c.relnamespace = 'graphium_private'::regnamespace)"
    ).fetchall()
    assert rows == []
    assert (
        conn.execute(
            "select r from unnest(array['graphium_reader', 'graphium_user', 'graphium_app', 'graphium_admin']) as r"
            " where has_schema_privilege(r, 'graphium_private', 'usage')"
            " or has_schema_privilege(r, 'graphium', 'create')"
        ).fetchall()
        == []
    )


def test_isolation_policies_ask_once_per_statement(conn: psycopg.Connection) -> None:
    """The caller's tenant and scopes stand in a sub-select, so that they are an InitPlan and not a call per row."""
    rows = conn.execute(
        "select schemaname || '.' || tablename, qual, coalesce(with_check, qual) from pg_policies"
        " where policyname = 'tenant_and_scope_isolation'"
    ).fetchall()
    assert rows
    for table, using, check in rows:
        assert using == check, table
        _, calls = expression_reads(using)
        assert any(call.endswith("caller_tenant_id") for call in calls), table
        outside = re.sub(r"\( ?SELECT graphium_private\.caller_\w+\(\)[^)]*\)", "", using)
        assert "caller_" not in outside, table


def test_every_table_with_tenant_data_is_isolated(conn: psycopg.Connection) -> None:
    rows = conn.execute(
        "select c.oid::regclass::text from pg_class c where c.relnamespace = 'graphium'::regnamespace"
        " and c.relkind in ('r', 'p') and not exists (select from pg_policy p where p.polrelid = c.oid"
        "   and p.polname = 'tenant_and_scope_isolation' and p.polpermissive) order by 1"
    ).fetchall()
    assert rows == []


def test_no_index_on_what_every_hit_changes(conn: psycopg.Connection) -> None:
    """An index on access_count or last_accessed_at would end HOT updates."""
    rows = conn.execute(
        "select i.indexrelid::regclass::text from pg_index i join pg_attribute a on a.attrelid = i.indrelid"
        " and a.attnum = any (i.indkey) where a.attname in ('access_count', 'last_accessed_at')"
    ).fetchall()
    assert rows == []


def test_keys_start_with_the_tenant(conn: psycopg.Connection) -> None:
    """A row of one tenant can never point at, or collide with, a row of another."""
    rows = conn.execute(
        "select k.conrelid::regclass || ' ' || k.conname from pg_constraint k"
        " join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]"
        " where k.connamespace = 'graphium'::regnamespace and k.contype in ('p', 'u', 'f') and k.conparentid = 0"
        "   and a.attname <> 'tenant_id'"
        "   and k.conrelid not in ('graphium.tenants'::regclass, 'graphium.principals'::regclass) order by 1"
    ).fetchall()
    assert rows == []
