"""Fixtures for areas whose tests share a database: one for each module, and a tenant for each test."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.support.databases import Cluster, Connection, Database


@pytest.fixture(scope="module")
def db(cluster: Cluster) -> Iterator[Database]:
    """One database for the tests of a module. At the end every tenant's memory and graph must be in order."""
    database = Database(cluster, cluster.take())
    try:
        yield database
        assert database.ailments() == []
    finally:
        database.close()
        cluster.give_back(database.name)


@pytest.fixture
def tenant(admin_conn: Connection) -> str:
    """The slug of a fresh tenant."""
    slug = f"acme {secrets.token_hex(3)}"
    admin_conn.execute("select graphium.create_tenant(slug => %s)", [slug])
    return slug
