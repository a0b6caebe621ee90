"""What a public function says to an argument that it does not take: which one, and what to do. Nothing means more than it says."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import psycopg
import pytest

from graphium_db.deploy import Tree
from tests.memory.conftest import ingest
from tests.support.databases import Connection, Database, as_caller

NOBODY = UUID(int=0)

# A call for each boolean argument, with NULL for it.
BOOLEANS = {
    ("set_caller", "is_local"): "set_caller('acme', '{hr}', is_local => null)",
    ("add_principal", "read_only"): "add_principal('nobody', 'acme', '{}', read_only => null)",
    ("set_required_scopes", "cascade"): f"set_required_scopes('statement', '{NOBODY}', '{{}}', cascade => null)",
    ("preview_required_scopes", "cascade"): "preview_required_scopes('statement', '{}', '{}', cascade => null)",
    ("set_many_required_scopes", "cascade"): "set_many_required_scopes('statement', '{}', '{}', cascade => null)",
    ("search_context", "follow_symbiosis"): "search_context(query_text => 'tea', follow_symbiosis => null)",
    ("search_context", "explain"): "search_context(query_text => 'tea', explain => null)",
}


@pytest.fixture(autouse=True)
def tenants(admin_conn: Connection) -> None:
    there = {slug for (slug,) in admin_conn.execute("select slug from graphium.list_tenants()")}
    for slug in {"acme", "umbrella"} - there:
        admin_conn.execute("select graphium.create_tenant(%s)", [slug])


def refusal(conn: Connection, call: str, *values: Any) -> tuple[str | None, str, str]:
    with pytest.raises(psycopg.Error) as caught:
        conn.execute(f"select * from graphium.{call}".encode(), values or None)
    diag = caught.value.diag
    return diag.sqlstate, diag.message_primary or "", diag.message_hint or ""


def test_null_is_neither_true_nor_false(admin_conn: Connection, db: Database) -> None:
    found = db.connect().execute(
        "select p.proname, a.name from pg_proc p, unnest(p.proargnames, p.proargtypes::oid[]) as a(name, type)"
        " where p.pronamespace = 'graphium'::regnamespace and a.type = 'boolean'::regtype"
    )
    assert set(found) == set(BOOLEANS)
    for (_, argument), call in BOOLEANS.items():
        with as_caller(admin_conn, "acme"):
            assert refusal(admin_conn, call) == (
                "MG008",
                f"{argument} must be true or false, got NULL",
                "Leave it out for its default.",
            )


def test_a_caller_is_never_left_on_the_connection_by_a_null(app_conn: Connection, admin_conn: Connection) -> None:
    seen = "select current_setting('graphium.tenant', true)"
    app_conn.execute("select graphium.set_caller('acme', '{hr}')")
    assert app_conn.execute(seen).fetchone() in [("",), (None,)]
    assert refusal(app_conn, "set_caller('acme', '{hr}', null)")[0] == "MG008"
    assert app_conn.execute(seen).fetchone() in [("",), (None,)]
    app_conn.execute("select graphium.set_caller('acme', '{hr}', false)")
    assert app_conn.execute(seen).fetchone() == ("acme",)


def test_a_list_of_lists_is_no_list_of_scopes(app_conn: Connection, admin_conn: Connection, db: Database) -> None:
    login = db.cluster.role(db.login())
    words = ("MG008", "scopes is a list of lists", "Give one list of scopes: '{hr,sales}'.")
    assert refusal(app_conn, "set_caller('acme', '{{a,b},{c,a}}')") == words
    assert refusal(admin_conn, "add_principal(%s, 'acme', '{{a,b},{c,a}}')", login) == words
    with as_caller(app_conn, "acme", ["a"]):
        [row] = ingest(app_conn, [{"content": "x", "embedding": None}])
        call = "set_required_scopes('statement', %s, '{{a}}')"
        assert refusal(app_conn, call, row[1])[:2] == ("MG008", "required_scopes is a list of lists")


def test_a_binding_says_whom_and_with_which_scopes(admin_conn: Connection, db: Database) -> None:
    login = db.cluster.role(db.login())
    assert refusal(admin_conn, "add_principal(%s, 'acme', null)", login) == (
        "MG008",
        "scopes must not be NULL",
        "Give the scopes that it holds at most; '{}' holds none.",
    )
    for call in ("add_principal({}, 'acme', '{{}}')", "remove_principal({})"):
        for name in ("null", "''"):
            assert refusal(admin_conn, call.format(name)) == (
                "MG008",
                "role_name must not be NULL or blank",
                "Give the name of a login role.",
            )
    assert refusal(admin_conn, "remove_principal('nope')") == (
        "MG002",
        'role_name: "nope" is not bound to a tenant',
        "graphium.list_principals() lists those that are.",
    )


@pytest.mark.parametrize(
    ("call", "code", "message", "hint"),
    [
        (f"set_required_scopes('statement', '{NOBODY}', '{{}}')", "MG007", f"id: no statement with the id {NOBODY}", "graphium.context_tree() and graphium.recall_context() list ids."),
        (f"set_many_required_scopes('statement', '{{{NOBODY}}}', '{{}}')", "MG007", f"ids: no statement with the id {NOBODY}", "graphium.context_tree() and graphium.recall_context() list ids."),
        (f"preview_required_scopes('statement', '{{{NOBODY}}}', '{{}}')", "MG007", f"ids: no statement with the id {NOBODY}", "graphium.context_tree() and graphium.recall_context() list ids."),
        ("preview_required_scopes('statement', null, '{}')", "MG008", "ids must not be NULL", "Give an array of ids; '{}' changes nothing."),
        ("statement_details(null)", "MG008", "statement_ids must not be NULL", "Give an array of statement ids."),
        (f"unlink_symbiosis('{NOBODY}')", "MG007", f"id: no symbiosis with the id {NOBODY}", "graphium.dh_symbioses has their ids."),
        ("link_symbiosis('foo', '{}', '{}')", "MG008", "kind must be related_to, contradicts or supersedes, got 'foo'", "Read from source to target: the source supersedes the target."),
        (f"rename_taxon('foo', '{NOBODY}', 'x')", "MG008", "kind must be family, genus or specimen, got 'foo'", "A statement keeps its wording: forget it, and ingest the new one."),
        (f"forget_taxon('foo', '{NOBODY}')", "MG008", "kind must be family, genus or specimen, got 'foo'", "Statements are deleted by graphium.forget_context()."),
        ("plan_reclassification(101)", "MG008", "sample_count must be between 0 and 100, got 101", "Give a whole number from 0 to 100."),
        ("plan_reclassification(null)", "MG008", "sample_count must be between 0 and 100, got NULL", "Give a whole number from 0 to 100."),
        ("reclassify(0)", "MG008", "batch_size must be between 1 and 100000, got 0", "Give a whole number from 1 to 100000."),
        ("reclassify(null)", "MG008", "batch_size must be between 1 and 100000, got NULL", "Give a whole number from 1 to 100000."),
        ("create_tenant(repeat('x', 101))", "MG008", "slug is 101 characters long, at most 100 are allowed", "Give a text of 1 to 100 characters."),
        ("set_caller('nope')", "MG002", 'tenant: no tenant "nope" for this caller', "Check the spelling; an administrator creates tenants with graphium.create_tenant()."),
    ],
)  # fmt: skip
def test_words(admin_conn: Connection, call: str, code: str, message: str, hint: str) -> None:
    with as_caller(admin_conn, "acme"):
        assert refusal(admin_conn, call) == (code, message, hint)


def test_a_principal_is_told_what_he_can_do(admin_conn: Connection, db: Database) -> None:
    login = db.login()
    admin_conn.execute("select graphium.add_principal(%s, 'acme', '{hr}')", [db.cluster.role(login)])
    hint = 'This login is the tenant "acme" and no other: leave the tenant out (NULL).'
    for tenant in ("umbrella", "nope"):  # in the same words
        message = f'tenant: no tenant "{tenant}" for this caller'
        assert refusal(db.connect(login), "set_caller(%s)", tenant) == ("MG002", message, hint)


def test_every_error_of_ours_has_a_hint() -> None:
    """The third argument of _raise_error(), wherever it is called; and the `hint` of what is raised directly."""
    calls = 0
    for file in Tree.default().repeatables("public"):
        if file.path == "functions/010_raise_error.sql":
            continue
        for found in re.finditer(r"perform graphium_private\._raise_error\(", file.text):
            arguments = top_level_arguments(file.text[found.end() :])
            assert len(arguments) == 3, (file.path, arguments)
            assert arguments[2].lower() != "null", (file.path, arguments)
            calls += 1
        for found in re.finditer(r"raise exception using ([^;]*);", file.text):
            assert "hint = " in found[1], (file.path, found[0])
    assert calls > 50


def top_level_arguments(text: str) -> list[str]:
    arguments, depth, quoted, start = [], 0, False, 0
    for at, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif quoted:
            continue
        elif character == "," and depth == 0:
            arguments.append(text[start:at].strip())
            start = at + 1
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
            if depth < 0:
                return [*arguments, text[start:at].strip()]
    raise AssertionError("no end")
