"""Bring a database to the state of the SQL tree: migrations once, functions and policies whenever they changed.

Who deploys is no superuser: a login that may `set role` to graphium_owner, graphium_keeper and graphium_cypher
(`grant … with inherit false, set true`). A superuser runs :func:`bootstrap` once per database, and nothing else.
"""

from __future__ import annotations

import contextlib
import glob
import io
import logging
import platform
import re
import shlex
import time
import uuid
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import psycopg
from psycopg import sql as pgsql
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from yoyo import read_migrations
from yoyo.backends.core.postgresql import PostgresqlPsycopgBackend
from yoyo.migrations import default_migration_table

from graphium_db.deploy import drift, verify
from graphium_db.deploy.tree import DeployError, NotTheDeployerError, SqlFile, Tree, sha256
from graphium_db.printable import printable

log = logging.getLogger("graphium.deploy")

Connection = psycopg.Connection[Any]

OWNER = "graphium_owner"
ROLES = (OWNER, "graphium_keeper", "graphium_cypher")
# Advisory locks are per database: two databases of one cluster deploy side by side.
DEPLOY_LOCK = 0x6772_6170_6869_756D  # "graphium"
# yoyo makes these; `script.py` makes the same when there is no yoyo.
YOYO_SCHEMA = "graphium_private"

RECORDS = """
create table if not exists graphium_private.deployed_files (
  path text primary key,
  sha256 text not null,
  functions text[] not null,
  deployed_at timestamptz not null default now(),
  deployed_by name not null default session_user
);
comment on table graphium_private.deployed_files is
  'What was deployed: hash of a repeatable file as rendered, and the functions that it creates; hash of a migration.';
"""
RECORD = """
insert into graphium_private.deployed_files (path, sha256, functions) values (%s, %s, %s)
on conflict (path) do update
  set sha256 = excluded.sha256, functions = excluded.functions, deployed_at = default, deployed_by = default
"""


@dataclass(frozen=True)
class Deployed:
    """What a deploy did: ids of migrations, paths of files applied and of records removed. All empty: nothing to do.

    `by_hand`: the objects that somebody had changed since the last deploy, for which every file was applied again.
    `hardening_due`: what a superuser types, where he ran `hardening.sql` and it is not in force for all that it marks.
    """

    migrations: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    hardening_due: str | None = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return bool(self.migrations or self.files or self.removed or self.by_hand)


@dataclass(frozen=True)
class Pending:
    """What a deploy would do."""

    migrations: tuple[str, ...]
    files: tuple[SqlFile, ...]
    removed: tuple[str, ...]


def bootstrap(conn: Connection, tree: Tree | None = None) -> None:
    """Run `db/bootstrap.sql` and `db/hardening.sql` as a superuser: once per database, harmless when repeated.

    Roles are cluster-wide, so two databases that bootstrap at once may trip over each other's row in pg_authid;
    the files tolerate what they can, and what is left ("tuple concurrently updated") is tried again.
    """
    text = (tree or Tree.default()).bootstrap
    for attempt in range(20):
        try:
            with conn.transaction():
                conn.execute(text.encode(), prepare=False)
            return
        except (psycopg.errors.InternalError_, psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject):
            if attempt == 19:
                raise
            time.sleep(0.05)


def deploy(target: str | Connection, *, tree: Tree | None = None, wait: float = 600) -> Deployed:
    """Deploy the tree to a bootstrapped database. Running it again changes nothing, unless somebody changed it by hand.

    `target` is a DSN or a connection that is not in a transaction. One deploy at a time per database: others wait up to
    `wait` seconds. Functions and policies go in one transaction together with their records and the verification, so
    that a reader sees all of the old or all of the new. Raises :class:`DeployError`.
    """
    tree = tree or Tree.default()
    with connect(target) as conn:
        check_server(conn)
        tree.check_released()
        with _lock(conn, wait):
            with owner_transaction(conn):
                # Before the migrations, which change the catalog by right.
                by_hand = drift.differences(conn)
                if refused := drift.refused(by_hand, made(conn, tree)):
                    raise drift.refusal(refused)
                known = drift.known(conn)
                drift.put_back(conn, by_hand)
            migrated = _migrate(conn, tree)
            with owner_transaction(conn):
                # A migration may have added tables that policies or loops in repeatable files speak about.
                todo = pending(
                    conn,
                    tree,
                    everything=bool(by_hand or migrated) or not known,
                    but=spared(conn, tree, by_hand) if known else (),
                )
                _apply_files(conn, todo.files)
                _forget_removed(conn, todo.removed, tree)
                if migrated or todo.files or todo.removed:
                    _record_migrations(conn, tree)
                    verify.check(conn, tree, vector_schema(conn))
                    drift.record(conn)
                due = hardening_due(conn, tree)
    return Deployed(tuple(migrated), tuple(f.path for f in todo.files), todo.removed, tuple(map(str, by_hand)), due)


def pending(conn: Connection, tree: Tree, *, everything: bool = False, but: Container[str] = ()) -> Pending:
    """What differs between the tree and the database, or `everything`, `but` for files that are as they were.

    Needs a transaction as graphium_owner.
    """
    applied = _applied_migrations(conn)
    recorded: dict[str, str] = {}
    if _exists(conn, "graphium_private.deployed_files"):
        recorded = dict(conn.execute("select path, sha256 from graphium_private.deployed_files").fetchall())
    for path in tree.migrations():
        known = recorded.get(f"migrations/{path.name}")
        if known is not None and known != sha256(path):
            raise DeployError(
                f"migrations/{path.name} was edited after it was applied to this database: restore it and write a new "
                "migration, or (while it is unreleased) start from a fresh database"
            )
    files = tree.repeatables(vector_schema(conn))
    return Pending(
        tuple(p.stem for p in tree.migrations() if p.stem not in applied),
        tuple(f for f in files if recorded.get(f.path) != f.sha256 or (everything and f.path not in but)),
        tuple(sorted(p for p in set(recorded) - {f.path for f in files} if not p.startswith("migrations/"))),
    )


def spared(conn: Connection, tree: Tree, by_hand: Iterable[drift.Difference]) -> set[str]:
    """Paths of the files that make nothing but what `hardening.sql` marks, unless it was changed by hand.

    Applied again, they would take the marks away, which only a superuser gives.
    """
    touched = " ".join(difference.object for difference in by_hand)
    there = {
        name
        for (name,) in conn.execute(
            "select format('graphium_private.%s', proname) from pg_proc"
            " where pronamespace = to_regnamespace('graphium_private')"
        )
    }
    return {
        file.path
        for file in tree.repeatables(vector_schema(conn))
        if file.functions
        and tree.hardened & there >= set(file.functions)
        and not any(f"{name}(" in touched for name in file.functions)
    }


def hardening_due(conn: Connection, tree: Tree, files: Iterable[SqlFile] = ()) -> str | None:
    """What a superuser types where `hardening.sql` was run and is not in force for all that it marks.

    Or will not be, once `files` are applied.
    """
    row = conn.execute(
        "select exists (select from pg_proc where oid = 'uuid_eq(uuid, uuid)'::regprocedure and procost = 0),"
        " exists (select from pg_proc where pronamespace = to_regnamespace('graphium_private')"
        "   and 'graphium_private.' || proname = any (%s) and procost <> 0)",
        [list(tree.hardened)],
    ).fetchone()
    assert row is not None
    was_run, unmarked = row
    due = was_run and (unmarked or any(tree.hardened & set(file.functions) for file in files))
    return bootstrap_command(conn.info.dbname) if due else None


def bootstrap_command(database: str) -> str:
    """What a superuser types."""
    return f"graphium migrate --bootstrap | psql -v ON_ERROR_STOP=1 -d {shlex.quote(database)}"


def made(conn: Connection, tree: Tree) -> set[str]:
    """Names of the functions that the repeatable files make."""
    return {name for file in tree.repeatables(vector_schema(conn)) for name in file.functions}


def vector_schema(conn: Connection) -> str:
    """The schema of the extension vector, as a quoted identifier."""
    row = conn.execute(
        "select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace"
        " where e.extname = 'vector'"
    ).fetchone()
    if row is None:
        raise DeployError("the extension vector is missing", _as_superuser(conn))
    return str(row[0])


def check_server(conn: Connection) -> None:
    """Say plainly what a server lacks before anything is touched."""
    if conn.info.server_version < 170000:
        raise DeployError(f"PostgreSQL 17 or later is needed, this is {conn.info.parameter_status('server_version')}")
    have = dict(conn.execute("select extname, extversion from pg_extension").fetchall())
    for name, least in (("vector", (0, 8)), ("age", (1, 5))):
        if name not in have:
            raise DeployError(f"the extension {name} is missing", _as_superuser(conn))
        if tuple(int(n) for n in re.findall(r"\d+", have[name])[:2]) < least:
            raise DeployError(f"the extension {name} is {have[name]}, at least {least[0]}.{least[1]} is needed")
    for role in ROLES:
        row = conn.execute(
            "select coalesce((select pg_has_role(session_user, oid, 'SET') from pg_roles where rolname = %s), false),"
            " quote_ident(session_user),"
            " exists (select from pg_roles"
            "   where rolname = 'graphium_reader' and pg_has_role(session_user, oid, 'member'))",
            [role],
        ).fetchone()
        if row is not None and not row[0]:
            hint = "Use the deployer's login: graphium migrate --help."
            if not row[2]:  # an application or a principal must not have that power
                hint += f" To make {row[1]} that: {bootstrap_command(conn.info.dbname)}, and then, as a superuser too: "
                hint += f"grant {', '.join(ROLES)} to {row[1]} with inherit false, set true;"
            raise NotTheDeployerError(f"{row[1]} cannot act as {role}", hint)


def _as_superuser(conn: Connection) -> str:
    return f"As a superuser: {bootstrap_command(conn.info.dbname)}"


# --- connection, lock, transaction -----------------------------------------------------------------------------------


# Whoever may create schemas can make one with the deploying login's name, which "$user" finds before ours.
_OWN_PATH = b"set search_path = pg_catalog, pg_temp"


@contextlib.contextmanager
def connect(target: str | Connection) -> Iterator[Connection]:
    if isinstance(target, psycopg.Connection):
        if target.info.transaction_status is not TransactionStatus.IDLE:
            raise DeployError("the connection is in a transaction: commit it before deploying")
        before = target.autocommit, target.row_factory
        target.autocommit, target.row_factory = True, tuple_row
        path = target.execute("show search_path").fetchone()
        assert path is not None
        target.execute(_OWN_PATH)
        try:
            yield target
        finally:
            if not target.closed:
                target.execute("select pg_catalog.set_config('search_path', %s, false)", path)
            target.autocommit, target.row_factory = before
    else:
        with psycopg.connect(target, autocommit=True, application_name="graphium migrate") as conn:
            conn.execute(_OWN_PATH)
            yield conn


@contextlib.contextmanager
def _lock(conn: Connection, wait: float) -> Iterator[None]:
    # Asked again and again rather than waited for: a session that waits inside a statement holds a snapshot, on which
    # a `create index concurrently` of the deployer ahead of it would wait in turn.
    deadline = time.monotonic() + wait
    while not _try_lock(conn):
        if time.monotonic() > deadline:
            # Any login may take it where hardening.sql is not in force, so say who did; as the owner, who sees locks.
            with conn.transaction():
                _as_owner(conn)
                [holder] = conn.execute(
                    "select string_agg(a.usename || ', process ' || l.pid, '; ')"
                    "  from pg_locks l join pg_stat_activity a on a.pid = l.pid and a.datname = current_database()"
                    " where l.locktype = 'advisory' and l.granted and l.database = a.datid and l.objsubid = 1"
                    " and (l.classid::bigint << 32) + l.objid::bigint = %s",
                    [DEPLOY_LOCK],
                ).fetchone() or [None]
            raise DeployError(
                f"another deploy has held the lock for {wait:.0f} s: {printable(str(holder))}."
                " If it is no deploy, end it with pg_terminate_backend()."
            )
        time.sleep(0.05)
    try:
        yield
    finally:
        if not conn.closed:
            conn.execute("select pg_advisory_unlock(%s)", [DEPLOY_LOCK])


def _try_lock(conn: Connection) -> bool:
    with conn.transaction():
        _as_owner(conn)  # whom hardening.sql lets take it
        return conn.execute("select pg_try_advisory_lock(%s)", [DEPLOY_LOCK]).fetchone() == (True,)


@contextlib.contextmanager
def owner_transaction(conn: Connection) -> Iterator[None]:
    with conn.transaction():
        conn.execute("set local lock_timeout = '10s'")
        conn.execute("set local jit = off")  # it takes seconds to compile queries of the catalog
        _as_owner(conn)
        yield


def _as_owner(conn: Connection) -> None:
    conn.execute("set local role graphium_owner")
    conn.execute("set local search_path = pg_catalog, pg_temp")


# --- migrations, by yoyo ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Uri:
    """What yoyo calls a URI: it wants only the database's name of it, and to copy it."""

    dsn: str
    database: str


class _Backend(PostgresqlPsycopgBackend):  # type: ignore[misc]
    """yoyo on our DSN, acting as graphium_owner, that marks a migration in the transaction that runs it.

    (yoyo by itself runs it on a second connection and marks it later: a crash in between leaves it applied, unmarked.)
    """

    create_lock_table_sql = PostgresqlPsycopgBackend.create_lock_table_sql.replace("TABLE", "TABLE IF NOT EXISTS")

    def connect(self, dburi: _Uri) -> Connection:
        return psycopg.connect(dburi.dsn, autocommit=True, application_name="graphium migrate (yoyo)")

    def init_connection(self, connection: Connection) -> None:
        connection.execute(pgsql.SQL("set role {}").format(pgsql.Identifier(OWNER)))
        connection.execute(pgsql.SQL("set search_path = {}").format(pgsql.Identifier(YOYO_SCHEMA)))
        # Data that a policy would hide from a migration is an error and not a silence. (Not so for repeatable files:
        # creating a `language sql` function that reads a protected table would fail, and they change no data.)
        connection.execute("set row_security = off")
        connection.execute("set lock_timeout = '10s'")

    def get_log_data(self, migration: Any = None, operation: str = "apply") -> dict[str, Any]:
        # yoyo's own asks the operating system for a user and the DNS for a host: in a container neither need answer.
        return {
            "id": str(uuid.uuid1()),
            "migration_id": migration.id if migration else None,
            "migration_hash": migration.hash if migration else None,
            "username": self.connection.info.user,
            "hostname": platform.node(),
            "created_at_utc": datetime.now(timezone.utc).replace(tzinfo=None),
            "operation": operation,
        }

    def apply_one(self, migration: Any, force: bool = False, mark: bool = True) -> None:
        self.ensure_internal_schema_updated()
        with self.transaction():
            migration.process_steps(self, "apply", force=force)
            self.execute(f"set local role {OWNER}")
            self.execute(f"set local search_path = {YOYO_SCHEMA}")
            self.log_migration(migration, "apply")
            if mark:
                self.mark_one(migration, log=False)


def _applied_migrations(conn: Connection) -> set[str]:
    if not _exists(conn, "graphium_private._yoyo_migration"):
        return set()
    return {row[0] for row in conn.execute("select migration_id from graphium_private._yoyo_migration")}


def _exists(conn: Connection, relation: str) -> bool:
    return conn.execute("select to_regclass(%s) is not null", [relation]).fetchone() == (True,)


def _migrate(conn: Connection, tree: Tree) -> list[str]:
    with owner_transaction(conn):
        todo = pending(conn, tree).migrations
    if not todo:
        return []
    uri = _Uri(make_conninfo(conn.info.dsn, password=conn.info.password or None), conn.info.dbname)
    done: list[str] = []
    # yoyo prints the rows that a migration selects.
    with contextlib.redirect_stdout(io.StringIO()), _Backend(uri, default_migration_table) as backend:
        backend.create_lock_table()
        with backend.lock():
            for migration in backend.to_apply(read_migrations(glob.escape(str(tree.root / "migrations")))):
                log.info("migration %s", migration.id)
                try:
                    backend.apply_one(migration)
                except psycopg.Error as error:
                    raise DeployError(f"migrations/{migration.id}.sql: {_explain(error)}") from error
                done.append(migration.id)
    return done


def _record_migrations(conn: Connection, tree: Tree) -> None:
    for path in tree.migrations():
        conn.execute(
            "insert into graphium_private.deployed_files (path, sha256, functions) values (%s, %s, '{}')"
            " on conflict (path) do nothing",
            [f"migrations/{path.name}", sha256(path)],
        )


# --- repeatable files ------------------------------------------------------------------------------------------------


def _apply_files(conn: Connection, files: tuple[SqlFile, ...]) -> None:
    conn.execute(RECORDS)
    for file in files:
        log.info("%s", file.path)
        try:
            conn.execute(file.text.encode(), prepare=False)
        except psycopg.Error as error:
            raise DeployError(f"{file.path}{_line(file.text, error)}: {_explain(error)}") from error
        _as_owner(conn)
        conn.execute(RECORD, [file.path, file.sha256, list(file.functions)])


def _forget_removed(conn: Connection, removed: tuple[str, ...], tree: Tree) -> None:
    """A file that left the tree leaves nothing behind: a migration drops its functions, guesswork does not."""
    still_made = made(conn, tree)
    for path in removed:
        row = conn.execute("select functions from graphium_private.deployed_files where path = %s", [path]).fetchone()
        left = [
            name
            for name in (row[0] if row else [])
            if name not in still_made
            and conn.execute(
                "select from pg_proc where pronamespace::regnamespace::text || '.' || proname = %s",
                [name],
            ).fetchone()
            is not None
        ]
        if left:
            raise DeployError(
                f"{path} is gone from the tree, but {', '.join(left)} still exists: add a migration that drops it"
            )
        conn.execute("delete from graphium_private.deployed_files where path = %s", [path])


def _line(text: str, error: psycopg.Error) -> str:
    position = error.diag.statement_position
    return "" if position is None else f":{text.count(chr(10), 0, int(position)) + 1}"


def _explain(error: psycopg.Error) -> str:
    diag = error.diag
    more = {"detail": diag.message_detail, "hint": diag.message_hint, "where": diag.context}
    lines = [diag.message_primary or str(error), *(f"{label}: {text}" for label, text in more.items() if text)]
    # Names of anybody's objects are in them, and a name may hold a line break.
    lines = [printable("; ".join(line.strip() for line in text.split("\n"))) for text in lines]
    return "\n  ".join(lines) + f" ({error.sqlstate})"
