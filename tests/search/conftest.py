"""One database per module; each test plants tenants of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from tests.search.corpus import Corpus, vector_text
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
def new_corpus(boss: Connection, admin: Connection) -> Callable[..., Corpus]:
    """Makes an empty tenant whose vectors have so many dimensions."""
    numbers = itertools.count(1)

    def make(dimensions: int = 3, **audiences: Sequence[str]) -> Corpus:
        slug = f"corpus {next(numbers)}"
        admin.execute("select graphium.create_tenant(slug => %s, dimensions => %s)", [slug, dimensions])
        return Corpus(boss, slug, {k.replace("__", "/"): v for k, v in audiences.items()})

    return make


def read(conn: Connection, function: str, **arguments: Any) -> list[Any]:
    """Rows of a reading function, as named tuples. Inside a transaction that named its caller."""
    if "query_embedding" in arguments:
        arguments["query_embedding"] = vector_text(arguments["query_embedding"])
    call = ", ".join(f"{name} => %({name})s" for name in arguments)
    with conn.cursor(row_factory=namedtuple_row) as cursor:
        return cursor.execute(f"select * from graphium.{function}({call})".encode(), arguments).fetchall()


def read_as(conn: Connection, corpus: Corpus, scopes: Sequence[str], function: str, **arguments: Any) -> list[Any]:
    with as_caller(conn, corpus.slug, scopes):
        return read(conn, function, **arguments)


def search(conn: Connection, corpus: Corpus, scopes: Sequence[str] = (), **arguments: Any) -> list[Any]:
    """Primary hits, unless follow_symbiosis is given."""
    return read_as(conn, corpus, scopes, "search_context", **{"follow_symbiosis": False, **arguments})


def refused(conn: Connection, corpus: Corpus, function: str, **arguments: Any) -> str:
    """The SQLSTATE with which a call fails. It must fail."""
    with pytest.raises(psycopg.Error) as caught:
        read_as(conn, corpus, (), function, **arguments)
    assert caught.value.sqlstate is not None
    return caught.value.sqlstate
