"""Graphs damaged on purpose: check_graph() names each damage, rebuild_graph() mends it, and meanwhile nothing lies."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from psycopg import errors

from tests.graph.mirror import Taxonomy
from tests.support.databases import Connection, Database, as_caller

Damage = Callable[[Taxonomy, str], None]

FAMILY = "ag_catalog._graphid(3, 7)"


def run(*statements: str) -> Damage:
    """Statements with {g} for the graph's schema and {f} for a family of the tenant."""

    def damage(taxonomy: Taxonomy, graph: str) -> None:
        row = taxonomy.conn.execute(
            "select id from graphium.dh_families where tenant_id = %s order by name limit 1", [taxonomy.tenant]
        ).fetchone()
        assert row is not None
        for statement in statements:
            taxonomy.execute(
                statement.replace("{g}", graph).replace("{f}", str(row[0])).replace("{oid}", f"'{graph}'::regnamespace")
            )

    return damage


# name: (what is done, the (problem, label) pairs that must be listed, whether Cypher can still answer)
DAMAGES: dict[str, tuple[Damage, set[tuple[str, str | None]], bool]] = {
    "a vertex is missing": (
        run('delete from {g}."Genus" where ctid = (select min(ctid) from {g}."Genus")'),
        {("missing vertex", "Genus"), ("dangling edge", "HAS_GENUS"), ("dangling edge", "HAS_SPECIMEN")},
        True,
    ),
    "an edge is missing": (run('delete from {g}."HAS_SPECIMEN" where ctid = (select min(ctid) from {g}."HAS_SPECIMEN")'), {("missing edge", "HAS_SPECIMEN")}, True),
    "a label is empty": (run('truncate {g}."CONTAINS_SPECIMEN"'), {("missing edge", "CONTAINS_SPECIMEN")}, True),
    "a vertex too many": (
        run(f'insert into {{g}}."Family" (id, properties, anchor_id) values ({FAMILY}, ag_catalog.agtype_build_map(\'id\', \'x\'), \'{{f}}\')'),
        {("extra vertex", "Family")},
        True,
    ),
    "a vertex without a label": (
        run(f"insert into {{g}}._ag_label_vertex (id, properties, anchor_id) values ({FAMILY}, ag_catalog.agtype_build_map(), '{{f}}')"),
        {("extra vertex", "_ag_label_vertex")},
        True,
    ),
    "an edge to nowhere": (
        run(f'insert into {{g}}."HAS_GENUS" (id, start_id, end_id, anchor_id) values (ag_catalog._graphid(6, 9), {FAMILY}, {FAMILY}, \'{{f}}\')'),
        {("extra edge", "HAS_GENUS"), ("dangling edge", "HAS_GENUS")},
        True,
    ),
    "another name": (run("update {g}.\"Specimen\" set properties = ag_catalog.agtype_build_map('id', 'x', 'name', 'y')"), {("wrong property", "Specimen")}, True),
    "another property": (run("update {g}.\"HAS_GENUS\" set properties = ag_catalog.agtype_build_map('id', 'x')"), {("wrong property", "HAS_GENUS")}, True),
    "another end": (run('update {g}."HAS_SPECIMEN" set start_id = (select id from {g}."Genus" order by ctid limit 1)'), {("wrong end", "HAS_SPECIMEN")}, True),
    "another audience": (run('update {g}."Specimen" set required_scopes = \'{hr}\''), {("wrong audience", "Specimen")}, True),
    "another anchor": (run('update {g}."Genus" set anchor_id = gen_random_uuid()'), {("wrong audience", "Genus")}, True),
    "a policy is gone": (run('drop policy tenant_and_scope_isolation on {g}."Family"'), {("damaged catalog", "Family")}, True),
    "a policy more": (run('create policy open on {g}."Family" using (true)'), {("damaged catalog", "Family")}, True),
    "security is off": (run('alter table {g}."Family" disable row level security'), {("damaged catalog", "Family")}, True),
    "security is not forced": (run("alter table {g}._ag_label_vertex no force row level security"), {("damaged catalog", "_ag_label_vertex")}, True),
    "another owner": (run('alter table {g}."Family" owner to postgres'), {("damaged catalog", "Family")}, True),
    "a column more": (run("alter table {g}._ag_label_edge add column more int"), {("damaged catalog", label) for label in ("_ag_label_edge", "HAS_GENUS", "HAS_SPECIMEN", "CONTAINS_SPECIMEN")}, True),
    "a label more": (run("set search_path = ag_catalog", "select ag_catalog.create_vlabel('{g}', 'More')", "reset search_path"), {("damaged catalog", "More")}, True),
    "a label that AGE forgot": (run("delete from ag_catalog.ag_label where name = 'Genus' and graph = {oid}::oid"), {("damaged catalog", "Genus")}, True),
    "labels exchanged": (
        run(
            "update ag_catalog.ag_label set id = 99 where name = 'Genus' and graph = {oid}::oid",
            "update ag_catalog.ag_label set id = 4 where name = 'Family' and graph = {oid}::oid",
        ),
        {("damaged catalog", "Genus"), ("damaged catalog", "Family")},
        True,
    ),
    "a graph that AGE forgot": (
        run("delete from ag_catalog.ag_label where graph = {oid}::oid", "delete from ag_catalog.ag_graph where name = '{g}'"),
        {("damaged catalog", None)},
        False,
    ),
    "an outdated oid": (  # what pg_restore leaves
        run(
            "alter table ag_catalog.ag_label drop constraint fk_graph_oid",
            "update ag_catalog.ag_label set graph = 1 where graph = {oid}::oid",
            "update ag_catalog.ag_graph set graphid = 1 where name = '{g}'",
            "alter table ag_catalog.ag_label add constraint fk_graph_oid foreign key (graph) references ag_catalog.ag_graph (graphid)",
        ),
        {("damaged catalog", None)},
        False,
    ),
    "a missing table": (
        run("delete from ag_catalog.ag_label where name = 'Genus' and graph = {oid}::oid", 'drop table {g}."Genus"'),
        {("damaged catalog", "Genus")},
        True,
    ),
    "a missing schema": (
        run("delete from ag_catalog.ag_label where graph = {oid}::oid", "delete from ag_catalog.ag_graph where name = '{g}'", "drop schema {g} cascade"),
        {("damaged catalog", None)},
        False,
    ),
}  # fmt: skip


def found(admin: Connection, tenant: str) -> set[tuple[str, str | None]]:
    return {(row[0], row[1]) for row in admin.execute("select problem, label from graphium.check_graph(%s)", [tenant])}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage(superuser: Connection, admin_conn: Connection, app_conn: Connection, tenant: str, name: str) -> None:
    damage, problems, answers = DAMAGES[name]
    taxonomy = Taxonomy(superuser, tenant)
    taxonomy.small()
    with as_caller(app_conn, tenant):
        app_conn.execute("select graphium.cypher('MATCH (n) RETURN n')")  # AGE's caches are warm
    assert found(admin_conn, tenant) == set()
    damage(taxonomy, f"graphium_{taxonomy.tenant.hex}")
    assert found(admin_conn, tenant) == problems
    with as_caller(app_conn, tenant):
        if answers:
            app_conn.execute("select graphium.cypher('MATCH (n:Family) RETURN n')")
        else:
            with pytest.raises(errors.Error) as raised, app_conn.transaction():
                app_conn.execute("select graphium.cypher('MATCH (n:Family) RETURN n')")
            assert raised.value.sqlstate == "MG009"
            assert "rebuild_graph" in (raised.value.diag.message_hint or "")
    assert admin_conn.execute("select graphium.rebuild_graph(%s)", [tenant]).fetchone() == (18 + 28,)
    assert found(admin_conn, tenant) == set()
    taxonomy.assert_mirrored()
    with as_caller(app_conn, tenant):
        assert app_conn.execute("select graphium.cypher('MATCH (n) RETURN count(*)')").fetchone() == (18,)
    taxonomy.families("and on")
    taxonomy.assert_mirrored()


def test_writes_without_a_graph(superuser: Connection, admin_conn: Connection, tenant: str) -> None:
    """What would have to be mirrored is refused; what takes rows away is not."""
    taxonomy = Taxonomy(superuser, tenant)
    families, genera, specimens = taxonomy.small()
    DAMAGES["a missing schema"][0](taxonomy, f"graphium_{taxonomy.tenant.hex}")
    for statement, args in (
        ("insert into graphium.dh_families (tenant_id, id, name) values (%s, %s, 'x')", [taxonomy.tenant, uuid4()]),
        ("update graphium.dh_families set name = 'x' where id = %s", [families[0]]),
        ("update graphium.dh_genera set name = 'x' where id = %s", [genera[0]]),
        ("update graphium.dh_specimens set required_scopes = '{x}' where id = %s", [specimens[0]]),
    ):
        with pytest.raises(errors.Error) as raised:
            taxonomy.execute(statement, args)
        assert raised.value.sqlstate == "MG009"
    taxonomy.execute("delete from graphium.dh_specimens where id = %s", [specimens[0]])
    taxonomy.execute("delete from graphium.dh_families where id = %s", [families[1]])
    taxonomy.execute("update graphium.dh_families set statement_count = 0 where id = %s", [families[0]])
    admin_conn.execute("select graphium.rebuild_graph(%s)", [tenant])
    assert len(taxonomy.assert_mirrored().vertices) == 1 + 2 + 5


def test_a_tenant_whose_graph_is_gone_can_be_dropped(superuser: Connection, admin_conn: Connection) -> None:
    for name in ("a missing schema", "an outdated oid", "a graph that AGE forgot"):
        admin_conn.execute("select graphium.create_tenant('doomed')")
        taxonomy = Taxonomy(superuser, "doomed")
        taxonomy.small()
        DAMAGES[name][0](taxonomy, f"graphium_{taxonomy.tenant.hex}")
        admin_conn.execute("select graphium.drop_tenant('doomed')")
        assert superuser.execute("select to_regnamespace(%s)", [f"graphium_{taxonomy.tenant.hex}"]).fetchone() == (
            None,
        )


def test_what_is_listed(superuser: Connection, admin_conn: Connection, tenant: str) -> None:
    taxonomy = Taxonomy(superuser, tenant)
    [family] = taxonomy.families("f")
    [genus] = taxonomy.genera(family, "g")
    taxonomy.execute(f'delete from graphium_{taxonomy.tenant.hex}."Genus"')
    rows = admin_conn.execute(
        "select problem, label, id, detail is not null from graphium.check_graph(%s)", [tenant]
    ).fetchall()
    assert rows == [("dangling edge", "HAS_GENUS", None, True), ("missing vertex", "Genus", genus, False)]
    admin_conn.execute("select graphium.rebuild_graph(%s)", [tenant])


def test_the_named_tenant(admin_conn: Connection, superuser: Connection, tenant: str) -> None:
    Taxonomy(superuser, tenant).small()
    with as_caller(admin_conn, tenant):
        assert admin_conn.execute("select graphium.rebuild_graph()").fetchone() == (46,)
        assert admin_conn.execute("select * from graphium.check_graph()").fetchall() == []
    for call in ("graphium.check_graph()", "graphium.rebuild_graph()"):
        with pytest.raises(errors.Error) as raised:
            admin_conn.execute(f"select {call}".encode())
        assert raised.value.sqlstate == "MG001"
    for call in ("graphium.check_graph('no such')", "graphium.rebuild_graph('no such')", "graphium.check_graph('')"):
        with pytest.raises(errors.Error) as raised:
            admin_conn.execute(f"select {call}".encode())
        assert raised.value.sqlstate == "MG002"


def test_only_an_admin(db: Database, app_conn: Connection, tenant: str) -> None:
    for conn in (app_conn, db.principal(tenant, ["hr"])):
        for function in ("check_graph", "rebuild_graph"):
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(f"select graphium.{function}(%s)".encode(), [tenant])


def test_a_rebuild_needs_a_fresh_snapshot(admin_conn: Connection, tenant: str) -> None:
    for level in ("repeatable read", "serializable"):
        admin_conn.execute(f"begin isolation level {level}".encode())
        with pytest.raises(errors.Error) as raised:
            admin_conn.execute("select graphium.rebuild_graph(%s)", [tenant])
        admin_conn.execute("rollback")
        assert raised.value.sqlstate == "25000"


def test_a_rebuild_rolled_back_leaves_the_graph(
    superuser: Connection, admin_conn: Connection, app_conn: Connection, tenant: str
) -> None:
    taxonomy = Taxonomy(superuser, tenant)
    taxonomy.small()
    before = taxonomy.assert_mirrored()
    with admin_conn.transaction(force_rollback=True):
        admin_conn.execute("select graphium.rebuild_graph(%s)", [tenant])
    assert taxonomy.assert_mirrored() == before
    with as_caller(app_conn, tenant):
        assert app_conn.execute("select graphium.cypher('MATCH (n) RETURN count(*)')").fetchone() == (18,)


def test_policies_are_put_back_by_a_deploy_of_a_newer_version(
    superuser: Connection, admin_conn: Connection, tenant: str
) -> None:
    """The seal on the schema tells which version guarded it."""
    taxonomy = Taxonomy(superuser, tenant)
    graph = f"graphium_{taxonomy.tenant.hex}"
    taxonomy.execute(f'drop policy tenant_and_scope_isolation on {graph}."Family"')
    taxonomy.execute(f"comment on schema {graph} is 'guarded by an older version'")
    taxonomy.execute("select graphium_private._protect_graphs()")
    assert found(admin_conn, tenant) == set()


def test_uuid_of_hidden_rows_is_not_in_messages(superuser: Connection, app_conn: Connection, tenant: str) -> None:
    taxonomy = Taxonomy(superuser, tenant)
    [family] = taxonomy.families("hidden", scopes=["hr"])
    assert isinstance(family, UUID)
    with as_caller(app_conn, tenant):
        for query in (
            "MATCH (f:Family) RETURN toUpper(f)",
            "MATCH (f:Family) WHERE 1 / (size(f.name) - 6) = 1 RETURN f",
        ):
            # Would raise on the hidden row, if a caller's condition met it before the policy did.
            assert app_conn.execute("select graphium.cypher(%s)", [query]).fetchall() == []
