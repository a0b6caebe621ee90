"""A server killed with SIGKILL while sessions commit: what was acknowledged is there once, and nothing is half there.

On a server of the test's own, the embedded one, with fsync as in real life.
"""

from __future__ import annotations

import os
import tempfile
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from graphium_db import deploy
from tests.memory.conftest import ingest
from tests.support.concurrency import wait_until
from tests.support.databases import Connection

pgserver = pytest.importorskip("pgserver", reason="the embedded server is not installed")
psutil = pytest.importorskip("psutil", reason="comes with the embedded server")

WRITERS = 6
SIZE = 3  # statements in each batch


class OwnServer:
    def __init__(self, folder: Path) -> None:
        self.server = pgserver.get_server(folder / "data", cleanup_mode="stop")
        with psycopg.connect(self.dsn("postgres", "postgres"), autocommit=True) as conn:
            # A commit lingers between its record and its flush: that is where we want to hit it.
            for setting in ("commit_delay = 20000", "commit_siblings = 0", "max_connections = 40"):
                conn.execute(f"alter system set {setting}".encode())
            conn.execute("create database crash")
            conn.execute("select pg_reload_conf()")
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as conn:
            deploy.bootstrap(conn)
            conn.execute("create role crash_app login in role graphium_app")
            conn.execute("create role crash_admin login in role graphium_admin")
        deploy.deploy(self.dsn("postgres"))

    def dsn(self, user: str, dbname: str = "crash") -> str:
        return make_conninfo(self.server.get_uri(), user=user, dbname=dbname)

    def kill(self) -> None:
        """SIGKILL to the postmaster and to every process of it."""
        postmaster = psutil.Process(self.server.get_pid())
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes:
            process.kill()
        psutil.wait_procs(processes, timeout=20)

    def restart(self) -> None:
        self.server.ensure_postgres_running()


@pytest.fixture(scope="module")
def own() -> Iterator[OwnServer]:
    with tempfile.TemporaryDirectory(prefix="graphium-crash-", ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        own = OwnServer(Path(folder))
        try:
            yield own
        finally:
            own.server.cleanup()


class Writer(threading.Thread):
    """Ingests batch after batch, each into a family that is sometimes new, until the server is gone."""

    def __init__(self, own: OwnServer, number: int) -> None:
        super().__init__()
        self.conn = psycopg.connect(own.dsn("crash_app"))
        self.number = number
        self.acknowledged: list[str] = []
        self.attempted: list[str] = []

    def run(self) -> None:
        try:
            while True:
                batch = str(uuid.uuid4())
                family = f"family {self.number % 3}" if len(self.attempted) % 4 else f"family of {batch}"
                self.attempted.append(batch)
                self.conn.execute("select graphium.set_caller('acme')")
                # The shared sentence is folded again and again: its count must be that of the transactions.
                ingest(
                    self.conn,
                    [
                        {
                            "content": f"{batch} {n}",
                            "embedding": [self.number, len(self.attempted), n],
                            "exact_only": True,
                        }
                        for n in range(SIZE)
                    ]
                    + [{"content": "everybody says this"}],
                    family=family,
                    specimen=f"specimen {self.number}",
                )
                self.conn.commit()
                self.acknowledged.append(batch)
        except psycopg.OperationalError:
            self.conn.close()


def test_killed_in_mid_commit(own: OwnServer) -> None:
    with psycopg.connect(own.dsn("crash_admin")) as conn:
        conn.execute("select graphium.create_tenant('acme', dimensions => 3)")
    acknowledged: list[str] = []
    attempted: list[str] = []
    for _ in range(2):
        writers = [Writer(own, n) for n in range(1, WRITERS + 1)]
        with psycopg.connect(own.dsn("postgres"), autocommit=True) as watcher:
            for writer in writers:
                writer.start()
            wait_until(partial(in_mid_commit, watcher, writers), "sessions are in mid-commit", timeout=60)
            own.kill()
        for writer in writers:
            writer.join(20)
            assert not writer.is_alive()
            acknowledged += writer.acknowledged
            attempted += writer.attempted
        own.restart()
        look(own, acknowledged, attempted)


def in_mid_commit(watcher: Connection, writers: list[Writer]) -> bool:
    """Two at least are, and all have done something before."""
    row = watcher.execute(
        "select count(*) from pg_stat_activity where usename = 'crash_app' and query = 'COMMIT' and state = 'active'"
    ).fetchone()
    assert row is not None
    return all(len(w.acknowledged) > 3 for w in writers) and row[0] >= 2


def look(own: OwnServer, acknowledged: list[str], attempted: list[str]) -> None:
    with psycopg.connect(own.dsn("postgres")) as conn:
        there = dict(
            conn.execute(
                "select split_part(content, ' ', 1), count(*) from graphium.kg_statements"
                " where content <> 'everybody says this' group by 1"
            ).fetchall()
        )
        assert set(there.values()) == {SIZE}  # whole batches, each once
        assert set(acknowledged) <= set(there) <= set(attempted)
        assert len(attempted) > len(acknowledged)
        said = conn.execute(
            "select count(*) + sum(access_count) from graphium.kg_statements where content = 'everybody says this'"
        ).fetchone()
        assert said == (len(there),)
        assert conn.execute("select count(*) from graphium.kg_embeddings").fetchone() == (SIZE * len(there),)
        made = conn.execute("select count(*) from graphium.dh_families where starts_with(name, 'family of')").fetchone()
        assert (
            made
            == conn.execute(
                "select count(*) from graphium.dh_families f where starts_with(name, 'family of')"
                " and exists (select from graphium.kg_statements s where s.family_id = f.id)"
            ).fetchone()
        )
    with psycopg.connect(own.dsn("crash_admin")) as conn:
        assert conn.execute("select * from graphium.check_memory('acme')").fetchall() == []
        assert conn.execute("select * from graphium.check_graph('acme')").fetchall() == []
