"""The graph against the rows, after every kind of change; the reference is worked out in Python."""

from __future__ import annotations

from uuid import uuid4

import pytest
from psycopg import errors
from psycopg.types.json import Jsonb

from tests.graph.mirror import Taxonomy, assert_equal
from tests.support.databases import Connection, Database, as_caller

NAMES = [
    "O'Brien", 'a"b', "back\\slash", "\\", "$$", "$q$ $1", "{}", '{"id": 1}::vertex', "%s %I", "tab\tand\nnewline", "\u0001\u001f\u007f",
    "Pēteris", "太郎", "अनीता", "🙂" * 200, "'; drop schema graphium cascade; --", "*/ /*", "// x", "`", "‮rtl‬", "NaN", "null",
]  # fmt: skip


@pytest.fixture
def taxonomy(superuser: Connection, tenant: str) -> Taxonomy:
    return Taxonomy(superuser, tenant)


def test_inserts_of_many_rows(taxonomy: Taxonomy) -> None:
    taxonomy.small()
    graph = taxonomy.assert_mirrored()
    assert len(graph.vertices) == 2 + 4 + 12
    assert len(graph.edges) == 4 + 12 + 12


@pytest.mark.parametrize("name", NAMES)
def test_names_reach_the_graph_as_they_are(taxonomy: Taxonomy, app_conn: Connection, tenant: str, name: str) -> None:
    [family] = taxonomy.families(name)
    [genus] = taxonomy.genera(family, name)
    taxonomy.specimens(family, genus, name)
    taxonomy.assert_mirrored()
    with as_caller(app_conn, tenant):
        rows = app_conn.execute(
            "select graphium.cypher('MATCH (n {name: $name}) RETURN {label: label(n), name: n.name}', %s)",
            [Jsonb({"name": name})],
        ).fetchall()
    assert sorted(row[0]["label"] for row in rows) == ["Family", "Genus", "Specimen"]
    assert {row[0]["name"] for row in rows} == {name}


def test_renames(taxonomy: Taxonomy) -> None:
    taxonomy.small()
    for table in ("dh_families", "dh_genera", "dh_specimens"):
        taxonomy.execute(
            f"update graphium.{table} set name = name || ' renamed' where tenant_id = %s", [taxonomy.tenant]
        )
        taxonomy.assert_mirrored()


def test_an_update_of_nothing_that_is_mirrored_writes_nothing(taxonomy: Taxonomy, superuser: Connection) -> None:
    taxonomy.small()
    schema = f"graphium_{taxonomy.tenant.hex}"

    def versions() -> list[tuple[object, ...]]:
        return superuser.execute(
            f"select xmin::text, format('%%s', id) from {schema}._ag_label_vertex order by 2".encode(), []
        ).fetchall()

    before = versions()
    taxonomy.execute(
        "update graphium.dh_families set statement_count = 7, required_scopes = '{hr}' where tenant_id = %s",
        [taxonomy.tenant],
    )
    taxonomy.execute("update graphium.dh_genera set created_at = now() where tenant_id = %s", [taxonomy.tenant])
    taxonomy.execute("update graphium.dh_specimens set name = name where tenant_id = %s", [taxonomy.tenant])
    assert versions() == before
    taxonomy.execute("update graphium.dh_families set statement_count = 0 where tenant_id = %s", [taxonomy.tenant])
    taxonomy.assert_mirrored()


def test_audience_of_specimens(taxonomy: Taxonomy) -> None:
    _, _, specimens = taxonomy.small()
    taxonomy.execute(
        "update graphium.dh_specimens set required_scopes = '{hr,legal}' where id = any (%s)", [specimens[:5]]
    )
    graph = taxonomy.assert_mirrored()
    assert sum(1 for v in graph.vertices if v[4] == ("hr", "legal")) == 5
    assert sum(1 for e in graph.edges if e[4] == ("hr", "legal")) == 10


def test_moves(taxonomy: Taxonomy) -> None:
    families, genera, specimens = taxonomy.small()
    taxonomy.execute(
        "update graphium.dh_specimens set genus_id = %s, name = name || ' moved' where id = %s",
        [genera[1], specimens[0]],
    )
    graph = taxonomy.assert_mirrored()
    assert ("HAS_SPECIMEN", genera[1], specimens[0], families[0], ()) in graph.edges
    assert ("HAS_SPECIMEN", genera[0], specimens[0], families[0], ()) not in graph.edges


def test_deletes_and_cascades(taxonomy: Taxonomy) -> None:
    families, genera, specimens = taxonomy.small()
    for table, id in (("dh_specimens", specimens[0]), ("dh_genera", genera[1]), ("dh_families", families[1])):
        taxonomy.execute(f"delete from graphium.{table} where id = %s", [id])
        taxonomy.assert_mirrored()
    taxonomy.execute("delete from graphium.dh_families where tenant_id = %s", [taxonomy.tenant])
    graph = taxonomy.assert_mirrored()
    assert not graph.vertices
    assert not graph.edges


def test_upserts(taxonomy: Taxonomy) -> None:
    [family] = taxonomy.families("f")
    insert = "insert into graphium.dh_families (tenant_id, id, name) values (%s, %s, %s), (%s, %s, %s)"
    taxonomy.execute(
        f"{insert} on conflict do nothing", [taxonomy.tenant, family, "other", taxonomy.tenant, uuid4(), "g"]
    )
    assert {v[2] for v in taxonomy.assert_mirrored().vertices} == {"f", "g"}
    taxonomy.execute(
        f"{insert} on conflict (tenant_id, id) do update set name = excluded.name",
        [taxonomy.tenant, family, "renamed", taxonomy.tenant, uuid4(), "h"],
    )
    assert {v[2] for v in taxonomy.assert_mirrored().vertices} == {"renamed", "g", "h"}


def test_merge(taxonomy: Taxonomy) -> None:
    families, _, _ = taxonomy.small()
    taxonomy.execute(
        "merge into graphium.dh_families f using (values (%s::uuid, %s::uuid, 'kept'), (%s, %s, 'new')) as n(tenant_id, id, name)"
        " on f.tenant_id = n.tenant_id and f.id = n.id"
        " when matched then update set name = n.name"
        " when not matched by source and f.tenant_id = %s then delete"
        " when not matched then insert (tenant_id, id, name) values (n.tenant_id, n.id, n.name)",
        [taxonomy.tenant, families[0], taxonomy.tenant, uuid4(), taxonomy.tenant],
    )
    assert {v[2] for v in taxonomy.assert_mirrored().vertices if v[0] == "Family"} == {"kept", "new"}


def test_rows_of_several_tenants_in_one_statement(taxonomy: Taxonomy, admin_conn: Connection) -> None:
    slug = f"second of {taxonomy.tenant}"
    admin_conn.execute("select graphium.create_tenant(%s)", [slug])
    second = Taxonomy(taxonomy.conn, slug)
    [one], [two] = taxonomy.families("f"), second.families("f")
    taxonomy.execute(
        "insert into graphium.dh_genera (tenant_id, id, family_id, name) values (%s, gen_random_uuid(), %s, 'g'), (%s, gen_random_uuid(), %s, 'g')",
        [taxonomy.tenant, one, second.tenant, two],
    )
    taxonomy.execute(
        "update graphium.dh_genera set name = 'h' where tenant_id in (%s, %s)", [taxonomy.tenant, second.tenant]
    )
    taxonomy.assert_mirrored()
    assert {v[2] for v in second.assert_mirrored().vertices} == {"f", "h"}
    taxonomy.execute("delete from graphium.dh_families where tenant_id in (%s, %s)", [taxonomy.tenant, second.tenant])
    taxonomy.assert_mirrored()
    second.assert_mirrored()


def test_the_same_ids_in_two_tenants(taxonomy: Taxonomy, admin_conn: Connection) -> None:
    slug = f"twin of {taxonomy.tenant}"
    admin_conn.execute("select graphium.create_tenant(%s)", [slug])
    twin = Taxonomy(taxonomy.conn, slug)
    [family] = taxonomy.families("f")
    taxonomy.execute(
        "insert into graphium.dh_families (tenant_id, id, name) values (%s, %s, 'twin')", [twin.tenant, family]
    )
    taxonomy.execute("update graphium.dh_families set name = 'renamed' where tenant_id = %s", [twin.tenant])
    assert {v[2] for v in taxonomy.assert_mirrored().vertices} == {"f"}
    assert {v[2] for v in twin.assert_mirrored().vertices} == {"renamed"}


def test_truncate(db: Database, superuser: Connection, admin_conn: Connection) -> None:
    """Of every tenant at once, so in a transaction that is rolled back: the module's other tenants want their rows."""
    taxonomies = []
    for n in range(3):
        admin_conn.execute("select graphium.create_tenant(%s)", [f"truncated {n}"])
        taxonomies.append(Taxonomy(superuser, f"truncated {n}"))
        taxonomies[-1].small()
    for statement, left in (
        ("truncate graphium.dh_specimens cascade", 2 + 4),
        ("truncate graphium.dh_genera cascade", 2),
        ("truncate graphium.dh_families cascade", 0),
        ("truncate graphium.tenants cascade", 0),
    ):
        with superuser.transaction(force_rollback=True):
            superuser.execute(statement.encode())
            for taxonomy in taxonomies:
                assert len(assert_equal(superuser, taxonomy.tenant).vertices) == left
    for taxonomy in taxonomies:
        assert len(taxonomy.assert_mirrored().vertices) == 18


def test_rollback_and_savepoints(taxonomy: Taxonomy) -> None:
    families, _, specimens = taxonomy.small()
    with taxonomy.conn.transaction(force_rollback=True):
        taxonomy.execute("delete from graphium.dh_families where id = %s", [families[0]])
        with taxonomy.conn.transaction(force_rollback=True):
            taxonomy.families("inner")
            taxonomy.execute("update graphium.dh_specimens set name = 'x' where id = %s", [specimens[-1]])
            taxonomy.assert_mirrored()
        taxonomy.assert_mirrored()
        taxonomy.genera(families[1], "after the savepoint")
        taxonomy.assert_mirrored()
    assert len(taxonomy.assert_mirrored().vertices) == 18
    with pytest.raises(errors.CheckViolation):
        taxonomy.families("fine", "  not fine  ")
    taxonomy.assert_mirrored()


def test_through_the_functions(taxonomy: Taxonomy, app_conn: Connection, admin_conn: Connection, tenant: str) -> None:
    with as_caller(app_conn, tenant, ["hr"]):
        for genus, specimen in (("history", "Ada"), ("feedback", "Ada"), ("feedback", "Grace")):
            app_conn.execute(
                "select graphium.ingest_context('performance', %s, %s, %s, '{hr}')",
                [genus, specimen, Jsonb([{"content": f"{specimen} has {genus}", "embedding": None}])],
            )
            taxonomy.assert_mirrored()
    graph = taxonomy.assert_mirrored()
    assert len(graph.vertices) == 1 + 2 + 3
    [family] = [v[1] for v in graph.vertices if v[0] == "Family"]
    grace = next(v[1] for v in graph.vertices if v[2] == "Grace")
    with as_caller(admin_conn, tenant):
        for call, args in (
            ("rename_taxon('specimen', %s, 'Grace H.')", [grace]),
            ("set_required_scopes('specimen', %s, '{legal}')", [grace]),
            ("set_required_scopes('family', %s, '{}', cascade => true)", [family]),
            ("forget_taxon('specimen', %s)", [grace]),
            ("forget_taxon('family', %s)", [family]),
        ):
            admin_conn.execute(f"select graphium.{call}".encode(), args)
            taxonomy.assert_mirrored()


def test_move_specimen(taxonomy: Taxonomy, admin_conn: Connection, tenant: str) -> None:
    families, genera, _ = taxonomy.small()
    [specimen] = taxonomy.specimens(families[0], genera[0], "Emmy")
    with as_caller(admin_conn, tenant):
        admin_conn.execute("select graphium.move_specimen(%s, %s)", [specimen, genera[1]])
    assert ("HAS_SPECIMEN", genera[1], specimen, families[0], ()) in taxonomy.assert_mirrored().edges


def test_many_tenants_in_turn_on_one_connection(superuser: Connection, admin_conn: Connection) -> None:
    """The triggers' plans are cached for the tenant that the session wrote to last."""
    slugs = [f"turn {n}" for n in range(3)]
    for slug in slugs:
        admin_conn.execute("select graphium.create_tenant(%s)", [slug])
    taxonomies = [Taxonomy(superuser, slug) for slug in slugs]
    for round in range(12):
        for taxonomy in taxonomies:
            [family] = taxonomy.families(f"f{round}")
            [genus] = taxonomy.genera(family, "g")
            taxonomy.specimens(family, genus, "s", "t")
    for taxonomy in taxonomies:
        assert len(taxonomy.assert_mirrored().vertices) == 12 * 4


def test_a_graph_made_anew_under_a_cached_plan(taxonomy: Taxonomy, admin_conn: Connection, tenant: str) -> None:
    for n in range(8):
        taxonomy.families(f"f{n}")
        if n % 3 == 0:
            admin_conn.execute("select graphium.rebuild_graph(%s)", [tenant])
    taxonomy.assert_mirrored()


@pytest.mark.parametrize("label", ["Family", "CONTAINS_SPECIMEN"])
def test_a_temporary_table_does_not_stand_in_for_a_label(db: Database, tenant: str, label: str) -> None:
    """Its owner's triggers would run as the keeper."""
    conn = db.principal(tenant, ["hr"])
    conn.execute(f'create temporary table "{label}" (id text, properties text, anchor_id uuid)'.encode())
    with pytest.raises(errors.Error) as raised:
        conn.execute(
            "select graphium.ingest_context('f', 'g', 's', %s)", [Jsonb([{"content": "x", "embedding": None}])]
        )
    assert raised.value.sqlstate == "MG009"
    conn.execute(f'drop table "{label}"'.encode())
    conn.execute("select graphium.ingest_context('f', 'g', 's', %s)", [Jsonb([{"content": "x", "embedding": None}])])


def test_two_rows_whose_hashes_meet_are_an_error_not_a_silence(taxonomy: Taxonomy) -> None:
    """Arranged by hand, as one would wait for it for ever: the vertex is there before its row."""
    [family] = taxonomy.families("f")
    id = uuid4()
    with taxonomy.conn.transaction(force_rollback=True):
        taxonomy.execute(
            f'insert into graphium_{taxonomy.tenant.hex}."Genus" (id, properties, anchor_id)'
            " values (graphium_private._graph_id(4, %s), ag_catalog.agtype_build_map('id', 'other'), %s)",
            [id, family],
        )
        with pytest.raises(errors.UniqueViolation), taxonomy.conn.transaction():
            taxonomy.execute(
                "insert into graphium.dh_genera (tenant_id, id, family_id, name) values (%s, %s, %s, 'g')",
                [taxonomy.tenant, id, family],
            )


def test_ids_say_nothing_about_how_many_there_are(taxonomy: Taxonomy) -> None:
    """Entries of a label are spread over 48 bits, so neither an id nor the order of ids counts anything."""
    taxonomy.families(*(f"f{n}" for n in range(64)))
    schema = f"graphium_{taxonomy.tenant.hex}"
    entries = [
        int(row[0]) & (2**48 - 1)
        for row in taxonomy.conn.execute(f"select format('%%s', id) from {schema}._ag_label_vertex".encode(), [])
    ]
    assert max(entries) - min(entries) > 2**40
    assert min(b - a for a, b in zip(sorted(entries), sorted(entries)[1:], strict=False)) > 2**20


def test_mirror_functions_are_sound_where_their_tables_are(taxonomy: Taxonomy) -> None:
    """plpgsql_check with a graph in the path of the functions that stand on one."""
    conn = taxonomy.conn
    if conn.execute("select from pg_available_extensions where name = 'plpgsql_check'").fetchone() is None:
        pytest.skip("this server has no plpgsql_check: `make test-pg17` has")
    with conn.transaction(force_rollback=True):
        conn.execute("create schema checks; create extension plpgsql_check schema checks")
        for table, function in (
            ("dh_families", "_on_families_mirrored"), ("dh_families", "_on_family_renamed"), ("dh_genera", "_on_genera_mirrored"),
            ("dh_specimens", "_on_specimens_mirrored"),
        ):  # fmt: skip
            conn.execute(
                f"alter function graphium_private.{function}() set search_path = graphium_{taxonomy.tenant.hex}, pg_temp".encode()
            )
            found = conn.execute(
                "select message, lineno from checks.plpgsql_check_function_tb(%s, %s, oldtable => 'removed', newtable => 'added',"
                " other_warnings => false, extra_warnings => false, performance_warnings => false)",
                [f"graphium_private.{function}()", f"graphium.{table}"],
            ).fetchall()
            assert found == []
