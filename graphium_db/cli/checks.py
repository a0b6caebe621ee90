"""What `graphium doctor` looks at. Reads the catalog and calls the database's check functions; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import psycopg

from graphium_db import calls
from graphium_db.client import Graphium
from graphium_db.deploy import DeployError, NotTheDeployerError, bootstrap_command, plan
from graphium_db.deploy.plan import AGAIN, BY_HAND, REFUSED
from graphium_db.errors import GraphiumError, UnknownTenantError

Connection = psycopg.Connection[Any]
Level = Literal["ok", "info", "warning", "fault"]
MINIMUM = {"vector": (0, 8), "age": (1, 5)}
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """`object`: what the finding is about: that of a lint of `check_security`, else a row by its name or id. What is ok
    has no remedy."""

    check: str
    level: Level
    found: str
    remedy: str | None = None
    object: str | None = None

    def __post_init__(self) -> None:
        if self.level == "ok":
            object.__setattr__(self, "remedy", None)


def run(dsn: str, tenant: str | None, tenant_asked_for: bool = True) -> list[Finding]:
    """All checks, as far as this login can make them; those of a tenant's data when one is named.

    Args:
        tenant_asked_for: whether silence about the tenant's data, which only an admin may look at, would be a fault.
    """
    with psycopg.connect(dsn, autocommit=True, application_name="graphium doctor") as conn:
        conn.execute("set search_path = pg_catalog, pg_temp")  # somebody may own a schema with this login's name
        findings = [*_server(conn), *_extensions(conn)]
        if any(finding.level == "fault" for finding in findings):
            return findings
        if not _is_deployed(conn):
            return [*findings, Finding("deployment", "fault", "not deployed", "Run graphium migrate.")]
        for check in (_deployment, _login, _security):
            findings += check(conn)
        if any(finding.check == "deployment" and finding.object is not None for finding in findings):
            findings = [finding for finding in findings if finding.check != "changed_by_hand"]  # told, by object
        is_admin = _one(conn, b"select pg_has_role(session_user, 'graphium_admin', 'member')")
    if tenant is None:
        return findings
    if not is_admin:
        level: Level = "fault" if tenant_asked_for else "info"
        remedy = "Run doctor with the login of a member of graphium_admin, too."
        return [*findings, Finding("data", level, "not checked: it takes a member of graphium_admin", remedy, tenant)]
    return findings + list(_data(dsn, tenant))


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
            remedy = f"As a superuser: {bootstrap_command(conn.info.dbname)}"
            yield Finding(f"extension {name}", "fault", "missing", remedy)
        else:
            enough = tuple(int(part) for part in have[name].split(".")[:2]) >= least
            remedy = f"At least {wanted} is needed."
            yield Finding(f"extension {name}", "ok" if enough else "fault", have[name], remedy)


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
    except NotTheDeployerError:
        found = "not compared with the files of this version"
        yield Finding("deployment", "warning", found, "Run doctor with the deployer's login, too.")
        return
    except DeployError as error:
        yield Finding("deployment", "fault", f"not compared: {error.message}", error.hint)
        return
    by_hand = [change for change in changes if change.action in (REFUSED, BY_HAND)]
    for change in by_hand:
        # What is refused is a superuser's: his statement. The rest is the deployer's.
        remedy = " ".join(change.statements) if change.action == REFUSED else "graphium migrate puts it back."
        yield Finding("deployment", "fault", "changed by hand since the last migrate", remedy, change.path)
    # On account of a change by hand, files are applied again that are as they were.
    to_apply = [c.path for c in changes if c not in by_hand and not (by_hand and c.action == AGAIN)]
    if to_apply:
        yield Finding("deployment", "fault", f"{len(to_apply)} to apply: {_some(to_apply)}", "graphium migrate")
    elif not by_hand:
        yield Finding("deployment", "ok", "up to date")


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f", and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


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


def _security(conn: Connection) -> Iterator[Finding]:
    """The lints are the database's own; an admin may call them, and whoever may act as the owner."""
    call = calls.check_security()
    try:
        with conn.transaction():
            if _one(conn, b"select pg_has_role(session_user, 'graphium_owner', 'set')"):
                conn.execute("set local role graphium_owner")
            found = call.decode(conn.execute(call.sql).fetchall())
    except psycopg.Error as error:
        yield _not_checked("security", error)
        return
    if not any(finding.level == "error" for finding in found):
        yield Finding("security", "ok", "policies, functions, owners, roles and grants are as they should be")
    levels: dict[str, Level] = {"error": "fault", "warning": "warning", "info": "info"}
    for finding in found:
        yield Finding(finding.lint, levels[finding.level], finding.detail, finding.remedy, finding.object)


def _not_checked(check: str, error: GraphiumError | psycopg.Error) -> Finding:
    """A fault: whoever asked would else take silence for health."""
    if isinstance(error, GraphiumError):
        return Finding(check, "fault", f"not checked: {error.message}", error.hint)
    remedy = error.diag.message_hint
    if error.diag.message_primary == f"permission denied for function check_{check}":
        remedy = "Connect as a member of graphium_admin, or as who may act as graphium_owner."
    elif error.sqlstate == "42501":
        remedy = "Somebody changed who owns or may execute it; graphium migrate puts it back, or says who can."
    return Finding(check, "fault", f"not checked: {error.diag.message_primary or error}", remedy)


def _data(dsn: str, tenant: str) -> Iterator[Finding]:
    with Graphium(dsn, tenant=tenant) as memory:
        checks: dict[str, Callable[[], list[Any]]] = {
            "graph": memory.check_graph,
            "memory": memory.check_memory,
        }
        for name, check in checks.items():
            try:
                faults = check()
            except UnknownTenantError as error:
                yield Finding("data", "fault", error.message, "graphium tenant list", tenant)
                return
            except (GraphiumError, psycopg.Error) as error:
                yield _not_checked(name, error)
                continue
            if not faults:
                yield Finding(name, "ok", "no difference found")
            for fault in faults[:SHOWN]:
                found = ", ".join(str(value) for value in (fault.problem, fault.detail) if value)
                remedy = (
                    "graphium maintain --rebuild-graphs" if name == "graph" else "graphium maintain --rebuild-memory"
                )
                if fault.problem == "orphan":
                    remedy += (
                        " deletes an embedding; of the rest a superuser deletes what is there, or restores what is not."
                    )
                place = fault.label if name == "graph" else fault.family
                about = " ".join(str(value) for value in (place, fault.id) if value)
                yield Finding(name, "fault", found, remedy, about or None)
