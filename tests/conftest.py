"""Fixtures of every test that needs a database; see tests/support for what they are made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.databases import Cluster, Connection, Database
from tests.support.server import running_server

# A run says the same as the run before it. To look for new cases: pytest --hypothesis-profile=default
settings.register_profile("the same cases every time", derandomize=True)
settings.load_profile("the same cases every time")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The server of this run, with logins and a deployed template database."""
    with running_server() as server:
        cluster = Cluster(server)
        try:
            cluster.set_up()
            yield cluster
        finally:
            cluster.tear_down()


@pytest.fixture
def db(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database of its own for one test; afterwards every tenant's memory and graph must be in order."""
    database = Database(cluster, cluster.take())
    try:
        yield database
        database.close()
        if request.node.get_closest_marker("damages_on_purpose") is None:
            assert database.ailments() == []
    finally:
        database.close()
        cluster.give_back(database.name)


@pytest.fixture
def superuser(db: Database) -> Connection:
    """For arranging and looking, never for acting."""
    return db.connect()


@pytest.fixture
def app_conn(db: Database) -> Connection:
    """A trusted application server: a member of graphium_app. Names its caller with `as_caller`."""
    return db.connect("app")


@pytest.fixture
def admin_conn(db: Database) -> Connection:
    """A member of graphium_admin."""
    return db.connect("admin")


@pytest.fixture
def tenant(admin_conn: Connection) -> str:
    """The slug of a fresh tenant."""
    admin_conn.execute("select graphium.create_tenant(slug => 'acme')")
    return "acme"
