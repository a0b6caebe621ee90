"""What `graphium doctor` looks at. Reads the catalog and calls the admin's check functions; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import psycopg

from graphium_db.client import Graphium
from graphium_db.deploy import DeployError, Tree, plan
from graphium_db.deploy.apply import ROLES, vector_schema
from graphium_db.deploy.plan import BY_HAND
from graphium_db.deploy.verify import breaches
from graphium_db.errors import GraphiumError

Connection = psycopg.Connection[Any]
Level = Literal["ok", "warning", "fault"]
MINIMUM = {"vector": (0, 8), "age": (1, 5)}
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    level: Level
    found: str
    remedy: str | None = None


def run(dsn: str, tenant: str | None) -> list[Finding]:
    """All checks, as far as this login can make them; those of a tenant's data when one is named."""
    with psycopg.connect(dsn, autocommit=True, application_name="graphium doctor") as conn:
        findings = [finding for check in (_server, _extensions, _preload) for finding in check(conn)]
        if any(finding.level == "fault" for finding in findings):
            return findings
        if not _is_deployed(conn):
            return [*findings, Finding("deployment", "fault", "not deployed", "Run graphium migrate.")]
        for check in (_deployment, _catalog, _age_grants, _application_grants, _login):
            findings += check(conn)
    return findings + (list(_data(dsn, tenant)) if tenant is not None else [])


def _one(conn: Connection, query: bytes) -> Any:
    row = conn.execute(query).fetchone()
    return row[0] if row else None


def _server(conn: Connection) -> Iterator[Finding]:
    enough = conn.info.server_version >= 170000
    found = f"PostgreSQL {conn.info.parameter_status('server_version')}"
    yield Finding("server", "ok" if enough else "fault", found, "PostgreSQL 17 or later is needed.")


def _extensions(conn: Connection) -> Iterator[Finding]:
    have = dict(conn.execute("select extname, extversion from pg_extension").fetchall())
    for name, least in MINIMUM.items():
        wanted = ".".join(map(str, least))
        if name not in have:
            yield Finding(
                f"extension {name}", "fault", "missing", "A superuser runs db/bootstrap.sql in this database."
            )
        else:
            enough = tuple(int(part) for part in have[name].split(".")[:2]) >= least
            remedy = f"At least {wanted} is needed."
            yield Finding(f"extension {name}", "ok" if enough else "fault", have[name], remedy)


def _preload(conn: Connection) -> Iterator[Finding]:
    """Whether a new session has AGE. Its setting is only there once it is loaded, and nothing here has touched it."""
    loaded = _one(conn, b"select exists (select from pg_settings where name = 'age.enable_containment')")
    yield Finding(
        "session_preload_libraries",
        "ok" if loaded else "warning",
        "age is loaded into new sessions" if loaded else "age is not loaded into new sessions",
        "Without it each session must LOAD 'age' itself: a superuser runs db/bootstrap.sql again.",
    )


def _is_deployed(conn: Connection) -> bool:
    """Asks the catalog, which everybody may read, and not to_regclass(), which wants USAGE on the schema."""
    return bool(
        _one(
            conn,
            b"select exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            b" where n.nspname = 'graphium_private' and c.relname = 'deployed_files')",
        )
    )


def _deployment(conn: Connection) -> Iterator[Finding]:
    try:
        changes = plan(conn).changes
    except DeployError as error:
        yield Finding("deployment", "warning", f"cannot be compared: {error}")
        return
    by_hand = [change.path for change in changes if change.action == BY_HAND]
    to_apply = [change.path for change in changes if change.action != BY_HAND]
    if by_hand:
        found = f"changed by hand since the last migrate: {_some(by_hand)}"
        yield Finding("deployment", "fault", found, "graphium migrate puts it back.")
    elif to_apply:
        yield Finding("deployment", "fault", f"{len(to_apply)} to apply: {_some(to_apply)}", "graphium migrate")
    else:
        yield Finding("deployment", "ok", "up to date")


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f", and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _catalog(conn: Connection) -> Iterator[Finding]:
    """Forced row-level security, policies, functions, owners: as the SQL tree says."""
    found = breaches(conn, Tree.default(), vector_schema(conn))
    if not found:
        yield Finding("row-level security", "ok", "enabled and forced, policies and owners as they should be")
    for breach in found:
        yield Finding("row-level security", "fault", breach, "graphium migrate repairs policies and functions.")


def _age_grants(conn: Connection) -> Iterator[Finding]:
    """Cypher runs with the caller's own rights wherever PUBLIC may call AGE's functions."""
    remedy = "As after `alter extension age update`: a superuser runs db/bootstrap.sql, then graphium migrate."
    try:
        with conn.transaction():
            conn.execute("set local role graphium_owner")
            problems = conn.execute("select problem, function from graphium_private._check_cypher_grants()").fetchall()
    except psycopg.Error as error:
        yield Finding("ag_catalog", "warning", f"not checked: {str(error).splitlines()[0]}", "graphium migrate")
        return
    slow = [function for problem, function in problems if "not marked leakproof" in problem]
    wrong = [f"{function}: {problem}" for problem, function in problems if "not marked leakproof" not in problem]
    if wrong:
        yield Finding("ag_catalog", "fault", _some(wrong), remedy)
    if slow:
        yield Finding("ag_catalog", "warning", f"not leakproof, so traversals are slow: {_some(slow)}", remedy)
    if not problems:
        yield Finding("ag_catalog", "ok", "our roles may call what they need, and nobody anything else")


def _application_grants(conn: Connection) -> Iterator[Finding]:
    """Writes go through functions: a raw INSERT would bypass dedup, a TRUNCATE everything."""
    found = conn.execute(
        "select distinct format('%%s on %%s to %%s', lower(a.privilege_type), c.oid::regclass,"
        "                       case a.grantee when 0 then 'public' else a.grantee::regrole::text end)"
        "  from pg_class c, aclexplode(c.relacl) a"
        " where c.relnamespace = 'graphium'::regnamespace and c.relkind in ('r', 'p') and a.privilege_type <> 'SELECT'"
        "   and a.grantee <> all (array(select oid from pg_roles where rolname = any (%s))) order by 1",
        [list(ROLES)],
    ).fetchall()
    if not found:
        yield Finding("table grants", "ok", "nobody but the owners writes to tables")
    for (grant,) in found:
        yield Finding("table grants", "fault", grant, "Revoke it: rows are written by functions only.")


def _login(conn: Connection) -> Iterator[Finding]:
    row = conn.execute(
        "select quote_ident(session_user), rolsuper, rolbypassrls from pg_roles where rolname = session_user"
    ).fetchone()
    assert row is not None
    name, superuser, bypass = row
    power = "a superuser" if superuser else "exempt from row-level security" if bypass else None
    yield Finding(
        "login",
        "warning" if power else "ok",
        f"{name} is {power}" if power else f"{name}, no superuser",
        "Row-level security does not hold for this login: never give it to an application.",
    )


def _data(dsn: str, tenant: str) -> Iterator[Finding]:
    with Graphium(dsn, tenant=tenant) as memory:
        checks: dict[str, Callable[[], list[Any]]] = {
            "graph": memory.check_graph,
            "memory": memory.check_memory,
        }
        for name, check in checks.items():
            try:
                faults = check()
            except (GraphiumError, psycopg.Error) as error:
                yield Finding(
                    name, "warning", f"not checked: {str(error).splitlines()[0]}", "It takes an admin's login."
                )
                continue
            if not faults:
                yield Finding(name, "ok", "no difference found")
            for fault in faults[:SHOWN]:
                found = ", ".join(str(value) for value in (fault.problem, fault.detail) if value)
                yield Finding(name, "fault", found, "graphium maintain --rebuild-graphs mends graphs.")
