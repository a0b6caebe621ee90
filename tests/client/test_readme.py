"""What the README shows works when it is pasted. With the real model."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from tests.support.databases import Connection, Database

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return str(found)


@pytest.fixture(autouse=True)
def acme(db: Database, admin_conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `graphium up` and `graphium tenant create acme`, each time anew."""
    monkeypatch.setenv("GRAPHIUM_DSN", db.dsn("app"))
    if admin_conn.execute("select 1 from graphium.list_tenants() where slug = 'acme'").fetchone():
        admin_conn.execute("select graphium.drop_tenant('acme')")
    admin_conn.execute("select graphium.create_tenant('acme')")


def test_python(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python"), "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    score, rest = lines[0].split(" ", 1)
    assert float(score) > 0
    assert rest == "I prefer written feedback to calls. preference"
    assert "{'genus': 'reviews', 'specimen': 'Aisha'}" in lines[-1]


def test_sql(db: Database) -> None:
    with psycopg.connect(db.dsn("app"), autocommit=True) as connection:
        cursor = connection.execute(block("sql").encode())
        results = [cursor.fetchall() for _ in cursor.results() if cursor.description]
    caller, ingested, found, woken, tree, genera = results
    assert caller == [("",)]
    assert [row[1:3] for row in ingested] == [(False, "preference")]
    assert [(row[0], *row[2:]) for row in found] == [(1, "Tomasz prefers small pull requests.", "people", "Tomasz")]
    assert [row[1] for row in woken] == ["Tomasz prefers small pull requests."]
    assert tree == [("people", "team", "Tomasz", 1)]
    assert genera == [({"family": "people", "genus": "team"},)]
