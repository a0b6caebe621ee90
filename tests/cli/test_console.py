"""`graphium console`, as a process."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Ran
from tests.console.browser import free_port


@contextmanager
def console(*arguments: str) -> Iterator[tuple[list[str], str]]:
    """What it said on stderr until its address, and the address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "graphium_db.cli", "console", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().strip()
        said: list[str] = []
        while not said or "Open:" not in said[-1]:
            line = process.stderr.readline()
            assert line, said
            said.append(line.strip())
        yield said, address
    finally:
        process.terminate()
        process.wait(20)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def answered(address: str) -> str:
    with urllib.request.urlopen(address) as response:  # it listens before it says its address
        return str(response.read().decode())


def test_it_prints_an_address_with_the_key(acme: str) -> None:
    port = free_port()
    with console("--port", str(port)) as (said, address):
        assert re.fullmatch(rf"http://127\.0\.0\.1:{port}/login\?key=[\w-]{{32}}", address)
        page = answered(address)
        assert acme in page
        assert 'value="hr"' in page
        assert not any("Warning" in line for line in said)


def test_without_a_tenant_only_principals_get_in(acme: str, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("GRAPHIUM_TENANT")
    port = free_port()
    with console("--port", str(port)) as (_, address):
        assert address == f"http://127.0.0.1:{port}/"
        assert "As a tenant" not in answered(f"{address}login")


def test_another_address_is_warned_of(acme: str) -> None:
    with console("--port", str(free_port()), "--host", "0.0.0.0") as (said, _):
        assert any(line.startswith("Warning: 0.0.0.0 is no loopback address") for line in said)
        assert any("TLS" in line for line in said)


def test_a_port_that_is_taken_is_told_before_anything_is_said(acme: str, run: object) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ran: Ran = run("console", "--port", str(other.getsockname()[1]))  # type: ignore[operator]
    assert ran.code == 2
    assert "--port: 127.0.0.1:" in ran.err
    assert "Hint: " in ran.err
    assert "Open:" not in ran.err
    assert ran.out == ""


def test_a_tenant_that_is_none_is_refused_at_the_start(acme: str, run: object, tmp_path: Path) -> None:
    (tmp_path / "allow.toml").write_text('[[allow]]\ntenant = "nobody"\n')
    ran: Ran = run(  # type: ignore[operator]
        "console", "--port", str(free_port()), "--allow", str(tmp_path / "allow.toml")
    )
    assert ran.code == 4
    assert 'no tenant "nobody"' in ran.err
    assert "Open:" not in ran.err


def test_a_file_that_allows_nothing_is_refused(acme: str, run: object, tmp_path: Path) -> None:
    (tmp_path / "allow.toml").write_text("tenants = 1")
    ran: Ran = run("console", "--allow", str(tmp_path / "allow.toml"))  # type: ignore[operator]
    assert ran.code == 2
    assert "must have [[allow]] tables" in ran.err
