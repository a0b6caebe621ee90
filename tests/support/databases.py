"""Databases, logins and tenants for tests.

Tests act as roles that are no superuser and bypass nothing; the superuser's connection is for fixtures.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from graphium_db import deploy
from tests.support.server import Server

Connection = psycopg.Connection[Any]


class Cluster:
    """The server with our roles on it, a template database that has everything deployed, and copies of it.

    Copies are made one ahead and dropped behind, by one thread, while tests run. Names carry a random part, so that
    several runs can share a server.
    """

    LOGINS = ("app", "admin", "deployer")

    def __init__(self, server: Server) -> None:
        self.server = server
        self.run = secrets.token_hex(3)
        self.password = secrets.token_hex(8)
        self._template = f"graphium_test_{self.run}"
        self._numbers = itertools.count(1)
        self._worker = ThreadPoolExecutor(1)
        self._roles: list[str] = []
        self._broken = ""
        self._admin: Connection = psycopg.connect(server.dsn, autocommit=True)
        self._next: Future[str] | None = None

    def dsn(self, dbname: str, login: str | None = None) -> str:
        """A DSN for `dbname`: as one of our logins, or as the superuser when `login` is None."""
        if login is None:
            return make_conninfo(self.server.dsn, dbname=dbname)
        return make_conninfo(self.server.dsn, dbname=dbname, user=self.role(login), password=self.password)

    def role(self, login: str) -> str:
        """The cluster-wide name of a login of this run."""
        return f"gt_{self.run}_{login}"

    def set_up(self) -> None:
        """Make the roles (bootstrap does, in the database that becomes the template) and the logins."""
        self.create(self._template, template="template1")
        for login in self.LOGINS:
            self.create_login(login)
        with psycopg.connect(self.dsn(self._template), autocommit=True) as conn:
            deploy.bootstrap(conn)
            grant_deployer(conn, self.role("deployer"))
            for group, login in (("graphium_app", "app"), ("graphium_admin", "admin")):
                conn.execute(sql.SQL("grant {} to {}").format(sql.Identifier(group), sql.Identifier(self.role(login))))

    @functools.cached_property
    def template(self) -> str:
        """The name of a database that has everything deployed; nobody may stay connected to it."""
        if self._broken:  # once is enough: every test would say the same again
            pytest.fail(f"the template database did not deploy: {self._broken}", pytrace=False)
        try:
            deploy.deploy(self.dsn(self._template, "deployer"))
        except deploy.DeployError as error:
            self._broken = str(error)
            raise
        return self._template

    def tear_down(self) -> None:
        """Drop all that this run made: nothing is left on a server that was only lent."""
        if self._next is not None:
            self.drop(self._next.result())
        self._worker.shutdown(wait=True)
        self.drop(self._template)
        for role in self._roles:
            self._admin.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(role)))
        self._admin.close()

    def create_login(self, login: str) -> str:
        """Make a login role that belongs to nothing yet; returns its full name."""
        name = self.role(login)
        self._admin.execute(
            sql.SQL("create role {} login nosuperuser nobypassrls password {}").format(
                sql.Identifier(name), sql.Literal(self.password)
            )
        )
        self._roles.append(name)
        return name

    def take(self) -> str:
        """A fresh copy of the template; hand it to :meth:`give_back` afterwards."""
        name = self._next.result() if self._next else self._copy()
        self._next = self._worker.submit(self._copy)
        return name

    def give_back(self, name: str) -> None:
        self._worker.submit(self.drop, name)

    def new_name(self) -> str:
        return f"{self._template}_{next(self._numbers)}"

    def create(self, name: str, template: str) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as conn:
            conn.execute(
                sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template))
            )

    def drop(self, name: str) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as conn:
            conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def _copy(self) -> str:
        name = self.new_name()
        self.create(name, self.template)
        # What bootstrap does to the database itself (a grant, a setting) is not copied.
        with psycopg.connect(self.dsn(name), autocommit=True) as conn:
            deploy.bootstrap(conn)
        return name


class Database:
    """One test's database and the connections that were opened to it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self._open: list[Connection] = []
        self._people = itertools.count(1)

    def dsn(self, login: str | None = None) -> str:
        return self.cluster.dsn(self.name, login)

    def connect(self, login: str | None = None, **options: Any) -> Connection:
        """A connection in autocommit mode, closed after the test. `login` as in :meth:`Cluster.dsn`."""
        conn = psycopg.connect(self.dsn(login), autocommit=True, **options)
        self._open.append(conn)
        return conn

    def login(self, member_of: str | None = None) -> str:
        """A new login role, optionally a member of `member_of`; returns its short name, for :meth:`connect`."""
        short = f"{self.name.rsplit('_', 1)[-1]}_{next(self._people)}"
        full = self.cluster.create_login(short)
        if member_of:
            with psycopg.connect(self.dsn(), autocommit=True) as conn:
                conn.execute(sql.SQL("grant {} to {}").format(sql.Identifier(member_of), sql.Identifier(full)))
        return short

    def principal(self, tenant: str, scopes: Sequence[str] = ()) -> Connection:
        """A connection as a new login that *is* the tenant with at most those scopes."""
        short = self.login()
        with psycopg.connect(self.dsn("admin"), autocommit=True) as conn:
            conn.execute(
                "select graphium.add_principal(role_name => %s, tenant => %s, scopes => %s)",
                [self.cluster.role(short), tenant, list(scopes)],
            )
        return self.connect(short)

    def close(self) -> None:
        for conn in self._open:
            conn.close()

    def ailments(self) -> list[str]:
        """What check_memory() and check_graph() have to say, for every tenant. Healthy: nothing."""
        with psycopg.connect(self.dsn()) as conn:
            slugs = [row[0] for row in conn.execute("select slug from graphium.tenants order by slug")]
        found: list[str] = []
        if slugs:
            with psycopg.connect(self.dsn("admin")) as conn:
                for slug in slugs:
                    for check in ("check_memory", "check_graph"):
                        rows = conn.execute(f"select * from graphium.{check}(tenant => %s)".encode(), [slug]).fetchall()
                        found += [f"{check}({slug}): {row}" for row in rows]
        return found


def grant_deployer(superuser: Connection, role: str) -> None:
    """What db/bootstrap.sql tells a superuser to grant to whoever deploys."""
    superuser.execute(
        sql.SQL("grant graphium_owner, graphium_keeper, graphium_cypher to {} with inherit false, set true").format(
            sql.Identifier(role)
        )
    )


@contextlib.contextmanager
def as_caller(conn: Connection, tenant: str | None, scopes: Sequence[str] | None = ()) -> Iterator[Connection]:
    """A transaction in which `conn`, an app's or an admin's, speaks for a tenant with some scopes."""
    with conn.transaction():
        conn.execute(
            "select graphium.set_caller(tenant => %s, scopes => %s)", [tenant, None if scopes is None else list(scopes)]
        )
        yield conn
