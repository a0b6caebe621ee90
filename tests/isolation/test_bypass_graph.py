"""Cypher as a weapon: texts that try to break out, to forge, to hear hidden names in errors; and AGE itself, for somebody who
was given USAGE on ag_catalog as its manual tells (which is a way to crash the server, as tried on one of its own: with
`RETURN a <= null >= b.c < b`; docs/security.md says not to). More of the kind, and each fence without the others: tests/graph/test_refused.py."""

from __future__ import annotations

import json

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.isolation.attack import SECRET, Attacker, World, build, ids
from tests.support.databases import Database

REFUSED = "MG010"


@pytest.fixture(scope="module")
def world(db: Database) -> World:
    return build(db)


@pytest.fixture(scope="module")
def attacker(world: World) -> Attacker:
    return world.attacker("principal")


def ask(attacker: Attacker, query: str, **params: object) -> tuple[str | None, list[object]]:
    """SQLSTATE, and the values that came back."""
    attacker.heard.clear()
    try:
        found = [row[0] for row in attacker.conn.execute("select graphium.cypher(%s, %s)", [query, Jsonb(params)])]
    except psycopg.Error as error:
        attacker.heard.append(repr(error))
        return error.sqlstate or "client", []
    attacker.heard.append(repr(found))
    return None, found


# Reading is all that any of these may do, and of what is seen: refused, or harmless.
TEXTS = [
    # out of the dollar quotes that cypher() puts around the text
    "RETURN 1 $q$", "RETURN 1 $q$) as (v ag_catalog.agtype); drop schema graphium cascade; select $q$ 1", "RETURN '$$'", "RETURN '$q$'", "RETURN $q",
    "RETURN 1\n$q$, null) as c(value ag_catalog.agtype) union select to_jsonb(content) from graphium.kg_statements --",
    "RETURN $" + "q" * 1000, "$", "$$", "RETURN $1", "RETURN $1$1$", "RETURN `$q$`",
    # out of strings and names
    "RETURN 'a\\'", "RETURN 'a\\\\' CREATE (n) //'", "RETURN 'a' 'b'", "RETURN \"a\\\" CREATE (n) //\"", "RETURN 'a'' CREATE (n) //'", "RETURN 'a\\u0027 CREATE (n) //'",
    "RETURN '\\u0000'", "RETURN '\\x27 CREATE (n) //'", "RETURN '\\U00000027'", "RETURN `a`` CREATE (n) //`", "MATCH (`n) DETACH DELETE (n`) RETURN 1", "RETURN E'\\x41'", "RETURN U&'\\0041'",
    "MATCH (n {`name`: 'x'}) RETURN n", "MATCH (n:`Family`) RETURN n", "MATCH (n:`Fam``ily`) RETURN n", "MATCH (n:`_ag_label_vertex`) RETURN n", "MATCH (n:\"Family\") RETURN n",
    # hidden in comments, or between what two scanners take for white space
    "RETURN 1 /* */ CREATE (n)", "RETURN 1 /* /* */ CREATE (n) */", "RETURN 1 // x\nCREATE (n)", "RETURN 1 // x\rCREATE (n)", "RETURN 1 // x\u2028CREATE (n)", "RETURN 1 // x\u0085CREATE (n)",
    "RETURN 1 // x\x0bCREATE (n)", "RETURN 1 // x\x0cCREATE (n)", "RETURN 1 -- x\nCREATE (n)", "RETURN 1 /**/ /***/ /****/ CREATE (n)", "RETURN 1 /*/ CREATE (n) /*/", "MATCH (n)\u00a0DETACH\u00a0DELETE n",
    "MATCH (n) DETACH\u200bDELETE n", "MATCH (n) \u2060SET n.name = 1", "\ufeffMATCH (n) RETURN n",
    # keywords in disguise
    "MATCH (n) ſET n.name = 1 RETURN n", "MATCH (n) \uff33\uff25\uff34 n.name = 1", "MERGE\u0307 (n)", "MATCH (n) DELETE\u0301 n", "CREATE\u0000 (n)", "MATCH (n) `SET` n.name = 1", "MATCH (n) S\\u0045T n.name = 1",
    "MATCH (n) RETURN n UNION CREATE (m) RETURN m", "MATCH (n) WITH n AS create CREATE (create) RETURN 1", "MATCH (set) SET set.name = 1", "OPTIONAL CREATE (n) RETURN n", "UNWIND [1] AS x MERGE (n) RETURN n",
    "MATCH (n) RETURN n ORDER BY CREATE", "EXPLAIN CREATE (n)", "MATCH (n) CALL { CREATE (m) } RETURN n", "MATCH (n) RETURN n INTO x", "MATCH (n) WHERE EXISTS { CREATE (m) } RETURN n",
    # SQL functions and schemas
    "RETURN graphium.recall_context()", "RETURN pg_catalog.current_user", "RETURN current_user", "RETURN session_user", "RETURN query_to_xml('select 1')", "RETURN pg_read_file('x')", "RETURN `pg_sleep`(9)",
    "RETURN 'x'::regclass", "RETURN 'graphium.kg_statements'::text", "RETURN CAST('x' AS regclass)", "RETURN (SELECT 1)", "RETURN ROW(1)", "RETURN ARRAY[1]", "RETURN count(DISTINCT pg_sleep(9))", "RETURN toString(version())",
    "RETURN ag_catalog.age_id({})", "RETURN age_id({})", "RETURN age_tostring(1)", "RETURN agtype_in('1')", "RETURN nextval('x')", "RETURN lo_import('/etc/passwd')", "RETURN currval('x')",
    # forged vertices and edges, and what would read past the policies with them
    "RETURN startNode({id: 1, label: 'x', start_id: 2, end_id: 3, properties: {}})", "RETURN endNode($e)", "RETURN id($v)", "RETURN $v::vertex", "RETURN {id: 1}::vertex", "RETURN [{id: 1}]::path", "RETURN nodes($p)", "RETURN '1'::path",
    "MATCH (n) WITH collect(n) AS ns RETURN startNode(ns)", "MATCH ()-[e]->() RETURN {a: startNode(e)}", "MATCH (n) RETURN vertex_stats(n)", "RETURN graph_stats('x')", "RETURN vertex_stats($v)",
    # paths of variable length, in every place
    "MATCH (n)-[*0..]->(m) RETURN m", "MATCH (n)-[e:HAS_GENUS*0..0]->(m) RETURN m", "MATCH p = (n)-[*..1]-(m) RETURN p", "MATCH (n)-[**]->(m) RETURN m", "MATCH (n)-[*$n]->(m) RETURN m", "MATCH (n)-[{a: 1}*]->(m) RETURN m",
    "MATCH (n) WHERE (n)-[*]->() RETURN n", "MATCH p = allShortestPaths((a)-[*]->(b)) RETURN p", "MATCH (n) RETURN [(n)-[*]->(m) | m]", "MATCH (n) RETURN size((n)-[*]->())",
    # long and deep
    "RETURN " + "(" * 39 + "1" + ")" * 39, "RETURN " + "[" * 41 + "]" * 41, "RETURN " + "NOT " * 5000 + "true", "RETURN " + " AND ".join(["true"] * 2000), "RETURN '" + "a" * 15000 + "'", "MATCH " + ", ".join(["(n)"] * 300) + " RETURN 1",
    "RETURN CASE " + "WHEN true THEN 1 " * 500 + "END", "RETURN 0x" + "f" * 5000, "RETURN 1" + "0" * 5000, "RETURN 1e99999", "RETURN 9223372036854775808", "RETURN -9223372036854775809", ";" * 5000, "RETURN" + "\t" * 10000 + "1",
]  # fmt: skip
VERTEX = {"id": 844424930131969, "label": "Family", "properties": {}}


@pytest.mark.parametrize("text", TEXTS, ids=ids([text.encode("ascii", "backslashreplace").decode() for text in TEXTS]))
def test_a_text_is_refused_or_harmless(world: World, attacker: Attacker, text: str) -> None:
    state, _ = ask(attacker, text, q=1, e=VERTEX | {"start_id": 1, "end_id": 2}, v=VERTEX, p=[VERTEX], n=1)
    assert state in (None, REFUSED, "MG008", "client"), attacker.heard
    attacker.assert_heard_nothing()
    assert ask(attacker, "MATCH (n) RETURN count(*)") == (None, [3])


def test_nobody_wrote(world: World) -> None:
    """After all the texts above, in this order of the file: the graphs are what their rows say."""
    admin = Attacker(world.admin)
    for tenant in ("acme", "other"):
        assert admin.rows(f"select * from graphium.check_graph('{tenant}')") == []
        tables = world.boss.execute(
            "select count(*) from pg_class where relkind = 'r' and relnamespace = %s::regnamespace",
            [world.graphs[tenant]],
        ).fetchone()
        assert tables == (8,)


FORGED: list[object] = [
    VERTEX,
    VERTEX | {"start_id": 1, "end_id": 2},
    [VERTEX, VERTEX | {"start_id": 844424930131969, "end_id": 844424930131969}, VERTEX],
    '{"id": 844424930131969, "label": "Family", "properties": {}}::vertex',
    '"}::vertex',
    'x"}::edge, {',
    "1::numeric",
    "\\u0022}::vertex",
    {"a}::vertex": 1},
    {"": {"::path": "]::path"}},
    "NaN -Infinity ::vertex",
    10**40,
    -(10**18),
    1e300,
    [[[[[]]]]],
    None,
    "\u2028\x01\x7f$q$`'\"\\",
]


@pytest.mark.parametrize("value", FORGED, ids=lambda v: json.dumps(v)[:40])
def test_a_forged_parameter_stays_a_plain_value(attacker: Attacker, value: object) -> None:
    state, found = ask(attacker, "RETURN $x", x=value)
    assert state is None or (state == REFUSED and isinstance(value, int | float)), attacker.heard
    if state is None:
        assert found == [value] or (isinstance(value, int | float) and float(str(found[0])) == float(value))
    for use in (
        "MATCH (n) WHERE n = $x RETURN n",
        "MATCH (n {id: $x}) RETURN n",
        "RETURN label($x)",
        "RETURN properties($x)",
        "RETURN relationships($x)",
        "RETURN type($x)",
        "RETURN keys($x)",
        "MATCH (n) WHERE n.id = $x.id RETURN n",
        "MATCH (n) WHERE n IN [$x] RETURN n",
    ):
        state, _ = ask(attacker, use, x=value)
        assert state in (None, REFUSED), (use, attacker.heard)
        attacker.assert_heard_nothing()


def test_a_condition_of_cypher_never_meets_a_hidden_name(world: World, attacker: Attacker) -> None:
    """Functions that fail are run on what the policies leave only: they would fail at the length of a hidden name."""
    queries = [
        "MATCH (n) WHERE 1 / (size(n.name) - {}) > 9 RETURN n",
        "MATCH (n:Specimen) WHERE 1 / (size(n.name) - {}) > 9 RETURN n",
        "MATCH (a)-[]->(b) WHERE 1 / (size(b.name) - {}) > 9 RETURN a",
        "MATCH (n) WITH n.name AS name WHERE 1 / (size(name) - {}) > 9 RETURN name",
        "MATCH (n) RETURN 1 / (size(n.name) - {})",
    ]
    _, names = ask(attacker, "MATCH (n) RETURN n.name")
    visible = {len(str(name)) for name in names}
    hidden = {len(f"{SECRET} {word}") for word in ("acme", "pay", "person")} - visible
    assert hidden
    for query in queries:
        failed = {length for length in range(1, 30) if ask(attacker, query.format(length))[0] is not None}
        assert failed <= visible
        assert not failed & hidden
        attacker.assert_heard_nothing()
    with world.unguarded(
        "principal",
        *(
            f'alter table {world.graphs["acme"]}."{label}" disable row level security'
            for label in ("_ag_label_vertex", "Family", "Genus", "Specimen")
        ),
    ) as other:
        assert ask(other, queries[0].format(min(hidden)))[0] == REFUSED  # division by zero


# ------------------------------------------------------------------------------------------ AGE, without graphium.cypher()
DENIED = "42501"
AGE = [
    ("select * from cypher('{acme}', $$ MATCH (n) RETURN n $$) as (v agtype)", DENIED),
    ("select * from cypher('{acme}', $$ MATCH (n:Family) RETURN n.name $$) as (v agtype)", DENIED),
    ("select * from cypher('{other}', $$ MATCH (a)-[*]->(b) RETURN b $$) as (v agtype)", DENIED),
    ("select * from cypher('{other}', $$ CREATE (n:Family) $$) as (v agtype)", DENIED),
    ("select * from cypher('{other}', $$ CREATE (n:New) $$) as (v agtype)", DENIED),
    ("select * from cypher('{other}', $$ MERGE (n:New {{a: 1}}) $$) as (v agtype)", DENIED),
    ("select * from cypher('{acme}', $$ MATCH (n) SET n.name = 1 $$) as (v agtype)", DENIED),
    ("select * from cypher('{acme}', $$ MATCH (n) DETACH DELETE n $$) as (v agtype)", DENIED),
    ("select * from cypher('{acme}', $$ RETURN pg_catalog.version() $$) as (v agtype)", "22P02"),
    ("select * from cypher('{acme}', $$ RETURN 1 + 1 $$) as (v agtype)", DENIED),
    ("prepare p as select * from cypher('{acme}', $$ MATCH (n) RETURN n $$) as (v agtype)", DENIED),
    ("explain select * from cypher('{acme}', $$ MATCH (n) RETURN n $$) as (v agtype)", DENIED),
    ("create temp view v as select * from cypher('{acme}', $$ MATCH (n) RETURN n $$) as (v agtype)", DENIED),
    ("select * from ag_graph", DENIED),
    ("select * from ag_label", DENIED),
    ("select create_graph('mine')", DENIED),
    ("select drop_graph('{acme}', true)", DENIED),
    ("select create_vlabel('{acme}', 'mine')", DENIED),
    ("select drop_label('{acme}', 'Family')", DENIED),
    ("select alter_graph('{acme}', 'RENAME', 'mine')", DENIED),
    ("select load_labels_from_file('{acme}', 'Family', '/etc/passwd')", DENIED),
    ("select age_vertex_stats('{{\"id\": 1}}', '1')", DENIED),
    ("select * from age_vle('\"{other}\"'::agtype, null, null, null, null, null, null)", DENIED),
    ("select age_startnode('\"{other}\"'::agtype, '1')", DENIED),
    ("select _graphid(3, 1)", DENIED),
    ("select '1'::agtype = '1'::agtype", DENIED),
    ("select '1'::agtype::text", DENIED),
    ("select '{{\"id\": 844424930131969, \"label\": \"Family\", \"properties\": {{}}}}::vertex'::agtype", None),
    ("select * from {acme}.\"Family\"", DENIED),
    ("select * from {other}._ag_label_vertex", DENIED),
    ("create table mine.t () inherits ({other}.\"Family\")", DENIED),
    ("select nextval('{acme}.\"Family_id_seq\"')", DENIED),
    ("select last_value from {acme}._label_id_seq", DENIED),
    ("comment on schema {acme} is null", DENIED),
    ("create table {acme}.t (x int)", DENIED),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "code"), AGE, ids=ids(AGE))
def test_age_itself_with_usage_on_its_schema(world: World, statement: str, code: str | None) -> None:
    attacker = world.attacker("builder")
    world.boss.execute(f"grant usage on schema ag_catalog to {world.role('builder')}".encode())
    try:
        for path in ("ag_catalog, public", "mine, ag_catalog"):
            attacker.tries(f"set search_path = {path}")
            assert attacker.tries(statement.format(**world.graphs)) == code, attacker.heard
            attacker.assert_heard_nothing()
    finally:
        attacker.conn.close()
        world.boss.execute(f"revoke usage on schema ag_catalog from {world.role('builder')}".encode())
