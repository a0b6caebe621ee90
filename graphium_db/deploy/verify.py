"""What must hold after a deploy, read from the catalog; any breach rolls the functions and policies back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg

from graphium_db.deploy.tree import DeployError, Tree, statements
from graphium_db.printable import printable

# Functions that callers may execute and that have no search_path, because with one they could not be inlined into a
# policy. Their bodies are parsed when they are made, so no path can reach into them.
INLINED = frozenset(f"graphium_private.{name}" for name in ("is_visible", "caller_tenant_id", "caller_scopes"))
# These go by the path that they run under; policies run them for graphium_owner only (db/functions/020_identity.sql).
BY_PATH = frozenset(f"graphium_private.{name}" for name in ("remembered_tenant_id", "remembered_scopes"))
OWNERS = ("graphium_owner", "graphium_keeper", "graphium_cypher")


def check(conn: psycopg.Connection[Any], tree: Tree, vector_schema: str) -> None:
    """Raise :class:`DeployError` with every :func:`breaches` line."""
    found = breaches(conn, tree, vector_schema)
    if found:
        raise DeployError("the deployed database is not what the tree says:\n  " + "\n  ".join(map(printable, found)))


def breaches(conn: psycopg.Connection[Any], tree: Tree, vector_schema: str) -> list[str]:
    """Differences between what the tree promises and what the catalog has, as sentences; empty when sound."""
    return [
        *_functions(conn, tree, vector_schema),
        *_powers(conn),
        *_tables(conn, tree),
        *_policies(conn, tree, vector_schema),
        *_owners(conn),
    ]


def _functions(conn: psycopg.Connection[Any], tree: Tree, vector_schema: str) -> list[str]:
    expected = Counter(name for f in tree.repeatables(vector_schema) for name in f.functions)
    present: Counter[str] = Counter()
    for name, count in conn.execute(
        "select n.nspname || '.' || p.proname, count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace"
        " where n.nspname in ('graphium', 'graphium_private') group by 1"
    ):
        present[name] = count
    found = []
    for name, count in sorted(expected.items()):
        if present[name] < count:
            found.append(f"function {name}: {count} in the tree, {present[name]} in the database")
        elif present[name] > count:
            found.append(
                f"function {name}: {present[name]} overloads in the database, {count} in the tree: "
                "drop the old signature in the file, before the create"
            )
    return found


def _powers(conn: psycopg.Connection[Any]) -> list[str]:
    """Functions that a caller could turn against their owner.

    pg_temp must be named, and last: unnamed it comes first, and a caller's temporary type then stands for `text`.
    A helper that only our owners may execute can do without: it has the search_path of the function that called it.
    """
    found = []
    for name, signature, definer, path, grantees in conn.execute(
        "select p.pronamespace::regnamespace || '.' || p.proname, p.oid::regprocedure::text, p.prosecdef,"
        " (select substring(s from '=(.*)') from unnest(p.proconfig) as s where s ^@ 'search_path='),"
        " array(select case x.grantee when 0 then 'public' else pg_get_userbyid(x.grantee) end"
        "   from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as x)"
        " from pg_proc p where p.prokind = 'f'"
        " and p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace) order by 2"
    ):
        own = not definer and path is None and (name in INLINED | BY_PATH or set(grantees) <= set(OWNERS))
        if not own and not (path or "").endswith(", pg_temp"):
            found.append(
                f"function {signature}: its search_path must end in pg_temp, and is {path or 'not set'}: write "
                "`set search_path = pg_catalog, pg_temp` (docs/decisions/0021)"
            )
        if "public" in grantees:
            found.append(f"function {signature}: everybody may execute it")
    return found


def _tables(conn: psycopg.Connection[Any], tree: Tree) -> list[str]:
    expected: set[str] = set()
    for path in tree.migrations():
        for s in statements(path.read_text("utf-8")):
            if s.kind == "table" and s.verb == "create":
                expected.add(s.name)
            elif s.kind == "table" and s.verb == "drop":
                expected.discard(s.name)
    found = []
    present = set()
    for schema, name, enabled, forced in conn.execute(
        "select n.nspname, c.relname, c.relrowsecurity, c.relforcerowsecurity"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname in ('graphium', 'graphium_private') and c.relkind in ('r', 'p') order by 1, 2"
    ):
        present.add(f"{schema}.{name}")
        if schema == "graphium" and not (enabled and forced):
            found.append(f"table {schema}.{name}: row-level security is not {'forced' if enabled else 'enabled'}")
    return found + [f"table {name} is missing" for name in sorted(expected - present)]


def _policies(conn: psycopg.Connection[Any], tree: Tree, vector_schema: str) -> list[str]:
    present = {
        f"{name} on {schema}.{table}"
        for name, schema, table in conn.execute("select policyname, schemaname, tablename from pg_policies")
    }
    expected: set[str] = set()
    for file in tree.repeatables(vector_schema):
        for s in statements(file.text):
            if s.kind == "policy" and s.verb == "create":
                expected.add(s.name)
    found = [f"policy {name} is missing" for name in sorted(expected - present)]
    # Without a policy, a forced table is empty for everybody: safe, and surely not meant.
    bare = conn.execute(
        "select c.oid::regclass::text from pg_class c where c.relnamespace = 'graphium'::regnamespace"
        " and c.relkind in ('r', 'p') and not c.relispartition"
        " and not exists (select from pg_policy p where p.polrelid = c.oid) order by 1"
    )
    return found + [f"table {name} has no policy" for (name,) in bare]


def _owners(conn: psycopg.Connection[Any]) -> list[str]:
    found = [
        f"{kind} {name} is owned by {owner}"
        for kind, name, owner in conn.execute(
            "select 'table', c.oid::regclass::text, c.relowner::regrole::text from pg_class c"
            "  where c.relnamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)"
            " union all select 'function', p.oid::regprocedure::text, p.proowner::regrole::text from pg_proc p"
            "  where p.pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)"
            " union all select 'schema', n.nspname, n.nspowner::regrole::text from pg_namespace n"
            "  where n.nspname in ('graphium', 'graphium_private') order by 1, 2"
        )
        if owner not in OWNERS
    ]
    return found + [
        f"role {name} is a superuser or bypasses row-level security"
        for (name,) in conn.execute(
            "select rolname from pg_roles where rolname = any(%s) and (rolsuper or rolbypassrls) order by 1",
            [list(OWNERS)],
        )
    ]
