"""The SQL example in each public function's file runs in psql, as the role that it is for.

Examples may count on a tenant `acme` (3 dimensions) that knows a thing about Ada in the families `performance` (genus
`feedback`) and `goals` (genus `career`), and on a login role `example_analyst`.
"""

from __future__ import annotations

import re
import subprocess

import psycopg
import pytest

from graphium_db.deploy import Tree
from tests.support.databases import Database, as_caller
from tests.support.psql import libpq_environment, psql

FILES = {f.path: f.text for f in Tree.default().repeatables("public") if f.path.startswith("functions/")}
PUBLIC = re.compile(r"create or replace function graphium\.(\w+)")


def example(text: str) -> str:
    """The lines after `-- example:` up to the first that is not `--   …`, without their dashes."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.strip() == "-- example:":
            inside = True
        elif inside and line.startswith("--   "):
            lines.append(line[5:])
        else:
            inside = False
    return "\n".join(lines)


WITH_EXAMPLES = sorted(path for path, text in FILES.items() if PUBLIC.search(text))


def test_there_are_examples() -> None:
    assert [path for path in WITH_EXAMPLES if not example(FILES[path])] == []


@pytest.mark.parametrize("path", WITH_EXAMPLES)
def test_example(path: str, db: Database, superuser: psycopg.Connection, admin_conn: psycopg.Connection) -> None:
    admin_conn.execute("select graphium.create_tenant('acme', dimensions => 3)")
    with as_caller(admin_conn, "acme"):
        for family, genus in (("performance", "feedback"), ("goals", "career")):
            admin_conn.execute(
                "select graphium.ingest_context(family => %s, genus => %s, specimen => 'Ada',"
                """ statements => '[{"content": "Ada prefers written feedback.", "embedding": null}]')""",
                [family, genus],
            )
    # Logins are cluster-wide: the one that an example names gets a name of its own.
    text = example(FILES[path]).replace("example_analyst", db.cluster.role(db.login()))
    # graphium_reader ⊂ graphium_user ⊂ graphium_app: what is granted to none of them is an admin's.
    called = [name for name in PUBLIC.findall(FILES[path]) if re.search(rf"\b{name}\s*\(", text)]
    assert called, f"the example of {path} does not call what the file makes"
    (for_app,) = superuser.execute(
        "select bool_and(has_function_privilege('graphium_app', oid, 'execute')) from pg_proc"
        " where pronamespace = 'graphium'::regnamespace and proname = any (%s)",
        [called],
    ).fetchone() or (None,)
    run = subprocess.run(
        [psql(), "-qX1", "-v", "ON_ERROR_STOP=1", "-f", "-"],
        input="select graphium.set_caller(tenant => 'acme');\n" + text,
        env=libpq_environment(db.dsn("app" if for_app else "admin")),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.stderr == ""
