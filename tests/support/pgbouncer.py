"""PgBouncer in front of the test server, configured as docs/poolers.md says."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.concurrency import wait_until
from tests.support.databases import Database
from tests.support.server import ROOT

DOCS = ROOT / "docs" / "poolers.md"
SCRIPT = ROOT / "scripts" / "pg17-root"
HERE, IN_THE_ROOT = "of this machine", "of the root"


class Pooler:
    """A running PgBouncer. `prepares`: whether it follows protocol-level prepared statements (1.21 and later)."""

    def __init__(self, database: Database, port: int, version: tuple[int, ...]) -> None:
        self._database = database
        self._port = port
        self.version = version
        self.prepares = version >= (1, 21)

    def dsn(self, login: str) -> str:
        return make_conninfo(self._database.dsn(login), host="127.0.0.1", port=self._port)

    def console(self, login: str) -> str:
        """PgBouncer's own database, for the first of its logins."""
        return make_conninfo(self.dsn(login), dbname="pgbouncer")


@contextmanager
def pgbouncer(
    database: Database,
    logins: Sequence[str],
    server_connections: int,
    guards: bool = False,
    prepares: bool | None = None,
    program: Sequence[str] | None = None,
) -> Iterator[Pooler]:
    """Start PgBouncer for `logins`, with so many server connections each.

    It is `program`, else the one in the root that scripts/pg17-root builds, else the one on this machine. `prepares`: with
    the line for newer versions, or without it whatever the version.
    """
    program = program or installed(IN_THE_ROOT) or installed(HERE)
    if program is None:
        pytest.skip("there is no PgBouncer here: apt-get install pgbouncer, or scripts/pg17-root build (as root)")
    version = version_of(program)
    ours = program[0] != str(SCRIPT)
    given = conninfo_to_dict(database.dsn())
    host, port = str(given["host"]), str(given.get("port", 5432))
    sockets = host if host.startswith("/") else ""
    user = os.geteuid() or (Path(sockets).stat().st_uid if sockets else 65534)  # it refuses to run as root
    with tempfile.TemporaryDirectory(prefix="graphium-pgbouncer-") as name:
        folder = Path(name)
        config = configuration(guards, version >= (1, 21) if prepares is None else prepares)
        line = config["databases"].pop("graphium")
        address = f"host={host if ours or not sockets else '/srv/sockets'} port={port}"
        config["databases"][database.name] = line.replace("host=127.0.0.1 port=5432", address)
        config["pgbouncer"].update(
            listen_port=str(listen := _free_port()),
            unix_socket_dir="",
            auth_file=f"{folder if ours else '/srv/config'}/userlist.txt",
            default_pool_size=str(server_connections),
            admin_users=database.cluster.role(logins[0]),
        )
        with (folder / "pgbouncer.ini").open("w") as file:
            config.write(file)
        cluster = database.cluster
        (folder / "userlist.txt").write_text("".join(f'"{cluster.role(x)}" "{cluster.password}"\n' for x in logins))
        drop = ours and os.geteuid() == 0  # the script does it for the one in the root
        if os.geteuid() == 0:
            for path in (folder, *folder.iterdir()):
                os.chown(path, user, user)
        with (folder / "log").open("w+") as log:
            process = subprocess.Popen(
                [*program, "-q", f"{folder}/pgbouncer.ini"] if ours else [*program, str(user), name, sockets],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=user if drop else None,
                group=user if drop else None,
                extra_groups=[] if drop else None,
            )
            try:
                pooler = Pooler(database, listen, version)

                def answers() -> bool:
                    assert process.poll() is None, f"PgBouncer did not start: {(folder / 'log').read_text()}"
                    try:
                        psycopg.connect(pooler.dsn(logins[0])).close()
                    except psycopg.OperationalError as error:
                        if "refused" not in str(error):
                            raise
                        return False
                    return True

                wait_until(answers, "PgBouncer answers")
                yield pooler
            finally:
                process.kill()
                process.wait()


def configuration(guards: bool, prepares: bool) -> configparser.ConfigParser:
    """The pgbouncer.ini of the docs, optionally with the guards that they name, or with the line for newer versions."""
    blocks = re.findall(r"```ini\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    config = configparser.ConfigParser(interpolation=None)
    for ini in blocks[: 1 + guards]:
        config.read_string(ini.replace("\n;max_prepared", "\nmax_prepared") if prepares else ini)
    assert ("max_prepared_statements" in config["pgbouncer"]) is prepares
    return config


def installed(where: str) -> Sequence[str] | None:
    """The command that starts the PgBouncer of this machine, or of the root; None where there is none."""
    if where == HERE:
        found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
        return [found] if found else None
    program = [str(SCRIPT), "pgbouncer"]
    return program if subprocess.run([*program, "--version"], capture_output=True).returncode == 0 else None


def version_of(program: Sequence[str]) -> tuple[int, int]:
    said = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"PgBouncer (\d+)\.(\d+)", said)
    assert version, said
    return int(version[1]), int(version[2])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
