"""Through cypher() a caller sees the vertices whose rows he sees, and the edges between them: pattern by pattern, caller by
caller, against what the same caller gets from the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from psycopg import errors
from psycopg.types.json import Jsonb

from tests.graph.mirror import Taxonomy
from tests.support.databases import Connection, Database, as_caller

Row = Any


@dataclass(frozen=True)
class Seen:
    """What one caller sees: {id: (label, name)}, and {(label, from, to)}."""

    vertices: dict[str, tuple[str, str]]
    edges: frozenset[tuple[str, str, str]]

    def labelled(self, label: str) -> list[str]:
        return [id for id, (its, _) in self.vertices.items() if its == label]

    def out(self, id: str, label: str | None = None) -> list[tuple[str, str]]:
        return [(its, to) for its, start, to in self.edges if start == id and label in (None, its)]


def seen(conn: Connection) -> Seen:
    """From the tables, under their policies, in the transaction of the caller."""
    vertices: dict[str, tuple[str, str]] = {}
    edges = set()
    for id, name in conn.execute("select id::text, name from graphium.dh_families"):
        vertices[id] = ("Family", name)
    for id, family, name in conn.execute("select id::text, family_id::text, name from graphium.dh_genera"):
        vertices[id] = ("Genus", name)
        edges.add(("HAS_GENUS", family, id))
    for id, family, genus, name in conn.execute(
        "select id::text, family_id::text, genus_id::text, name from graphium.dh_specimens"
    ):
        vertices[id] = ("Specimen", name)
        edges |= {("HAS_SPECIMEN", genus, id), ("CONTAINS_SPECIMEN", family, id)}
    return Seen(vertices, frozenset(e for e in edges if e[1] in vertices and e[2] in vertices))


def two_hops(s: Seen) -> list[Row]:
    return [[a, b, c] for _, a, b in s.edges for _, c in s.out(b)]


# Each query with what it must give, worked out from what the caller sees. Compared as bags.
PATTERNS: dict[str, Callable[[Seen], list[Row]]] = {
    "MATCH (n) RETURN n.id": lambda s: list(s.vertices),
    "MATCH (n) RETURN n.name": lambda s: [name for _, name in s.vertices.values()],
    "MATCH (n) RETURN count(*)": lambda s: [len(s.vertices)],
    "MATCH (n:Family) RETURN n.id": lambda s: s.labelled("Family"),
    "MATCH (n:Genus) RETURN n.id": lambda s: s.labelled("Genus"),
    "MATCH (n:Specimen) RETURN n.id": lambda s: s.labelled("Specimen"),
    "MATCH (n:Specimen) RETURN count(n)": lambda s: [len(s.labelled("Specimen"))],
    "MATCH (n:_ag_label_vertex) RETURN n.id": lambda s: list(s.vertices),
    "MATCH (n:Nothing) RETURN n.id": lambda s: [],
    "MATCH (n:HAS_GENUS) RETURN n.id": lambda s: [],
    "MATCH (n {name: 'shared'}) RETURN n.id": lambda s: [i for i, v in s.vertices.items() if v[1] == "shared"],
    "MATCH (n) WHERE n.name = 'shared' OR n.name STARTS WITH 'f' RETURN n.id": lambda s: [
        i for i, v in s.vertices.items() if v[1] == "shared" or v[1].startswith("f")
    ],
    "MATCH ()-[e]->() RETURN count(*)": lambda s: [len(s.edges)],
    "MATCH ()-[e:_ag_label_edge]->() RETURN count(e)": lambda s: [len(s.edges)],
    "MATCH (a)-[e]->(b) RETURN [type(e), a.id, b.id]": lambda s: [list(e) for e in s.edges],
    "MATCH (b)<-[e]-(a) RETURN [type(e), a.id, b.id]": lambda s: [list(e) for e in s.edges],
    "MATCH (a)-[e]-(b) RETURN count(*)": lambda s: [2 * len(s.edges)],
    "MATCH (a)--(b) RETURN [a.id, b.id]": lambda s: [[a, b] for _, x, y in s.edges for a, b in ((x, y), (y, x))],
    "MATCH (a)-[e:HAS_SPECIMEN]->() RETURN a.id": lambda s: [e[1] for e in s.edges if e[0] == "HAS_SPECIMEN"],
    "MATCH ()-[e:CONTAINS_SPECIMEN]->(b) RETURN b.id": lambda s: [e[2] for e in s.edges if e[0] == "CONTAINS_SPECIMEN"],
    "MATCH (a)-->(b)-->(c) RETURN [a.id, b.id, c.id]": two_hops,
    "MATCH (a)-->(b)-->(c) RETURN count(*)": lambda s: [len(two_hops(s))],
    "MATCH (f:Family)-[:HAS_GENUS]->(g:Genus)-[:HAS_SPECIMEN]->(s:Specimen) RETURN [f.id, g.id, s.id]": lambda s: [
        row for row in two_hops(s) if s.vertices[row[0]][0] == "Family" and s.vertices[row[2]][0] == "Specimen"
    ],
    "MATCH (f:Family)-[:HAS_GENUS]->(g) MATCH (f)-[:CONTAINS_SPECIMEN]->(s) RETURN [g.id, s.id]": lambda s: [
        [g, x] for f in s.labelled("Family") for _, g in s.out(f, "HAS_GENUS") for _, x in s.out(f, "CONTAINS_SPECIMEN")
    ],
    "MATCH (f:Family)-[:CONTAINS_SPECIMEN]->(s)<-[:HAS_SPECIMEN]-(g) RETURN [f.id, g.id]": lambda s: [
        [f, g]
        for f in s.labelled("Family")
        for _, x in s.out(f, "CONTAINS_SPECIMEN")
        for label, g, y in s.edges
        if label == "HAS_SPECIMEN" and y == x
    ],
    "MATCH (f:Family) OPTIONAL MATCH (f)-[:CONTAINS_SPECIMEN]->(s) RETURN [f.id, s.id]": lambda s: [
        [f, x] for f in s.labelled("Family") for _, x in s.out(f, "CONTAINS_SPECIMEN") or [("", None)]
    ],
    "MATCH (s:Specimen) OPTIONAL MATCH (f:Family)-[:CONTAINS_SPECIMEN]->(s) RETURN [s.id, f.id]": lambda s: [
        [x, next((f for label, f, y in s.edges if label == "CONTAINS_SPECIMEN" and y == x), None)]
        for x in s.labelled("Specimen")
    ],
    "MATCH (n) WHERE exists((n)-[:HAS_SPECIMEN]->()) RETURN n.id": lambda s: [
        i for i in s.vertices if s.out(i, "HAS_SPECIMEN")
    ],
    "MATCH (n) WHERE NOT exists((n)-[]->()) RETURN n.id": lambda s: [i for i in s.vertices if not s.out(i)],
    "MATCH (n) WHERE NOT exists(()-[]->(n)) RETURN n.id": lambda s: [
        i for i in s.vertices if all(e[2] != i for e in s.edges)
    ],
    "MATCH p=(f:Family)-[:HAS_GENUS]->(g) RETURN size(nodes(p))": lambda s: (
        [2] * sum(e[0] == "HAS_GENUS" for e in s.edges)
    ),
    "MATCH p=(a)-[e]->(b) RETURN p": lambda s: [],  # compared below, by its shape
    "MATCH (n) WITH collect(n.id) AS ids RETURN size(ids)": lambda s: [len(s.vertices)],
    "MATCH (n) WITH n ORDER BY n.id LIMIT 3 RETURN n.id": lambda s: sorted(s.vertices)[:3],
    "MATCH (n) RETURN DISTINCT label(n)": lambda s: sorted({v[0] for v in s.vertices.values()}),
    "MATCH (f:Family)-[:CONTAINS_SPECIMEN]->(s) WITH f.id AS id, count(s) AS n RETURN [id, n]": lambda s: [
        [f, len(s.out(f, "CONTAINS_SPECIMEN"))] for f in s.labelled("Family") if s.out(f, "CONTAINS_SPECIMEN")
    ],
    "MATCH (n:Family) RETURN n.id AS x UNION ALL MATCH (n:Specimen) RETURN n.id AS x": lambda s: (
        s.labelled("Family") + s.labelled("Specimen")
    ),
    "UNWIND ['shared', 'f open'] AS x MATCH (n {name: x}) RETURN n.id": lambda s: [
        i for i, v in s.vertices.items() if v[1] in ("shared", "f open")
    ],
    "MATCH (a:Specimen), (b:Specimen) WHERE a.id < b.id RETURN count(*)": lambda s: [
        len(s.labelled("Specimen")) * (len(s.labelled("Specimen")) - 1) // 2
    ],
}
del PATTERNS["MATCH p=(a)-[e]->(b) RETURN p"]


def fill(conn: Connection, slug: str) -> None:
    """Every combination of a family's audience with a specimen's, some of it under the same names."""
    taxonomy = Taxonomy(conn, slug)
    audiences: dict[str, Sequence[str]] = {
        "open": (),
        "hr": ("hr",),
        "legal": ("legal", "board"),
        "public": ("public", "hr"),
        "both": ("hr", "legal"),
    }
    for name, scopes in audiences.items():
        [family] = taxonomy.families(f"f {name}", scopes=scopes)
        for genus in taxonomy.genera(family, "shared", f"g {name}"):
            for other, audience in audiences.items():
                taxonomy.specimens(family, genus, f"s {other}", scopes=audience)
    [empty] = taxonomy.families("shared")
    taxonomy.genera(empty, "childless")


@pytest.fixture(scope="module")
def filled(db: Database) -> str:
    superuser, admin = db.connect(), db.connect("admin")
    for slug in ("acme", "acme-corp", "empty"):
        admin.execute("select graphium.create_tenant(%s)", [slug])
    fill(superuser, "acme")
    fill(superuser, "acme-corp")
    superuser.execute(
        "update graphium.dh_families set name = name || ' of the other' where tenant_id = (select id from graphium.tenants where slug = 'acme-corp')"
    )
    return "acme"


def answers(conn: Connection, query: str) -> list[Row]:
    return [row[0] for row in conn.execute("select graphium.cypher(%s)", [query])]


def bag(rows: list[Row]) -> Counter[str]:
    return Counter(repr(row) for row in rows)


def assert_sees_its_own(conn: Connection) -> Seen:
    expected = seen(conn)
    for query, work_out in PATTERNS.items():
        assert bag(answers(conn, query)) == bag(work_out(expected)), query
    return expected


@pytest.mark.parametrize(
    "scopes",
    [[], ["hr"], ["legal"], ["board"], ["hr", "legal"], ["nothing"], ["public"], ["HR"], ["hr,legal"]],
    ids=repr,
)
@pytest.mark.parametrize("slug", ["acme", "acme-corp"])
def test_an_application(filled: str, app_conn: Connection, slug: str, scopes: list[str]) -> None:
    with as_caller(app_conn, slug, scopes):
        sees = assert_sees_its_own(app_conn)
    gated = {"hr", "legal", "board"} & set(scopes)
    assert len(sees.labelled("Family")) == 3 + ("hr" in gated) + ("legal" in gated or "board" in gated) + bool(
        gated & {"hr", "legal"}
    )
    # A specimen is seen by its own audience, also in a family that is not seen; only the edges to it then are not.
    assert len(sees.labelled("Specimen")) == 10 * (
        2 + ("hr" in gated) + bool(gated & {"legal", "board"}) + bool(gated & {"hr", "legal"})
    )
    assert all(
        v[1].endswith("of the other") == (slug == "acme-corp") for v in sees.vertices.values() if v[0] == "Family"
    )


def test_an_admin(filled: str, admin_conn: Connection) -> None:
    with as_caller(admin_conn, filled):
        sees = assert_sees_its_own(admin_conn)
    assert len(sees.vertices) == 6 + 11 + 50
    assert len(sees.edges) == 11 + 100


@pytest.mark.parametrize("scopes", [[], ["hr"], ["legal", "hr"]])
def test_a_principal(db: Database, filled: str, scopes: list[str]) -> None:
    conn = db.principal(filled, scopes)
    wide = assert_sees_its_own(conn)
    conn.execute("set graphium.scopes = '{}'")
    conn.execute("set graphium.tenant = 'acme-corp'")  # is not listened to
    narrow = assert_sees_its_own(conn)
    assert (len(narrow.vertices) < len(wide.vertices)) == bool(scopes)
    conn.execute("set graphium.scopes = '{hr,legal,board}'")  # cannot widen
    assert assert_sees_its_own(conn) == wide


def test_an_empty_tenant(filled: str, app_conn: Connection) -> None:
    with as_caller(app_conn, "empty", ["hr", "legal"]):
        assert assert_sees_its_own(app_conn) == Seen({}, frozenset())


@pytest.mark.parametrize("tenant", [None, "", " ", "no such tenant", "*", "%"])
def test_nobody(filled: str, app_conn: Connection, tenant: str | None) -> None:
    with app_conn.transaction():
        app_conn.execute(
            "select set_config('graphium.tenant', %s, true), set_config('graphium.scopes', '{hr}', true)", [tenant]
        )
        with pytest.raises(errors.Error) as raised, app_conn.transaction():
            answers(app_conn, "MATCH (n) RETURN n")
        assert raised.value.sqlstate == "MG001"


def test_a_login_without_any_role(db: Database, filled: str) -> None:
    conn = db.connect(db.login())
    for query in (
        "select graphium.cypher('RETURN 1')",
        "select * from ag_catalog.ag_graph",
        "select ag_catalog.create_graph('mine')",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute(query.encode())


def test_paths_hold_only_what_is_seen(filled: str, app_conn: Connection) -> None:
    with as_caller(app_conn, filled, ["hr"]):
        sees = seen(app_conn)
        paths = answers(app_conn, "MATCH p=(a)-[e]->(b) RETURN p")
    assert {(start["id"], edge["label"], end["id"]) for start, edge, end in paths} == {
        (a, label, b) for label, a, b in sees.edges
    }


def test_a_changed_audience_holds_in_the_same_transaction(
    filled: str, admin_conn: Connection, app_conn: Connection, superuser: Connection
) -> None:
    """A family's edit moves its genera and edges at once, though no vertex is rewritten."""
    with superuser.transaction(force_rollback=True):
        superuser.execute("update graphium.dh_families set required_scopes = '{gone}' where name = 'f open'")
        superuser.execute("select graphium.set_caller('acme', '{hr}')")
        names = answers(superuser, "MATCH (n) RETURN n.name")  # as an admin: sees all
        assert "f open" in names
    with as_caller(admin_conn, filled):
        [family] = [i for i, v in seen(admin_conn).vertices.items() if v[1] == "f open"]
        admin_conn.execute("select graphium.set_required_scopes('family', %s, '{gone}')", [family])
    with as_caller(app_conn, filled, ["hr"]):
        sees = assert_sees_its_own(app_conn)
        assert family not in sees.vertices
        assert "g open" not in answers(app_conn, "MATCH (n:Genus) RETURN n.name")
    with as_caller(app_conn, filled, ["gone"]):
        assert family in assert_sees_its_own(app_conn).vertices
    with as_caller(admin_conn, filled):
        admin_conn.execute("select graphium.set_required_scopes('family', %s, '{}')", [family])


def test_row_security_off_shows_nothing_more(filled: str, app_conn: Connection) -> None:
    app_conn.execute("select graphium.set_caller(%s, is_local => false)", [filled])
    app_conn.execute("set row_security = off")
    assert answers(app_conn, "MATCH (n:Family) RETURN count(*)") == [3]


def test_the_first_call_on_a_fresh_connection(db: Database, filled: str) -> None:
    conn = db.connect("app")
    with as_caller(conn, filled):
        assert answers(conn, "MATCH (n:Family) RETURN count(*)") == [3]


def test_the_first_call_where_age_is_not_preloaded(db: Database, filled: str, superuser: Connection) -> None:
    superuser.execute(f"alter database {db.name} reset session_preload_libraries".encode())
    try:
        for query, params in (
            ("MATCH (n:Family) RETURN count(*)", {}),
            ("MATCH (n:Family {name: $n}) RETURN count(*)", {"n": "f open"}),
        ):
            conn = db.connect("app")
            with as_caller(conn, filled):
                assert conn.execute("select graphium.cypher(%s, %s)", [query, Jsonb(params)]).fetchone() == (
                    (1,) if params else (3,)
                )
    finally:
        superuser.execute(f"alter database {db.name} set session_preload_libraries = age".encode())


def test_from_a_function_of_the_callers_own(
    db: Database, filled: str, app_conn: Connection, superuser: Connection
) -> None:
    superuser.execute("create schema if not exists theirs; grant usage on schema theirs to public")
    superuser.execute(
        "create or replace function theirs.families() returns setof jsonb language sql set search_path = '' as $$ select graphium.cypher('MATCH (n:Family) RETURN n.name') $$"
    )
    with as_caller(app_conn, filled):
        assert {row[0] for row in app_conn.execute("select theirs.families()")} == {"f open", "f public", "shared"}


def test_prepared_and_repeated(filled: str, app_conn: Connection) -> None:
    """Plans turn generic after five runs; the rows do not change, nor does who sees them."""
    for scopes, families in ([], 3), (["hr"], 5), ([], 3), (["nothing"], 3), (["hr", "legal"], 6):
        for _ in range(7):
            with as_caller(app_conn, filled, scopes):
                count = app_conn.execute(
                    "select graphium.cypher(%s)", ["MATCH (n:Family) RETURN count(*)"], prepare=True
                ).fetchone()
                assert count == (families,)


def test_in_a_read_only_transaction(filled: str, app_conn: Connection) -> None:
    with as_caller(app_conn, filled):
        app_conn.execute("set transaction read only")
        assert answers(app_conn, "MATCH (n:Family) RETURN count(*)") == [3]
