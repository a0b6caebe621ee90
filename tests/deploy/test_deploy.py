"""The deployer on a small tree: what it applies, what it refuses, and what is left when it fails.

Everything is deployed by a login that is no superuser and owns nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row, tuple_row

from graphium_db import deploy
from graphium_db.deploy import Deployed, DeployError, DeployNotAllowedError, apply
from graphium_db.deploy.snapshot import snapshot
from tests.deploy.conftest import FUNCTION, POLICY, TABLE, SmallTree
from tests.support.concurrency import all_at_once
from tests.support.databases import Database

Blank = Callable[..., Database]
NOTHING = Deployed()
NO_PATH = FUNCTION.replace("set search_path = pg_catalog, pg_temp", "")


def records(db: Database) -> list[tuple[Any, ...]]:
    return db.connect().execute("select * from graphium_private.deployed_files order by path").fetchall()


def test_deploys_and_then_has_nothing_to_do(blank: Blank, small: SmallTree) -> None:
    db = blank()
    dsn = db.dsn("deployer")
    done = deploy.deploy(dsn, tree=small)
    assert done == Deployed(("0001_t",), ("functions/010_f.sql", "policies/010_p.sql"))
    before, known = snapshot(db.connect()), records(db)
    assert [row[0] for row in known] == ["functions/010_f.sql", "migrations/0001_t.sql", "policies/010_p.sql"]

    assert deploy.deploy(dsn, tree=small) == NOTHING
    assert snapshot(db.connect()) == before
    assert records(db) == known


def test_only_the_changed_file_is_applied(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    small.write("functions/010_f.sql", FUNCTION.replace("return 1", "return 2"))
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed((), ("functions/010_f.sql",))
    assert db.connect().execute("select graphium.f()").fetchone() == (2,)


def test_a_migration_makes_every_file_run_again(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    small.write("migrations/0002_u.sql", "select 1;")
    done = deploy.deploy(db.dsn("deployer"), tree=small)
    assert done == Deployed(("0002_u",), ("functions/010_f.sql", "policies/010_p.sql"))


def test_deploys_on_a_given_connection(blank: Blank, small: SmallTree) -> None:
    db = blank()
    with psycopg.connect(db.dsn("deployer"), row_factory=dict_row) as conn:
        assert deploy.deploy(conn, tree=small)
        assert not conn.autocommit
        assert conn.row_factory is dict_row
        conn.row_factory = tuple_row
        assert conn.execute("select current_user = session_user").fetchone() == (True,)
        with psycopg.connect(db.dsn()) as boss:  # who may see locks
            assert boss.execute("select count(*) from pg_locks where locktype = 'advisory'"
                                " and database = (select oid from pg_database where datname = current_database())"
                                ).fetchone() == (0,)  # fmt: skip
        with pytest.raises(DeployError, match="in a transaction"):
            deploy.deploy(conn, tree=small)


def test_a_broken_file_changes_nothing_and_is_named(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    before = snapshot(db.connect())
    small.write("functions/010_f.sql", FUNCTION.replace("return 1", "return 3"))
    small.write("functions/020_g.sql", "set local role graphium_owner;\n\nselect no_such_column;")
    with pytest.raises(DeployError, match=r"functions/020_g\.sql:3: column .no_such_column. does not exist"):
        deploy.deploy(db.dsn("deployer"), tree=small)
    assert snapshot(db.connect()) == before
    small.write("functions/020_g.sql", "")
    assert deploy.deploy(db.dsn("deployer"), tree=small).files == ("functions/010_f.sql", "functions/020_g.sql")


def test_a_broken_migration_leaves_those_before_it(blank: Blank, small: SmallTree) -> None:
    db = blank()
    small.write("migrations/0002_u.sql", "create table graphium_private.u ();\nselect 1/0;")
    with pytest.raises(DeployError, match=r"migrations/0002_u\.sql: division by zero"):
        deploy.deploy(db.dsn("deployer"), tree=small)
    assert db.connect().execute(
        "select to_regclass('graphium_private.u'), to_regclass('graphium.t')::text"
    ).fetchone() == (
        None,
        "graphium.t",
    )
    small.write("migrations/0002_u.sql", "create table graphium_private.u ();")
    assert deploy.deploy(db.dsn("deployer"), tree=small).migrations == ("0002_u",)


def test_a_migration_and_its_mark_are_one_transaction(
    blank: Blank, small: SmallTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = blank()

    def die(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(apply._Backend, "mark_one", die)
        with pytest.raises(KeyboardInterrupt):
            deploy.deploy(db.dsn("deployer"), tree=small)
    assert db.connect().execute("select to_regclass('graphium.t')").fetchone() == (None,)
    assert deploy.deploy(db.dsn("deployer"), tree=small).migrations == ("0001_t",)


def test_an_applied_migration_may_not_change(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    small.write("migrations/0001_t.sql", TABLE + "-- edited")
    with pytest.raises(DeployError, match=r"0001_t\.sql was edited after it was applied"):
        deploy.deploy(db.dsn("deployer"), tree=small)


def test_a_removed_file_leaves_no_function_behind(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    (small.root / "functions/010_f.sql").unlink()
    with pytest.raises(DeployError, match=r"010_f\.sql is gone from the tree, but graphium\.f still exists"):
        deploy.deploy(db.dsn("deployer"), tree=small)
    small.write("migrations/0002_drop_f.sql", "drop function graphium.f();")
    done = deploy.deploy(db.dsn("deployer"), tree=small)
    assert done.removed == ("functions/010_f.sql",)
    assert deploy.deploy(db.dsn("deployer"), tree=small) == NOTHING


def test_a_renamed_file_takes_its_functions_along(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    (small.root / "functions/010_f.sql").rename(small.root / "functions/020_f.sql")
    assert deploy.deploy(db.dsn("deployer"), tree=small) == Deployed(
        (), ("functions/020_f.sql",), ("functions/010_f.sql",)
    )


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("migrations/0001_t.sql", TABLE.replace("alter table graphium.t force row level security;", ""), "not forced"),
        ("migrations/0001_t.sql", TABLE.replace("alter", "-- alter"), "not enabled"),
        ("policies/010_p.sql", "", "table graphium.t has no policy"),
        ("policies/010_p.sql", POLICY + "drop policy tenant_and_scope_isolation on graphium.t;", "is missing"),
        ("functions/010_f.sql", FUNCTION + "drop function graphium.f();", "1 in the tree, 0 in the database"),
        ("functions/010_f.sql", FUNCTION.replace("pg_catalog, pg_temp", "''"), r"must end in pg_temp, and is \"\":"),
        ("functions/010_f.sql", NO_PATH + "grant execute on function graphium.f() to graphium_app;", "and is not set"),
        ("functions/010_f.sql", FUNCTION.replace("revoke", "-- revoke"), "everybody may execute it"),
        ("migrations/0002_u.sql", "create table graphium_private.u (); drop table if exists graphium_private.u;"
         "create table graphium_private.w ();", None),
    ],
)  # fmt: skip
def test_what_the_verification_refuses(
    blank: Blank, small: SmallTree, path: str, text: str, complaint: str | None
) -> None:
    db = blank()
    small.write(path, text)
    if complaint is None:
        assert deploy.deploy(db.dsn("deployer"), tree=small)
        return
    with pytest.raises(DeployError, match=complaint):
        deploy.deploy(db.dsn("deployer"), tree=small)


def test_a_stale_overload_is_refused(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    wider = FUNCTION.replace("f() returns", "f(a int = 1) returns").replace("f() from", "f(int) from")
    small.write("functions/010_f.sql", wider)
    with pytest.raises(DeployError, match="2 overloads in the database, 1 in the tree"):
        deploy.deploy(db.dsn("deployer"), tree=small)
    small.write("functions/010_f.sql", "drop function if exists graphium.f();\n" + wider)
    assert deploy.deploy(db.dsn("deployer"), tree=small)


def test_a_stranger_owns_nothing_here(blank: Blank, small: SmallTree) -> None:
    db = blank()
    deploy.deploy(db.dsn("deployer"), tree=small)
    db.connect().execute("create function graphium.planted() returns int language sql return 1")
    small.write("functions/010_f.sql", FUNCTION + "create view graphium.v as select 1 as one;")
    assert deploy.plan(db.dsn("deployer"), tree=small).refusal is not None
    with pytest.raises(DeployError, match=r"alter routine graphium\.planted\(\) set schema public;  -- or a schema"):
        deploy.deploy(db.dsn("deployer"), tree=small)
    assert db.connect().execute("select to_regclass('graphium.v')").fetchone() == (None,)


def test_a_stranger_s_object_that_no_record_tells_of_is_refused(blank: Blank, small: SmallTree) -> None:
    db = blank()
    db.connect().execute("create function graphium.planted() returns int language sql return 1")
    with pytest.raises(DeployError, match=r"function graphium\.planted\(\) is owned by"):
        deploy.deploy(db.dsn("deployer"), tree=small)


def test_says_what_a_database_lacks(blank: Blank, small: SmallTree) -> None:
    with pytest.raises(
        DeployError, match=r"extension vector is missing\nHint: As a superuser: graphium migrate --bootstrap"
    ):
        deploy.deploy(blank(boot=False).dsn("deployer"), tree=small)
    db = blank()
    stranger = db.login()
    with pytest.raises(DeployNotAllowedError, match=r"cannot act as graphium_owner\nHint: .*inherit false, set true"):
        deploy.deploy(db.dsn(stranger), tree=small)


def test_one_deploy_at_a_time(blank: Blank, small: SmallTree) -> None:
    db = blank()
    holder = db.connect("deployer")
    holder.execute("select pg_advisory_lock(%s)", [apply.DEPLOY_LOCK])
    with pytest.raises(DeployError, match="another deploy has held the lock"):
        deploy.deploy(db.dsn("deployer"), tree=small, wait=0)
    holder.close()
    assert deploy.deploy(db.dsn("deployer"), tree=small)


def test_twenty_deployers_at_once(blank: Blank, small: SmallTree) -> None:
    db = blank()
    dsn = db.dsn("deployer")
    done = all_at_once([lambda: deploy.deploy(dsn, tree=small)] * 20)
    assert sorted(done, key=bool, reverse=True) == [
        Deployed(("0001_t",), ("functions/010_f.sql", "policies/010_p.sql")),
        *[NOTHING] * 19,
    ]


def test_vector_may_live_anywhere(blank: Blank, small: SmallTree) -> None:
    db = blank('create schema "My ext"; create extension vector schema "My ext"')
    small.write(
        "functions/010_f.sql",
        FUNCTION.replace(
            "return 1", "return ('[1,0]'::@extschema:vector@.vector operator(@extschema:vector@.<=>) '[1,0]')"
        ),
    )
    deploy.deploy(db.dsn("deployer"), tree=small)
    with db.connect() as conn:
        conn.execute('grant usage on schema "My ext" to public')
        assert conn.execute("select graphium.f()").fetchone() == (0,)


def test_plan_says_what_would_change_and_changes_nothing(blank: Blank, small: SmallTree) -> None:
    db = blank()
    before = snapshot(db.connect())
    planned = deploy.plan(db.dsn("deployer"), tree=small)
    assert (
        str(planned)
        == """\
migration migrations/0001_t.sql
  create table graphium.t (line 2)
  alter table graphium.t (line 3)
  alter table graphium.t (line 4)
apply functions/010_f.sql
  create function graphium.f (line 2)
  revoke all on function graphium.f() from public (line 4)
apply policies/010_p.sql
  drop policy tenant_and_scope_isolation on graphium.t (line 2)
  create policy tenant_and_scope_isolation on graphium.t (line 3)
    reads tenant_id; calls nothing"""
    )
    assert snapshot(db.connect()) == before

    deploy.deploy(db.dsn("deployer"), tree=small)
    nothing = deploy.plan(db.dsn("deployer"), tree=small)
    assert not nothing
    assert str(nothing) == "Nothing to do."

    small.write("functions/010_f.sql", FUNCTION.replace("return 1", "return 2"))
    (small.root / "policies/010_p.sql").unlink()
    changes = deploy.plan(db.dsn("deployer"), tree=small).changes
    assert [(c.path, c.action) for c in changes] == [
        ("functions/010_f.sql", "apply"),
        ("policies/010_p.sql", "removed"),
    ]
