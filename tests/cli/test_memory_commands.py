"""The commands that use the memory: their output, --json, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from tests.cli.conftest import LINES, Ran
from tests.support.databases import Database

Run = Callable[..., Ran]


def test_ingest_says_what_became_of_each_line(acme: str, run: Run) -> None:
    text = "".join(json.dumps(line) + "\n\n" for line in LINES)  # empty lines are passed over
    first = run("ingest", "--jsonl", "-", "--json", stdin=text)
    assert (first.code, first.err) == (0, "")
    assert [(row["line"], row["deduplicated"], row["memory_type"], row["required_scopes"]) for row in first.json] == [
        (1, False, "preference", []),
        (3, False, "decision", []),
        (5, False, "fact", ["hr"]),
    ]
    again = run("ingest", "--jsonl", "-", stdin=text)
    assert again.out.splitlines() == [
        "known Tomasz prefers small pull requests.",
        "      relationships › team › Tomasz  preference, preloaded",
        "known We decided to ship the ferry app.",
        "      projects › Harbour › Ferry app  decision, on_demand",
        "known The raise is six percent.",
        "      performance › reviews › Tomasz  fact, on_demand  for hr",
        "3 statements: 0 new, 3 known before (1 preference, 1 decision, 1 fact)",
    ]


def test_ingest_takes_texts_and_fills_in_what_lines_leave_out(acme: str, run: Run) -> None:
    options = ("-f", "notes", "-g", "meetings", "-s", "Harbour", "--source", "minutes", "--type", "fact")
    ran = run("ingest", *options, "--json", "The app is small. Dr. Ruiz wrote it.", "-", stdin="It works offline.")
    assert [row["content"] for row in ran.json] == ["The app is small.", "Dr. Ruiz wrote it.", "It works offline."]
    ran = run("ingest", *options, "--whole", "--json", "One. Two.")
    assert [row["content"] for row in ran.json] == ["One. Two."]
    line = json.dumps({"content": "From a line.", "family": "other", "memory_type": "event", "embedding": None})
    ran = run("ingest", *options, "--required-scope", "hr", "--jsonl", "-", "--json", stdin=line)
    (row,) = ran.json
    assert (row["family"], row["genus"], row["memory_type"], row["required_scopes"]) == (
        "other", "meetings", "event", ["hr"],
    )  # fmt: skip
    rows = run("recall", "--json").json
    assert {row["source"] for row in rows} == {"minutes"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ('{"content": "c"}', "line 2: family is missing"),
        ('{"family": "f", "genus": "g", "specimen": "s"}', "line 2: content is missing"),
        ('{"family": "f", "genus": "g", "specimen": "s", "content": "c", "embedding": null, "colour": 1}', "colour"),
        ('{"family": "f", "genus": "g", "specimen": "s", "content": "\\u0000", "embedding": null}', "U+0000"),
        ('{"family": "f", "genus": "g", "specimen": "s", "content": "\\ud800", "embedding": null}', "U+D800"),
        ('{"family": "f", "genus": "g", "specimen": "s", "content": "c", "embedding": [1]}', "1 dimensions"),
    ],
)
def test_a_bad_line_is_named_and_its_batch_is_not_stored(acme: str, run: Run, line: str, message: str) -> None:
    ran = run("ingest", "--jsonl", "-", "--json", stdin=f"\n{line}\n")
    assert (ran.code, ran.out) == (2, "")
    error = json.loads(ran.err)["error"]
    assert message in error["message"]
    assert "line 2" in error["message"]
    assert error["sqlstate"] in ("MG004", "MG005")
    assert run("tree", "--json").json == []


@pytest.mark.parametrize(("escape", "named"), [("\\u0000", "U+0000"), ("\\ud800", "U+D800")])
def test_text_that_cannot_be_stored_is_refused_before_it_is_embedded(
    acme: str, run: Run, escape: str, named: str
) -> None:
    line = f'{{"family": "f", "genus": "g", "specimen": "s", "content": "a {escape}"}}'
    for command in (("ingest", "--jsonl", "-"), ("import", "-")):
        ran = run(*command, stdin=f"\n{line}\n")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("Error: line 2: content contains "), ran.err
        assert named in ran.err


def test_a_text_without_a_place_is_told_which_options_to_give(acme: str, run: Run) -> None:
    ran = run("ingest", "A text.", "-g", "meetings")
    assert ran.code == 2
    assert "Give --family, --specimen, too" in ran.err


def test_a_time_that_is_none_and_a_dsn_that_is_none(acme: str, run: Run) -> None:
    ran = run("search", "ferry", "--words-only", "--since", "soon")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: --since must be a point in time")
    ran = run("recall", "--dsn", "garbage")
    assert ran.code == 3
    assert ran.err.startswith("Error: the DSN cannot be read")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("ingest", "-f", "f", "-g", "g", "-s", "s", "--occurred-at", "gestern", "x"), "--occurred-at must be a time"),
        (("ingest", "-f", "f", "-g", "g", "-s", "s", "--source", " ", "x"), "--source must not be NULL or blank"),
        (("ingest", "-f", "f", "-g", "g", "-s", " ", "x"), "--specimen must not be NULL or blank"),
        (("search", "-n", "0", "--words-only", "x"), "--count must be between 1 and 1000, got 0"),
        (
            ("search", "--words-only", "x", "--since", "2026-03-02", "--until", "2026-03-01"),
            "--since must be before until",
        ),
        (("wake-up", "--budget", "-1"), "--budget must be between 0 and 2147483647, got -1"),
        (("recall", "--page-size", "0"), "--page-size must be between 1 and 1000, got 0"),
        (("recall", "--id", "x"), "--id must be a uuid, got 'x'"),
        (
            ("scopes", "statement", "--open", "00000000-0000-0000-0000-000000000000"),
            "ID: no statement with the id 00000000-0000-0000-0000-000000000000",
        ),
    ],
)
def test_an_argument_is_named_as_the_command_names_it(acme: str, run: Run, command: tuple[str, ...], says: str) -> None:
    ran = run(*command)
    assert ran.err.splitlines()[0] == f"Error: {says}"
    assert ran.err.splitlines()[1].startswith("Hint: ")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("tree", "--scope", "hr,sales"), "--scope"),
        (("ingest", "-f", "f", "-g", "g", "-s", "s", "x", "--required-scope", "hr,sales"), "--required-scope"),
        (
            ("scopes", "statement", "00000000-0000-0000-0000-000000000000", "--required-scope", "hr, sales"),
            "--required-scope",
        ),
        (("import", "-", "--required-scope", "hr,sales"), "--required-scope"),
    ],
)
def test_a_comma_makes_no_two_scopes_and_not_one_either(
    acme: str, run: Run, command: tuple[str, ...], option: str
) -> None:
    ran = run(*command)
    assert ran.code == 2
    assert ran.err.endswith(f": give {option} once for each scope: {option} hr {option} sales\n")


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"dbname": "no such database"}, "Check dbname in the DSN. A new one: createdb, then `graphium migrate --bootstrap`."),
        ({"port": "1"}, "Check host and port in the DSN, and whether a server runs there. `graphium up` starts the embedded one."),
    ],
)  # fmt: skip
def test_a_connection_that_fails_says_what_to_look_at(
    db: Database, run: Run, changes: dict[str, str], hint: str
) -> None:
    ran = run("tree", "--tenant", "acme", "--dsn", make_conninfo(db.dsn("app"), **changes))
    assert ran.code == 3
    assert ran.err.endswith(f"\nHint: {hint}\n")


def test_a_database_without_graphium_is_told_without_a_library_s_words(
    blank: Callable[..., Database], graphium: Run
) -> None:
    ran = graphium("tree", "--tenant", "acme", "--dsn", blank(boot=False).dsn("app"))
    assert (ran.code, ran.err) == (3, """\
Error: schema "graphium" does not exist
Hint: Is Graphium deployed there, in this version? `graphium migrate --plan` says what is missing.
""")  # fmt: skip


def test_a_principal_keeps_his_scopes_unless_he_names_some(
    filled: str, db: Database, run: Run, environment: pytest.MonkeyPatch
) -> None:
    login = db.login()
    role = db.cluster.role(login)
    assert run("principal", "add", role, "--tenant", filled, "--scope", "hr", "--dsn", db.dsn("admin")).code == 0
    environment.setenv("GRAPHIUM_DSN", db.dsn(login))
    environment.delenv("GRAPHIUM_SCOPES")
    assert len(run("recall", "--json").json) == 3
    assert len(run("recall", "--scope", "", "--json").json) == 2
    assert len(run("recall", "--scope", "finance", "--json").json) == 2
    environment.delenv("GRAPHIUM_TENANT")
    assert len(run("recall", "--json").json) == 3
    assert len(run("recall", "--scope", "hr", "--json").json) == 3
    assert len(run("recall", "--scope", "finance", "--json").json) == 2
    ran = run("recall", "--scope", "hr", "--dsn", db.dsn("app"))
    assert ran.code == 2
    assert ran.err.startswith("Error: --tenant must not be NULL: this login is no principal")


def test_a_principal_who_only_reads_is_told_who_can_let_him_write(
    filled: str, db: Database, run: Run, environment: pytest.MonkeyPatch
) -> None:
    login = db.login()
    role = db.cluster.role(login)
    assert run("principal", "add", role, "--tenant", filled, "--read-only", "--dsn", db.dsn("admin")).code == 0
    ran = run("ingest", "--dsn", db.dsn(login), "--jsonl", "-", stdin=json.dumps(LINES[0]))
    assert ran.code == 4
    assert ran.err == (
        "Error: permission denied for function ingest_many\n"
        "Hint: This login only reads: an administrator binds it for writing (`graphium principal add` without"
        " --read-only).\n"
    )
    ran = run("forget", "00000000-0000-0000-0000-000000000000", "--dsn", db.dsn(login))
    assert (ran.code, ran.err.splitlines()[1][:22]) == (4, "Hint: This login only ")


def test_a_terminal_in_ascii_gets_escapes(filled: str, graphium: Run) -> None:
    ran = graphium("recall", PYTHONIOENCODING="ascii")
    assert (ran.code, ran.err) == (0, "")
    assert "relationships \\u203a team" in ran.out
    ran = graphium("classify", "Zoë lives in Oslo.", "--json", PYTHONIOENCODING="ascii")
    assert ran.json[0]["content"] == "Zoë lives in Oslo."


def test_a_file_that_is_not_utf8_is_told(acme: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "latin1.jsonl").write_bytes('{"content": "é"}'.encode("latin-1"))
    for command in (("ingest", "--jsonl"), ("import",)):
        ran = run(*command, str(tmp_path / "latin1.jsonl"))
        assert ran.code == 2
        assert "line 1 is not UTF-8" in ran.err


def test_search(filled: str, run: Run) -> None:
    ran = run("search", "ferry", "--words-only")
    assert (ran.code, ran.err) == (0, "")
    first, second = ran.out.splitlines()
    assert first.endswith("We decided to ship the ferry app.")
    assert second.strip() == "projects › Harbour › Ferry app  decision, on_demand  2026-02-02"
    (hit,) = run("search", "ferry", "--words-only", "--json").json
    assert (hit["rank"], hit["content"], hit["occurred_at"]) == (
        1, "We decided to ship the ferry app.", "2026-02-02T09:30:00+00:00",
    )  # fmt: skip
    assert run("search", "ferry", "--words-only", "--ids").out.splitlines()[1].endswith(hit["statement_id"])
    for nothing in (("--type", "advice"), ("-f", "goals"), ("--until", "2026-01-01")):
        ran = run("search", "ferry", "--words-only", *nothing)
        assert (ran.code, ran.out, ran.err) == (0, "", "Nothing found.\n")
    assert run("search", "ferry", "--words-only", "-n", "0").code == 2


def test_search_says_why(filled: str, run: Run) -> None:
    ran = run("search", "what of the ferry in February?", "--words-only", "--explain", "--now", "2026-03-09")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1].endswith("2026-02-02  by words no. 1 (ferri)")
    ran = run("search", "x", "--words-only", "--now", "soon")
    assert (ran.code, ran.out) == (2, "")
    assert "--now" in ran.err


def test_recall_page_by_page(filled: str, run: Run) -> None:
    rows: list[dict[str, Any]] = []
    while page := run(
        "recall", "--page-size", "2", "--json", *(["--after", rows[-1]["statement_id"]] if rows else [])
    ).json:
        rows += page
    assert [row["content"] for row in rows] == [line["content"] for line in reversed(LINES)]
    ran = run("recall", "--page-size", "2")
    assert ran.err == f"There may be more: --after {rows[1]['statement_id']}\n"
    assert run("recall", "--id", rows[0]["statement_id"], "--json").json == rows[:1]


def test_wake_up(filled: str, run: Run) -> None:
    assert run("wake-up", "--text").out == "Tomasz prefers small pull requests.\n"
    ran = run("wake-up", "--budget", "20")
    assert ran.out.splitlines() == [
        "9 Tomasz prefers small pull requests.",  # 35 characters
        "  relationships › team › Tomasz  preference",
        "9 of 20 tokens",
    ]
    assert run("wake-up", "--budget", "8", "--json").json == []
    assert run("wake-up", "--budget", "8").out == "0 of 8 tokens\n"


def test_tree(filled: str, run: Run) -> None:
    ran = run("tree")
    assert ran.out.splitlines() == [
        "performance",
        "└── reviews",
        "    └── Tomasz  1",
        "projects",
        "└── Harbour",
        "    └── Ferry app  1",
        "relationships",
        "└── team",
        "    └── Tomasz  1",
    ]
    assert [row["statements"] for row in run("tree", "--json").json] == [1, 1, 1]


def test_forget_and_scopes(filled: str, run: Run) -> None:
    ids = {row["content"]: row["statement_id"] for row in run("recall", "--json").json}
    raise_id = ids["The raise is six percent."]
    assert run("scopes", "statement", raise_id, "--open").out == "1 changed\n"
    assert len(run("recall", "--scope", "none", "--json").json) == 3
    assert run("scopes", "statement", raise_id, "--required-scope", "hr", "--json").json == {"changed": 1}
    assert len(run("recall", "--scope", "none", "--json").json) == 2
    assert run("scopes", "statement", raise_id, "--required-scope", "board").code == 4  # not held
    assert run("scopes", "statement", raise_id).code == 2
    assert run("forget", raise_id, "--json").json == {"deleted": 1}
    assert run("forget", raise_id).out == "0 deleted\n"
    ran = run("scopes", "statement", raise_id, "--open")
    assert ran.code == 5
    assert "`graphium tree --ids` and `graphium recall --ids` list ids" in ran.err
    (ferry,) = [row for row in run("tree", "--json").json if row["specimen"] == "Ferry app"]
    narrowed = run("scopes", "family", ferry["family_id"], "--cascade", "--required-scope", "hr")
    assert narrowed.out == "3 changed, what is inside included\n"  # family, specimen, statement


def test_scopes_of_the_environment_are_separated_by_commas(
    filled: str, run: Run, environment: pytest.MonkeyPatch
) -> None:
    for value, visible in (("hr", 3), ("finance, hr", 3), ("finance", 2), ("", 2)):
        environment.setenv("GRAPHIUM_SCOPES", value)
        assert len(run("recall", "--json").json) == visible


def test_cypher(filled: str, run: Run) -> None:
    ran = run("cypher", "MATCH (f:Family)-[:HAS_GENUS]->(g) RETURN {family: f.name, genus: g.name}")
    head, _, *rows = ran.out.splitlines()
    assert head.split() == ["genus", "family"]  # as jsonb orders them
    assert {tuple(row.split()) for row in rows} == {
        ("reviews", "performance"), ("Harbour", "projects"), ("team", "relationships"),
    }  # fmt: skip
    query = "MATCH (f:Family) WHERE f.name = $name RETURN f.name"
    assert run("cypher", query, "--params", '{"name": "projects"}', "--json").json == ["projects"]
    assert run("cypher", "MATCH (f:Family) DELETE f RETURN f").code == 2
    assert run("cypher", query, "--params", "{").code == 2
    assert run("cypher", query, "--params", "[]").code == 2


def test_classify_needs_no_database(run: Run) -> None:
    (first, second) = run("classify", "We decided to move to Postgres.", "Ann lives in Oslo.", "--json").json
    assert (first["memory_type"], second["memory_type"]) == ("decision", "fact")
    assert set(first) == {"content", "memory_type", "layer_kind", "rule"}
    ran = run("classify", stdin="We decided to move to Postgres.\n\n")
    assert ran.out.splitlines()[0].split() == ["type", "layer", "rule", "sentence"]
    assert ran.out.splitlines()[2].split()[0] == "decision"


def test_reclassify(acme: str, run: Run, db: Database, environment: pytest.MonkeyPatch) -> None:
    texts = ["I love tea.", "I love rain.", "The shop is on the second floor."]
    assert run("ingest", "-f", "f", "-g", "g", "-s", "s", *texts).code == 0
    older = "update graphium.kg_statements set rule = 'fact.old', rules_version = 0, memory_type = 'fact', layer_kind = 'on_demand'"
    db.connect().execute(f"{older} where content = any (%s)".encode(), [texts])
    for wrong in ((), ("--plan", "--apply")):
        assert run("reclassify", *wrong).code == 2
    whose = f"Looked at: what {acme} sees with the scopes hr. For statements of other audiences give their --scope."
    for _ in range(2):  # a plan changes nothing
        assert run("reclassify", "--plan", "--samples", "1").out.splitlines() == [
            "2: fact.old (fact, on_demand) → preference.like (preference, preloaded)",
            "    I love tea.",
            "2 would get other labels",  # and the third none: only its rule is another one
            whose,
        ]
    (first, _) = run("reclassify", "--plan", "--json").json
    assert (first["statements"], first["samples"], first["version_before"]) == (2, texts[:2], 0)
    assert run("reclassify", "--apply", "--batch-size", "2").out.splitlines() == ["2 of 3 got other labels", whose]
    assert run("reclassify", "--apply", "--json").json == {"statements": 0, "changed": 0}
    environment.delenv("GRAPHIUM_SCOPES")
    assert run("reclassify", "--plan").out.splitlines() == [
        "0 would get other labels",
        f"Looked at: what {acme} sees with no scopes. For statements of other audiences give their --scope.",
    ]


def test_export_and_import_make_the_same_memory(filled: str, run: Run, db: Database, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    by_name = {row["specimen"] + " in " + row["family"]: row for row in run("tree", "--json").json}
    tomasz, app = by_name["Tomasz in performance"], by_name["Ferry app in projects"]
    assert run("scopes", "family", tomasz["family_id"], "--required-scope", "hr").code == 0
    assert run("scopes", "specimen", app["specimen_id"], "--required-scope", "hr").code == 0
    assert run("export", "-o", str(file)).code == 0
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    last = json.loads(lines[-1])
    assert last | {"occurred_at": ""} == {
        "family": "performance", "genus": "reviews", "specimen": "Tomasz", "content": "The raise is six percent.",
        "memory_type": "fact", "layer_kind": "on_demand", "required_scopes": ["hr"], "family_scopes": ["hr"], "specimen_scopes": [], "occurred_at": "",
        "metadata": {"confidential": True},
    }  # fmt: skip
    assert run("tenant", "create", "copy", "--dsn", db.dsn("admin")).code == 0
    done = run("import", str(file), "--tenant", "copy", "--json")
    assert done.json == {"statements": 3, "new": 3, "deduplicated": 0, "specimens": 3}
    copy = run("export", "--tenant", "copy").out
    assert copy.splitlines() == lines
    audiences = {row["specimen"] + " in " + row["family"]: (row["family_scopes"], row["specimen_scopes"])
                 for row in run("tree", "--tenant", "copy", "--json").json}  # fmt: skip
    assert audiences == {
        "Tomasz in relationships": ([], []),
        "Ferry app in projects": ([], ["hr"]),
        "Tomasz in performance": (["hr"], []),
    }
    marked = run("import", "-", "--tenant", "copy", "--json", stdin=f"\ufeff{copy}")  # with a byte order mark
    assert marked.json == {"statements": 3, "new": 0, "deduplicated": 3, "specimens": 3}
    assert run("import", str(file), "--tenant", "copy").out == "3 statements about 3 specimens: 0 new, 3 known before\n"
    assert len(run("export", "--scope", "none", "--json").json) == 2


def test_what_is_exported_without_a_name_says_so(filled: str, run: Run) -> None:
    family = run("tree", "--json").json[1]
    assert family["family"] == "projects"
    assert run("scopes", "family", family["family_id"], "--required-scope", "hr").code == 0
    ran = run("export", "--scope", "none")
    assert "1 of 2" in ran.err
    nameless = [json.loads(line) for line in ran.out.splitlines() if "family" not in json.loads(line)]
    assert [line["content"] for line in nameless] == ["We decided to ship the ferry app."]


def test_a_text_is_no_markup(acme: str, run: Run) -> None:
    line = {
        "family": "f",
        "genus": "g",
        "specimen": "[red]s",
        "content": "\x1b]0;x\x07[bold]text[/]",
        "embedding": None,
    }
    ran = run("ingest", "--jsonl", "-", stdin=json.dumps(line))
    assert "\x1b" not in ran.out
    assert "[bold]text[/]" in ran.out
    assert "[red]s" in ran.out
