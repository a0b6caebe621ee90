"""Databases for the deployer's own tests: bootstrapped, and still empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from graphium_db import deploy
from graphium_db.deploy import Tree
from tests.support.databases import Cluster, Database, grant_deployer

TABLE = """\
set local role graphium_owner;
create table graphium.t (tenant_id uuid, note text);
alter table graphium.t enable row level security;
alter table graphium.t force row level security;
"""
FUNCTION = """\
set local role graphium_owner;
create or replace function graphium.f() returns int language sql
  set search_path = pg_catalog, pg_temp return 1;
revoke all on function graphium.f() from public;
"""
POLICY = """\
set local role graphium_owner;
drop policy if exists tenant_and_scope_isolation on graphium.t;
create policy tenant_and_scope_isolation on graphium.t using (tenant_id is not null);
"""


@pytest.fixture
def blank(cluster: Cluster) -> Iterator[Callable[[], Database]]:
    """Makes a database that is bootstrapped, with rights for the deployer, and nothing else."""
    names: list[str] = []

    def make(prepare: str = "", *, boot: bool = True) -> Database:
        name = cluster.new_name()
        names.append(name)
        cluster.create(name, template="template1")
        with psycopg.connect(cluster.dsn(name), autocommit=True) as conn:
            if prepare:
                conn.execute(prepare.encode())
            if boot:
                deploy.bootstrap(conn)
                grant_deployer(conn, cluster.role("deployer"))
        return Database(cluster, name)

    yield make
    for name in names:
        cluster.drop(name)


class SmallTree(Tree):
    """A tree of three files that a test can bend."""

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)


@pytest.fixture
def small(tmp_path: Path) -> SmallTree:
    for folder in ("migrations", "functions", "policies"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bootstrap.sql").write_text(Tree.default().bootstrap)
    tree = SmallTree(tmp_path)
    tree.write("migrations/0001_t.sql", TABLE)
    tree.write("migrations/0001_t.rollback.sql", "drop table graphium.t;")
    tree.write("functions/010_f.sql", FUNCTION)
    tree.write("policies/010_p.sql", POLICY)
    return tree
