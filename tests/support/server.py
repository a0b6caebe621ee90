"""The PostgreSQL server of a test run: GRAPHIUM_TEST_DSN, else a container, else the embedded one."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

ROOT = Path(__file__).resolve().parents[2]
# Fifty sessions at once, twenty deployers, and what the fixtures hold.
MAX_CONNECTIONS = 250


@dataclass(frozen=True)
class Server:
    """`dsn` is a superuser's; `kind` says where the server came from."""

    dsn: str
    kind: str


@contextlib.contextmanager
def running_server() -> Iterator[Server]:
    """Start (or find) the server of this run and stop it afterwards."""
    given = os.environ.get("GRAPHIUM_TEST_DSN")
    if given:
        yield Server(given, "GRAPHIUM_TEST_DSN")
    elif docker_answers():
        with _container() as dsn:
            yield Server(dsn, "container")
    else:
        with _embedded() as dsn:
            yield Server(dsn, "embedded")


def docker_answers() -> bool:
    """Whether a Docker engine is there to be used."""
    try:
        import docker

        client = docker.from_env(timeout=3)
        try:
            return bool(client.ping())
        finally:
            client.close()
    except Exception:  # noqa: BLE001  whatever is wrong with it, we have the embedded server
        return False


@contextlib.contextmanager
def _container() -> Iterator[str]:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.image import DockerImage
    from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    password = secrets.token_hex(8)
    with (
        DockerImage(path=str(ROOT / "docker"), tag="graphium-test:latest") as image,
        DockerContainer(str(image))
        .with_env("POSTGRES_PASSWORD", password)
        .with_exposed_ports(5432)
        .waiting_for(LogMessageWaitStrategy("database system is ready to accept connections")) as container,
    ):
        yield make_conninfo(
            host=container.get_container_host_ip(),
            port=container.get_exposed_port(5432),
            user="postgres",
            password=password,
            dbname="postgres",
        )


@contextlib.contextmanager
def _embedded() -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir=_roomy(), prefix="graphium-test-", ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # pgserver warns when it is not set
        import pgserver
        from pgserver._commands import pg_ctl

        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        with psycopg.connect(server.get_uri(), autocommit=True) as conn:
            for setting in (
                f"max_connections = {MAX_CONNECTIONS}",
                "shared_buffers = '256MB'",
                "max_wal_size = '4GB'",
                # Nothing here has to outlive a power cut.
                "fsync = off",
                "full_page_writes = off",
                "synchronous_commit = off",
                "max_parallel_maintenance_workers = 0",
            ):
                conn.execute(f"alter system set {setting}".encode())
        pg_ctl(["-w", "-m", "fast", "-l", str(server.log), "restart"], pgdata=server.pgdata, user=server.system_user)
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()
            atexit.unregister(server._cleanup)  # it would make its lock file, and with it the folder, anew


def _roomy() -> str | None:
    """Memory when there is enough of it: a copy of a database is 300 new files, .3 s on some disks and .02 s there."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30:
        return str(memory)
    return None
