"""What was changed by hand after a deploy: noticed by the plan, put back by the next deploy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphium_db import deploy
from graphium_db.deploy import Deployed, DeployError
from graphium_db.deploy.snapshot import snapshot
from tests.deploy.conftest import FUNCTION, SmallTree
from tests.support.databases import Database

Blank = Callable[..., Database]
ALL = ("functions/010_f.sql", "policies/010_p.sql")
POLICY = "policy tenant_and_scope_isolation on graphium.t"


@pytest.mark.parametrize(
    ("by_hand", "noticed"),
    [
        ("alter policy tenant_and_scope_isolation on graphium.t using (true)", [f"{POLICY} (changed)"]),
        ("drop policy tenant_and_scope_isolation on graphium.t", [f"{POLICY} (gone)"]),
        ("create policy all_see on graphium.t using (true)", ["policy all_see on graphium.t (added)"]),
        ("alter table graphium.t disable row level security", ["row security of graphium.t (changed)"]),
        ("alter table graphium.t no force row level security", ["row security of graphium.t (changed)"]),
        ("drop function graphium.f()", ["function graphium.f() (gone)"]),
        ("alter function graphium.f() security definer", ["function graphium.f() (changed)"]),
        ("create or replace function graphium.f() returns int language sql return 2", ["function graphium.f() (changed)"]),
        ("grant execute on function graphium.f() to public", ["grant execute on routine graphium.f() to public (added)"]),
        ("grant insert on graphium.t to graphium_app", ["grant insert on table graphium.t to graphium_app (added)"]),
        ("grant update (note) on graphium.t to public", ["grant update (note) on table graphium.t to public (added)"]),
        ("revoke select on graphium.t from graphium_reader", ["grant select on table graphium.t to graphium_reader (gone)"]),
        ("grant select on graphium.t to graphium_reader with grant option",
         ["grant select on table graphium.t to graphium_reader (changed)"]),
    ],
)  # fmt: skip
def test_is_noticed_and_put_back(blank: Blank, small: SmallTree, by_hand: str, noticed: list[str]) -> None:
    db = blank()
    dsn = db.dsn("deployer")
    small.write("migrations/0002_g.sql", "grant select on graphium.t to graphium_reader;")
    deploy.deploy(dsn, tree=small)
    before = snapshot(db.connect())
    db.connect().execute(by_hand.encode())
    changes = deploy.plan(dsn, tree=small).changes
    assert [c.path for c in changes if c.action == "changed by hand"] == noticed
    assert [c.path for c in changes if c.action == "apply again"] == list(ALL)
    assert deploy.deploy(dsn, tree=small) == Deployed((), ALL, (), tuple(noticed))
    assert snapshot(db.connect()) == before
    assert deploy.deploy(dsn, tree=small) == Deployed()


def test_is_put_back_although_there_is_a_migration_to_apply(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    db.connect().execute("grant insert on graphium.t to graphium_app")
    small.write("migrations/0002_g.sql", "grant select on graphium.t to graphium_app;")
    assert deploy.deploy(db.dsn("deployer"), tree=small).migrations == ("0002_g",)
    assert db.connect().execute(
        "select has_table_privilege('graphium_app', 'graphium.t', 'insert'), has_table_privilege('graphium_app', 'graphium.t', 'select')"
    ).fetchone() == (False, True)
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed()


def test_a_right_to_a_table_goes_and_those_to_its_columns_stay(blank: Blank, small: SmallTree) -> None:
    db = blank()
    small.write("migrations/0002_g.sql", "grant select (note) on graphium.t to graphium_reader;")
    deploy.deploy(db.dsn("deployer"), tree=small)
    before = snapshot(db.connect())
    db.connect().execute("grant select on graphium.t to graphium_reader")
    assert deploy.deploy(db.dsn("deployer"), tree=small).by_hand
    assert snapshot(db.connect()) == before
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed()


TRIGGER = """
create or replace function graphium.refuse() returns trigger
  language plpgsql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as $refuse$ begin raise exception 'no'; end $refuse$;
revoke all on function graphium.refuse() from public;
create or replace trigger guard before update on graphium.t for each row execute function graphium.refuse();
"""
GUARD = "trigger guard on graphium.t"


@pytest.mark.parametrize(
    ("by_hand", "noticed"),
    [
        ("drop trigger guard on graphium.t", f"{GUARD} (gone)"),
        ("alter table graphium.t disable trigger guard", f"{GUARD} (changed)"),
        ("create trigger also before update on graphium.t for each row execute function graphium.refuse()",
         "trigger also on graphium.t (added)"),
    ],
)  # fmt: skip
def test_a_trigger_is_put_back(blank: Blank, small: SmallTree, by_hand: str, noticed: str) -> None:
    db = blank()
    small.write("functions/010_f.sql", FUNCTION + TRIGGER)
    deploy.deploy(db.dsn("deployer"), tree=small)
    before = snapshot(db.connect())
    db.connect().execute(by_hand.encode())
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed((), ALL, (), (noticed,))
    assert snapshot(db.connect()) == before
    enabled = db.connect().execute("select tgenabled from pg_trigger where tgname = 'guard'").fetchone()
    assert enabled == ("O",)
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed()


def test_a_list_that_an_earlier_version_left_is_no_alarm_and_is_made_anew(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    superuser = db.connect()
    superuser.execute("delete from graphium_private.deployed_catalog where object = 'this list'")
    superuser.execute("update graphium_private.deployed_catalog set state = md5(state)")
    assert [c.action for c in deploy.plan(db.dsn("deployer"), tree=small).changes] == ["apply again", "apply again"]
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed((), ALL)
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed()


def test_a_migration_before_a_broken_file_is_not_taken_for_a_hand(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    small.write("migrations/0002_g.sql", "grant select on graphium.t to graphium_app;")
    small.write("functions/010_f.sql", FUNCTION + "select no_such_column;")
    with pytest.raises(DeployError, match="no_such_column"):
        deploy.deploy(db.dsn("deployer"), tree=small)
    small.write("functions/010_f.sql", FUNCTION)
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed((), ALL)
    assert db.connect().execute("select has_table_privilege('graphium_app', 'graphium.t', 'select')").fetchone() == (
        True,
    )


def test_a_function_added_by_hand_is_refused(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    admin = db.connect()
    admin.execute("set role graphium_owner")
    admin.execute(FUNCTION.replace("graphium.f", "graphium.g").encode())
    with pytest.raises(DeployError, match=r"alter routine graphium\.g\(\) set schema public;"):
        deploy.deploy(db.dsn("deployer"), tree=small)
    admin.execute("drop function graphium.g()")
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed()


@pytest.mark.parametrize(
    ("by_hand", "asked"),
    [
        ("alter function graphium.f() owner to {superuser}", "alter routine graphium.f() owner to graphium_owner"),
        ("alter function graphium.f() owner to graphium_keeper", "alter routine graphium.f() owner to graphium_owner"),
        ("alter table graphium.t owner to {superuser}", "alter table graphium.t owner to graphium_owner"),
        ("create table graphium_private.notes2 ()", "alter table graphium_private.notes2 set schema public"),
        ("create view graphium.v as select 1 as one", "alter view graphium.v set schema public"),
        ("create type graphium.pair as (a int, b int)", "alter type graphium.pair set schema public"),
        ("create type graphium.mood as enum ('good')", "alter type graphium.mood set schema public"),
        ("create domain graphium.word as text", "alter type graphium.word set schema public"),
        ("create sequence graphium.numbers", "alter sequence graphium.numbers set schema public"),
        (
            "create materialized view graphium.m as select 1 as one",
            "alter materialized view graphium.m set schema public",
        ),
        (
            "create aggregate graphium.total(int) (sfunc = int4pl, stype = int)",
            "alter routine graphium.total(integer) set schema public",
        ),
    ],
)
def test_what_a_deploy_may_not_put_back_is_refused_with_the_statement(
    blank: Blank, small: SmallTree, by_hand: str, asked: str
) -> None:
    db = blank()
    dsn = db.dsn("deployer")
    small.write("functions/010_f.sql", FUNCTION + "grant execute on function graphium.f() to graphium_keeper;")
    deploy.deploy(dsn, tree=small)
    before = snapshot(db.connect())
    db.connect().execute(by_hand.format(superuser="current_user").encode())
    planned = deploy.plan(dsn, tree=small)
    assert (planned.changes[0].action, planned.changes[0].statements) == ("refused", (f"{asked};",))
    with pytest.raises(DeployError) as raised:
        deploy.deploy(dsn, tree=small)
    assert str(raised.value) == str(planned.refusal)
    assert f"\n  {asked};" in (raised.value.hint or "")
    db.connect().execute(asked.encode())
    deploy.deploy(dsn, tree=small)  # a right that the wrong owner had before went when he became the owner
    assert snapshot(db.connect()) == before
    assert deploy.deploy(dsn, tree=small) == Deployed()


def test_statistics_of_what_people_wrote_are_put_back_and_others_are_the_dba_s(db: Database) -> None:
    superuser = db.connect()
    superuser.execute("alter table graphium.kg_statements alter content set statistics 100")
    superuser.execute("alter table graphium.kg_statements alter created_at set statistics 1000")
    by_hand = deploy.deploy(db.dsn("deployer")).by_hand
    assert by_hand == ("statistics of graphium.kg_statements.content (gone)",)
    targets = superuser.execute(
        "select attname, attstattarget from pg_attribute where attrelid = 'graphium.kg_statements'::regclass"
        " and attname in ('content', 'created_at') order by 1"
    ).fetchall()
    assert targets == [("content", 0), ("created_at", 1000)]


def test_each_function_s_owner_is_put_back_by_the_statement_that_migrate_tells(db: Database) -> None:
    superuser = db.connect()
    before = snapshot(superuser)
    with superuser.transaction():
        superuser.execute("set local search_path = pg_catalog, pg_temp")
        names = [row[0] for row in superuser.execute(
            "select p.oid::regprocedure::text from pg_proc p where pronamespace in ('graphium'::regnamespace, 'graphium_private'::regnamespace)"
        )]  # fmt: skip
        for name in names:
            superuser.execute(f"alter routine {name} owner to current_user".encode())
    planned = deploy.plan(db.dsn("deployer"))
    told = [change for change in planned.changes if change.action == "refused"]
    assert sorted(change.path for change in told) == sorted(f"function {name} (changed)" for name in names)
    for change in told:
        for statement in change.statements:
            superuser.execute(statement.encode())
    assert snapshot(superuser) == before
    assert not deploy.plan(db.dsn("deployer"))


def test_what_changes_rightly_is_no_alarm(db: Database) -> None:
    login = db.cluster.role(db.login("graphium_app"))
    admin = db.connect("admin")
    admin.execute("select graphium.create_tenant('drift-test')")
    superuser = db.connect()
    superuser.execute(f"grant select on graphium.kg_statements to {login}".encode())
    superuser.execute("create index on graphium.kg_statements (created_at)")
    try:
        assert deploy.deploy(db.dsn("deployer")) == Deployed()
    finally:
        admin.execute("select graphium.drop_tenant('drift-test')")
