"""What an import makes: families and specimens with their own audiences at once, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graphium_db.cli import records
from tests.cli.conftest import ROOT, Ran
from tests.support.concurrency import wait_until
from tests.support.databases import Connection, Database, as_caller

Run = Callable[..., Ran]
Audiences = dict[tuple[str | None, ...], tuple[list[str] | None, list[str] | None]]


@pytest.fixture(autouse=True)
def both(acme: str, environment: pytest.MonkeyPatch) -> None:
    """Whoever imports holds both scopes."""
    environment.setenv("GRAPHIUM_SCOPES", "hr,sales")


@pytest.fixture
def superuser(db: Database) -> Connection:
    return db.connect()


def lines(family: str, specimens: list[str], for_family: Any, for_specimen: Any, **more: Any) -> str:
    return "".join(
        json.dumps(
            {"family": family, "genus": "g", "specimen": specimen, "content": f"About {specimen}.", "embedding": None,
             "required_scopes": ["hr"], "family_scopes": for_family, "specimen_scopes": for_specimen} | more
        ) + "\n"
        for specimen in specimens
    )  # fmt: skip


def seen(conn: Connection, tenant: str, *scopes: str) -> Audiences:
    """The tree of a caller with these scopes."""
    with as_caller(conn, tenant, scopes):
        rows = conn.execute(
            "select family, specimen, family_scopes, specimen_scopes from graphium.context_tree()"
        ).fetchall()
    return {row[:2]: row[2:] for row in rows}


@contextmanager
def importing(file: Path, superuser: Connection) -> Iterator[subprocess.Popen[str]]:
    """An import as a process of its own, once it waits for a lock."""
    process = subprocess.Popen(
        [sys.executable, "-m", "graphium_db.cli", "import", str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )  # fmt: skip
    try:
        wait_until(lambda: waiting(superuser) is not None or process.poll() is not None, "the import waits for a lock")
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        process.kill()
        process.communicate()


def waiting(superuser: Connection) -> int | None:
    row = superuser.execute(
        "select pid from pg_stat_activity where datname = current_database() and application_name = 'graphium'"
        " and wait_event_type = 'Lock'"
    ).fetchone()
    return row and row[0]


def test_nobody_sees_a_name_while_an_import_makes_it(
    acme: str, db: Database, superuser: Connection, tmp_path: Path
) -> None:
    onlooker = db.connect("app")
    file = tmp_path / "memory.jsonl"
    audiences = [(["hr", "sales"], ["hr"]), (["hr"], ["sales"]), ([], ["hr"]), (["hr"], [])]
    after: list[Audiences] = [
        {("F0", None): (["hr", "sales"], None)},
        {(None, "S1"): (None, ["sales"])},
        {("F2", None): ([], None)},
        {(None, "S3"): (None, [])},
    ]
    expected: Audiences = {}
    for number, (for_family, for_specimen) in enumerate(audiences):
        file.write_text(lines(f"F{number}", [f"S{number}"], for_family, for_specimen, required_scopes=["hr", "sales"]))
        with db.connect() as holder, holder.transaction():
            holder.execute("lock table graphium.scope_edits in share mode")  # each change of an audience is on record
            with importing(file, superuser) as process:
                assert seen(onlooker, acme, "sales") == expected
                holder.execute("rollback")
                holder.execute("begin")
                out, err = process.communicate()
        assert (process.returncode, out, err) == (0, "1 statement about 1 specimen: 1 new, 0 known before\n", "")
        expected |= after[number]
        assert seen(onlooker, acme, "sales") == expected
        assert seen(onlooker, acme, "hr", "sales")[f"F{number}", f"S{number}"] == (for_family, for_specimen)


@pytest.mark.parametrize(("how", "code"), [("Ctrl-C", 130), ("pg_cancel_backend", 1), ("pg_terminate_backend", 3)])
def test_an_import_that_is_broken_off_leaves_no_name_with_another_audience(
    acme: str, db: Database, superuser: Connection, run: Run, tmp_path: Path, how: str, code: int
) -> None:
    app = db.connect("app")
    file = tmp_path / "memory.jsonl"
    file.write_text(lines("F", ["S1", "S2"], ["hr", "sales"], ["hr"]))
    with db.connect() as holder, holder.transaction():
        holder.execute("lock table graphium.scope_edits in share mode")
        with importing(file, superuser) as process:
            if how == "Ctrl-C":
                process.send_signal(signal.SIGINT)
            else:
                superuser.execute(f"select {how}(%s)".encode(), [waiting(superuser)])
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert seen(app, acme, "hr", "sales") == {}
    ran = run("import", str(file))
    assert (ran.out, ran.err) == ("2 statements about 2 specimens: 2 new, 0 known before\n", "")
    assert seen(app, acme, "sales") == {("F", None): (["hr", "sales"], None)}
    assert seen(app, acme, "hr") == {("F", name): (["hr", "sales"], ["hr"]) for name in ("S1", "S2")}


def test_whoever_holds_the_family_holds_no_name_open(
    acme: str, db: Database, superuser: Connection, run: Run, tmp_path: Path
) -> None:
    attacker, onlooker = db.connect("app"), db.connect("app")
    assert run("import", "-", stdin=lines("F", ["S1"], ["hr", "sales"], ["hr"])).code == 0
    file = tmp_path / "memory.jsonl"
    file.write_text(lines("F", ["S1", "S2"], ["hr", "sales"], ["hr"]))
    with as_caller(attacker, acme, ["sales"]):
        attacker.execute("select graphium.ingest_context('F', 'g', 'mine', '[]', '{sales}')")
        with importing(file, superuser) as process:
            assert seen(onlooker, acme, "sales") == {("F", None): (["hr", "sales"], None)}
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60) == ("", "Interrupted.\n")
    assert run("import", str(file)).out == "2 statements about 2 specimens: 1 new, 1 known before\n"
    assert seen(onlooker, acme, "hr", "sales")["F", "S2"] == (["hr", "sales"], ["hr"])
    assert ("F", "S2") not in seen(onlooker, acme, "sales")


def test_a_family_that_somebody_makes_meanwhile_keeps_its_audience(
    acme: str, db: Database, superuser: Connection, tmp_path: Path
) -> None:
    other = db.connect("app")
    file = tmp_path / "memory.jsonl"
    file.write_text(lines("F", ["S1"], ["hr", "sales"], ["hr"]))
    with as_caller(other, acme, ["hr"]):
        other.execute("select graphium.ingest_context('F', 'theirs', 'T', '[]', '{hr}')")
        with importing(file, superuser) as process:
            other.execute("commit")
            other.execute("begin")
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "1 statement about 1 specimen: 1 new, 0 known before\n")
    assert err == "F stays for hr, and does not become for hr, sales, as the file has it.\n"
    assert seen(other, acme, "sales") == {}
    assert seen(other, acme, "hr") == {("F", "T"): (["hr"], ["hr"]), ("F", "S1"): (["hr"], ["hr"])}


def test_an_audience_that_is_not_the_files_is_kept_and_told(acme: str, db: Database, run: Run) -> None:
    run("import", "-", stdin=lines("F", ["S"], ["hr"], ["hr"]) + lines("P", ["S"], ["public"], []))
    first = lines("F", ["S"], [], ["sales", "hr"]) * 3 + lines("P", ["S"], [], ["public"])
    ran = run("import", "-", stdin=first + lines("F", ["new"], ["hr"], ["hr"]))
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "F stays for hr, and does not become open, as the file has it.",
        "F › g › S stays for hr, and does not become for hr, sales, as the file has it.",
    ]  # open and public are one
    assert seen(db.connect("app"), acme, "hr", "sales") == {
        ("F", "S"): (["hr"], ["hr"]), ("F", "new"): (["hr"], ["hr"]), ("P", "S"): (["public"], []),
    }  # fmt: skip
    run("import", "-", stdin=lines("many", [f"S{n}" for n in range(8)], ["hr"], ["hr"]))
    ran = run("import", "-", stdin=lines("many", [f"S{n}" for n in range(8)], ["hr"], ["sales"]))
    assert ran.err.splitlines() == [
        *(f"many › g › S{n} stays for hr, and does not become for sales, as the file has it." for n in range(5)),
        "3 more stay as they were: graphium tree --json lists audiences.",
    ]
    ran = run("import", "-", "--required-scope", "sales", stdin=lines("many", ["S0"], ["hr"], ["sales"]))
    assert (ran.code, ran.err) == (0, "")  # the file was not asked


def test_names_are_those_that_the_database_stores(acme: str, db: Database, run: Run) -> None:
    app = db.connect("app")
    composed = "Zo\u00eb"
    name = unicodedata.normalize("NFD", composed)
    padded = "\u2003\x85 " + name + "\u3000\n"
    for spelling in (padded, name, composed):
        ran = run("import", "-", stdin=lines(spelling, [spelling], ["hr", "sales"], ["hr"]))
        assert (ran.code, ran.err) == (0, "")
    assert seen(app, acme, "hr") == {(composed, composed): (["hr", "sales"], ["hr"])}
    assert seen(app, acme, "sales") == {(composed, None): (["hr", "sales"], None)}
    # what only one of both would trim
    assert run("import", "-", stdin=lines("\x1fF", ["S\u200b"], ["hr", "sales"], ["hr"])).code == 0
    assert seen(app, acme, "hr")["\x1fF", "S\u200b"] == (["hr", "sales"], ["hr"])


def test_one_audience_is_that_of_both_and_options_name_what_the_lines_do_not(acme: str, db: Database, run: Run) -> None:
    def partial(**fields: Any) -> str:
        line = {"genus": "g", "content": "c", "embedding": None, "required_scopes": ["hr"]} | fields
        return json.dumps(line)

    # as an export writes it for who does not see the family, or whose file is by hand
    nameless = partial(specimen="S", specimen_scopes=["hr"])
    assert run("import", "-", "-f", "F", stdin=nameless).code == 0
    assert run("import", "-", stdin=partial(family="G", specimen="S", family_scopes=["hr"])).code == 0
    assert run("import", "-", stdin=partial(family="H", specimen="S")).code == 0
    assert seen(db.connect("app"), acme, "hr") == {
        ("F", "S"): (["hr"], ["hr"]), ("G", "S"): (["hr"], ["hr"]), ("H", "S"): ([], []),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[" * 100_000, "line 2 is nested too deeply"),
        ('{"a":' * 100_000, "line 2 is nested too deeply"),
        (lines("F", ["S"], [], []).replace('"hr"', "[" * 960 + "]" * 960), "line 2 is nested too deeply"),
        (json.dumps({"family": 1, "family_scopes": ["hr"], "specimen_scopes": []}), "line 2: family must be text, got 1"),
        (lines("F", ["S"], "hr", []), "line 2: family_scopes must be a list of texts"),
        (lines("F", ["S"], [], [None]), "line 2: specimen_scopes must be a list of texts"),
        (lines(" ", ["S"], ["hr"], []), "line 2: family must not be NULL or blank"),
        (lines("F", ["x" * 201], ["hr"], []), "line 2: specimen is 201 characters long, at most 200 are allowed"),
        (lines("F", ["S\x00"], ["hr"], []), "line 2: specimen contains U+0000, which PostgreSQL cannot store"),
        (lines("F", ["S"], ["hr"], ["board"]), "line 2: required_scopes: the caller holds none of the scopes {board}"),
        (lines("F", ["S"], ["board"], ["hr"]), "line 2: required_scopes: the caller holds none of the scopes {board}"),
        (lines("F", ["S"], ["hr"], [" "]), "line 2: required_scopes: a scope must not be NULL or blank"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_imported_is_named_and_makes_nothing(
    acme: str, db: Database, run: Run, line: str, says: str
) -> None:
    ran = run("import", "-", stdin=f"\n{line}\n")
    assert ran.err.startswith(f"Error: {says}")
    assert (ran.code, ran.out) == (4 if "board" in says else 2, "")
    assert seen(db.connect("app"), acme, "hr", "sales") == {}


@pytest.mark.parametrize("field", ["family", "content", "metadata", "family_scopes", "required_scopes", "embedding"])
def test_however_deep_a_line_is_its_number_is_told(acme: str, run: Run, field: str) -> None:
    line = json.dumps(json.loads(lines("F", ["S"], [], [])) | {field: "HERE"})
    for depth in (100, 300, 480, 700, 950):
        deep = '{"":' * depth + "0" + "}" * depth if field == "metadata" else "[" * depth + "]" * depth
        for command in (("import", "-"), ("ingest", "--jsonl", "-")):
            ran = run(*command, stdin="\n" + line.replace('"HERE"', deep))
            assert (ran.code, ran.err[:13]) == (2, "Error: line 2"), ran.err[:200]


def test_lines_that_go_several_ways_at_once_find_their_families_made(
    acme: str, db: Database, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "WINDOW", 4)
    monkeypatch.setattr(records, "CALL", 2)
    text = "".join(
        lines(f"F{number % 5}", [f"S{number}"], ["hr", "sales"], ["hr"] if number % 2 else ["sales"])
        for number in range(30)
    )
    ran = run("import", "-", stdin=text)
    assert (ran.out, ran.err) == ("30 statements about 30 specimens: 30 new, 0 known before\n", "")
    assert seen(db.connect("app"), acme, "hr", "sales") == {
        (f"F{number % 5}", f"S{number}"): (["hr", "sales"], ["hr"] if number % 2 else ["sales"]) for number in range(30)
    }
