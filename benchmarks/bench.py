"""What rows of the suite work with: the server, a database with Graphium in it, connections, and sizes."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import pq, sql
from psycopg.conninfo import make_conninfo

from graphium_db import deploy, server

if TYPE_CHECKING:
    from benchmarks.data import Floats, Generator, Memory

Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class Tenant:
    slug: str
    id: uuid.UUID


@dataclass(frozen=True)
class Database:
    """A database with everything deployed: DSNs of a superuser and of an application's login."""

    superuser: str
    app: str

    def connect(self) -> Connection:
        """As the superuser, in autocommit mode: arranges, and runs references (nothing holds a superuser back)."""
        return psycopg.connect(self.superuser, autocommit=True)

    def connect_as(self, tenant: str, scopes: Sequence[str] = ()) -> Connection:
        """As an application that speaks for a tenant: what is measured as ours."""
        conn = psycopg.connect(self.app, autocommit=True)
        conn.execute(
            "select graphium.set_caller(tenant => %s, scopes => %s, is_local => false)", [tenant, list(scopes)]
        )
        return conn


@dataclass(frozen=True)
class Server:
    """A server and the logins that this run made on it."""

    dsn: str
    kind: str
    login: str = field(default_factory=lambda: f"graphium_bench_{secrets.token_hex(3)}")
    password: str = field(default_factory=lambda: secrets.token_hex(16))
    _databases: list[str] = field(default_factory=list)

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator[Server]:
        """The server of GRAPHIUM_BENCH_DSN (a superuser's), else an embedded one with the settings of `graphium up`."""
        with contextlib.ExitStack() as stack:
            if given := os.environ.get("GRAPHIUM_BENCH_DSN"):
                found = cls(given, "GRAPHIUM_BENCH_DSN")
            else:
                folder = Path(
                    stack.enter_context(tempfile.TemporaryDirectory(prefix="gb-", ignore_cleanup_errors=True))
                )
                up = server.up(folder)
                stack.callback(server.stop, folder)
                dsn = make_conninfo(
                    host=str(folder / "cluster"), port=up.connection.port, user="postgres", dbname="postgres"
                )
                found = cls(dsn, "embedded, with the settings of `graphium up`")
            stack.callback(found._tear_down)
            yield found

    def database(self) -> Database:
        """A new database with Graphium deployed."""
        name = f"{self.login}_{len(self._databases) + 1}"
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            if not self._databases:
                conn.execute(
                    sql.SQL("create role {} login password {}").format(
                        sql.Identifier(self.login), sql.Literal(self.password)
                    )
                )
            conn.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))
        self._databases.append(name)
        database = Database(
            make_conninfo(self.dsn, dbname=name),
            make_conninfo(self.dsn, dbname=name, user=self.login, password=self.password),
        )
        with database.connect() as conn:
            deploy.bootstrap(conn)
            conn.execute(sql.SQL("grant graphium_app to {}").format(sql.Identifier(self.login)))
        deploy.deploy(database.superuser)
        return database

    def _tear_down(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            for name in self._databases:
                conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
            if self._databases:
                conn.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(self.login)))


@dataclass(frozen=True)
class Sizes:
    """How much of everything; `full` is what the bars are about."""

    name: str
    queries: int  # per line of latencies
    tenants: tuple[int, ...]  # embeddings of each tenant that is searched, ascending
    largest: int  # embeddings of the tenant for the worst case
    hnsw_from: int  # setting hnsw_min_embeddings: small runs must have an index too
    exact_up_to: int  # setting exact_scan_max
    recall_queries: int  # per tenant, topic and filter
    worst_queries: int  # per combination of filters
    batches: int  # batches of 500 per ingest line
    hnsw_batches: int
    family: int  # statements in the family for dedup
    planted: int
    seconds: float  # per round of a concurrent line
    rounds: int
    sessions: tuple[int, ...]
    imported: int
    taxa: int  # specimens for the mirror
    preloaded: int
    families: int  # for context_tree
    many_tenants: int
    texts: int
    growth: tuple[int, ...]


FULL = Sizes(
    name="full", queries=300, tenants=(100, 1_000, 10_000, 50_000, 150_000), largest=300_000, hnsw_from=10_000, exact_up_to=100_000,
    recall_queries=100, worst_queries=60, batches=24, hnsw_batches=8, family=100_000, planted=10_000, seconds=3, rounds=3,
    sessions=(1, 2, 4, 8, 16), imported=100_000, taxa=2_000, preloaded=100_000, families=2_000, many_tenants=1_000, texts=4_096,
    growth=(10_000, 100_000, 300_000),
)  # fmt: skip
QUICK = Sizes(
    name="quick", queries=60, tenants=(100, 1_000, 6_000), largest=12_000, hnsw_from=5_000, exact_up_to=2_500,
    recall_queries=20, worst_queries=8, batches=6, hnsw_batches=3, family=5_000, planted=500, seconds=0.5, rounds=2,
    sessions=(1, 8), imported=1_000, taxa=500, preloaded=10_000, families=500, many_tenants=60, texts=128,
    growth=(1_000, 5_000, 12_000),
)  # fmt: skip


@dataclass
class Bench:
    """One run: the database, the sizes, and the memories that rows share."""

    database: Database
    sizes: Sizes
    generator: Generator
    server: Server | None = None
    say: Any = print
    _memories: dict[int, Memory] = field(default_factory=dict)

    def configure(self) -> None:
        """Thresholds that fit the sizes, so that small runs take every path too; `full` has the defaults."""
        with self.superuser() as conn:
            for name, value in (
                ("hnsw_min_embeddings", self.sizes.hnsw_from),
                ("hnsw_drop_below", self.sizes.hnsw_from // 2),
                ("exact_scan_max", self.sizes.exact_up_to),
            ):
                conn.execute("update graphium_private.settings set value = %s where name = %s", [value, name])

    @contextlib.contextmanager
    def superuser(self) -> Iterator[Connection]:
        with self.database.connect() as conn:
            yield conn

    def tenant(self, slug: str) -> Tenant:
        """A new tenant."""
        with self.superuser() as conn:
            row = conn.execute("select graphium.create_tenant(%s)", [slug]).fetchone()
        assert row is not None
        return Tenant(slug, row[0])

    def searched(self, size: int) -> Memory:
        """The memory of the tenant with so many embeddings, made when first asked for; with its index where it is due."""
        from benchmarks.data import load

        if size not in self._memories:
            self.say(f"  loading a tenant of {size:,}")
            memory = self.generator.memory(self.tenant(f"searched {size}"), size)
            with self.superuser() as conn:
                load(conn, memory)
                maintain(conn, memory.tenant)
            self._memories[size] = memory
        return self._memories[size]

    def everybody(self) -> list[Memory]:
        """The memories of all tenants that are searched, smallest first. All are there whenever one is measured."""
        return [self.searched(size) for size in self.sizes.tenants]

    def topics(self, memory: Memory, count: int) -> dict[str, Floats]:
        """Queries about the tenant's own families, and about those of the others."""
        others = [other for other in self.everybody() if other is not memory]
        return {
            "on topic": self.generator.on_topic(memory, count),
            "off topic": self.generator.off_topic(others, count),
        }


def maintain(conn: Connection, tenant: Tenant) -> bool:
    """What `graphium maintain` does, for one tenant; whether there was anything to do."""
    plan = [text for (text,) in conn.execute("select statement from graphium.maintenance_plan() order by step")]
    due = any(tenant.id.hex in text for text in plan)
    for text in plan if due else ():
        if tenant.id.hex in text or text.startswith(("set ", "reset ")):
            conn.execute(text.encode())
    return due


_names = itertools.count(1)


class Statement:
    """A prepared statement, run by libpq itself: psycopg would add some 50 us of Python and decode what nobody reads.

    Parameters are text, bytes (binary form) or None. The result is libpq's, values as text.
    """

    def __init__(self, conn: Connection, text: str) -> None:
        self._pgconn = conn.pgconn
        self._name = f"bench_{next(_names)}".encode()
        self._check(self._pgconn.prepare(self._name, text.encode()))

    def __call__(self, *parameters: str | bytes | None) -> pq.abc.PGresult:
        values: list[Any] = [p.encode() if isinstance(p, str) else p for p in parameters]
        formats = [1 if isinstance(p, bytes) else 0 for p in parameters]
        return self._check(self._pgconn.exec_prepared(self._name, values, formats))

    def _check(self, result: pq.abc.PGresult) -> pq.abc.PGresult:
        if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
            raise psycopg.DatabaseError(result.error_message.decode())
        return result


def column(result: pq.abc.PGresult, name: str) -> list[str]:
    """One column of a result, as text."""
    at = next(i for i in range(result.nfields) if result.fname(i) == name.encode())
    return [(result.get_value(row, at) or b"").decode() for row in range(result.ntuples)]
