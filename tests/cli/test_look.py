"""What a person sees at a terminal of 80 columns. The expected texts were looked at, not only pasted."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable

import pytest

from tests.cli.conftest import ROOT

LONG = "We postponed the public launch from the first to the fifteenth of June, because the app stores need two weeks."


@pytest.fixture
def terminal(environment: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command at a terminal; returns the screen without colours."""

    def terminal(*arguments: str) -> str:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        process = subprocess.Popen(
            [sys.executable, "-m", "graphium_db.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=environment | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"},
        )
        os.close(theirs)
        screen = b""
        try:
            while chunk := os.read(ours, 4096):
                screen += chunk
        except OSError:
            pass  # Linux says so when the other side is closed
        assert process.stderr is not None
        with process.stderr as stderr:
            assert stderr.read() == b""
        assert process.wait() == 0
        os.close(ours)
        assert b"\x1b[" in screen  # there are colours
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.decode()).replace("\r\n", "\n").splitlines()
        assert max(map(len, lines)) <= 80
        return "\n".join(line.rstrip() for line in lines)

    return terminal


@pytest.fixture
def launch(filled: str, run: Callable[..., object]) -> str:
    run("ingest", "-f", "goals", "-g", "this year", "-s", "Summer launch", "--whole", "--type", "decision",
        "--layer", "preloaded", "--occurred-at", "2026-04-27T10:00:00Z", LONG)  # fmt: skip
    return filled


def test_search(launch: str, terminal: Callable[..., str]) -> None:
    screen = terminal("search", "launch of the ferry app", "--words-only")
    assert (
        re.sub(r"\d\.\d\d", "s.ss", screen)
        == """\
1 s.ss We decided to ship the ferry app.
       projects › Harbour › Ferry app  decision, on_demand  2026-02-02
2 s.ss We postponed the public launch from the first to the fifteenth of June,
       because the app stores need two weeks.
       goals › this year › Summer launch  decision, preloaded  2026-04-27"""
    )


def test_wake_up(launch: str, terminal: Callable[..., str]) -> None:
    assert (
        terminal("wake-up", "--budget", "40")
        == """\
28 We postponed the public launch from the first to the fifteenth of June,
   because the app stores need two weeks.
   goals › this year › Summer launch  decision
37 Tomasz prefers small pull requests.
   relationships › team › Tomasz  preference
37 of 40 tokens"""
    )


def test_tree(launch: str, terminal: Callable[..., str]) -> None:
    assert (
        terminal("tree")
        == """\
goals
└── this year
    └── Summer launch  1
performance
└── reviews
    └── Tomasz  1
projects
└── Harbour
    └── Ferry app  1
relationships
└── team
    └── Tomasz  1"""
    )


def test_classify(environment: pytest.MonkeyPatch, terminal: Callable[..., str]) -> None:
    head, rule, first, second = terminal("classify", "We decided to move to Postgres.", LONG).splitlines()[:4]
    assert head.split() == ["type", "layer", "rule", "sentence"]
    assert set(rule) == {"─"}
    assert re.fullmatch(r"decision +on_demand +decision\.\w+ +We decided to move to Postgres\.", first)
    assert second.endswith("We postponed the public launch from the")  # and on in the next line, in its column
