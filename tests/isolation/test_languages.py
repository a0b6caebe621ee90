"""The same story told by the Python client, psql and node-postgres: same rows, same errors (scenario.yaml)."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, is_dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from graphium_db import Graphium, GraphiumError
from tests.support.databases import Database
from tests.support.node import node, node_connection, run_node
from tests.support.pgbouncer import pgbouncer
from tests.support.psql import psql
from tests.support.server import ROOT

SCENARIO = yaml.safe_load(Path(__file__).with_name("scenario.yaml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = SCENARIO["steps"]
CALLERS: dict[str, dict[str, Any]] = SCENARIO["callers"]

Outcome = dict[str, Any]  # {"gives": [...]} or {"fails": [SQLSTATE, message]}
Logins = dict[str, str]  # DSNs


@pytest.fixture
def logins(db: Database) -> Iterator[Logins]:
    """Where to connect as whom. Each telling finds the tenant `wreck` without its graph, and no other."""
    admin, boss = db.connect("admin"), db.connect()
    admin.execute("select graphium.create_tenant('wreck', dimensions => 3)")
    boss.execute("select ag_catalog.drop_graph(graph_name, true) from graphium.tenants where slug = 'wreck'")
    try:
        yield {login: db.dsn(login) for login in ("app", "admin")}
    finally:
        for (slug,) in admin.execute("select slug from graphium.list_tenants()").fetchall():
            admin.execute("select graphium.drop_tenant(%s)", [slug])


# ------------------------------------------------------------------------------------------------ tellers


def with_python(logins: Logins) -> list[Outcome]:
    """graphium_db: methods of the functions' names."""
    clients = {
        name: Graphium(logins[caller["login"]], tenant=caller.get("tenant"), scopes=caller.get("scopes"))
        for name, caller in CALLERS.items()
    }
    kept: dict[str, Any] = {}

    def argument(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [kept.get(item, item) if isinstance(item, str) else item for item in value]
        if name == "query_embedding":
            return json.loads(value)
        return kept.get(value, value) if isinstance(value, str) else value

    def tell(step: dict[str, Any]) -> Outcome:
        arguments = {name: argument(name, value) for name, value in step.get("with", {}).items()}
        if step["call"] == "search_context":
            arguments.setdefault("query_embedding", None)
        try:
            result = getattr(clients[step["as"]], step["call"])(**arguments)
        except GraphiumError as error:
            return {"fails": [error.sqlstate, error.message]}
        except psycopg.Error as error:
            return {"fails": [error.sqlstate, error.diag.message_primary]}
        rows = result if isinstance(result, list) else [result]
        for column, ids in step.get("keep", {}).items():
            for name, row in zip(ids, rows, strict=True):
                kept[f"${name}"] = getattr(row, column) if is_dataclass(row) else row
        if "columns" in step:
            rows = [[asdict(row)[column] for column in step["columns"]] for row in rows]
        return {"gives": rows}

    try:
        return [tell(step) for step in STEPS]
    finally:
        for client in clients.values():
            client.close()


def with_psql(logins: Logins) -> list[Outcome]:
    """psql: one script, arguments as variables, ids kept by \\gset."""
    variables: list[str] = []
    script: list[str] = []
    connected = logins["app"]

    def argument(place: int, name: str, value: Any) -> str:
        if isinstance(value, str) and value.startswith("$"):
            return f":'{value[1:]}'"
        if name == "statement_ids":
            return f"array[{', '.join(argument(place, '', item) for item in value)}]::uuid[]"
        variable = f"step{place}_{name}"
        if isinstance(value, list) and name != "statements":  # text[]
            value = "{" + ",".join(json.dumps(item, ensure_ascii=False) for item in value) + "}"
        variables.extend(["-v", f"{variable}={value if isinstance(value, str) else json.dumps(value)}"])
        return f":'{variable}'"

    for place, step in enumerate(STEPS):
        caller = CALLERS[step["as"]]
        given = ", ".join(f"{name} => {argument(place, name, value)}" for name, value in step.get("with", {}).items())
        columns = step.get("columns", ["value"])
        call = f"graphium.{step['call']}({given})"
        source = f"select {', '.join(columns)} from {call}" if "columns" in step else f"select {call} as value"
        keep = "".join(
            f", (array_agg(r.{column}))[{n}] as {name}"
            for column, names in step.get("keep", {}).items()
            for n, name in enumerate(names, start=1)
        )
        if logins[caller["login"]] != connected:
            connected = logins[caller["login"]]
            script.append(f'\\connect -reuse-previous=off "{connected}"')
        script.append("begin;")
        if "tenant" in caller:
            tenant, scopes = (argument(place, f"caller_{key}", caller[key]) for key in ("tenant", "scopes"))
            script.append(f"select graphium.set_caller(tenant => {tenant}, scopes => {scopes}) as named \\gset")
        script += [
            "\\if :ERROR",
            "\\else",
            f"select coalesce(jsonb_agg(jsonb_build_array({', '.join(f'r.{c}' for c in columns)})), '[]') as result{keep}"
            f" from ({source}) as r \\gset",
            "\\endif",
            "\\if :ERROR",
            "rollback;",
            "\\echo fails :LAST_ERROR_SQLSTATE :LAST_ERROR_MESSAGE",
            "\\else",
            "commit;",
            "\\echo gives :result",
            "\\endif",
        ]
    done = subprocess.run(
        [psql(), "--no-psqlrc", "--quiet", *variables, "--file=-", logins["app"]],
        input="\n".join(script),
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
        env={"PGCLIENTENCODING": "UTF8", "PGTZ": "Asia/Kolkata"},
    )
    told: list[Outcome] = []
    for step, line in zip(STEPS, done.stdout.splitlines(), strict=True):
        what, rest = line.split(" ", 1)
        if what == "fails":
            told.append({"fails": rest.split(" ", 1)})
        else:
            rows = json.loads(rest)
            told.append({"gives": rows if "columns" in step else [None if row == [""] else row[0] for row in rows]})
    return told


def with_node(logins: Logins) -> list[Outcome]:
    """node-postgres: pools, transactions, named prepared statements, its own types."""
    told: list[Outcome] = run_node(
        "scenario.cjs",
        {"logins": {name: node_connection(dsn) for name, dsn in logins.items()}, "callers": CALLERS, "steps": STEPS},
    )
    return told


# ------------------------------------------------------------------------------------------------ the story


def transcript(told: Sequence[Outcome]) -> list[Outcome]:
    """With the names of ids, in the plain values that scenario.yaml has."""
    names: dict[str, str] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, float):
            return round(value, 4)
        if isinstance(value, int):
            return value
        text = value.isoformat() if isinstance(value, datetime) else str(value)
        try:
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            for id_, name in names.items():
                text = text.replace(id_, name)
            return text
        return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    plain_told = []
    for step, outcome in zip(STEPS, told, strict=True):
        for column, ids in step.get("keep", {}).items() if "gives" in outcome else ():
            for name, row in zip(ids, outcome["gives"], strict=True):
                names[str(row[step["columns"].index(column)] if "columns" in step else row)] = f"${name}"
        plain_told.append(plain(outcome))
    return plain_told


def expected() -> list[Outcome]:
    return [{key: step[key] for key in ("gives", "fails") if key in step} for step in STEPS]


@pytest.mark.parametrize("teller", [with_python, with_psql, with_node])
@pytest.mark.parametrize("way", ["direct", "pooled"])
def test_each_client_tells_the_same_story(
    db: Database, logins: Logins, teller: Callable[[Logins], list[Outcome]], way: str
) -> None:
    with pgbouncer(db, list(logins), server_connections=2) if way == "pooled" else nullcontext() as pooler:
        if pooler:
            if teller is with_node and not pooler.prepares:
                pytest.skip("PgBouncer before 1.21 knows no named statements")
            logins = {login: pooler.dsn(login) for login in logins}
        told = transcript(teller(logins))
    different = [
        f"step {place} as {step['as']}: {step['call']}\n  told:     {outcome}\n  expected: {should}"
        for place, (step, outcome, should) in enumerate(zip(STEPS, told, expected(), strict=True))
        if outcome != should
    ]
    assert not different, "\n".join(different)


def test_the_story_meets_every_error_that_a_client_can_meet() -> None:
    """MG003 is for whoever updates a table by hand; no application role has the right to."""
    met = {step["fails"][0] for step in STEPS if "fails" in step}
    assert met == {f"MG{n:03}" for n in range(1, 11)} - {"MG003"} | {"42501"}


# ------------------------------------------------------------------------------------------------ docs/languages.md


def code(language: str) -> list[str]:
    page = (ROOT / "docs" / "languages.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def test_the_examples_of_the_docs(db: Database, tmp_path: Path) -> None:
    """Each by itself, from the tenant that the page makes."""
    [javascript], [tenant, story] = code("js"), code("sql")
    db.connect("admin").execute(tenant.encode())
    app = conninfo_to_dict(db.dsn("app"))
    address = "postgresql:///{dbname}?host={host}&user={user}&password={password}".format(**app)
    (tmp_path / "example.cjs").write_text(javascript, "utf-8")
    said = node(tmp_path / "example.cjs", env={"GRAPHIUM_DSN": f"{address}&port={app.get('port', 5432)}"})
    assert said.splitlines() == [
        "[ 'hr' ] [ { content: 'Aisha prefers written feedback.', similarity: 1 } ]",
        "[] []",
        "MG005 query_embedding has 2 dimensions, the tenant's model toy-model has 3",
        "Give 3 finite numbers made by toy-model, or null to store or search by words only.",
    ]
    done = subprocess.run(
        [psql(), "--no-psqlrc", "--quiet", "--file=-", db.dsn("app")],
        input=story,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("Tomasz prefers small pull requests.\n1\n", "")
