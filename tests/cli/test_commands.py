"""The commands for operators, help, and exit codes of a process."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from graphium_db import deploy, errors
from graphium_db.cli.main import _OF_ERROR, cli
from graphium_db.deploy import Tree
from graphium_db.resources import db_path
from tests.cli.conftest import Ran
from tests.support.databases import Database, grant_deployer

Run = Callable[..., Ran]


def test_tenants_and_principals(db: Database, run: Run, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("GRAPHIUM_DSN", db.dsn("admin"))
    assert run("tenant", "create", "small", "--json").json["slug"] == "small"
    assert run("tenant", "create", "small").code == 2
    assert (
        run(
            "tenant", "create", "big", "--embedding-model", "bge-m3", "--dimensions", "1024", "--language", "german"
        ).code
        == 0
    )
    assert "no stemmer for" in run("tenant", "create", "odd", "--language", "klingon").err
    table = run("tenant", "list").out.splitlines()
    assert table[0].split() == ["tenant", "embedding", "model", "dimensions", "language", "created"]
    rows = [line.split()[:4] for line in table[2:]]
    assert ["small", "all-MiniLM-L6-v2", "384", "english"] in rows
    assert ["big", "bge-m3", "1024", "german"] in rows

    role = db.cluster.role(db.login())
    ran = run("principal", "add", role, "--tenant", "small", "--scope", "hr", "--read-only")
    assert ran.out == f"{role} is small with hr, read-only\n"
    assert run("principal", "list").out.splitlines()[2].split() == [role, "small", "hr", "read"]
    db.connect().execute("update graphium.principals set role_oid = 1")  # as after a restore into another cluster
    assert run("principal", "list").out.splitlines()[2].split(None, 3) == [
        role,
        "small",
        "hr",
        "nothing: add or remove it",
    ]
    (listed,) = run("principal", "list", "--json").json
    assert (listed["scopes"], listed["read_only"], listed["is_in_force"]) == (["hr"], True, False)
    assert run("principal", "remove", role).code == 0
    assert run("principal", "remove", role).code == 5
    assert run("principal", "list").err == "No principals yet: graphium principal add …\n"
    assert run("principal", "add", "no-such-role", "--tenant", "small").code == 5
    ran = run("principal", "add", role, "--tenant", "small", "--scope", "hr, sales")
    assert ran.code == 2
    assert ran.err.endswith("'--scope': give --scope once for each scope: --scope hr --scope sales\n")
    db.connect("admin").execute("select graphium.add_principal(%s, 'small', '{hr,\"a, b\"}')", [role])
    assert run("principal", "list").out.splitlines()[2].split("  ")[-2].strip() == '"a, b", hr'
    assert run("principal", "remove", role).code == 0
    ran = run("principal", "remove", "")
    assert ran.err == "Error: ROLE must not be NULL or blank\nHint: Give the name of a login role.\n"
    assert run("principal", "remove", role).err.endswith("Hint: `graphium principal list` lists those that are.\n")
    for name in ("graphium_reader", "graphium_owner"):
        ran = run("principal", "add", name, "--tenant", "small")
        assert ran.code == 2
        assert f'"{name}" is one of Graphium\'s own roles' in ran.err
    ran = run("principal", "add", role, "--tenant", "no-such-tenant")
    assert ran.code == 5
    assert ran.err.endswith("Hint: `graphium tenant list` lists them.\n")

    ran = run("tenant", "drop", "big", stdin="n\n")
    assert (ran.code, ran.err.splitlines()[-1][-12:]) == (1, "Not dropped.")
    ran = run("tenant", "drop", "big", stdin="")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert run("tenant", "drop", "big", "--yes").code == 0
    assert run("tenant", "drop", "big", "--yes").code == 5
    ran = run("tenant", "drop", "big", stdin="y\n")  # nothing to be sure of
    assert (ran.code, ran.err.splitlines()[0]) == (5, 'Error: tenant: no tenant "big" for this caller')
    assert "big" not in [tenant["slug"] for tenant in run("tenant", "list", "--json").json]


def test_an_application_may_not_administer(acme: str, run: Run) -> None:
    ran = run("tenant", "create", "other", "--json")
    assert ran.code == 4
    error = json.loads(ran.err)["error"]
    assert error["sqlstate"] == "42501"
    assert "graphium_admin" in error["hint"]


def test_migrate(db: Database, run: Run) -> None:
    dsn = db.dsn("deployer")
    assert run("migrate", "--plan", "--dsn", dsn).out == "Nothing to do.\n"
    assert run("migrate", "--plan", "--dsn", dsn, "--json").json == {"changes": [], "hardening_due": None}
    assert run("migrate", "--dsn", dsn).out == "Nothing to do.\n"
    nothing = {"migrations": [], "files": [], "removed": [], "by_hand": [], "hardening_due": None}
    assert run("migrate", "--dsn", dsn, "--json").json == nothing
    assert "create or replace function graphium.search_context" in run("migrate", "--sql").out
    assert run("migrate", "--sql", "--plan").code == 2
    printed = run("migrate", "--bootstrap").out
    assert "create extension if not exists age" in printed
    assert "proleakproof" in printed
    assert run("migrate", "--bootstrap", "--no-hardening").out == (db_path() / "bootstrap.sql").read_text("utf-8")
    assert run("migrate", "--no-hardening").code == 2
    assert run("migrate", "--verbose").code == 2
    superuser = db.connect()
    superuser.execute('create schema "an extension\'s"')
    superuser.execute('alter extension vector set schema "an extension\'s"')
    try:
        text = run("migrate", "--sql", "--dsn", dsn, "--json").json["sql"]
    finally:
        superuser.execute("alter extension vector set schema public")
    assert '"an extension\'s".vector' in text
    for plan in ((), ("--plan",)):
        ran = run("migrate", *plan, "--dsn", db.dsn("app"))
        assert ran.code == 4
        assert (
            ran.err
            == f"""\
Error: {db.cluster.role("app")} cannot act as graphium_owner
Hint: Use the deployer's login: graphium migrate --help.
"""
        )
        stranger = db.login()
        ran = run("migrate", *plan, "--dsn", db.dsn(stranger))
        assert ran.code == 4
        assert ran.err.endswith(
            f" To make {db.cluster.role(stranger)} that: graphium migrate --bootstrap | psql -v ON_ERROR_STOP=1 -d {db.name}, and then, as a superuser too: "
            f"grant graphium_owner, graphium_keeper, graphium_cypher to {db.cluster.role(stranger)} with inherit false, set true;\n"
        )


def test_what_a_plan_prints(db: Database, run: Run) -> None:
    dsn = db.dsn("deployer")
    superuser = db.connect()
    superuser.execute("grant insert on graphium.kg_statements to graphium_app")
    lines = run("migrate", "--plan", "--dsn", dsn).out.splitlines()
    files = len(Tree.default().repeatables("public")) - 2  # all but the two that hardening.sql marks
    assert lines == [
        "changed by hand grant insert on table graphium.kg_statements to graphium_app (added)",
        f"In all: 1 changed by hand, {files} to apply again, unchanged",
    ]
    lines = run("migrate", "--plan", "--verbose", "--dsn", dsn).out.splitlines()
    assert lines[2] == "apply again classification/rules.toml"
    assert len(lines) > 5 * files

    superuser.execute("create table graphium.notes ()")
    ran = run("migrate", "--plan", "--dsn", dsn)
    move = "alter table graphium.notes set schema public;"
    assert ran.out.startswith(f"refused table graphium.notes (added)\n  {move}\n")
    assert ran.code == run("migrate", "--dsn", dsn).code == 4
    assert f"\n  {move}  -- or a schema of yours, or drop it\n" in ran.err
    assert f"\n  {move}  -- or a schema of yours, or drop it\n" in run("migrate", "--dsn", dsn).err
    found = run("doctor", "--dsn", dsn, "--json").json
    # one remedy in both places, which is SQL; and what the deployer puts back is told beside what a superuser has to
    assert [(f["object"], f["found"], f["remedy"]) for f in found if f["check"] == "deployment"] == [
        ("table graphium.notes (added)", "changed by hand since the last migrate", move),
        ("grant insert on table graphium.kg_statements to graphium_app (added)", "changed by hand since the last migrate",
         "graphium migrate puts it back."),
    ]  # fmt: skip
    assert [(f["object"], f["remedy"]) for f in found if f["check"] == "added_by_hand"] == [("graphium.notes", move)]
    superuser.execute(move.encode())
    superuser.execute("drop table public.notes; revoke insert on graphium.kg_statements from graphium_app")
    assert run("migrate", "--plan", "--dsn", dsn).out == "Nothing to do.\n"


def test_what_a_superuser_marked_stays_marked(db: Database, run: Run) -> None:
    """A deploy that applies every file again leaves db/hardening.sql in force, unless its own functions are concerned."""
    superuser, dsn = db.connect(), db.dsn("deployer")
    in_force = (
        "select array_agg(procost = 0 order by proname) from pg_proc where proname in ('is_seen', 'is_seen_under')"
    )
    due = f"db/hardening.sql is due after this migrate. As a superuser: graphium migrate --bootstrap | psql -v ON_ERROR_STOP=1 -d {db.name}\n"
    assert superuser.execute(in_force.encode()).fetchone() == ([True, True],)
    superuser.execute("drop trigger audience_edited on graphium.dh_families")
    assert run("migrate", "--plan", "--dsn", dsn).err == ""
    ran = run("migrate", "--dsn", dsn)
    assert ran.err == ""
    assert "applied functions/132_scope_edits.sql\n" in ran.out
    assert "is_seen" not in ran.out
    assert superuser.execute(in_force.encode()).fetchone() == ([True, True],)

    superuser.execute(
        "revoke execute on function graphium_private.is_seen(uuid, text[], uuid, text[]) from graphium_reader"
    )
    assert run("migrate", "--plan", "--dsn", dsn).err == due
    ran = run("migrate", "--dsn", dsn)
    assert ran.err == due
    assert [line for line in ran.out.splitlines() if "is_seen" in line] == [
        "changed by hand since the last migrate, put back: grant execute on routine"
        " graphium_private.is_seen(uuid,text[],uuid,text[]) to graphium_reader (gone)",
        "applied functions/031_is_seen.sql",
    ]
    assert superuser.execute(in_force.encode()).fetchone() == ([False, True],)
    deploy.bootstrap(superuser)

    superuser.execute(
        "update graphium_private.deployed_files set sha256 = 'of an older version' where path ~ 'is_seen_under'"
    )
    assert run("migrate", "--plan", "--dsn", dsn).err == due
    assert run("migrate", "--dsn", dsn).err == due
    assert superuser.execute(in_force.encode()).fetchone() == ([True, False],)
    deploy.bootstrap(superuser)
    assert run("migrate", "--dsn", dsn) == Ran(0, "Nothing to do.\n", "")


def test_doctor_finds_nothing_then_something(db: Database, run: Run) -> None:
    dsn = db.dsn("deployer")
    healthy = run("doctor", "--dsn", dsn, "--json")
    assert [finding for finding in healthy.json if finding["level"] == "fault"] == []
    assert [finding["level"] for finding in healthy.json if finding["check"] == "security"] == ["ok"]
    assert {finding["remedy"] for finding in healthy.json if finding["level"] == "ok"} == {None}
    assert healthy.code == 0
    superuser = db.connect()
    try:
        superuser.execute("alter table graphium.kg_statements no force row level security")
        superuser.execute("grant insert on graphium.kg_statements to graphium_app")
        superuser.execute('grant execute on function ag_catalog.age_tail(variadic "any") to public')
        ran = run("doctor", "--dsn", dsn, "--json")
    finally:
        superuser.execute("alter table graphium.kg_statements force row level security")
        superuser.execute("revoke insert on graphium.kg_statements from graphium_app")
        superuser.execute('revoke execute on function ag_catalog.age_tail(variadic "any") from public')
    assert ran.code == 6
    faults = {f["check"]: (f["object"], f["found"], f["remedy"]) for f in ran.json if f["level"] == "fault"}
    by_hand = [(f["object"], f["found"], f["remedy"]) for f in ran.json if f["check"] == "deployment"]
    assert by_hand == [
        (thing, "changed by hand since the last migrate", "graphium migrate puts it back.")
        for thing in (
            "grant insert on table graphium.kg_statements to graphium_app (added)",
            "row security of graphium.kg_statements (changed)",
        )
    ]
    del faults["deployment"]
    assert faults == {
        "ag_catalog_grant": (
            "ag_catalog to public",
            "public may execute functions of Apache AGE, which read and write graphs past row-level security: "
            '1 of them, such as ag_catalog.age_tail("any").',
            "revoke execute on all routines in schema ag_catalog from public;",
        ),
        "grant_beyond_need": (
            "graphium.kg_statements to graphium_app",
            "graphium_app holds insert: rows are written by functions only.",
            "revoke insert on table graphium.kg_statements from graphium_app;",
        ),
        "row_security_off": (
            "graphium.kg_statements",
            "Its owner's functions see every tenant's rows: row-level security is not forced.",
            "alter table graphium.kg_statements enable row level security, force row level security;",
        ),
    }


def test_doctor_names_a_few_of_many_and_counts(db: Database, run: Run) -> None:
    superuser = db.connect()
    try:
        for number in range(7):
            superuser.execute(f"create policy p{number} on graphium.kg_statements using (true)".encode())
        ran = run("doctor", "--dsn", db.dsn("admin"))
    finally:
        for number in range(7):
            superuser.execute(f"drop policy p{number} on graphium.kg_statements".encode())
    assert ran.code == 6
    lines = ran.out.splitlines()
    at = lines.index("✗ policy_added p0 on graphium.kg_statements")
    assert lines[at + 1 : at + 4] == [
        "  Permissive policies are joined with OR: it shows rows that tenant_and_scope_isolation hides.",
        "  drop policy p0 on graphium.kg_statements;",
        "✗ policy_added p1 on graphium.kg_statements",
    ]
    assert "  … and 2 more of policy_added: --json lists them" in lines
    assert ran.err.startswith("8 faults, ")
    assert "✗ changed_by_hand " in ran.out  # an admin, who cannot compare with the files, is told all the same


def test_doctor_says_what_it_may_not_look_at(acme: str, db: Database, run: Run) -> None:
    ran = run("doctor", "--dsn", db.dsn("app"), "--json")
    found = {finding["check"]: (finding["level"], finding["found"]) for finding in ran.json}
    assert found["security"] == ("fault", "not checked: permission denied for function check_security")
    assert found["deployment"] == ("warning", "not compared with the files of this version")
    assert "grant" not in ran.out
    assert ran.code == 6
    ran = run("doctor", "--dsn", db.dsn("admin"), "--tenant", "nosuch", "--json")
    assert ran.code == 6
    assert [finding["check"] for finding in ran.json if finding["level"] == "ok"] == ["server", "extension vector", "extension age", "login", "security"]  # fmt: skip
    assert [(f["check"], f["object"], f["found"], f["remedy"]) for f in ran.json if f["level"] == "fault"] == [
        ("data", "nosuch", 'tenant: no tenant "nosuch" for this caller', "graphium tenant list")
    ]


def test_doctor_says_what_it_could_not_look_at_and_why(db: Database, run: Run) -> None:
    superuser = db.connect()
    superuser.execute("alter function graphium_private._our_schemas() owner to current_user")
    for login in ("admin", "deployer"):
        ran = run("doctor", "--dsn", db.dsn(login), "--json")
        assert ran.code == 6
        assert ("security", "fault", "not checked: permission denied for function _our_schemas") in [
            (finding["check"], finding["level"], finding["found"]) for finding in ran.json
        ]
    [deployment] = [finding["remedy"] for finding in ran.json if finding["check"] == "deployment"]
    assert deployment == "alter routine graphium_private._our_schemas() owner to graphium_owner;"
    superuser.execute("alter routine graphium_private._our_schemas() owner to graphium_owner")
    assert run("migrate", "--dsn", db.dsn("deployer")).out == "Nothing to do.\n"


def test_doctor_on_a_database_without_graphium(blank: Callable[..., Database], run: Run) -> None:
    db = blank()
    ran = run("doctor", "--dsn", db.dsn("deployer"), "--json")
    assert ran.code == 6
    assert [(f["check"], f["found"], f["remedy"]) for f in ran.json if f["level"] == "fault"] == [
        ("deployment", "not deployed", "Run graphium migrate.")
    ]


def test_a_policy_opened_by_hand_is_noticed_and_closed(db: Database, run: Run) -> None:
    dsn = db.dsn("deployer")
    superuser = db.connect()
    opened = "policy tenant_and_scope_isolation on graphium.kg_statements (changed)"
    expression = "select qual from pg_policies where tablename = 'kg_statements' and policyname ^@ 'tenant'"
    before = superuser.execute(expression.encode()).fetchone()
    superuser.execute("alter policy tenant_and_scope_isolation on graphium.kg_statements using (true)")
    superuser.execute("alter table graphium.kg_statements disable row level security")
    superuser.execute("alter table graphium.kg_embeddings disable row level security")
    doctor = run("doctor", "--dsn", dsn)
    assert doctor.code == 6
    assert "✗ policy_changed tenant_and_scope_isolation on graphium.kg_statements\n" in doctor.out
    assert opened in [f["object"] for f in run("doctor", "--dsn", dsn, "--json").json]
    assert run("migrate", "--plan", "--dsn", dsn).out.startswith(f"changed by hand {opened}\n")
    assert f"changed by hand since the last migrate, put back: {opened}\n" in run("migrate", "--dsn", dsn).out
    assert superuser.execute(expression.encode()).fetchone() == before
    assert run("migrate", "--dsn", dsn).out == "Nothing to do.\n"
    assert run("doctor", "--dsn", dsn).code == 0


@pytest.mark.damages_on_purpose
def test_maintain_mends_a_damaged_graph(db: Database, acme: str, filled: str, run: Run) -> None:
    dsn = db.dsn("admin")
    superuser = db.connect()
    row = superuser.execute("select graph_name from graphium.tenants where slug = %s", [acme]).fetchone()
    assert row is not None
    superuser.execute("load 'age'")
    superuser.execute(f'delete from {row[0]}."HAS_GENUS"'.encode())
    ran = run("doctor", "--dsn", dsn, "--tenant", acme, "--json")
    assert ran.code == 6
    faults = [finding for finding in ran.json if (finding["check"], finding["level"]) == ("graph", "fault")]
    ids = [id for (id,) in superuser.execute("select id from graphium.dh_genera").fetchall()]
    assert sorted(fault["object"] for fault in faults) == sorted(f"HAS_GENUS {id}" for id in ids)
    assert {fault["remedy"] for fault in faults} == {"graphium maintain --rebuild-graphs"}
    rebuilt = run("maintain", "--dsn", dsn, "--rebuild-graphs", "--json").json["rebuilt"]
    # 3 families, 3 genera and 3 specimens; each genus hangs on 1 edge, each specimen on 2
    assert rebuilt[acme] == 9 + 3 + 6
    assert run("doctor", "--dsn", dsn, "--tenant", acme).code == 0


@pytest.mark.damages_on_purpose
def test_maintain_mends_counts_that_triggers_did_not_keep(db: Database, acme: str, filled: str, run: Run) -> None:
    dsn = db.dsn("admin")
    row = (
        db.connect()
        .execute(
            "update graphium_private.family_counters set statements = 5 where family_id = (select f.id"
            " from graphium.dh_families f join graphium.tenants t on t.id = f.tenant_id"
            " where f.name = 'projects' and t.slug = %s) returning family_id",
            [acme],
        )
        .fetchone()
    )
    assert row is not None
    ran = run("doctor", "--dsn", dsn, "--tenant", acme, "--json")
    assert ran.code == 6
    assert [finding for finding in ran.json if finding["level"] == "fault"] == [
        {"check": "memory", "level": "fault", "found": "counter of statements, is 5, rows say 1",
         "remedy": "graphium maintain --rebuild-memory", "object": f"projects {row[0]}"}
    ]  # fmt: skip
    assert run("maintain", "--dsn", dsn, "--rebuild-memory", "--dry-run").code == 2
    ran = run("maintain", "--dsn", dsn, "--rebuild-memory", "--rebuild-graphs")
    assert f"Memory of tenant {acme} mended: 1 fault\n" in ran.out
    assert f"Graph of tenant {acme} rebuilt: 18 vertices and edges\n" in ran.out
    assert run("doctor", "--dsn", dsn, "--tenant", acme).code == 0
    assert run("maintain", "--dsn", dsn, "--rebuild-memory", "--json").json["mended"][acme] == 0


def test_a_tenant_from_the_environment_is_no_fault_of_a_deployer(
    db: Database, acme: str, run: Run, environment: pytest.MonkeyPatch
) -> None:
    dsn = db.dsn("deployer")
    environment.setenv("GRAPHIUM_TENANT", acme)
    ran = run("doctor", "--dsn", dsn, "--json")
    said = {"found": "not checked: it takes a member of graphium_admin", "object": acme,
            "remedy": "Run doctor with the login of a member of graphium_admin, too."}  # fmt: skip
    assert [f for f in ran.json if f["check"] == "data"] == [said | {"check": "data", "level": "info"}]
    assert ran.code == 0
    ran = run("doctor", "--dsn", dsn, "--tenant", acme, "--json")
    assert [f for f in ran.json if f["level"] == "fault"] == [said | {"check": "data", "level": "fault"}]
    assert ran.code == 6
    assert run("doctor", "--dsn", db.dsn("admin")).code == 0


def test_maintain(db: Database, tenant: str, run: Run, environment: pytest.MonkeyPatch) -> None:
    superuser = db.connect()
    assert run("maintain", "--dsn", db.dsn("admin")).out == "Nothing to do.\n"
    superuser.execute("update graphium_private.settings set value = 1 where name = 'hnsw_min_embeddings'")
    superuser.execute("update graphium_private.settings set value = 1 where name = 'hnsw_drop_below'")
    login = db.login("graphium_admin")
    grant_deployer(superuser, db.cluster.role(login))
    line = {"family": "f", "genus": "g", "specimen": "s", "content": "c", "embedding": [1.0] + [0.0] * 383}
    app = ("--dsn", db.dsn("app"), "--tenant", tenant)
    assert run("ingest", *app, "--jsonl", "-", stdin=json.dumps(line)).code == 0
    (create,) = [
        line for line in run("maintain", "--dsn", db.dsn(login), "--dry-run").out.splitlines() if "create index" in line
    ]
    assert create.endswith(";")
    assert run("maintain", "--dsn", db.dsn("admin")).code == 4  # an admin who may not act as the owner
    ran = run("maintain", "--dsn", db.dsn(login))
    assert (ran.code, ran.out) == (0, "1 indexes changed\n")
    assert f"create index for tenant {tenant}" in ran.err
    assert run("maintain", "--dsn", db.dsn(login), "--json").json == {"ran": True, "steps": []}
    superuser.execute("update graphium_private.settings set value = 10000 where name = 'hnsw_min_embeddings'")


def test_doctor_checks_a_tenant_s_data_as_an_admin(db: Database, tenant: str, run: Run) -> None:
    ran = run("doctor", "--dsn", db.dsn("admin"), "--tenant", tenant, "--json")
    levels = {finding["check"]: finding["level"] for finding in ran.json}
    assert (levels["graph"], levels["memory"]) == ("ok", "ok")


def test_doctor_warns_of_a_superuser_s_login(db: Database, run: Run) -> None:
    ran = run("doctor", "--dsn", db.dsn(), "--json")
    assert [finding["level"] for finding in ran.json if finding["check"] == "login"] == ["warning"]


def test_every_sqlstate_has_an_exit_code() -> None:
    assert set(errors.BY_SQLSTATE.values()) | {errors.GraphiumError, errors.NotAllowedError} == set(_OF_ERROR)


def test_every_command_has_help_of_at_most_80_columns_and_json(run: Run) -> None:
    def commands(group: object, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        found = []
        for name, command in group.commands.items():  # type: ignore[attr-defined]
            found += commands(command, (*prefix, name)) if hasattr(command, "commands") else [(*prefix, name)]
        return found

    names = commands(cli)
    assert list(cli.commands) == [
        "up", "migrate", "doctor", "tenant", "principal", "ingest", "search", "recall", "wake-up", "forget", "scopes",
        "tree", "cypher", "classify", "reclassify", "maintain", "export", "import", "console", "bench-retrieval",
    ]  # fmt: skip
    for name in names:
        ran = run(*name, "--help")
        assert ran.code == 0
        assert "--json" in ran.out
        assert max(map(len, ran.out.splitlines())) <= 80, name


def test_exit_codes_of_a_process(graphium: Run, db: Database, tenant: str) -> None:
    unreachable = "host=127.0.0.1 port=1"
    assert graphium("--version").code == 0
    assert graphium("nonsense").code == 2
    assert graphium("search").code == 2
    assert "QUERY" in json.loads(graphium("search", "--json").err)["error"]["message"]
    ran = graphium("recall", "--tenant", "acme")  # no server was ever set up
    assert ran.code == 3
    assert "graphium up" in ran.err
    ran = graphium("recall", "--dsn", unreachable, "--tenant", "acme", "--json")
    assert ran.code == 3
    assert json.loads(ran.err)["error"]["sqlstate"] is None
    ran = graphium("recall", GRAPHIUM_DSN=db.dsn("app"))
    assert ran.code == 4
    assert "--tenant" in ran.err
    assert graphium("recall", GRAPHIUM_DSN=db.dsn("app"), GRAPHIUM_TENANT="nobody").code == 4
    assert graphium("recall", GRAPHIUM_DSN=db.dsn("app"), GRAPHIUM_TENANT=tenant).code == 0
    assert graphium("recall", "--scope", "hr", GRAPHIUM_DSN=db.dsn("app")).code == 2  # a scope of nobody


def test_a_closed_pipe_ends_a_command_quietly(graphium: Run, db: Database, tenant: str) -> None:
    import os
    import subprocess
    import sys

    from tests.cli.conftest import ROOT

    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "graphium_db.cli", "migrate", "--sql"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
