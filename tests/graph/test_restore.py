"""A dump restored into a new database: the memory works at once, the graph after bootstrap and rebuild_graph().

AGE keeps the oid of a graph's schema in its catalog, which a restore gives anew, so every Cypher query of a restored
database fails until the graph is rebuilt.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from graphium_db import deploy
from graphium_db.deploy.snapshot import snapshot
from tests.graph.mirror import Taxonomy, assert_equal
from tests.support.databases import Cluster, Connection, Database, as_caller
from tests.support.psql import libpq_environment, psql
from tests.support.shell import as_logins, blocks, paste


def program(name: str) -> str:
    return str(Path(psql()).with_name(name))


@pytest.fixture(scope="module")
def source(db: Database) -> Database:
    admin, superuser = db.connect("admin"), db.connect()
    for slug in ("acme", "O'Brien & $$"):
        admin.execute("select graphium.create_tenant(%s)", [slug])
        taxonomy = Taxonomy(superuser, slug)
        taxonomy.small()
        [family] = taxonomy.families('hidden "family" \\', scopes=["hr"])
        taxonomy.genera(family, "{}")
    admin.execute("select graphium.add_principal(%s, 'acme', '{hr}')", [db.cluster.role(db.login())])
    return db


@pytest.fixture(params=["plain", "custom", "custom --clean --if-exists"])
def restored(source: Database, cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    name = cluster.new_name()
    cluster.create(name, template="template0")
    into = Database(cluster, name)
    environment, target = libpq_environment(source.dsn()), libpq_environment(into.dsn())
    dump = tmp_path / "dump"
    kind, *options = request.param.split()
    subprocess.run(
        [program("pg_dump"), f"--format={kind}", f"--file={dump}"], env=environment, check=True, capture_output=True
    )
    if kind == "plain":
        subprocess.run(
            [psql(), "--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-f", str(dump)],
            env=target,
            check=True,
            capture_output=True,
        )
    else:
        subprocess.run(
            [program("pg_restore"), "--exit-on-error", *options, f"--dbname={name}", str(dump)],
            env=target,
            check=True,
            capture_output=True,
        )
    try:
        yield into
    finally:
        into.close()
        cluster.give_back(name)


def names(conn: Connection) -> set[str]:
    return {row[0] for row in conn.execute("select graphium.cypher('MATCH (n:Family) RETURN n.name')")}


def test_restored(restored: Database) -> None:
    superuser = restored.connect()
    ids = dict(superuser.execute("select slug, id from graphium.tenants").fetchall())
    assert sorted(ids) == ["O'Brien & $$", "acme"]

    # Roles of one cluster keep their oids, so bindings hold. (tests/isolation/test_principals.py: in another cluster none does.)
    bindings = restored.connect("admin").execute("select tenant, scopes, is_in_force from graphium.list_principals()")
    assert bindings.fetchall() == [("acme", ["hr"], True)]

    # Before: the memory takes writes, and mirrors them by the names of the tables; Cypher says what to do.
    app, admin = restored.connect("app"), restored.connect("admin")
    with as_caller(app, "acme"):
        app.execute(
            "select graphium.ingest_context('new', 'g', 's', %s)", [Jsonb([{"content": "x", "embedding": None}])]
        )
    for id in ids.values():
        assert_equal(superuser, id)
    with pytest.raises(errors.Error) as raised, as_caller(app, "acme"):
        names(app)
    assert raised.value.sqlstate == "MG009"
    assert "rebuild_graph" in (raised.value.diag.message_hint or "")
    problems = admin.execute("select problem, detail from graphium.check_graph('acme')").fetchall()
    assert ("damaged catalog", "AGE knows the graph by an outdated oid, as after pg_restore") in problems

    # The documented steps.
    with psycopg.connect(restored.dsn(), autocommit=True) as conn:
        deploy.bootstrap(conn)
    admin = restored.connect("admin")
    for slug in ids:
        assert admin.execute("select graphium.rebuild_graph(%s)", [slug]).fetchone() is not None

    assert restored.ailments() == []
    assert superuser.execute("select * from graphium_private._check_cypher_grants()").fetchall() == []
    assert not deploy.plan(
        restored.dsn("deployer")
    )  # a definition that reads otherwise, once restored, would be told as changed by hand
    for id in ids.values():
        assert_equal(superuser, id)
    app = restored.connect("app")
    with as_caller(app, "acme"):
        assert names(app) == {"performance", "relationships", "new"}
    with as_caller(app, "acme", ["hr"]):
        assert names(app) == {"performance", "relationships", "new", 'hidden "family" \\'}
    with as_caller(app, "O'Brien & $$"):
        assert names(app) == {"performance", "relationships"}
        app.execute(
            "select graphium.ingest_context('new', 'g', 's', %s)", [Jsonb([{"content": "x", "embedding": None}])]
        )
        assert "new" in names(app)
    admin.execute("select graphium.create_tenant('and a new one')")
    with as_caller(app, "and a new one"):
        assert names(app) == set()
    assert restored.ailments() == []


# Whoever makes or fills these runs what their owner wrote: `stop` stands for something worse.
HERS = """
    create function {hers}.stop(x int) returns boolean language plpgsql as $stop$ begin
      if session_user <> {owner} then raise exception 'ran as %', session_user; end if;
      return true;
    end $stop$;
    create table {hers}.notes (x int check ({hers}.stop(x)));
    insert into {hers}.notes values (1);
    create domain {hers}.small as int check ({hers}.stop(value));
    create view {hers}.constants as select '{{1}}'::{hers}.small[] as them;
    create table {hers}.defaults (x {hers}.small[] default '{{1}}');
    create type {hers}.pair as (x int);
    create function {hers}.first(p {hers}.pair) returns int language sql return p.x;
    create cast ({hers}.pair as int) with function {hers}.first({hers}.pair);
    create materialized view {hers}.counted as select count(*) as n from {hers}.notes where {hers}.stop(x);
    select lo_from_bytea(0, 'a large object');
"""


@pytest.fixture
def hers(source: Database) -> Iterator[tuple[str, str]]:
    """A principal's login and schema."""
    superuser, login = source.connect(), source.login()
    owner = source.cluster.role(login)
    source.connect("admin").execute("select graphium.add_principal(%s, 'acme', '{hr}')", [owner])
    schema = f"hers {owner} graphium_owner"
    superuser.execute(
        sql.SQL("create schema {} authorization {}").format(sql.Identifier(schema), sql.Identifier(owner))
    )
    source.connect(login).execute(sql.SQL(HERS).format(hers=sql.Identifier(schema), owner=sql.Literal(owner)))
    yield login, schema
    superuser.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(owner)))
    source.connect("admin").execute("select graphium.remove_principal(%s)", [owner])


def test_the_recipe_of_the_docs(source: Database, cluster: Cluster, tmp_path: Path, hers: tuple[str, str]) -> None:
    """Line by line; but for the roles, which belong to the whole cluster, and this one's are there."""
    recipe, of_owners = blocks("docs/restore.md", "sh")
    into = Database(cluster, cluster.new_name())
    said: dict[str, str] = {}
    try:
        for line in recipe.splitlines():
            command = line.split("  #")[0].strip()
            if not command or "roles.sql" in command:
                continue
            database = source.name if command.startswith("pg_dump ") else into.name
            command = re.sub(r"\bmemory$|(?<=-d )memory\b", database, command)
            command = as_logins(command, {"deployer": into.dsn("deployer"), "my_admin": into.dsn("admin")})
            if command.startswith("graphium doctor"):
                command += " --json | cat"  # other runs have roles on this server, which may be its faults
            said[command.split(" | ")[0].split(" --dsn")[0]] = paste(command, source.dsn(), tmp_path)
        assert len(said) == 9
        assert said["graphium migrate"] == "Nothing to do.\n"
        assert said["graphium maintain --rebuild-graphs"].count(" rebuilt: ") == 2
        bound = [line.split()[1:] for line in said["graphium principal list"].splitlines()[-2:]]
        assert bound == [["acme", "hr", "read", "and", "write"]] * 2
        found = {f["check"]: (f["level"], f["found"]) for f in json.loads(said["graphium doctor"])}
        assert found["deployment"] == ("ok", "up to date")
        assert not {"explain_tells", "ag_catalog_grant", "ag_catalog_slow"} & found.keys()
        assert into.ailments() == []
        with as_caller(into.connect("app"), "acme") as app:
            assert "relationships" in names(app)

        login, schema = hers
        there = "select relname from pg_class where relnamespace = quote_ident(%s)::regnamespace and relkind in ('r', 'v', 'm') order by 1"
        assert into.connect().execute(there, [schema]).fetchall() == []
        command = of_owners.replace("-n hers", f"-n {shlex.quote(schema)}")
        command = command.replace('"dbname=memory user=analyst"', shlex.quote(into.dsn(login)))
        paste(command, into.dsn(login), tmp_path)
        analyst = into.connect(login)
        assert [name for (name,) in analyst.execute(there, [schema])] == ["constants", "counted", "defaults", "notes"]
        for table, rows in (("notes", [(1,)]), ("counted", [(1,)])):
            query = sql.SQL("select * from {}").format(sql.Identifier(schema, table))
            assert analyst.execute(query).fetchall() == rows
    finally:
        into.close()
        cluster.drop(into.name)


def test_a_superuser_who_restored_all_would_run_what_others_wrote(
    source: Database, cluster: Cluster, tmp_path: Path, hers: tuple[str, str]
) -> None:
    name = cluster.new_name()
    cluster.create(name, template="template0")
    dump = tmp_path / "dump"
    dumped = [program("pg_dump"), "--format=custom", f"--file={dump}"]
    subprocess.run(dumped, env=libpq_environment(source.dsn()), check=True, capture_output=True)
    try:
        everything = [program("pg_restore"), f"--dbname={name}", str(dump)]
        done = subprocess.run(everything, env=libpq_environment(cluster.dsn(name)), capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr.count("ran as ") >= 3  # the table, the view, the default
    finally:
        cluster.give_back(name)


def test_after_a_restore_without_owners_the_lint_s_statements_give_all_back(
    source: Database, cluster: Cluster, tmp_path: Path
) -> None:
    name = cluster.new_name()
    cluster.create(name, template="template0")
    into = Database(cluster, name)
    target = libpq_environment(into.dsn())
    dump = tmp_path / "dump"
    dumped = [program("pg_dump"), "--format=custom", f"--file={dump}"]
    subprocess.run(dumped, env=libpq_environment(source.dsn()), check=True, capture_output=True)
    try:
        loaded = [program("pg_restore"), "--exit-on-error", "--no-owner", f"--dbname={name}", str(dump)]
        subprocess.run(loaded, env=target, check=True, capture_output=True)
        with pytest.raises(deploy.DeployNotAllowedError, match=r"(?s)permission denied.*lint = 'owner' \\gexec"):
            deploy.deploy(into.dsn("deployer"))
        page = (Path(__file__).resolve().parents[2] / "docs" / "lints.md").read_text("utf-8")
        [asked] = re.findall(r"`(select remedy .*? \\gexec)`", page)
        subprocess.run(
            [psql(), "--no-psqlrc", "-v", "ON_ERROR_STOP=1"],
            input=asked.encode(),
            env=target,
            check=True,
            capture_output=True,
        )
        deploy.deploy(into.dsn("deployer"))
        superuser = into.connect()
        now, before = snapshot(superuser), snapshot(source.connect())
        for section in ("functions", "policies", "privileges"):  # constraints are written otherwise, once restored
            assert now[section] == before[section]
        assert re.findall(r"^.* 00 .*$", now["tables"], re.M) == re.findall(r"^.* 00 .*$", before["tables"], re.M)
        left = superuser.execute("select object from graphium.check_security() where lint = 'owner'").fetchall()
        assert left == []
    finally:
        into.close()
        cluster.give_back(name)
