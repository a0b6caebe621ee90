"""A small world with secrets in it, and attackers at a psql prompt who try to hear them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.string import TextLoader

from tests.memory.conftest import ingest
from tests.support.databases import Connection, Database, as_caller

SECRET = "zanzibar"
"""Is in every name and text that the attackers may not see: of scope hr in their own tenant acme, and of tenant other."""
TEA = "Tea is drunk at noon"
"""The one statement of acme that is open to all."""


@dataclass
class Attacker:
    """A login, and all that the server ever told it: rows, notices, errors."""

    conn: Connection
    heard: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.conn.prepare_threshold = None  # `discard all` would forget what psycopg prepared
        self.conn.adapters.register_loader("timestamptz", TextLoader)  # it cannot read every DateStyle
        self.conn.add_notice_handler(lambda diag: self._hear(diag))

    def _hear(self, diag: psycopg.errors.Diagnostic) -> None:
        parts = (diag.severity, diag.message_primary, diag.message_detail, diag.message_hint, diag.context)
        self.heard.append(" | ".join(part for part in parts if part))

    def tries(self, *statements: str) -> str | None:
        """Sends each, in autocommit; the SQLSTATE of the first that fails, after which no more are sent."""
        for statement in statements:
            try:
                cursor = self.conn.execute(statement.encode())
            except psycopg.Error as error:
                self._hear(error.diag)
                return error.sqlstate
            while True:
                if cursor.description:
                    self.heard += map(repr, cursor.fetchall())
                if not cursor.nextset():
                    break
        return None

    def rows(self, statement: str) -> list[Any]:
        """Rows of one statement that must succeed; single columns without their tuple."""
        found = self.conn.execute(statement.encode()).fetchall()
        self.heard += map(repr, found)
        return [row[0] if len(row) == 1 else row for row in found]

    def copies(self, statement: str) -> None:
        try:
            with self.conn.cursor().copy(statement.encode()) as copy:
                self.heard += [bytes(block).decode("latin1") for block in copy]
        except psycopg.Error as error:
            self._hear(error.diag)

    def reset(self) -> None:
        """Back to a session as on the first day, with nothing heard."""
        self.conn.rollback()
        self.conn.execute("discard all")
        self.heard.clear()

    def assert_heard_nothing(self) -> None:
        """No secret, in whatever spelling the server may use for one."""
        everything = "\n".join(self.heard).lower()
        for spelling in (SECRET, SECRET.encode().hex()):
            assert spelling not in everything, [line for line in self.heard if spelling in line.lower()]


@dataclass
class World:
    db: Database
    boss: Connection
    """The superuser, for arranging, and for showing that the secret is there and that an attack is one."""
    app: Connection
    admin: Connection
    graphs: dict[str, str]
    """Schema of each tenant's graph."""
    hidden: dict[str, str]
    """Ids of the hidden statement of each tenant."""
    logins: dict[str, str]
    """By who it is: principal, reader, builder, stranger, unbound (graphium_user, bound to no tenant)."""

    def role(self, who: str) -> str:
        return self.db.cluster.role(self.logins[who])

    def attacker(self, who: str, **options: Any) -> Attacker:
        return Attacker(self.db.connect(self.logins[who], **options))

    @contextlib.contextmanager
    def unguarded(self, who: str, *removals: str) -> Iterator[Attacker]:
        """An attacker in a transaction in which a superuser took guards away; they are back afterwards."""
        conn = self.db.connect()
        with conn.transaction(force_rollback=True):
            for removal in removals:
                conn.execute(removal.encode())
            conn.execute(sql.SQL("set local session authorization {}").format(sql.Identifier(self.role(who))))
            yield Attacker(conn)
        conn.close()


def build(db: Database) -> World:
    boss, app, admin = db.connect(), db.connect("app"), db.connect("admin")
    hidden = {}
    for tenant in ("acme", "other"):
        admin.execute("select graphium.create_tenant(%s, dimensions => 3)", [tenant])
        gated: list[str] = ["hr"] if tenant == "acme" else []
        with as_caller(app, tenant, ["hr"]):
            for content in (
                f"{SECRET} of {tenant} earns 4711 euros",
                f"{SECRET.title()} of {tenant} earns 4711 euros.",
            ):
                [row] = ingest(
                    app,
                    [{"content": content, "embedding": [1, 2, 3], "source": f"{SECRET} file", "metadata": {SECRET: 1}}],
                    family=f"{SECRET} {tenant}",
                    genus=f"{SECRET} pay",
                    specimen=f"{SECRET} person",
                    required_scopes=gated,
                )
            hidden[tenant] = str(row[1])
            ingest(
                app,
                [{"content": TEA if tenant == "acme" else f"{SECRET} tea"}],
                family=f"kitchen of {tenant}" if tenant == "acme" else f"{SECRET} kitchen",
            )
    with as_caller(admin, "acme"):
        admin.execute(
            f"select graphium.link_symbiosis('related_to', '{{\"family\": \"{SECRET} acme\"}}', '{{\"family\": \"kitchen of acme\"}}', '{SECRET} note')".encode()
        )
    boss.execute("analyze")
    graphs = dict(boss.execute("select slug, graph_name::text from graphium.tenants").fetchall())
    logins = {"stranger": db.login(), "unbound": db.login("graphium_user")}
    for who, read_only in (("principal", False), ("reader", True), ("builder", False)):
        logins[who] = db.login()
        admin.execute("select graphium.add_principal(%s, 'acme', '{}', %s)", [db.cluster.role(logins[who]), read_only])
    world = World(db, boss, app, admin, graphs, hidden, logins)
    # What a DBA gives an analyst who wants to keep tables of his own.
    builder = sql.Identifier(world.role("builder"))
    boss.execute(sql.SQL("grant create on database {} to {}").format(sql.Identifier(db.name), builder))
    boss.execute(sql.SQL("create schema mine authorization {}").format(builder))
    return world


def ids(cases: Sequence[Any]) -> list[str]:
    """Short ids for parametrized SQL."""
    return [" ".join(str(case if isinstance(case, str) else case[0]).split())[:60] for case in cases]
