"""What a tenant's graph should be, worked out in Python from the rows, and what its label tables hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from tests.support.databases import Connection

Scopes = tuple[str, ...]


@dataclass
class Graph:
    """Vertices as (label, id, name) and edges as (label, from, to), each with what its policy reads. Counted: no doubles."""

    vertices: Counter[tuple[str, UUID, str, UUID, Scopes]] = field(default_factory=Counter)
    edges: Counter[tuple[str, UUID, UUID, UUID, Scopes]] = field(default_factory=Counter)


def of_rows(conn: Connection, tenant_id: UUID) -> Graph:
    """The graph that the relational rows call for."""
    graph = Graph()
    for id, name in conn.execute("select id, name from graphium.dh_families where tenant_id = %s", [tenant_id]):
        graph.vertices["Family", id, name, id, ()] += 1
    for id, family, name in conn.execute(
        "select id, family_id, name from graphium.dh_genera where tenant_id = %s", [tenant_id]
    ):
        graph.vertices["Genus", id, name, family, ()] += 1
        graph.edges["HAS_GENUS", family, id, family, ()] += 1
    for id, family, genus, name, scopes in conn.execute(
        "select id, family_id, genus_id, name, required_scopes from graphium.dh_specimens where tenant_id = %s",
        [tenant_id],
    ):
        graph.vertices["Specimen", id, name, tenant_id, tuple(scopes)] += 1
        graph.edges["HAS_SPECIMEN", genus, id, family, tuple(scopes)] += 1
        graph.edges["CONTAINS_SPECIMEN", family, id, family, tuple(scopes)] += 1
    return graph


def of_labels(conn: Connection, tenant_id: UUID) -> Graph:
    """The graph that is there, read from the tables behind AGE. Fails when a vertex or an edge's end is not one of ours."""
    graph, ids = Graph(), {}
    schema = f"graphium_{tenant_id.hex}"
    for label, id, properties, anchor, scopes in conn.execute(
        f"select c.relname, format('%%s', v.id), format('%%s', v.properties), v.anchor_id, v.required_scopes"
        f" from {schema}._ag_label_vertex v join pg_class c on c.oid = v.tableoid".encode(),
        [],
    ):
        known = json.loads(properties)
        assert sorted(known) == ["id", "name"]
        assert id not in ids
        ids[id] = UUID(known["id"])
        graph.vertices[label, ids[id], known["name"], anchor, tuple(scopes)] += 1
    for label, start, end, properties, anchor, scopes in conn.execute(
        f"select c.relname, format('%%s', e.start_id), format('%%s', e.end_id), format('%%s', e.properties), e.anchor_id, e.required_scopes"
        f" from {schema}._ag_label_edge e join pg_class c on c.oid = e.tableoid".encode(),
        [],
    ):
        assert properties == "{}"
        graph.edges[label, ids[start], ids[end], anchor, tuple(scopes)] += 1
    return graph


def assert_equal(conn: Connection, tenant_id: UUID) -> Graph:
    """The graph, having checked that it is the rows'."""
    expected, actual = of_rows(conn, tenant_id), of_labels(conn, tenant_id)
    assert actual.vertices == expected.vertices
    assert actual.edges == expected.edges
    return actual


def tenant_id(conn: Connection, slug: str) -> UUID:
    row = conn.execute("select id from graphium.tenants where slug = %s", [slug]).fetchone()
    assert row is not None
    return UUID(str(row[0]))


class Taxonomy:
    """Writes rows as a migration or an import would: straight into the tables, several in one statement."""

    def __init__(self, conn: Connection, slug: str) -> None:
        self.conn = conn
        self.tenant = tenant_id(conn, slug)

    def families(self, *names: str, scopes: Sequence[str] = ()) -> list[UUID]:
        ids = [uuid4() for _ in names]
        self.conn.execute(
            "insert into graphium.dh_families (tenant_id, id, name, required_scopes)"
            " select %s, u.id, u.name, %s from unnest(%s::uuid[], %s::text[]) as u(id, name)",
            [self.tenant, list(scopes), ids, list(names)],
        )
        return ids

    def genera(self, family: UUID, *names: str) -> list[UUID]:
        ids = [uuid4() for _ in names]
        self.conn.execute(
            "insert into graphium.dh_genera (tenant_id, id, family_id, name)"
            " select %s, u.id, %s, u.name from unnest(%s::uuid[], %s::text[]) as u(id, name)",
            [self.tenant, family, ids, list(names)],
        )
        return ids

    def specimens(self, family: UUID, genus: UUID, *names: str, scopes: Sequence[str] = ()) -> list[UUID]:
        ids = [uuid4() for _ in names]
        self.conn.execute(
            "insert into graphium.dh_specimens (tenant_id, id, family_id, genus_id, name, required_scopes)"
            " select %s, u.id, %s, %s, u.name, %s from unnest(%s::uuid[], %s::text[]) as u(id, name)",
            [self.tenant, family, genus, list(scopes), ids, list(names)],
        )
        return ids

    def small(self) -> tuple[list[UUID], list[UUID], list[UUID]]:
        """Two families with two genera of three specimens each."""
        families = self.families("performance", "relationships")
        genera = [g for f in families for g in self.genera(f, "history", "feedback")]
        specimens = [
            s for i, g in enumerate(genera) for s in self.specimens(families[i // 2], g, "Ada", "Grace", "Mary")
        ]
        return families, genera, specimens

    def execute(self, query: str, args: Iterable[Any] = ()) -> None:
        self.conn.execute(query.encode(), list(args))

    def assert_mirrored(self) -> Graph:
        return assert_equal(self.conn, self.tenant)
