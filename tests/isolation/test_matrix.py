"""matrix.yaml says what each actor gets from each object by each operation; here every cell of it is tried.

Each cell is one transaction of the actor's own connection, rolled back. Whatever it brings (rows, or all that an error
says) must hold no text and no id of a row that is hidden from the actor, and no such row may be changed by it.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import click
import psycopg
import pytest
import yaml

from graphium_db import Graphium
from graphium_db.cli import main
from graphium_db.cli.main import UNHEALTHY, cli
from graphium_db.errors import BY_SQLSTATE, GraphiumError
from tests.isolation.world import ACTORS, Actor, NoModel, World, build, rows
from tests.support.databases import Connection, Database

FILE = Path(__file__).with_name("matrix.yaml")
MARK = r" \[\^(\w+)\](?=:)"  # of a note, which is for readers
MATRIX: dict[str, Any] = yaml.load(re.sub(MARK, "", FILE.read_text("utf-8")), yaml.BaseLoader)  # every cell is a text
CALLS = ("functions", "cypher", "statements", "commands", "client")
UNSTATED = "not stated"


class Cell(NamedTuple):
    """What `actor` gets from `object` by `operation`; for a call, the object is the call."""

    object: str
    operation: str
    actor: str
    expected: str


def lines(section: str) -> list[Any]:
    """Every object and operation of a section, with a cell for each actor; named for pytest."""
    stated: dict[tuple[str, str], Any] = {}
    if section in CALLS:
        stated = {(call, ""): row for call, row in MATRIX[section].items()}
    else:
        for operations, rows in MATRIX[section]["operations"].items():
            for group, names in MATRIX[section]["names"].items():
                for operation, name in itertools.product(operations.split(", "), names):
                    stated[name, operation] = rows.get(name, rows.get(group, rows.get("all others", UNSTATED)))
    found = []
    for (name, operation), row in stated.items():
        columns = [row] * len(ACTORS) if isinstance(row, str) else row
        columns += [UNSTATED] * (len(ACTORS) - len(columns))
        assert len(columns) == len(ACTORS), f"{name} {operation}: a cell too many"
        line = [Cell(name, operation, actor, expected) for actor, expected in zip(ACTORS, columns, strict=True)]
        found.append(pytest.param(line, id=f"{name} {operation}"))
    return found


@pytest.fixture(scope="module")
def world(db: Database, tmp_path_factory: pytest.TempPathFactory) -> World:
    return build(db, tmp_path_factory.mktemp("world"))


@dataclass(frozen=True)
class Got:
    """A cell as it was found, and all that came with it."""

    cell: str
    everything: str = ""


@contextmanager
def acting(world: World, actor: Actor) -> Iterator[Connection]:
    """A transaction of the actor's, rolled back."""
    conn = world.connections[actor.name]
    conn.execute(f"begin; {actor.begin}".encode())
    try:
        yield conn
    finally:
        conn.execute("rollback")


def rows_after(world: World, conn: Connection) -> dict[UUID, str]:
    """What the open transaction made of them; one that failed has changed nothing."""
    failed = conn.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
    return world.before if failed else rows(conn)


def error(caught: psycopg.Error) -> Got:
    diag = caught.diag
    said = (
        diag.message_primary,
        diag.message_detail,
        diag.message_hint,
        diag.context,
        diag.table_name,
        diag.constraint_name,
    )
    return Got(str(caught.sqlstate), f"{caught} {said}")


@functools.cache
def hidden(world: World, actor: str) -> tuple[list[str], list[UUID]]:
    """What it must never get, and the rows that it must never change."""
    return world.hidden_from(ACTORS[actor]), [UUID(id) for id in world.hidden_ids(ACTORS[actor])]


def expect(world: World, cell: Cell, call: str, got: Got, after: dict[UUID, str]) -> None:
    """The cell is as stated, nothing hidden came along, and nothing hidden changed. What the call says is no secret."""
    secrets, hidden_rows = hidden(world, cell.actor)
    found = "some" if cell.expected == "some" and got.cell.isdigit() else got.cell
    assert (cell.actor, found) == (cell.actor, cell.expected), got.everything
    told = [secret for secret in secrets if secret in got.everything and secret not in call]
    changed = [id for id in hidden_rows if after.get(id) != world.before[id]]
    assert (cell.actor, told, changed) == (cell.actor, [], [])


# ------------------------------------------------------------------------------------------ tables and sequences
def quoted(world: World, name: str) -> str:
    schema, relation = name.split(".")
    return f'{world.graph if schema == "graph" else schema}."{relation}"'


class Shape(NamedTuple):
    """Of a table: its oid, a row as JSON, the columns that can be written, and those of its key with their types."""

    oid: int
    row: str
    columns: list[str]
    key: list[tuple[str, str]]


@functools.cache
def shape_of(world: World, table: str) -> Shape:
    columns = world.boss.execute(
        "select quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), coalesce(a.attnum = any (i.indkey), false), a.attgenerated = ''"
        "  from pg_attribute a left join pg_index i on i.indrelid = a.attrelid and i.indisprimary"
        " where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum",
        [table],
    ).fetchall()
    [(oid,)] = world.boss.execute("select %s::regclass::oid", [table])
    row = world.boss.execute(f"select to_jsonb(t)::text from {table} t limit 1".encode()).fetchone()
    key = [(name, type_) for name, type_, is_key, _ in columns if is_key] or [columns[0][:2]]
    return Shape(oid, row[0] if row else "{}", [name for name, _, _, is_given in columns if is_given], key)


PRIVILEGES = ("select", "insert", "update", "references")


def held_on_a_column(conn: Connection, table: int) -> str:
    """The privileges that whoever acts on `conn` holds on at least one column."""
    answers = ", ".join(f"has_any_column_privilege({table}, '{privilege}')" for privilege in PRIVILEGES)
    [row] = conn.execute(f"select {answers}".encode())
    held = [privilege for privilege, is_held in zip(PRIVILEGES, row, strict=True) if is_held]
    return "none" if not held else "all" if len(held) == len(PRIVILEGES) else " and ".join(held)


@pytest.mark.parametrize("line", lines("tables"))
def test_tables(world: World, line: list[Cell]) -> None:
    for cell in line:
        if cell.operation == "any column":
            with acting(world, ACTORS[cell.actor]) as conn:
                held = held_on_a_column(conn, shape_of(world, quoted(world, cell.object)).oid)
            expect(world, cell, "", Got(held), world.before)
        else:
            touched(world, cell)


def touched(world: World, cell: Cell) -> None:
    table = quoted(world, cell.object)
    shape = shape_of(world, table)
    given = ", ".join(shape.columns)
    row = "jsonb_populate_record(null::{}, '{}')".format(table, shape.row.replace("'", "''"))
    key = [(f"c{n}", name, type_) for n, (name, type_) in enumerate(shape.key)]
    command = {
        "select": f"select * from {table}",
        "select system columns": f"select tableoid, ctid, xmin, xmax, cmin, cmax from {table}",
        "select for update": f"select * from {table} for update",
        "copy to": f"copy {table} to stdout",
        "copy from": f"copy {table} from stdin",
        "insert": f"insert into {table} ({given}) select {given} from {row}",
        "update": f"update {table} set {shape.columns[0]} = {shape.columns[0]}",
        "delete": f"delete from {table}",
        "truncate": f"truncate {table} cascade",
        "references": f"create table matrix.mine ({', '.join(f'{mine} {type_}' for mine, _, type_ in key)}, foreign key"
        f" ({', '.join(mine for mine, _, _ in key)}) references {table} ({', '.join(name for _, name, _ in key)}))",
        "trigger": f"create trigger mine after insert on {table} for each statement execute function matrix.noop()",
        "lock": f"lock table {table}",
        "lock in access share mode": f"lock table {table} in access share mode",
    }[cell.operation]
    with acting(world, ACTORS[cell.actor]) as conn:
        try:
            with conn.cursor() as cursor:
                if cell.operation == "copy to":
                    with cursor.copy(command.encode()) as out:
                        lines = [bytes(line).decode() for line in out]
                    got = Got(str(len(lines)), "".join(lines))
                elif cell.operation == "copy from":
                    with cursor.copy(command.encode()):
                        pass
                    got = Got("ok")
                else:
                    cursor.execute(command.encode())
                    counts = cell.operation in ("insert", "update", "delete") or cursor.description is not None
                    got = Got(
                        str(cursor.rowcount) if counts else "ok", repr(cursor.fetchall() if cursor.description else "")
                    )
        except psycopg.Error as caught:
            got = error(caught)
    # A row tells the ids of what it hangs on, also where those are hidden: `leftover` is in the family `raises`.
    told = " ".join(
        world.ids[name] for name in ("raises_family", "pay_genus", "grades_specimen") if cell.actor == "unscoped"
    )
    expect(world, cell, row if cell.operation == "insert" else told, got, world.before)


def test_a_privilege_on_one_column_is_noticed(world: World) -> None:
    """All columns at once are refused all the same, so the other operations would not tell."""
    statements, principals = (shape_of(world, f"graphium.{table}").oid for table in ("kg_statements", "principals"))
    with world.boss.transaction(force_rollback=True):
        world.boss.execute("grant insert (content), update (content) on graphium.kg_statements to graphium_user")
        world.boss.execute("grant select (tenant) on graphium.principals to public")
        world.boss.execute(f"set local session authorization {world.roles['unbound_login']}".encode())
        assert held_on_a_column(world.boss, statements) == "select and insert and update"
        assert held_on_a_column(world.boss, principals) == "select"
        for command in ("delete from graphium.kg_statements", "select * from graphium.principals"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), world.boss.transaction():
                world.boss.execute(command.encode())


@pytest.mark.parametrize("line", lines("sequences"))
def test_sequences(world: World, line: list[Cell]) -> None:
    for cell in line:
        sequence = quoted(world, cell.object)
        command = {
            "select": f"select * from {sequence}",
            "nextval": f"select nextval('{sequence}')",
            "setval": f"select setval('{sequence}', 100)",
        }[cell.operation]
        with acting(world, ACTORS[cell.actor]) as conn:
            expect(world, cell, "", result(conn, command), world.before)


def result(conn: Connection, command: str, value: bool = False) -> Got:
    """Rows as their number, or, where a `value` is to be returned, a number as it is and anything else as ok."""
    try:
        cursor = conn.execute(command.encode())
        found = cursor.fetchall() if cursor.description else None
    except psycopg.Error as caught:
        return error(caught)
    if found is None:
        return Got("ok")
    if value:
        return Got(str(found[0][0]) if isinstance(found[0][0], int) else "ok", repr(found))
    return Got(str(len(found)), repr(found))


# ------------------------------------------------------------------------------------------ calls
def attempted(world: World, cell: Cell, command: str, value: bool = False) -> None:
    with acting(world, ACTORS[cell.actor]) as conn:
        got = result(conn, command, value)
        after = rows_after(world, conn)
    expect(world, cell, command, got, after)


@functools.cache
def returns_a_value(world: World, function: str) -> bool:
    """And not rows or a record."""
    found = world.boss.execute(
        "select not proretset and prorettype <> 'record'::regtype from pg_proc where pronamespace = 'graphium'::regnamespace and proname = %s",
        [function],
    ).fetchone()
    return found is not None and bool(found[0])


@pytest.mark.parametrize("line", lines("functions"))
def test_functions(world: World, line: list[Cell]) -> None:
    for cell in line:
        name = cell.object.split("(")[0]
        attempted(world, cell, f"select * from graphium.{world.filled_in(cell.object)}", returns_a_value(world, name))


@pytest.mark.parametrize("line", lines("cypher"))
def test_cypher(world: World, line: list[Cell]) -> None:
    for cell in line:
        attempted(world, cell, f"select graphium.cypher($query${world.filled_in(cell.object)}$query$)")


@pytest.mark.parametrize("line", lines("statements"))
def test_statements(world: World, line: list[Cell]) -> None:
    for cell in line:
        attempted(world, cell, world.filled_in(cell.object))


@pytest.mark.parametrize("actor", ACTORS)
def test_other_helpers(world: World, actor: str) -> None:
    """Everything else in graphium_private, which no application may even name; the owner gets nothing by it."""
    calls = world.boss.execute(
        "select format('%I.%I(%s)', pronamespace::regnamespace, proname, (select string_agg(format('null::%s', format_type(t, null)), ', ' order by n)"
        "                                                   from unnest(proargtypes) with ordinality as a(t, n)))"
        "  from pg_proc where pronamespace = 'graphium_private'::regnamespace and prokind = 'f' order by 1"
    ).fetchall()
    assert len(calls) > 100
    for (call,) in calls:
        with acting(world, ACTORS[actor]) as conn:
            got = result(conn, f"select * from {call}")
            after = rows_after(world, conn)
        stated = MATRIX["other helpers"][list(ACTORS).index(actor)]
        assert stated in ("42501", "harmless")
        cell = Cell(call, "", actor, "42501" if stated == "42501" else got.cell)
        expect(world, cell, call, got, after)


# ------------------------------------------------------------------------------------------ command line and Python
def shown(value: Any) -> str:
    """What a call of the client returned, or a command printed as JSON, as a cell."""
    if isinstance(value, dict) and len(value) == 1:
        [value] = value.values()
    if isinstance(value, list):
        return str(len(value))
    return str(value) if isinstance(value, int) else "ok"


@pytest.mark.parametrize("line", lines("client"))
def test_client(world: World, line: list[Cell]) -> None:
    for cell in line:
        actor = ACTORS[cell.actor]
        call = world.filled_in(cell.object)
        with acting(world, actor) as conn:
            client = Graphium(tenant=actor.tenant, scopes=actor.scopes, embedder=NoModel(), connection=conn)
            try:
                value = eval(f"client.{call}", {"client": client})
                got = Got(shown(value), repr(value))
            except (GraphiumError, psycopg.Error) as caught:
                state = str(caught.sqlstate)
                as_it_should = type(caught) is (BY_SQLSTATE.get(state) or psycopg.errors.lookup(state))
                got = Got(
                    state if as_it_should else type(caught).__name__,
                    f"{caught!r} {error(caught) if isinstance(caught, psycopg.Error) else ''}",
                )
            after = rows_after(world, conn)
        expect(world, cell, call, got, after)


@pytest.mark.parametrize("line", lines("commands"))
def test_commands(world: World, monkeypatch: pytest.MonkeyPatch, line: list[Cell]) -> None:
    """On the actor's own connection, so that it can be rolled back; what looks at the database by itself uses the DSN."""
    for cell in line:
        actor = ACTORS[cell.actor]
        command = world.filled_in(cell.object)
        with acting(world, actor) as conn:
            monkeypatch.setattr(
                "graphium_db.cli.options.Graphium",
                lambda _dsn=None, **caller: Graphium(embedder=NoModel(), **{**caller, "connection": conn}),
            )
            for variable, value in (
                ("DSN", world.db.dsn(world.logins[actor.login])),
                ("TENANT", actor.tenant),
                ("SCOPES", ",".join(actor.scopes or ())),
            ):
                monkeypatch.setenv(f"GRAPHIUM_{variable}", value) if value else monkeypatch.delenv(
                    f"GRAPHIUM_{variable}", False
                )
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
                code = main([*shlex.split(command), "--json"])
            after = rows_after(world, conn)
        done = code == 0 or (code == UNHEALTHY and command.startswith("doctor"))
        got = Got(shown(json.loads(out.getvalue())) if done else f"exit {code}", out.getvalue() + err.getvalue())
        file = Path(world.names["statements"]).read_text("utf-8") if "$statements" in cell.object else ""
        expect(world, cell, command + file, got, after)


# ------------------------------------------------------------------------------------------ nothing is missing
def relations(world: World, kinds: str) -> set[str]:
    """Everything of those kinds in our schemas, in acme's graph and in AGE's."""
    found = world.boss.execute(
        "select case n.nspname when %s then 'graph' else n.nspname end || '.' || c.relname"
        "  from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname in ('graphium', 'graphium_private', 'ag_catalog', %s) and c.relkind = any (%s)",
        [world.graph, world.graph, list(kinds)],
    )
    return {name for (name,) in found}


def objects(section: str) -> set[str]:
    return set(itertools.chain(*MATRIX[section]["names"].values()))


def test_every_table_and_view_is_named(world: World) -> None:
    assert objects("tables") == relations(world, "rpvmf")


def test_every_sequence_is_named(world: World) -> None:
    assert objects("sequences") == relations(world, "S")


def named(section: str) -> set[str]:
    return {call.split("(")[0] for call in MATRIX[section]}


def test_every_public_function_is_named(world: World) -> None:
    """And every helper that somebody may execute who is no owner."""
    public = world.boss.execute("select proname from pg_proc where pronamespace = 'graphium'::regnamespace")
    assert named("functions") == {name for (name,) in public}
    executable = world.boss.execute(
        "select distinct p.proname from pg_proc p, unnest(%s::text[]) as r(role)"
        " where p.pronamespace = 'graphium_private'::regnamespace and has_function_privilege(r.role, p.oid, 'execute')",
        [[world.roles[f"{login}_login"] for login in ("app", "admin", "principal", "reader", "unbound", "stranger")]],
    )
    in_statements = " ".join(MATRIX["statements"])
    assert [name for (name,) in executable if f"graphium_private.{name}(" not in in_statements] == []


def test_every_type_is_named(world: World) -> None:
    types = world.boss.execute(
        "select t.typnamespace::regnamespace || '.' || t.typname from pg_type t left join pg_class c on c.oid = t.typrelid"
        " where t.typnamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)"
        "   and t.typtype <> 'p' and t.typelem = 0 and coalesce(c.relkind, 'c') = 'c'"
    )
    in_statements = " ".join(MATRIX["statements"])
    assert [name for (name,) in types if f"null::{name}" not in in_statements] == []


def test_every_client_method_is_named() -> None:
    methods = {name for name, member in vars(Graphium).items() if callable(member) and not name.startswith("_")}
    assert named("client") == methods - {"close"}


def commands(group: click.Group) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from (f"{name} {below}" for below in commands(command))
        else:
            yield name


def test_every_command_is_named() -> None:
    existing = set(commands(cli))
    tried = {next((c for c in existing if f"{call} ".startswith(f"{c} ")), call) for call in MATRIX["commands"]}
    assert tried == existing - {"up"}  # which starts a server of one's own


def test_the_file_has_nothing_that_is_not_looked_at() -> None:
    assert set(MATRIX) == {"cells", "notes", "actors", "tables", "sequences", "other helpers", *CALLS}
    assert list(MATRIX["actors"]) == list(ACTORS)
    assert set(MATRIX["notes"]) == set(re.findall(MARK, FILE.read_text("utf-8")))
    for section in ("tables", "sequences"):
        for operation, stated in MATRIX[section]["operations"].items():
            assert set(stated) - {"all others"} <= objects(section) | set(MATRIX[section]["names"]), operation


def test_every_operation_on_tables_is_there() -> None:
    stated = {operation for operations in MATRIX["tables"]["operations"] for operation in operations.split(", ")}
    assert stated == {"select", "select system columns", "select for update", "copy to", "copy from", "insert", "update", "delete", "any column", "truncate", "references", "trigger", "lock", "lock in access share mode"}  # fmt: skip


def test_the_checks_can_fail(world: World) -> None:
    """What must not come along is there to come along; and when it does, or when a hidden row changes, a cell fails."""
    tables = ("kg_statements", "dh_families", "dh_genera", "dh_specimens", "dh_symbioses", "tenants")
    everything = repr([world.boss.execute(f"select * from graphium.{table}".encode()).fetchall() for table in tables])
    assert [secret for secret in world.hidden_from(ACTORS["nobody"]) if secret not in everything] == []
    cell = Cell("", "", "unscoped", "ok")
    expect(world, cell, "", Got("ok", world.ids["open"]), world.before)
    for name in ("hr", "legal", "either", "umbrella_open", "raises_family", "both_edge", "umbrella"):
        with pytest.raises(AssertionError):
            expect(world, cell, "", Got("ok", world.ids[name]), world.before)
        id = UUID(world.ids[name])
        for after in (
            world.before | {id: "another hash"},
            {key: hash for key, hash in world.before.items() if key != id},
        ):
            with pytest.raises(AssertionError):
                expect(world, cell, "", Got("ok"), after)
