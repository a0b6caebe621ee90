"""The real tree: every way to the same database, and back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from yoyo import read_migrations

from graphium_db import deploy
from graphium_db.deploy import Deployed, Tree
from graphium_db.deploy.snapshot import snapshot
from tests.support.concurrency import all_at_once
from tests.support.databases import Cluster, Database, grant_deployer
from tests.support.psql import libpq_environment, psql

Blank = Callable[..., Database]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def fresh(cluster: Cluster) -> dict[str, str]:
    """The snapshot of a database that was deployed in one go."""
    with psycopg.connect(cluster.dsn(cluster.template)) as conn:
        return snapshot(conn)


def test_deploying_again_changes_nothing(db: Database, fresh: dict[str, str]) -> None:
    assert deploy.deploy(db.dsn("deployer")) == Deployed()
    assert snapshot(db.connect()) == fresh


def test_every_file_can_be_applied_again(db: Database, fresh: dict[str, str]) -> None:
    db.connect().execute("delete from graphium_private.deployed_files where path !~ '^migrations/'")
    done = deploy.deploy(db.dsn("deployer"))
    assert list(done.files) == [f.path for f in Tree.default().repeatables("public")]
    assert snapshot(db.connect()) == fresh


def test_one_file_by_psql_is_the_same(blank: Blank, fresh: dict[str, str], tmp_path: Path) -> None:
    db = blank()
    script = tmp_path / "graphium.sql"
    script.write_text(deploy.sql())
    command = [psql(), "-qX", "-f", str(script)]
    subprocess.run(command, env=libpq_environment(db.dsn("deployer")), check=True, stdout=subprocess.DEVNULL)
    assert snapshot(db.connect()) == fresh
    assert deploy.deploy(db.dsn("deployer")) == Deployed()

    again = subprocess.run(
        command, env=libpq_environment(db.dsn("deployer")), capture_output=True, text=True, check=False
    )
    assert again.returncode != 0
    assert "Graphium is already here" in again.stderr


def test_one_file_is_for_one_place_of_vector(blank: Blank, tmp_path: Path) -> None:
    db = blank("create schema extensions; create extension vector schema extensions")
    script = tmp_path / "graphium.sql"
    script.write_text(deploy.sql())
    run = subprocess.run(
        [psql(), "-qX", "-f", str(script)],
        env=libpq_environment(db.dsn("deployer")), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode != 0
    assert "has the extension vector in the schema public" in run.stderr


def test_bare_yoyo_makes_the_tables(blank: Blank, fresh: dict[str, str]) -> None:
    db = blank()
    subprocess.run(
        [sys.executable, "-m", "yoyo", "apply", "--config", str(ROOT / "yoyo.ini")],
        env=libpq_environment(db.dsn("deployer")), check=True, capture_output=True,
    )  # fmt: skip
    done = deploy.deploy(db.dsn("deployer"))
    assert done.migrations == ()
    assert done.files
    assert snapshot(db.connect()) == fresh


def test_each_rollback_restores_what_was_before(blank: Blank) -> None:
    from graphium_db.deploy import apply

    db = blank()
    observer = db.connect()
    steps = []
    with apply._Backend(apply._Uri(db.dsn("deployer"), db.name), "_yoyo_migration") as yoyo:
        yoyo.create_lock_table()
        yoyo.ensure_internal_schema_updated()
        for migration in yoyo.to_apply(read_migrations(str(Tree.default().root / "migrations"))):
            steps.append((migration, snapshot(observer)))
            yoyo.apply_one(migration)
        for migration, before in reversed(steps):
            yoyo.rollback_one(migration)
            after = snapshot(observer)
            for section in before:
                assert after[section] == before[section], f"{migration.id} leaves {section} different"
        # And forwards again: nothing was left over that would be in the way.
        for migration, _ in steps:
            yoyo.apply_one(migration)


def test_vector_in_another_schema(blank: Blank) -> None:
    db = blank("create schema extensions; create extension vector schema extensions")
    assert deploy.deploy(db.dsn("deployer"))
    assert db.connect().execute(
        "select typnamespace::regnamespace::text from pg_type where typname = 'vector'"
    ).fetchone() == ("extensions",)


def test_six_databases_of_one_cluster_at_once(cluster: Cluster, blank: Blank) -> None:
    databases = [blank(boot=False) for _ in range(6)]

    def from_nothing(db: Database) -> Deployed:
        with psycopg.connect(db.dsn(), autocommit=True) as conn:
            deploy.bootstrap(conn)
            grant_deployer(conn, cluster.role("deployer"))
        return deploy.deploy(db.dsn("deployer"))

    done = all_at_once([lambda db=db: from_nothing(db) for db in databases])
    assert all(d == done[0] for d in done)
    assert done[0].files
