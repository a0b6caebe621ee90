"""Attempts to have code of one's own run as somebody more powerful: by names that our functions, the deployer or a superuser
look up, and by taking the place of something that is missing. The attacker may create schemas in the database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg import sql

from graphium_db import deploy
from graphium_db.deploy.apply import DEPLOY_LOCK
from tests.isolation.attack import SECRET, Attacker, World, build
from tests.support.databases import Cluster, Connection, Database, as_caller

NOTE = "language plpgsql as $$ begin insert into mine.ran values (current_user); {} end $$"
# Each fits a call that bootstrap.sql, the deployer or a function of ours makes better than what PostgreSQL has.
BETTER = [
    ("format(text, text)", "text", "return pg_catalog.format($1, variadic array[$2]);"),
    ("format(text, name)", "text", "return pg_catalog.format($1, variadic array[$2::text]);"),
    ("format(text, regprocedure)", "text", "return pg_catalog.format($1, variadic array[$2::text]);"),
    ("unnest(text[])", "setof text", "return query select pg_catalog.unnest($1);"),
    ("array_to_string(text[], text)", "text", "return pg_catalog.array_to_string($1, $2);"),
    ("cardinality(text[])", "int", "return pg_catalog.cardinality($1);"),
    ("pg_try_advisory_lock(smallint)", "boolean", "return true;"),
    ("pg_try_advisory_lock(int)", "boolean", "return true;"),
    ("pg_advisory_unlock(smallint)", "boolean", "return true;"),
    ("pg_advisory_unlock(int)", "boolean", "return true;"),
    ("to_regclass(varchar)", "regclass", "return null;"),
    ("count(text)", "bigint", "return 1;"),
    ("same(text[], text[])", "boolean", "return true;"),
]


@pytest.fixture
def db(cluster: Cluster) -> Iterator[Database]:
    """Damaged on purpose: nobody asks for its health at the end."""
    database = Database(cluster, cluster.take())
    yield database
    database.close()
    cluster.give_back(database.name)


@pytest.fixture
def world(db: Database) -> World:
    return build(db)


@pytest.fixture
def attacker(world: World) -> Attacker:
    return world.attacker("builder")


def squat(conn: Connection, name: str) -> None:
    """Somebody makes a schema of that name and puts BETTER functions into it; table mine.ran says for whom one ran."""
    schema = sql.Identifier(name).as_string()
    for statement in (
        "create schema if not exists mine; grant usage on schema mine to public",
        "create table mine.ran (who name); grant insert on mine.ran to public",
        f"create schema {schema}; grant usage on schema {schema} to public",
        *(
            f"create function {schema}.{signature} returns {result} {NOTE.format(body)}"
            for signature, result, body in BETTER
        ),
        f"create operator {schema}.&& (leftarg = text[], rightarg = text[], procedure = {schema}.same)",
    ):
        conn.execute(statement.encode())


def ran(conn: Connection) -> set[str]:
    return {row[0] for row in conn.execute("select who from mine.ran")}


def test_a_schema_with_the_superusers_name(cluster: Cluster, world: World, attacker: Attacker) -> None:
    """`"$user"` comes first in the search path, so bootstrap.sql would run what is in it."""
    superuser = world.boss.info.user
    squat(attacker.conn, superuser)
    deploy.bootstrap(world.boss)
    assert ran(attacker.conn) == set()
    text = deploy.Tree.default().bootstrap
    world.boss.execute(text.replace("set search_path = pg_catalog, pg_temp;", "", 1).encode())
    assert ran(attacker.conn) == {superuser}


def test_pgvector_does_not_become_the_attackers(cluster: Cluster, world: World) -> None:
    """Where there is no extension yet, it is not made in the schema with the superuser's name."""
    name = cluster.new_name()
    cluster.create(name, "template1")
    try:
        fresh = Database(cluster, name)
        boss = fresh.connect()
        boss.execute(f"grant create on database {name} to {world.role('builder')}".encode())
        squat(fresh.connect(world.logins["builder"]), boss.info.user)
        deploy.bootstrap(boss)
        assert boss.execute(
            "select extnamespace::regnamespace::text from pg_extension where extname = 'vector'"
        ).fetchone() == ("public",)
        assert ran(boss) == set()
        fresh.close()
    finally:
        cluster.drop(name)


def test_a_schema_with_the_deployers_name(world: World, attacker: Attacker) -> None:
    deployer = world.db.cluster.role("deployer")
    squat(attacker.conn, deployer)
    # Everything is applied again, so each file is read under the path that the deployer set.
    world.boss.execute("delete from graphium_private.deployed_files")
    deploy.deploy(world.db.dsn("deployer"))
    deploy.deploy(world.db.connect("deployer"))
    assert ran(attacker.conn) == set()
    assert attacker.rows("select content from graphium.kg_statements where '{x}'::text[] && '{x}'") != []
    world.db.connect("deployer").execute("select format('%s', current_user)")  # what it would have been
    assert ran(attacker.conn) == {deployer}


def test_who_holds_up_a_deploy_is_named(world: World) -> None:
    """A deploy asks for an advisory lock, and says who has it."""
    login = world.db.login("pg_monitor")
    holder = world.db.connect(login)
    holder.execute("select pg_advisory_lock(%s)", [DEPLOY_LOCK])
    with pytest.raises(
        deploy.DeployError, match=rf"{world.db.cluster.role(login)}, process {holder.info.backend_pid}\b"
    ):
        deploy.deploy(world.db.dsn("deployer"), wait=0.1)
    world.boss.execute("select pg_terminate_backend(%s, 5000)", [holder.info.backend_pid])
    deploy.deploy(world.db.dsn("deployer"))


LABELS = (
    "_ag_label_vertex",
    "_ag_label_edge",
    "Family",
    "Genus",
    "Specimen",
    "HAS_GENUS",
    "HAS_SPECIMEN",
    "CONTAINS_SPECIMEN",
)
INGEST = """select graphium.ingest_context('new family', 'g', 's', '[{"content": "bait"}]')"""


def test_a_schema_with_the_name_of_a_missing_graph(world: World, attacker: Attacker) -> None:
    """After a partial restore, say. Its name is known, for the tenant's id is; triggers on its tables would run as the keeper."""
    graph = world.graphs["acme"]
    world.boss.execute("select graphium_private._drop_graph(id) from graphium.tenants where slug = 'acme'")
    attacker.conn.execute(
        f"create table mine.loot (who name, text text); grant all on mine.loot to public; grant usage on schema mine to public;"
        f" create function mine.rob() returns trigger language plpgsql as $$ begin"
        f" insert into mine.loot select current_user, content from graphium.kg_statements; return new; end $$;"
        f" create schema {graph}; grant usage on schema {graph} to public".encode()
    )
    for label in LABELS:
        attacker.conn.execute(
            f'create table {graph}."{label}" (id varchar, start_id varchar, end_id varchar, properties varchar, anchor_id uuid, required_scopes text[]);'
            f' grant all on {graph}."{label}" to public;'
            f' create trigger rob before insert on {graph}."{label}" for each row execute function mine.rob()'.encode()
        )
    assert attacker.tries(INGEST) == "MG009"
    assert attacker.tries("select graphium.cypher('MATCH (n) RETURN n')") == "MG009"
    admin = Attacker(world.admin)
    assert admin.rows("select detail from graphium.check_graph('acme')") == [
        "the schema of the graph belongs to another role than graphium_owner"
    ]
    assert admin.tries("select graphium.rebuild_graph('acme')") == "MG009"
    assert attacker.rows("select * from mine.loot") == []

    # Were the schema graphium_owner's, and the tables somebody's: the attack is a real one.
    with world.boss.transaction(force_rollback=True):
        world.boss.execute(f"alter schema {graph} owner to graphium_owner".encode())
        world.boss.execute(f"set local session authorization {world.role('builder')}".encode())
        world.boss.execute(INGEST.encode())
        loot = world.boss.execute("select distinct who, text ~ %s from mine.loot", [SECRET]).fetchall()
        assert ("graphium_keeper", True) in loot

    world.boss.execute(f"drop schema {graph} cascade".encode())
    assert admin.tries("select graphium.rebuild_graph('acme')") is None
    assert attacker.tries(INGEST) is None


def test_a_view_with_the_name_of_a_missing_label(world: World, attacker: Attacker) -> None:
    """check_graph() reads the labels as the keeper, so a function in such a view would run as him."""
    graph = world.graphs["acme"]
    world.boss.execute("select graphium_private._drop_graph(id) from graphium.tenants where slug = 'acme'")
    squat(attacker.conn, graph)
    for label in LABELS:
        attacker.conn.execute(
            f'create view {graph}."{label}" as select {graph}.cardinality(null) as id; grant select on {graph}."{label}" to public'.encode()
        )
    admin = Attacker(world.admin)
    assert admin.tries("select * from graphium.check_graph('acme')") is None
    assert admin.tries("select graphium.rebuild_graph('acme')") == "MG009"
    assert attacker.tries("select graphium.cypher('MATCH (n) RETURN n')") == "MG009"
    assert ran(attacker.conn) == set()


def test_a_temporary_table_with_the_name_of_a_label(world: World, attacker: Attacker) -> None:
    attacker.conn.execute(
        "create temp table loot (who name); create function pg_temp.rob() returns trigger language plpgsql as $$ begin insert into loot values (current_user); return new; end $$;"
        ' create temp table "Family" (id varchar, properties varchar, anchor_id uuid); create trigger rob before insert on "Family" for each row execute function pg_temp.rob()'
    )
    for kind in ("table", "view"):
        assert attacker.tries(INGEST) == "MG009"
        if kind == "table":
            attacker.conn.execute('drop table "Family"; create temp view "Family" as select 1 as id')
    attacker.conn.execute("discard temp")
    with as_caller(world.app, "acme"):
        world.app.execute(INGEST.encode())
