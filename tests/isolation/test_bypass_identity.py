"""Attempts to be somebody else: by settings, at connecting or later, by roles, and by rights that a DBA may give an analyst."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from tests.isolation.attack import SECRET, TEA, Attacker, World, build, ids
from tests.support.databases import Database

DENIED = "42501"
WHO = "select tenant, scopes, role, source from graphium.caller()"
MYSELF = [("acme", [], "principal", "principals")]


@pytest.fixture(scope="module")
def world(db: Database) -> World:
    return build(db)


def assert_still_himself(attacker: Attacker) -> None:
    assert attacker.rows(WHO) == MYSELF
    assert attacker.rows("select slug from graphium.tenants") == ["acme"]
    assert attacker.rows("select content from graphium.kg_statements") == [TEA]
    assert attacker.rows("select content from graphium.recall_context()") == [TEA]
    assert attacker.rows("select graphium.cypher('MATCH (f:Family) RETURN f.name')") == ["kitchen of acme"]
    attacker.assert_heard_nothing()


# ------------------------------------------------------------------------------------------ settings
@pytest.mark.parametrize(
    "options",
    [
        "-c graphium.tenant=other",
        "-c graphium.tenant=other -c graphium.scopes={hr}",
        "-c graphium.scopes={hr,public,*}",
        "-c graphium.scopes={hr} -c graphium.pooled=on",
        "-c graphium.pooled=off -c graphium.tenant=other",
        "-c GRAPHIUM.TENANT=other -c Graphium.Scopes={hr}",
        "-c row_security=on -c search_path=mine,pg_temp",
        "-c plan_cache_mode=force_generic_plan -c graphium.tenant=other",
        "-c standard_conforming_strings=off -c default_transaction_read_only=on",
    ],
)
@pytest.mark.parametrize("who", ["principal", "reader"])
def test_settings_at_connecting(world: World, who: str, options: str) -> None:
    assert_still_himself(world.attacker(who, options=options))


@pytest.mark.parametrize(
    "setting",
    [
        "role=graphium_admin",
        "role=graphium_app",
        "role=graphium_reader",
        "role=graphium_user",
        "role=graphium_keeper",
        "session_authorization=postgres",
        "session_preload_libraries=",
        "row_security=off",
    ],
)
def test_settings_that_connecting_refuses(world: World, setting: str) -> None:
    if setting == "row_security=off":  # allowed: it makes an error of what a policy would hide
        attacker = world.attacker("reader", options=f"-c {setting}")
        assert attacker.tries("select content from graphium.kg_statements") == DENIED
        attacker.assert_heard_nothing()
    else:
        with pytest.raises(psycopg.OperationalError):
            world.attacker("reader", options=f"-c {setting}")


NAMES = [
    ("set graphium.tenant = 'other'", "set graphium.scopes = '{hr}'"),
    ("set session graphium.tenant to other", "set local graphium.scopes to '{hr}'"),
    ("select set_config('graphium.tenant', 'other', false), set_config('graphium.scopes', '{hr}', false)",),
    ("select set_config('GRAPHIUM.tenant', 'other', false)",),
    ("update pg_settings set setting = 'other' where name = 'graphium.tenant'", "insert into pg_settings (name) values ('x')"),
    ("begin", "set local graphium.scopes = '{hr}'", "savepoint a", "set local graphium.tenant = 'other'", "release a", "commit"),
    ("do $$ begin perform set_config('graphium.tenant', 'other', false); end $$",),
    ("select graphium.set_caller('acme', '{hr}', false)",),
    ("select graphium.set_caller('acme', '{hr,public}')",),
    ("select graphium.set_caller('acme', null, false)",),
    ("select graphium.set_caller('other', '{hr}')",),
    ("select graphium.set_caller('other', '{hr}', false)",),
    ("select graphium.set_caller(current_user, '{}')",),
    ("alter role current_user set graphium.tenant = 'other'", "alter role current_user set graphium.scopes = '{hr}'"),
    ("alter role current_user set role = 'graphium_admin'",),
    ("alter role current_user set search_path = 'mine'",),
    ("set role graphium_user",),
    ("set role graphium_reader",),
    ("set role none",),
    ("set role graphium_user", "set session authorization default"),
    ("set session authorization current_user",),
]  # fmt: skip


@pytest.mark.parametrize("statements", NAMES, ids=ids(NAMES))
def test_names_taken_in_a_session(world: World, statements: tuple[str, ...]) -> None:
    """Whatever is set, and whether or not it is refused: he is himself, here and after connecting again."""
    attacker = world.attacker("principal")
    for statement in statements:
        attacker.tries(statement)
    assert_still_himself(attacker)
    assert_still_himself(world.attacker("principal"))
    world.boss.execute(sql.SQL("alter role {} reset all").format(sql.Identifier(world.role("principal"))))


def test_what_a_dba_set_for_the_database_names_no_principal(world: World) -> None:
    name = sql.Identifier(world.db.name).as_string()
    for setting, value in (("tenant", "other"), ("scopes", "{hr}")):
        world.boss.execute(f"alter database {name} set graphium.{setting} = '{value}'".encode())
    try:
        assert_still_himself(world.attacker("principal"))
        unbound = world.attacker("unbound")
        assert unbound.tries(WHO) == "MG001"
        assert unbound.rows("select content from graphium.kg_statements") == []
        stranger = world.attacker("stranger")
        assert stranger.tries(WHO) == DENIED
        assert stranger.tries("select content from graphium.kg_statements") == DENIED
    finally:
        for setting in ("tenant", "scopes"):
            world.boss.execute(f"alter database {name} reset graphium.{setting}".encode())


# ------------------------------------------------------------------------------------------ roles
ROLES = [
    "graphium_app",
    "graphium_admin",
    "graphium_owner",
    "graphium_keeper",
    "graphium_cypher",
    "pg_read_all_data",
]


@pytest.mark.parametrize("who", ["principal", "reader", "stranger", "unbound"])
def test_roles_that_nobody_may_take(world: World, who: str) -> None:
    attacker = world.attacker(who)
    others = [world.db.cluster.role("admin"), world.db.cluster.role("app"), world.boss.info.user, world.role("builder")]
    for role in ROLES + others:
        for statement in (
            f'set role "{role}"',
            f'set local role "{role}"',
            f'set session authorization "{role}"',
            f"select set_config('role', '{role}', false)",
            f'grant "{role}" to current_user',
            f"alter role \"{role}\" password 'x'",
            f"alter role \"{role}\" set graphium.tenant = 'acme'",
        ):
            assert attacker.tries(statement) in (DENIED, "42939"), statement  # names of PostgreSQL's own


def test_a_binding_goes_before_a_membership(world: World) -> None:
    """A principal who was made an application's or an admin's member by mistake stays what he is bound to."""
    member = sql.Identifier(world.role("principal")).as_string()
    attacker = world.attacker("principal")
    for group in ("graphium_app", "graphium_admin"):
        world.boss.execute(f"grant {group} to {member}".encode())
        try:
            attacker.tries("set graphium.tenant = 'other'", "set graphium.scopes = '{hr}'")
            assert_still_himself(attacker)
            attacker.tries(f"set role {group}")
            assert_still_himself(attacker)
            for call in (
                "list_tenants()",
                "drop_tenant('other')",
                "check_memory('other')",
                "add_principal(current_user, 'other', '{}')",
            ):
                assert attacker.tries(f"select graphium.{call}") == DENIED
        finally:
            attacker.tries("reset role")
            world.boss.execute(f"revoke {group} from {member}".encode())


def test_createrole_makes_nobody_powerful(world: World) -> None:
    attacker = world.attacker("builder")
    name = world.role("builder")
    world.boss.execute(f"alter role {name} createrole".encode())
    try:
        for statement in (
            f"create role {name}_x in role graphium_app",
            f"create role {name}_x superuser",
            f"create role {name}_x bypassrls",
            f"alter role {world.role('principal')} rename to {name}_x",
            f"alter role {world.db.cluster.role('app')} password 'x'",
            "grant graphium_admin to current_user",
            "alter role graphium_owner login",
        ):
            with attacker.conn.transaction(force_rollback=True):
                assert attacker.tries(statement) == DENIED, statement
        # One that he makes himself, and lends himself to, is nobody here.
        with attacker.conn.transaction(force_rollback=True):
            attacker.conn.execute(
                f"create role {name}_x; grant {name}_x to {name} with set true; set local role {name}_x".encode()
            )
            assert attacker.tries("select * from graphium.kg_statements") == DENIED
    finally:
        world.boss.execute(f"alter role {name} nocreaterole".encode())
    assert_still_himself(attacker)


# What a DBA may give an analyst beside his binding. None of it goes past the policies. (pg_monitor shows other people's SQL, and
# with it what they say; pg_maintain and pg_write_all_data can do harm: docs/security.md.)
@pytest.mark.parametrize(
    "power",
    [
        "pg_read_all_data",
        "pg_read_all_settings",
        "pg_read_all_stats",
        "pg_stat_scan_tables",
        "pg_maintain",
        "pg_write_all_data",
        "pg_signal_backend",
    ],
)
@pytest.mark.parametrize("who", ["principal", "stranger"])
def test_predefined_roles_go_past_no_policy(world: World, who: str, power: str) -> None:
    member = sql.Identifier(world.role(who)).as_string()
    attacker = world.attacker(who)
    world.boss.execute(f"grant {power} to {member}".encode())
    try:
        tables = world.boss.execute(
            "select oid::regclass::text from pg_class where relkind in ('r', 'p') and (relnamespace::regnamespace::text ~ '^graphium' or relnamespace = 'ag_catalog'::regnamespace)"
        ).fetchall()
        assert len(tables) > 50
        for [table] in tables:
            attacker.tries(f"select * from {table}", f"explain (analyze, verbose) select * from {table}")
            with attacker.conn.transaction(force_rollback=True):
                attacker.tries(f"update {table} set tenant_id = tenant_id returning *")
            with attacker.conn.transaction(force_rollback=True):
                attacker.tries(f"delete from {table} returning *")
        attacker.heard = [line for line in attacker.heard if "deployed_" not in line]
        attacker.assert_heard_nothing()
        assert all(world.hidden[tenant] not in line for tenant in world.hidden for line in attacker.heard)
        if who == "stranger":
            assert attacker.tries("select * from graphium.kg_statements") == DENIED
    finally:
        world.boss.execute(f"revoke {power} from {member}".encode())


def test_the_secret_would_be_heard(world: World) -> None:
    with world.unguarded("principal", "alter table graphium.kg_statements disable row level security") as attacker:
        attacker.rows("select content from graphium.kg_statements")
        with pytest.raises(AssertionError):
            attacker.assert_heard_nothing()
        assert any(SECRET in line for line in attacker.heard)
