"""What cypher() takes and what it gives back: values worked out by hand, the same on AGE 1.5 and 1.7."""

from __future__ import annotations

import json
import math
from typing import Any
from uuid import UUID

import pytest
from psycopg import errors
from psycopg.types.json import Jsonb

from tests.graph.mirror import Taxonomy
from tests.support.databases import Connection, Database

PARAMS = {
    "name": "Ada", "names": ["Ada", "Grace"], "map": {"a": {"b": [1, "x", None]}}, "list": [3, 1, 2], "nothing": None, "n": 2,
    "quote": "O'Br\"ien \\ $$ {} ::vertex }::edge", "wide": "🙂太é\u0001\t\n",
}  # fmt: skip

# (query, every value it returns), unordered unless the query orders.
ANSWERS: list[tuple[str, list[Any]]] = [
    # literals, parameters, operators
    ("RETURN 1", [1]),
    ("return 1", [1]),
    ("RETURN 1;", [1]),
    ("RETURN 1 ; \n ", [1]),
    ("/* a ** comment */ RETURN // to the end\n 1", [1]),
    ("RETURN -1", [-1]),
    ("RETURN - 1.5", [-1.5]),
    ("RETURN 0x1F", [31]),
    ("RETURN 1.5e3", [1500.0]),
    ('RETURN "it\'s"', ["it's"]),
    (r"RETURN 'a\'b\\c\u00e9\n'", ["a'b\\cé\n"]),
    ("RETURN '$$ $q$ -- /* // `'", ["$$ $q$ -- /* // `"]),
    ("RETURN true", [True]),
    ("RETURN null", [None]),
    ("RETURN []", [[]]),
    ("RETURN {}", [{}]),
    ("RETURN {a: 1, b: [1, 'x', {c: 2}], `d e`: true}", [{"a": 1, "b": [1, "x", {"c": 2}], "d e": True}]),
    ("RETURN {a: null, b: [null]}", [{"b": [None]}]),  # AGE's maps leave NULLs out
    ("RETURN {match: 1, set: 2, id: 3, properties: 4}", [{"match": 1, "set": 2, "id": 3, "properties": 4}]),
    ("RETURN {id: 1, label: 'x', properties: {}}", [{"id": 1, "label": "x", "properties": {}}]),
    ("RETURN $name", ["Ada"]),
    ("RETURN $map.a.b[1]", ["x"]),
    ("RETURN $list", [[3, 1, 2]]),
    ("RETURN $nothing", [None]),
    ("RETURN $quote", [PARAMS["quote"]]),
    ("RETURN $wide", [PARAMS["wide"]]),
    ("RETURN {a: $quote, b: [$wide]}", [{"a": PARAMS["quote"], "b": [PARAMS["wide"]]}]),
    ("RETURN 1 + 2 * 3", [7]),
    ("RETURN (1 + 2) * 3 - 4", [5]),
    ("RETURN 7 / 2", [3]),
    ("RETURN 7 % 4", [3]),
    ("RETURN 2 ^ 3", [8.0]),
    ("RETURN 'a' + 'b'", ["ab"]),
    ("RETURN [1] + [2]", [[1, 2]]),
    ("RETURN 1 = 1", [True]),
    ("RETURN 1 <> 1 OR 2 > 1 AND NOT 1 >= 2 XOR false", [True]),
    ("RETURN 'a' IN ['a', 'b']", [True]),
    ("RETURN $name IN $names", [True]),
    ("MATCH (f:Family) WHERE f.name IN ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'performance'] RETURN f.name", ["performance"]),
    ("MATCH (f:Family) WHERE NOT f.name IN ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'performance'] RETURN f.name", ["relationships"]),
    ("RETURN 'abc' STARTS WITH 'a'", [True]),
    ("RETURN 'abc' ENDS WITH 'a'", [False]),
    ("RETURN 'abc' CONTAINS 'b'", [True]),
    ("RETURN 'abc' =~ 'a.c'", [True]),
    ("RETURN null IS NULL", [True]),
    ("RETURN 1 IS NOT NULL", [True]),
    ("RETURN {a: 1 = 1, b: [2 = 3]}", [{"a": True, "b": [False]}]),
    ("RETURN [1, 2, 3][1]", [2]),
    ("RETURN [1, 2, 3][-1]", [3]),
    ("RETURN [1, 2, 3][1..]", [[2, 3]]),
    ("RETURN [1, 2, 3][..2]", [[1, 2]]),
    ("RETURN [1, 2, 3][0..-1]", [[1, 2]]),
    ("RETURN {a: {b: 2}}.a.b", [2]),
    ("RETURN {a: 1}['a']", [1]),
    ("RETURN CASE WHEN 1 = 2 THEN 'a' WHEN 2 = 2 THEN 'b' ELSE 'c' END", ["b"]),
    ("RETURN CASE 3 WHEN 1 THEN 'a' ELSE 'c' END", ["c"]),
    # functions
    ("RETURN toUpper('ab') + toLower('AB')", ["ABab"]),
    ("RETURN trim(' a ') + lTrim(' b') + rTrim('c ')", ["abc"]),
    ("RETURN [left('abc', 1), right('abc', 1), substring('abc', 1), substring('abc', 0, 2)]", [["a", "c", "bc", "ab"]]),
    ("RETURN [split('a,b', ','), reverse('ab'), size('abc')]", [[["a", "b"], "ba", 3]]),
    ("RETURN [head([1, 2]), last([1, 2]), tail([1, 2]), size([1, 2]), reverse([1, 2])]", [[1, 2, [2], 2, [2, 1]]]),
    ("RETURN [toString(1), toInteger('2'), toFloat('1.5'), toBoolean('true'), toBoolean(1 = 1), toString(1 = 2)]", [["1", 2, 1.5, True, True, "false"]]),
    ("RETURN [abs(-1), ceil(1.2), floor(1.8), round(1.5), sign(-3), sqrt(4)]", [[1, 2.0, 1.0, 2.0, -1, 2.0]]),
    ("RETURN coalesce(null, $nothing, 3)", [3]),
    ("RETURN isEmpty([])", [True]),
    ("RETURN keys({a: 1})", [["a"]]),
    # clauses
    ("UNWIND [3, 1, 2] AS x RETURN x ORDER BY x", [1, 2, 3]),
    ("UNWIND $list AS x RETURN x ORDER BY x DESC SKIP 1 LIMIT 1", [2]),
    ("UNWIND [1, 1, 2] AS x RETURN DISTINCT x", [1, 2]),
    ("UNWIND [1, 2, 3] AS x RETURN sum(x)", [6]),
    ("UNWIND [1, 2, 3] AS x RETURN avg(x)", [2.0]),
    ("UNWIND [1, 2, 3] AS x WITH toFloat(avg(x)) AS a WHERE a > 1 RETURN a", [2.0]),
    ("UNWIND [1, 2, 3] AS x RETURN {least: min(x), most: max(x), all: collect(x), n: count(x)}", [{"least": 1, "most": 3, "all": [1, 2, 3], "n": 3}]),
    ("UNWIND [1, 1, 2] AS x RETURN [count(*), count(x), count(DISTINCT x)]", [[3, 3, 2]]),
    ("WITH 1 AS x, 2 AS y WITH x + y AS z RETURN z", [3]),
    ("WITH 1 AS id RETURN id", [1]),
    ("UNWIND [1, 2] AS x WITH x WHERE x > 1 RETURN x", [2]),
    ("RETURN 1 AS x UNION RETURN 2 AS x", [1, 2]),
    ("RETURN 1 AS x UNION ALL RETURN 1 AS x", [1, 1]),
    # the graph
    ("MATCH (f:Family) RETURN f.name", ["performance", "relationships"]),
    ("MATCH (f:Family {name: 'performance'}) RETURN f.name", ["performance"]),
    ("MATCH (f:`Family`) WHERE f.name = 'performance' RETURN f.name", ["performance"]),
    ("MATCH (s:Specimen {name: $name}) RETURN count(s)", [4]),
    ("MATCH (s:Specimen) WHERE s.name IN $names RETURN count(*)", [8]),
    ("UNWIND $names AS name MATCH (s:Specimen {name: name}) RETURN count(*)", [8]),
    ("MATCH (s:Specimen) WITH s.name AS name, count(*) AS n RETURN {name: name, n: n} ORDER BY name", [{"name": n, "n": 4} for n in ("Ada", "Grace", "Mary")]),
    ("MATCH (f:Family)-[:HAS_GENUS]->(g) WITH f, collect(g.name) AS genera RETURN {f: f.name, n: size(genera)}", [{"f": "performance", "n": 2}, {"f": "relationships", "n": 2}]),
    ("MATCH (f:Family)-[:HAS_GENUS]->(g:Genus)-[:HAS_SPECIMEN]->(s) WHERE f.name = 'performance' AND s.name = 'Ada' RETURN g.name ORDER BY g.name", ["feedback", "history"]),
    ("MATCH (f:Family {name: 'performance'}) OPTIONAL MATCH (f)-[:HAS_SPECIMEN]->(x) RETURN [f.name, x.name]", [["performance", None]]),
    ("MATCH (f:Family)-[e]->(g:Genus) RETURN DISTINCT type(e)", ["HAS_GENUS"]),
    ("MATCH (f:Family) RETURN DISTINCT label(f)", ["Family"]),
    ("MATCH (f:Family) RETURN DISTINCT labels(f)", [["Family"]]),
    ("MATCH (f:Family) RETURN DISTINCT keys(f)", [["id", "name"]]),
    ("MATCH p=(f:Family)-[:HAS_GENUS]->(g)-[:HAS_SPECIMEN]->(s) RETURN DISTINCT length(p)", [2]),
    ("MATCH (n) WHERE exists(n.name) RETURN count(*)", [18]),
    ("MATCH (n) WHERE n.missing IS NULL RETURN count(*)", [18]),
    ("MATCH (f:Family) RETURN toUpper(f.name) ORDER BY toUpper(f.name) LIMIT 1", ["PERFORMANCE"]),
    ("MATCH (a:Family), (b:Family) WHERE a <> b RETURN count(*)", [2]),
    ("MATCH (f:Family) WHERE exists((f)-[:HAS_GENUS]->(:Genus)) RETURN count(*)", [2]),
]  # fmt: skip


@pytest.fixture(scope="module")
def taxonomy(db: Database) -> Taxonomy:
    db.connect("admin").execute("select graphium.create_tenant('acme')")
    taxonomy = Taxonomy(db.connect(), "acme")
    taxonomy.small()
    return taxonomy


@pytest.fixture(scope="module")
def caller(db: Database, taxonomy: Taxonomy) -> Connection:
    return db.principal("acme")


def answers(conn: Connection, query: str, params: Any = PARAMS) -> list[Any]:
    return [row[0] for row in conn.execute("select graphium.cypher(%s, %s)", [query, Jsonb(params)])]


@pytest.mark.parametrize(("query", "expected"), ANSWERS, ids=lambda x: repr(x)[:70] if isinstance(x, str) else "")
def test_answers(caller: Connection, query: str, expected: list[Any]) -> None:
    found = answers(caller, query)
    if "ORDER BY" not in query:
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    assert found == expected


def test_a_vertex(caller: Connection, taxonomy: Taxonomy) -> None:
    [family] = answers(caller, "MATCH (f:Family {name: 'performance'}) RETURN f")
    row = taxonomy.conn.execute("select id::text from graphium.dh_families where name = 'performance'").fetchone()
    assert row is not None
    assert family == {"id": row[0], "label": "Family", "properties": {"id": row[0], "name": "performance"}}
    [inside] = answers(caller, "MATCH (f:Family {name: 'performance'}) RETURN {list: [f, {deep: f}], name: f.name}")
    assert inside == {"list": [family, {"deep": family}], "name": "performance"}


def test_an_edge_and_a_path(caller: Connection) -> None:
    [[start, edge, end]] = answers(
        caller, "MATCH p=(f:Family {name: 'performance'})-[e:HAS_GENUS]->(g {name: 'history'}) RETURN p"
    )
    assert edge == {"id": edge["id"], "label": "HAS_GENUS", "properties": {}}
    assert (start["label"], end["label"]) == ("Family", "Genus")
    assert answers(caller, "MATCH (f:Family {name: 'performance'})-[e:HAS_GENUS]->(g {name: 'history'}) RETURN e") == [
        edge
    ]
    assert answers(
        caller,
        "MATCH p=(f:Family {name: 'performance'})-[e:HAS_GENUS]->(g {name: 'history'}) RETURN [nodes(p), relationships(p)]",
    ) == [[[start, end], [edge]]]


def test_edge_ids_are_distinct_and_stay(caller: Connection, db: Database) -> None:
    query = "MATCH (a)-[e]->(b) RETURN [a.id, b.id, e]"
    edges = {(a, b, e["label"]): e["id"] for a, b, e in answers(caller, query)}
    assert len(set(edges.values())) == len(edges) == 4 + 12 + 12
    assert all(UUID(id).version == 8 for id in edges.values())
    db.connect("admin").execute("select graphium.rebuild_graph('acme')")
    assert {(a, b, e["label"]): e["id"] for a, b, e in answers(caller, query)} == edges


def test_nothing_shows_an_internal_id(caller: Connection) -> None:
    """A graphid is a number above 2^48, and would come out of any way to write a vertex or an edge."""
    for query in (
        "MATCH p=(a)-[e]->(b) RETURN [a, e, b, p, {x: e}, nodes(p), relationships(p), properties(a), keys(e)]",
        "MATCH (a)-[e]->(b) RETURN [collect(a), collect(e)]",
        "MATCH (a)-[e]->(b) RETURN coalesce(null, e)",
        "MATCH (a) WITH {m: a} AS x RETURN x",
        "MATCH (a) RETURN [a] + [1]",
        "MATCH (a) RETURN CASE WHEN 1 = 1 THEN a END",
        "MATCH (a) RETURN [a.properties, a['id'], a['start_id']]",
        "MATCH (a)-[e]->() RETURN [e.id, e.start_id, e['end_id'], e.properties]",
        "MATCH (a)-[e]->() RETURN min(e)",
    ):
        for value in answers(caller, query):
            numbers: list[int] = []
            json.loads(json.dumps(value), parse_int=lambda digits, seen=numbers: seen.append(int(digits)))
            assert all(abs(n) < 2**32 for n in numbers), (query, value)


def test_text_of_the_graph_that_looks_like_notation(caller: Connection, taxonomy: Taxonomy) -> None:
    name = 'x"}::vertex, {"id": 1}::edge]::path NaN -Infinity 1::numeric \\'
    [family] = taxonomy.families(name)
    [found] = answers(caller, "MATCH (f:Family {name: $n}) RETURN {v: f, n: f.name}", {"n": name})
    assert found == {
        "v": {"id": str(family), "label": "Family", "properties": {"id": str(family), "name": name}},
        "n": name,
    }
    taxonomy.execute("delete from graphium.dh_families where id = %s", [family])


def test_numbers_that_json_does_not_have(caller: Connection) -> None:
    assert answers(caller, "RETURN [toFloat('NaN'), 10 ^ 400, -(10 ^ 400), 'NaN', {a: 10 ^ 400}]") == [
        ["NaN", "Infinity", "-Infinity", "NaN", {"a": "Infinity"}]
    ]


def test_large_and_deep_parameters(caller: Connection) -> None:
    assert answers(caller, "RETURN size($x)", {"x": "a" * 1_000_000}) == [1_000_000]
    assert answers(caller, "RETURN size($x)", {"x": list(range(100_000))}) == [100_000]
    assert answers(caller, "RETURN $x", {"x": 2**63 - 1}) == [2**63 - 1]
    assert answers(caller, "RETURN $x", {"x": -1.5e-300}) == [-1.5e-300]
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    assert answers(caller, "RETURN $x", {"x": deep}) == [deep]


@pytest.mark.parametrize(
    "query",
    [
        "RETURN " + "+".join(["1"] * 9_000),
        "RETURN " + " AND ".join(["1 = 1"] * 1_900),
        "RETURN " + "NOT " * 4_800 + "true",
        "RETURN " + "||".join(["'a'"] * 3_800),
        "RETURN [1]" + "[0]" * 6_000,
        "RETURN {" + ",".join(f"a{n}: 1" for n in range(2_000)) + "}",
        "WITH 1 AS x " * 400 + "RETURN 1",
        " UNION ".join(["RETURN 1"] * 1_200),
        "MATCH " + ",".join(["(:Nothing)"] * 200) + " RETURN 1",
        # one hop more and one more still: the planner needs seconds, then longer than any timeout, which ends it
        "MATCH (f:Family {name: 'nobody'})" + "--()" * 6 + " RETURN count(*)",
        "RETURN " + "abs(" * 38 + "1" + ")" * 38,
    ],
    ids=lambda q: q[:20],
)
def test_long_texts_are_answered_or_refused(caller: Connection, query: str) -> None:
    caller.execute("set statement_timeout = '20s'")
    code = None
    try:
        answers(caller, query)
    except errors.Error as error:
        code = error.sqlstate
    assert not caller.closed
    assert code in (None, "MG010")
    assert answers(caller, "RETURN 1") == [1]


@pytest.mark.parametrize("depth", [3_000, 6_000])
def test_absurdly_deep_parameters_are_an_error_at_worst(caller: Connection, depth: int) -> None:
    text = '{"x": ' + "[" * depth + "]" * depth + "}"
    code = None
    try:
        caller.execute("select graphium.cypher('RETURN $x', %s::jsonb)", [text])
    except errors.Error as error:
        code = error.sqlstate
    assert not caller.closed
    assert code in (None, "54001", "MG010")
    assert answers(caller, "RETURN 1") == [1]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("RETURN 1 / 0", "division by zero"),
        ("MATCH (n) RETURN n LIMIT -1", "LIMIT must not be negative"),
        ("RETURN 'a' =~ '('", "invalid regular expression"),
        ("MATCH (n) RETURN toUpper(n)", "toUpper"),
    ],
)
def test_mistakes_in_values_are_told_in_ages_words(caller: Connection, query: str, says: str) -> None:
    with pytest.raises(errors.Error) as raised:
        answers(caller, query)
    assert raised.value.sqlstate == "MG010"
    assert says in (raised.value.diag.message_primary or "")


def test_floats_are_floats(caller: Connection) -> None:
    [value] = answers(caller, "RETURN [pi(), e(), sin(0), atan2(1, 1), degrees(pi()), log(e())]")
    assert value == pytest.approx([math.pi, math.e, 0, math.pi / 4, 180, 1])
