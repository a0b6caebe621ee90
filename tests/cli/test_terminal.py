"""What others wrote acts on no terminal and forges no line of a log, whatever command prints it and wherever it stands."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from graphium_db.cli import main
from graphium_db.cli.main import _report
from graphium_db.cli.output import shown
from graphium_db.deploy import DeployError
from graphium_db.deploy.apply import _explain
from tests.cli.conftest import Ran
from tests.support.databases import Database

Run = Callable[..., Ran]

# A title and a clear screen, in seven bits and in eight; all that turns the direction; what has no width; and each end
# of a line that some reader knows, before what would pass for a line of ours.
ENDS = "".join(f"{end}FORGED" for end in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
ACTING = "\x1b]0;OWNED\x07\x1b[2J\x9b2J\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
HOSTILE = ACTING + ENDS + "x"
SCOPE, FAMILY, GENUS, SPECIMEN, SOURCE = (f"{name}{HOSTILE}" for name in ("hr", "F", "G", "S", "source"))
CONTENT = f"Amber prefers tea. {HOSTILE}"
ROLE = SLUG = f"{secrets.token_hex(3)}\x1b[2J\x9b\u202e\nFORGED OWNED\u2028FORGED"  # 63 bytes at most
LINE = {
    "family": FAMILY, "genus": GENUS, "specimen": SPECIMEN, "content": CONTENT, "embedding": None, "source": SOURCE,
    "required_scopes": [SCOPE], "family_scopes": [SCOPE], "specimen_scopes": [SCOPE], "memory_type": "preference",
    "layer_kind": "preloaded", "metadata": {HOSTILE: HOSTILE},
}  # fmt: skip


def test_a_text_is_shown_on_one_line_without_what_acts() -> None:
    # an escape sequence that clears the screen, a carriage return, an override of the direction
    assert shown("a\x1b[2Jb\rc\u202ed\n e\u2028f") == "a\ufffd[2Jb c\ufffdd e f"
    assert shown("  two  blanks ") == "  two  blanks "
    assert shown(" " * 2_000_000 + "x") == " " * 2_000_000 + "x"  # in linear time


@pytest.fixture
def terminal(environment: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command in this process at a wide terminal; returns what it writes there, but for rich's own doing."""

    def terminal(*arguments: str, stdin: str = "") -> str:
        ours, theirs = pty.openpty()
        written = bytearray()

        def read() -> None:
            try:
                while chunk := os.read(ours, 65536):
                    written.extend(chunk)
            except OSError:
                pass  # Linux says so when the other side is closed

        reader = threading.Thread(target=read)
        reader.start()
        with environment.context() as patch:
            patch.setenv("TERM", "xterm-256color")
            patch.setenv("COLUMNS", "4000")
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
            with os.fdopen(theirs, "w", encoding="utf-8") as screen:
                patch.setattr(sys, "stdout", screen)
                patch.setattr(sys, "stderr", screen)
                main(arguments)
        reader.join()
        os.close(ours)
        text = re.sub(r"\x1b\[[0-9;]*m|\x1b\[\?25[hl]|\x1b\[2K|\x1b\[1A", "", written.decode()).replace("\r\n", "\n")
        return re.sub(r"\r. ingest [^\r\n]*\n?|(?m:^)\r", "", text)  # the progress bar

    return terminal


def check(text: str) -> None:
    acting = sorted({character for character in HOSTILE if not character.isprintable()} & set(text) - {"\n"})
    assert acting == [], f"{acting} in {text[:500]!r}"
    assert [line for line in text.split("\n") if line.lstrip(" │└├─").startswith("FORGED")] == [], text[:2000]


@pytest.fixture
def role(db: Database) -> Iterator[None]:
    name = sql.Identifier(ROLE)
    with psycopg.connect(db.dsn(), autocommit=True) as superuser:
        superuser.execute(sql.SQL("create role {} login").format(name))
        try:
            yield
        finally:
            superuser.execute(sql.SQL("drop role {}").format(name))


CALLER = [  # (command, stdin)
    (("ingest", "--jsonl", "-"), json.dumps({key: LINE[key] for key in LINE if not key.endswith("y_scopes") and not key.endswith("n_scopes")})),
    (("search", "Amber", "--words-only", "--ids"), ""),
    (("recall", "--ids"), ""),
    (("wake-up", "--budget", "10000"), ""),
    (("tree", "--ids"), ""),
    (("cypher", "MATCH (s:Specimen) RETURN s"), ""),
    (("cypher", "MATCH (s:Specimen) RETURN s.name"), ""),
    (("cypher", "MATCH (s:Specimen) RETURN {a: s.name, b: [s.name]}"), ""),
    (("classify", CONTENT), ""),
    (("classify",), CONTENT),
    (("export",), ""),
    (("import", "-"), json.dumps(LINE | {"family_scopes": []})),
]  # fmt: skip
WRONG = [  # what is wrong is told, and holds the value
    (("import", "-"), json.dumps(LINE | {"memory_type": HOSTILE})),
    (("import", "-"), json.dumps(LINE | {"layer_kind": HOSTILE})),
    (("import", "-"), json.dumps(LINE | {HOSTILE: 1})),
    (("import", "-"), json.dumps(LINE | {"required_scopes": [HOSTILE]})),
    (("import", "-"), json.dumps(LINE | {"family": "new", "family_scopes": [HOSTILE]})),
    (("import", "-"), json.dumps(LINE | {"metadata": {HOSTILE: "\x00"}})),
    (("import", "-"), json.dumps(LINE | {"content": [HOSTILE]})),
    (("import", f"/nowhere/{HOSTILE}"), ""),
    (("export", "-o", f"/nowhere/{HOSTILE}"), ""),
    (("search", "Amber", "--words-only", "--since", HOSTILE), ""),
    (("search", "Amber", "--words-only", "--type", HOSTILE), ""),
    (("recall", "--id", HOSTILE), ""),
    (("cypher", f"OWNED{HOSTILE}"), ""),
    (("cypher", "MATCH (n) RETURN n", f"--{HOSTILE}"), ""),
    (("forget", HOSTILE), ""),
    (("scopes", HOSTILE, "--open", "00000000-0000-0000-0000-000000000000"), ""),
    (("tree", "--tenant", f"no {ROLE}"), ""),
]  # fmt: skip


def test_what_is_stored_acts_on_no_terminal_and_forges_no_line(
    db: Database, run: Run, terminal: Callable[..., str], environment: pytest.MonkeyPatch, role: None, tmp_path: Path
) -> None:
    admin = ("--dsn", db.dsn("admin"))
    environment.setenv("GRAPHIUM_DSN", db.dsn("app"))
    environment.setenv("GRAPHIUM_TENANT", SLUG)
    caller = ("--scope", SCOPE)
    try:
        assert "OWNED" in run("tenant", "create", SLUG, "--embedding-model", f"model{ROLE}", *admin).out
        assert run("ingest", "--jsonl", "-", *caller, stdin=CALLER[0][1]).code == 0
        older = "update graphium.kg_statements set rule = 'fact.old', rules_version = 0, is_type_chosen = false"
        db.connect().execute(older.encode())  # for a plan to show, until the loop ingests it again
        plan = ("reclassify", "--plan", *caller)
        for text in (run(*plan).out, run(*plan, "--json").out, terminal(*plan), terminal(*plan, "--json")):
            assert "OWNED" in text
            check(text)
        for command, stdin in CALLER + WRONG:
            own = caller if command[0] != "classify" else ()
            piped, screen = run(*command, *own, stdin=stdin), terminal(*command, *own, stdin=stdin)
            in_json, json_screen = (
                run(*command, *own, "--json", stdin=stdin),
                terminal(*command, *own, "--json", stdin=stdin),
            )
            for text in (piped.out + piped.err, screen, in_json.out + in_json.err, json_screen):
                assert ("OWNED" in text) or (command, stdin) == CALLER[-1], (command, text)
                check(text)
            assert (piped.code != 0) is ((command, stdin) in WRONG), (command, piped)
            if in_json.code == 0 and command != ("classify",):
                told = json.dumps(json.loads(in_json.out), ensure_ascii=False)
                assert command[0] == "import" or json.dumps(ACTING, ensure_ascii=False)[1:-1] in told  # nothing is lost
        for command in (
            ("tenant", "list"), ("tenant", "drop", f"no {ROLE}", "--yes"), ("tenant", "drop", SLUG),
            ("principal", "add", ROLE, "--tenant", SLUG, "--scope", SCOPE), ("principal", "list"),
            ("principal", "add", f"no {ROLE}", "--tenant", SLUG), ("principal", "remove", ROLE), ("principal", "remove", ROLE),
            ("maintain", "--rebuild-graphs", "--rebuild-memory"),
        ):  # fmt: skip
            texts = [terminal(*command, *admin)]
            for more in ((), ("--json",)):
                ran = run(*command, *more, *admin)
                texts.append(ran.out + ran.err)
            for text in texts:
                assert "OWNED" in text or command[:2] == ("tenant", "drop"), (command, text)
                check(text)
        assert "OWNED" in terminal("tenant", "drop", SLUG, "--yes", *admin)
    finally:
        with psycopg.connect(db.dsn("admin"), autocommit=True) as conn:
            if conn.execute("select from graphium.list_tenants() where slug = %s", [SLUG]).fetchone():
                conn.execute("select graphium.drop_tenant(%s)", [SLUG])


def test_an_error_before_there_is_a_database_is_shown_like_others(
    db: Database, run: Run, terminal: Callable[..., str]
) -> None:
    for command in (
        ("recall", "--dsn", HOSTILE),
        ("recall", "--dsn", make_conninfo(db.dsn("app"), dbname=ROLE)),
        ("recall", "--dsn", make_conninfo(db.dsn("app"), user=ROLE)),
        (HOSTILE,),
        (f"--{HOSTILE}",),
        ("up", f"--{HOSTILE}"),
    ):
        piped, screen = run(*command), terminal(*command)
        for text in (piped.out + piped.err, screen):
            assert "OWNED" in text, command
            check(text)


def test_a_prompt_is_one_statement_a_line_and_otherwise_as_stored(
    acme: str, run: Run, terminal: Callable[..., str]
) -> None:
    line = LINE | {"required_scopes": ["hr"], "family_scopes": ["hr"], "specimen_scopes": ["hr"]}
    assert run("import", "-", stdin=json.dumps(line)).code == 0
    piped = run("wake-up", "--text", "--budget", "10000").out
    assert piped == f"Amber prefers tea. {ACTING}" + " FORGED" * 10 + "x\n"
    check(terminal("wake-up", "--text", "--budget", "10000"))


def test_names_in_the_lists_of_doctor_and_migrate_stay_on_their_line(
    db: Database, run: Run, terminal: Callable[..., str]
) -> None:
    name = "f\x1b[2J\n\u2028FORGED OWNED\nHint: FORGED"
    login = ("--dsn", db.dsn("deployer"))
    with psycopg.connect(db.dsn(), autocommit=True) as superuser:
        function = sql.SQL("function graphium.{}()").format(sql.Identifier(name))
        superuser.execute(sql.SQL("create {} returns int language sql return 1").format(function))
        try:
            for command in (("doctor",), ("migrate", "--plan"), ("migrate", "--plan", "--verbose"), ("migrate",)):
                ran = run(*command, *login)
                for text in (ran.out + ran.err, terminal(*command, *login)):
                    assert "OWNED" in text, (command, text)
                    assert "\nHint: FORGED" not in text
                    check(text)
                assert ran.code in (4, 6)
        finally:
            superuser.execute(sql.SQL("drop {}").format(function))


def test_what_a_deploy_says_of_somebody_elses_object_is_one_line_each(
    db: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "f\x1b[2J\nHint: run: alter role scratcher superuser;"
    with psycopg.connect(db.dsn()) as superuser:
        superuser.execute("create schema s; create type s.t as (x int)")
        superuser.execute(
            sql.SQL("create function s.{}(s.t) returns int language sql return 1").format(sql.Identifier(name))
        )
        with pytest.raises(psycopg.errors.DependentObjectsStillExist) as raised:
            superuser.execute("drop type s.t")
    _report(DeployError(f"migrations/0099.sql: {_explain(raised.value)}", "one\n  two\nError: three"), {})
    assert capsys.readouterr().err.split("\n") == [
        "Error: migrations/0099.sql: cannot drop type s.t because other objects depend on it",
        '  detail: function s."f\ufffd[2J; Hint: run: alter role scratcher superuser;"(s.t) depends on type s.t',
        "  hint: Use DROP ... CASCADE to drop the dependent objects too. (2BP01)",
        "Hint: one",
        "  two",
        "  Error: three",
        "",
    ]
