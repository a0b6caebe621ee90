"""The SQL tree without a database: reading statements, rendering, frozen migrations."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphium_db.deploy.plan import expression_reads, policy_reads
from graphium_db.deploy.tree import DeployError, SqlFile, Tree, statements

MIXED = """\
-- a comment; with a semicolon
set local role graphium_owner;
create or replace function graphium.f(a text, b text[] default '{}') returns table (x int)
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $f$
begin -- it's; $1
  perform 'é;'; return query select $$;$$;
end
$f$;
comment on function graphium.f(text, text[]) is 'it''s; done';
create unique index concurrently if not exists i on only graphium."T t" (a);
create policy p on graphium.t using (true);
do $do$ begin execute 'select 1; select 2'; end $do$;
drop table if exists graphium.u;
create function graphium.g() returns int begin atomic select 1; select case when true then 2 end; end;
select e'a\\'b;'"""


def test_statements_are_split_and_named() -> None:
    read = [(s.line, str(s)) for s in statements(MIXED)]
    assert read == [
        (2, "set local role graphium_owner"),
        (3, "create function graphium.f"),
        (10, "comment on function graphium.f(text, text[]) is 'it''s; done'"),
        (11, "create index i on graphium.T t"),
        (12, "create policy p on graphium.t"),
        (13, "do"),
        (14, "drop table graphium.u"),
        (15, "create function graphium.g"),
        (16, "select"),
    ]


def test_a_statement_keeps_its_text() -> None:
    texts = [s.text for s in statements(MIXED)]
    assert texts[1].startswith("create or replace function")
    assert texts[1].endswith("$f$")
    assert texts[-1] == "select e'a\\'b;'"


def test_created_functions_are_counted_per_overload() -> None:
    file = SqlFile(
        "functions/1.sql", "create function a.f() …; create or replace function a.f(int) …; drop function a.g;"
    )
    assert file.functions == ("a.f", "a.f")


def test_policy_reads() -> None:
    policy = """create policy p on t for all to public
      using (tenant_id = (select private.tenant()) and cardinality(scopes) = 0) with check (other_column is null)"""
    assert policy_reads(policy) == (("other_column", "scopes", "tenant_id"), ("cardinality", "private.tenant"))
    assert policy_reads("create policy p on t") == ((), ())
    assert expression_reads("a && b.c and public.f(d)") == (("a", "c", "d"), ("public.f",))


def tree(root: Path, **migrations: str) -> Tree:
    for folder in ("migrations", "functions", "policies"):
        (root / folder).mkdir()
    for name, text in migrations.items():
        (root / "migrations" / f"{name}.sql").write_text(text)
    return Tree(root)


def test_order_and_rendering(tmp_path: Path) -> None:
    t = tree(tmp_path)
    for path, text in {
        "functions/020_b.sql": "a operator(@extschema:vector@.<=>) b",
        "functions/010_a.sql": "",
        "policies/001_p.sql": "@extschema:vector@.vector",
        "functions/README.md": "",
    }.items():
        (tmp_path / path).write_text(text)
    files = t.repeatables('"My ext"')
    assert [f.path for f in files] == ["functions/010_a.sql", "functions/020_b.sql", "policies/001_p.sql"]
    assert files[1].text == 'a operator("My ext".<=>) b'
    assert files[2].text == '"My ext".vector'
    assert files[2].sha256 != t.repeatables("public")[2].sha256


def test_released_migrations_are_frozen(tmp_path: Path) -> None:
    names = {"0001_a": "select 1;", "0001_a.rollback": "select -1;"}
    t = tree(tmp_path, **names)
    t.check_released()  # nothing is released yet
    assert t.freeze() == ["0001_a.rollback.sql", "0001_a.sql"]
    (tmp_path / "migrations" / "0002_b.sql").write_text("select 2;")
    t.check_released()
    assert t.freeze() == ["0002_b.sql"]
    assert t.freeze() == []

    (tmp_path / "migrations" / "0001_a.rollback.sql").write_text("select -2;")
    with pytest.raises(DeployError, match=r"0001_a\.rollback\.sql was released and is frozen"):
        t.check_released()
    (tmp_path / "migrations" / "0001_a.rollback.sql").unlink()
    with pytest.raises(DeployError, match=r"0001_a\.rollback\.sql was released and is gone"):
        t.freeze()


def test_the_default_tree_is_the_checkout() -> None:
    assert (Tree.default().root / "bootstrap.sql").is_file()
    Tree.default().check_released()
