"""The embedded server, from nothing to stopped."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from graphium_db import server
from graphium_db.console import Config
from graphium_db.console.sessions import open_session
from tests.cli.conftest import Ran

Run = Callable[..., Ran]


@pytest.fixture
def data(environment: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data directory whose path is too long for a Unix socket. Not in pytest's own temporary directory: that is closed
    again to other users, and run by root the server is one, whenever another pytest starts."""
    with tempfile.TemporaryDirectory(prefix="graphium-") as directory:
        data = Path(directory) / ("a directory with a long name" * 3) / "data"
        yield data
        if data.exists():
            server.stop(data)


def but_for_the_port(up: dict[str, Any]) -> dict[str, Any]:
    return {name: re.sub(rf"\b{up['port']}\b", "port", str(value)) for name, value in up.items()}


def test_up_makes_a_server_that_only_the_right_people_enter(data: Path, run: Run) -> None:
    first = run("up", "--data", str(data), "--json")
    assert first.code == 0, first.err
    up = first.json
    assert up["started"]
    assert up["migrations"]
    assert Path(up["data"]) == data.resolve()

    with psycopg.connect(up["dsn"]) as app:
        row = app.execute("select current_user, pg_has_role('graphium_app', 'member')").fetchone()
        assert row == ("graphium_local", True)
        assert app.execute("select rolsuper or rolbypassrls from pg_roles where rolname = current_user").fetchone() == (
            False,
        )
        assert app.execute("show jit").fetchone() == ("off",)
    # the superuser comes through the private socket only, and nobody without a password
    for dsn, message in (
        (make_conninfo(up["dsn"], user="postgres"), "pg_hba.conf rejects"),
        (make_conninfo(up["dsn"], password="wrong"), "password authentication failed"),
    ):
        with pytest.raises(psycopg.OperationalError, match=message):
            psycopg.connect(dsn)

    # A DBA's work: the line that is printed. libpq takes no socket in a directory with so long a path, hence the link.
    with tempfile.TemporaryDirectory(prefix="graphium-") as short:
        (Path(short) / "cluster").symlink_to(data / "cluster")
        dsn = make_conninfo(up["superuser_dsn"], host=f"{short}/cluster")
        ask = "select current_user, current_database(), current_setting('is_superuser')"
        done = subprocess.run([up["psql"], "-XAtc", ask, dsn], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("postgres|graphium|on\n", "")
        # A console that runs as that system user lets nobody in as the superuser.
        with pytest.raises(psycopg.OperationalError, match="none was asked for"):
            asyncio.run(open_session(Config(dsn), None, user="postgres", password="any"))
        if os.geteuid() == 0:  # nobody else, wherever his path leads
            denied = subprocess.run([up["psql"], "-XAtc", ask, dsn], capture_output=True, text=True, user="nobody")
            assert (denied.stdout, denied.returncode) == ("", 2)
    assert f"host={quote(str(data.resolve() / 'cluster'))}&" in up["superuser_dsn"]
    assert f"{up['psql']} '{up['superuser_dsn']}'" in run("up").err.splitlines()

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    connection_file = Path(up["connection_file"])
    assert mode(connection_file) == 0o600
    assert connection_file.stat().st_uid == os.geteuid()
    assert mode(data / "cluster") == 0o700
    saved = json.loads(connection_file.read_text(encoding="utf-8"))
    assert saved["dsn"] == up["dsn"]

    # later commands need no DSN; the administrative ones come as the operator
    assert run("tenant", "create", "acme").code == 0
    line = {"family": "f", "genus": "g", "specimen": "s", "content": "It stays.", "embedding": None}
    assert run("ingest", "--tenant", "acme", "--jsonl", "-", stdin=json.dumps(line)).code == 0
    assert run("migrate", "--plan").out == "Nothing to do.\n"
    assert run("maintain").out == "Nothing to do.\n"
    assert run("doctor", "--tenant", "acme").code == 0

    again = run("up", "--json").json  # it remembers where
    assert again == up | {"started": False, "migrations": [], "files": []}

    # applications run with the password: it stays, whatever else keeps a login out
    def superuser(statement: str) -> None:
        with server._Cluster.at(data).superuser("graphium") as conn:
            conn.execute(statement.encode())

    text = connection_file.read_text(encoding="utf-8")
    superuser("revoke connect on database graphium from public, graphium_local, graphium_operator")
    refused = run("up")
    assert refused.code == 3
    assert (
        refused.err.splitlines()[0]
        == "Error: graphium_local and graphium_operator may not connect to the database graphium"
    )
    assert refused.err.endswith("-c 'grant connect on database graphium to graphium_local, graphium_operator'\n")
    superuser("grant connect on database graphium to graphium_local, graphium_operator")
    superuser("alter role graphium_operator nologin")
    refused = run("up")
    assert refused.code == 3
    assert refused.err.startswith("Error: graphium_operator is not let in: ")
    assert "Hint: As the superuser: " in refused.err
    superuser("alter role graphium_operator login")
    assert run("up", "--json").json == again
    assert connection_file.read_text(encoding="utf-8") == text
    # a password that is wrong is made anew, and the other one stays
    superuser("alter role graphium_operator password 'forgotten'")
    assert run("up", "--json").json["dsn"] == up["dsn"]
    assert run("tenant", "list").code == 0
    psycopg.connect(up["dsn"]).close()

    # what is lost is made anew: the file with the passwords
    connection_file.unlink()
    renewed = run("up", "--json").json
    assert renewed["dsn"] != up["dsn"]
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(up["dsn"])

    assert run("up", "--stop").out == "Stopped.\n"
    assert run("up", "--stop", "--json").json == {"stopped": False}
    down = run("recall", "--tenant", "acme")
    assert down.code == 3
    assert "graphium up" in down.err

    # somebody else may have taken the port meanwhile
    assert but_for_the_port(run("up", "--json").json) == but_for_the_port(renewed | {"started": True})
    assert [row["content"] for row in run("recall", "--tenant", "acme", "--json").json] == ["It stays."]


def test_the_server_outlives_the_command_and_does_not_hold_its_output(data: Path, graphium: Run) -> None:
    ran = graphium("up", "--data", str(data), "--json")  # returns although the server runs on
    assert ran.code == 0, ran.err
    assert psycopg.connect(ran.json["dsn"]).closed is False


@pytest.fixture
def occupied(environment: pytest.MonkeyPatch) -> Iterator[int]:
    """The port that the server would like, and that somebody else listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        environment.setattr(server, "PREFERRED_PORT", port := listening.getsockname()[1])
        yield port


def test_another_port_is_taken_when_the_last_one_is_not_free(data: Path, occupied: int) -> None:
    up = server.up(data)
    assert up.connection.port != occupied
    with psycopg.connect(up.connection.dsn):
        pass


def test_another_port_is_taken_when_somebody_was_quicker(
    data: Path, occupied: int, environment: pytest.MonkeyPatch
) -> None:
    """The port was free when it was looked at, and is not when the server comes to listen."""
    looked_at = []

    def free_port(preferred: int, look: Callable[[int], int] = server._free_port) -> int:
        looked_at.append(preferred)
        return occupied if preferred else look(0)

    environment.setattr(server, "_free_port", free_port)
    up = server.up(data)
    assert looked_at[:2] == [occupied, 0]
    assert up.connection.port != occupied
    with psycopg.connect(up.connection.dsn):
        pass


def test_a_stopped_server_is_not_running_whoever_took_its_port(data: Path) -> None:
    up = server.up(data)
    server.stop(data)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # else somebody really took it
            listening.bind(("127.0.0.1", up.connection.port))
            listening.listen()
        with pytest.raises(server.ServerError, match="is not running"):
            server.saved_connection(data)


def test_a_cluster_of_another_major_version_is_refused(data: Path) -> None:
    (data / "cluster").mkdir(parents=True)
    (data / "cluster" / "PG_VERSION").write_text("12\n", encoding="utf-8")
    with pytest.raises(server.ServerError, match="made by PostgreSQL 12"):
        server.up(data)
    (data / "cluster" / "PG_VERSION").unlink()


def test_a_directory_that_cannot_be_used_is_told(data: Path, run: Run) -> None:
    ran = run("up", "--data", "/proc/xyz")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("Error: the embedded server cannot use /proc/xyz")
    data.mkdir(parents=True)
    (data / "cluster").write_text("", encoding="utf-8")
    ran = run("up", "--data", str(data))
    assert ran.code == 3
    assert "cluster is no directory" in ran.err


def test_stop_makes_nothing(data: Path, run: Run) -> None:
    assert run("up", "--data", str(data), "--stop").out == "It was not running.\n"
    assert not data.exists()


def test_a_missing_package_is_told_with_its_extra(data: Path, run: Run, environment: pytest.MonkeyPatch) -> None:
    import importlib.util

    environment.setattr(importlib.util, "find_spec", lambda name: None)
    ran = run("up", "--data", str(data))
    assert ran.code == 3
    assert "pip install 'graphium-db[server]'" in ran.err


def test_a_server_that_does_not_start_shows_its_log(data: Path, environment: pytest.MonkeyPatch) -> None:
    def settings(port: int) -> str:
        return f"port = {port}\nshared_buffers = 'nonsense'\n"

    environment.setattr(server, "_settings", settings)
    with pytest.raises(server.ServerError, match='invalid value for parameter "shared_buffers"'):
        server.up(data)


def settings_of(memory: int, environment: pytest.MonkeyPatch) -> dict[str, str]:
    environment.setattr(server, "_memory_bytes", lambda: memory)
    lines = [line.split(" = ") for line in server._settings(5432).splitlines() if " = " in line]
    return {name: value for name, value, *_ in lines}


def test_sizes_follow_the_memory(environment: pytest.MonkeyPatch) -> None:
    gib = 2**30
    for memory, expected in (
        (gib // 4, ("128MB", "64MB")),
        (8 * gib, ("2048MB", "512MB")),
        (256 * gib, ("4096MB", "1024MB")),
    ):
        settings = settings_of(memory, environment)
        assert (settings["shared_buffers"], settings["maintenance_work_mem"]) == expected


def test_as_an_ordinary_user_too(tmp_path: Path) -> None:
    """Run by root, the test lends the machine's user `nobody` a directory; run by anybody else, the others suffice."""
    if os.geteuid() != 0:
        pytest.skip("the other tests are an ordinary user's already")
    import pwd
    import sys

    from tests.cli.conftest import ROOT

    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="graphium-") as home:
        Path(home).chmod(0o700)
        os.chown(home, nobody.pw_uid, nobody.pw_gid)

        as_nobody: dict[str, Any] = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        try:  # a virtual environment made by root often has its interpreter below /root
            subprocess.run([sys.executable, "-c", ""], cwd=home, check=True, **as_nobody)
        except PermissionError:
            pytest.skip(f"nobody but root may run {os.path.realpath(sys.executable)}")

        def graphium(*arguments: str) -> subprocess.CompletedProcess[str]:
            environment = os.environ | {"HOME": home, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
            for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "GRAPHIUM_DSN"):
                environment.pop(name, None)
            return subprocess.run(
                [sys.executable, "-m", "graphium_db.cli", *arguments],
                capture_output=True,
                text=True,
                cwd=home,
                env=environment,
                **as_nobody,
            )

        done = graphium("up", "--json")
        try:
            assert done.returncode == 0, done.stderr
            assert Path(json.loads(done.stdout)["data"]) == Path(home, ".local", "share", "graphium")
            assert graphium("tenant", "create", "acme").returncode == 0
        finally:
            assert graphium("up", "--stop").stdout == "Stopped.\n"


def test_the_demo_says_what_to_do_with_a_folder_of_an_older_version(data: Path, run: Run) -> None:
    import sys

    from tests.cli.conftest import ROOT

    up = run("up", "--data", str(data), "--json").json
    with tempfile.TemporaryDirectory(prefix="graphium-") as short:
        (Path(short) / "cluster").symlink_to(data / "cluster")
        with psycopg.connect(make_conninfo(up["superuser_dsn"], host=f"{short}/cluster"), autocommit=True) as superuser:
            superuser.execute("update graphium_private.deployed_files set sha256 = 'x' where path ~ '^migrations/0001'")
    run("up", "--stop")
    for was_up in (False, True):
        if was_up:
            server._Cluster.at(data).start()
        done = subprocess.run(
            [sys.executable, ROOT / "examples" / "demo.py", "--data", str(data)], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert done.stderr.startswith("Error: migrations/0001")
        assert f"data is in {data.resolve()}" in done.stderr
        assert "DATA=" in done.stderr
        assert server._Cluster.at(data).running() is was_up
