"""What the tests of the memory core share: one database per module, in which each test uses names of its own."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.databases import Cluster, Connection, Database, as_caller


@pytest.fixture(scope="module")
def shared(cluster: Cluster) -> Iterator[Database]:
    """A database for all tests of a module; at its end every tenant's memory and graph must be in order."""
    database = Database(cluster, cluster.take())
    try:
        yield database
        assert database.ailments() == []
    finally:
        database.close()
        cluster.give_back(database.name)


@pytest.fixture(scope="module")
def boss(shared: Database) -> Connection:
    """The superuser, for arranging and looking."""
    return shared.connect()


@pytest.fixture(scope="module")
def app(shared: Database) -> Connection:
    return shared.connect("app")


@pytest.fixture(scope="module")
def admin(shared: Database) -> Connection:
    return shared.connect("admin")


@pytest.fixture(scope="module")
def new_tenant(admin: Connection) -> Callable[[int], str]:
    """Makes tenants whose vectors have so many dimensions."""
    numbers = itertools.count(1)

    def make(dimensions: int) -> str:
        slug = f"tenant {next(numbers)}"
        admin.execute("select graphium.create_tenant(slug => %s, dimensions => %s)", [slug, dimensions])
        return slug

    return make


@contextlib.contextmanager
def hanging_up(database: Database) -> Iterator[None]:
    """Closes the connections that are opened inside: a server has only so many."""
    before = len(database._open)
    try:
        yield
    finally:
        for conn in database._open[before:]:
            conn.close()
        del database._open[before:]


def ingest(
    conn: Connection,
    statements: Any,
    family: str = "performance",
    genus: str = "feedback",
    specimen: str = "Ada",
    required_scopes: Sequence[str] | None = None,
) -> list[tuple[Any, ...]]:
    """Rows of ingest_context. Inside a transaction that named its caller."""
    return conn.execute(
        "select ordinal, statement_id, deduplicated, similarity, memory_type, layer_kind, required_scopes"
        "  from graphium.ingest_context(family => %s, genus => %s, specimen => %s, statements => %s, required_scopes"
        " => %s)",
        [family, genus, specimen, Jsonb(statements), None if required_scopes is None else list(required_scopes)],
    ).fetchall()


def ingest_many(
    conn: Connection, statements: Any, required_scopes: Sequence[str] | None = None
) -> list[tuple[Any, ...]]:
    """Rows of ingest_many. Inside a transaction that named its caller."""
    return conn.execute(
        "select ordinal, statement_id, deduplicated, similarity, memory_type, layer_kind, required_scopes"
        "  from graphium.ingest_many(statements => %s, required_scopes => %s)",
        [Jsonb(statements), None if required_scopes is None else list(required_scopes)],
    ).fetchall()


def refused(conn: Connection, tenant: str, statements: Any, scopes: Sequence[str] = (), **names: Any) -> psycopg.Error:
    """The error with which an ingest fails. It must fail."""
    with pytest.raises(psycopg.Error) as caught, as_caller(conn, tenant, scopes):
        ingest(conn, statements, **names)
    return caught.value
