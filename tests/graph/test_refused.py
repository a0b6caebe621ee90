"""Texts that cypher() refuses, each with MG010, a message and a hint; and that each fence behind the grammar holds alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg import errors
from psycopg.types.json import Jsonb

from tests.graph.mirror import Taxonomy
from tests.support.databases import Connection, Database

ROOT = Path(__file__).resolve().parents[2]

WRITES = [
    "CREATE (n:Family {name: 'x'})",
    "CREATE (n:Family {name: 'x'}) RETURN n",
    "MATCH (n) CREATE (m:Family) RETURN m",
    "MATCH (n) SET n.name = 'x'",
    "MATCH (n) SET n.name = 'x' RETURN n",
    "MATCH (n) SET n += {a: 1} RETURN n",
    "MATCH (n) SET n = {} RETURN n",
    "MATCH (n) REMOVE n.name RETURN n",
    "MATCH (n) DELETE n",
    "MATCH (n) DETACH DELETE n",
    "MATCH ()-[e]->() DELETE e RETURN 1",
    "MERGE (n:Family {name: 'x'})",
    "MERGE (n:Family {name: 'x'}) RETURN n",
    "MATCH (a), (b) MERGE (a)-[:HAS_GENUS]->(b) RETURN a",
    "MATCH (a), (b) CREATE (a)-[:HAS_GENUS]->(b)",
    "match (n) set n.name = 'x' return n",
    "MaTcH (n) /* c */ dEtAcH/**/DeLeTe n",
    "WITH 1 AS x CREATE (n) RETURN n",
    "UNWIND [1] AS x CREATE (n:Genus {x: x})",
]
PATHS = [
    "MATCH (a)-[*]->(b) RETURN b",
    "MATCH (a)-[*1..2]->(b) RETURN b",
    "MATCH (a)-[:HAS_GENUS*]->(b) RETURN b",
    "MATCH (a)-[e*2]-(b) RETURN b",
    "MATCH (a)<-[e:HAS_GENUS *..3 {x: 1}]-(b) RETURN b",
    "MATCH p=(a)-[ * ]->(b) RETURN p",
    "MATCH (n) WHERE exists((n)-[*]->()) RETURN n",
    "MATCH p=shortestPath((a)-[*]->(b)) RETURN p",
    "RETURN shortestPath((a)-[*]->(b))",
    "MATCH (a), (b) RETURN shortest_path(a, b)",
    "MATCH (n) RETURN vle(n)",
    "MATCH (n) RETURN age_vle(n)",
]
FUNCTIONS = [
    "MATCH ()-[e]->() RETURN startNode(e)",
    "MATCH ()-[e]->() RETURN endNode(e)",
    "RETURN startNode({id: 1, start_id: 2, end_id: 3, label: 'x', properties: {}})",
    "RETURN {id: 844424930131969, label: 'Family', properties: {}}::vertex",
    "RETURN startNode({id: 1688849860263937, label: 'HAS_GENUS', start_id: 844424930131969, end_id: 1, properties: {}}::edge)",
    "RETURN 1::pg_bigint",
    "RETURN '1' :: text",
    "MATCH (n) RETURN id(n)",
    "MATCH (n) RETURN ID (n)",
    "MATCH (n) RETURN `id`(n)",
    "MATCH ()-[e]->() RETURN start_id(e)",
    "MATCH ()-[e]->() RETURN end_id(e)",
    "MATCH (n) RETURN id",
    "MATCH (n) RETURN properties",
    "MATCH (n) WHERE xmin = 1 RETURN n",
    "MATCH (n) RETURN tableoid",
    "MATCH (n) RETURN anchor_id",
    "MATCH (n) RETURN `required_scopes`",
    "MATCH (n) RETURN vertex_stats(n)",
    "RETURN graph_stats('graphium_x')",
    "CALL graph_stats('graphium_x')",
    "CALL pg_catalog.version()",
    "CALL pg_sleep(1)",
    "CALL { MATCH (n) RETURN n } RETURN n",
    "RETURN pg_catalog.version()",
    "RETURN pg_catalog.pg_backend_pid()",
    "RETURN pg_catalog.(version())",
    "RETURN pg_catalog . pg_sleep (1)",
    "RETURN pg_catalog./**/version()",
    "RETURN `pg_catalog`.`version`()",
    "RETURN version()",
    "RETURN current_user()",
    "RETURN current_setting('graphium.scopes')",
    "RETURN set_config('graphium.scopes', '{hr}', false)",
    "RETURN graphium.set_caller('other')",
    "RETURN query_to_xml('select 1', true, true, '')",
    "RETURN lo_creat(1)",
    "RETURN load_labels_from_file('g', 'l', '/etc/passwd')",
    "RETURN ag_catalog.create_graph('x')",
    "RETURN create_graph('x')",
    "RETURN drop_graph('x', true)",
    "RETURN cypher('x', 'y')",
    "RETURN toStringList([1])",
    "RETURN unnest([1])",
    "RETURN match.version()",
    "MATCH (n) WHERE n.name.version() RETURN n",
]
STATEMENTS = [
    "",
    "   ",
    ";",
    "// nothing",
    "/* nothing */",
    "MATCH (n)",
    "MATCH (n) WITH n",
    "RETURN",
    "RETURN 1 RETURN 2",
    "RETURN 1; RETURN 2",
    "RETURN 1; DROP TABLE graphium.tenants",
    "MATCH (n) RETURN n; MATCH (n) DETACH DELETE n",
    "EXPLAIN MATCH (n) RETURN n",
    "EXPLAIN ANALYZE MATCH (n) RETURN n",
    "EXPLAIN ANALYZE VERBOSE MATCH (n) RETURN n",
    "PROFILE MATCH (n) RETURN n",
    "SELECT 1",
    "select * from graphium.dh_families",
    "USE other MATCH (n) RETURN n",
    "LOAD CSV FROM 'x' AS y RETURN y",
    "FOREACH (x IN [1] | CREATE (n)) RETURN 1",
    "MATCH (n) RETURN n $$) as (v ag_catalog.agtype); drop table graphium.tenants; --",
    "MATCH (n) RETURN n $q$) as (v agtype); select 1 --",
    "RETURN 1 $$",
    "RETURN $$",
    "RETURN $",
    "RETURN 'a",
    'RETURN "a',
    "RETURN `a",
    "RETURN 'a\\",
    "RETURN 1 /* and on",
    "RETURN 1 */",
    "RETURN 1 -- comment",
    "RETURN @",
    "RETURN 1 # 2",
    "RETURN \x01",
    "RETURN 1, 2",
    "MATCH (n) RETURN n.id, n.name",
    "MATCH (n) RETURN *, 1",
    "MATCH (a), (b) RETURN *",
    "RETURN a",
    "MATCH (n) RETURN m.name",
    "MATCH (n) WHERE m.name = 1 RETURN n",
    "MATCH (n:Family|Genus) RETURN n",
    "MATCH (n) WHERE n:Family RETURN n",
    "MATCH (n $map) RETURN n",
    "MATCH ($map) RETURN 1",
    "MATCH (n)-[e $map]->() RETURN n",
    "MATCH (n) RETURN n {.name}",
    "MATCH (n)-[e]->(e) RETURN n",
    "MATCH (n) RETURN (n)-[]->()",
    "MATCH (n)<-[]->(m) RETURN n",
    "RETURN [x IN [1] | x]",
    "RETURN " + "(" * 60 + "1" + ")" * 60,
    "RETURN " + "[" * 5000 + "]" * 5000,
    "RETURN " + "-" * 3000 + "1",
    "RETURN '" + "a" * 30000 + "'",
    "MATCH (n) RETURN n" + " " * 30000 + "// end",
]
# What crashes AGE, and with it the server, or has it read memory that is not the query's.
CRASHES = [
    "RETURN 1 IN (2 = 2)",
    "RETURN 'a' STARTS WITH (1 = 1)",
    "RETURN (1 = 1) ENDS WITH 'a'",
    "RETURN 'a' CONTAINS (1 IS NULL)",
    "RETURN 1 IN isEmpty([])",
    "RETURN 1 IN []",
    "RETURN {a: $list IN ([])}",
    "RETURN 1 IN avg(1)",
    "RETURN 'a' STARTS WITH (avg(1))",
    "WITH 1 = 1 AS c RETURN 1 IN c",
    "WITH avg(1) AS c RETURN 'a' STARTS WITH c",
    "MATCH (n) WITH n.name = 'a' AS x RETURN x.name",
    "MATCH (n) WITH NOT (n.name = 'a') AS x WITH x AS y RETURN y[0]",
    "MATCH (n) WITH exists(n.name) AS x RETURN x",
    "RETURN toStringList(1 = 1)",
    "RETURN toIntegerList(1 IS NULL)",
    "RETURN substring('a', null, 1)",
    "MATCH (n) RETURN substring(n.name, n.missing, 1)",
    "RETURN a <= null >= b.c < b",
    "MATCH (n) WHERE 'a' < n.name < 'b' RETURN n",
    "UNWIND a.b <= c.d >= e.f <> 1 AS x RETURN x",
    "RETURN {a: 1}[1 = 1]",
    "RETURN (avg(1))[0]",
    "RETURN [1, 2][[]..]",
    "RETURN [1, 2][0..$list]",
    "MATCH p=(n)-[e]->(m) RETURN exists(()-[p]->())",
    "MATCH (n) WHERE exists((n {name: n.name})) RETURN n",
    "RETURN size(1 = 1)",
    "RETURN count(1 = 1) IN [1] IN [2]",
    "RETURN 1 + (1 = 1)",
    "RETURN -(1 = 1)",
    "RETURN coalesce(1 = 1, 2)",
    "RETURN CASE WHEN 1 = 1 THEN 1 = 1 END",
    "RETURN 1 + 2 IN [3]",
    "UNWIND 1 = 1 AS x RETURN x",
    "UNWIND count(1) AS x RETURN x",
    "MATCH (n) WHERE count(n) > 1 RETURN n",
    "RETURN count(count(1))",
]


@pytest.fixture(scope="module")
def caller(db: Database) -> Connection:
    db.connect("admin").execute("select graphium.create_tenant('acme')")
    Taxonomy(db.connect(), "acme").small()
    conn = db.principal("acme", ["hr"])
    conn.execute("set statement_timeout = '20s'")
    return conn


@pytest.mark.parametrize("query", [*WRITES, *PATHS, *FUNCTIONS, *STATEMENTS, *CRASHES], ids=lambda q: repr(q[:60]))
def test_refused(caller: Connection, query: str) -> None:
    with pytest.raises(errors.Error) as raised:
        caller.execute("select graphium.cypher(%s, %s)", [query, Jsonb({"map": {"a": 1}, "list": [1], "": 1})])
    assert raised.value.sqlstate == "MG010"
    assert raised.value.diag.message_primary
    assert raised.value.diag.message_hint
    assert "graphium_" not in (raised.value.diag.message_primary or "")  # nothing of ours, nor the graph's name
    assert caller.execute("select graphium.cypher('MATCH (n) RETURN count(*)')").fetchone() == (18,)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("MATCH (n) SET n.name = 'x'", "read-only"),
        ("MATCH (a)-[*]->(b) RETURN b", "variable length"),
        ("MATCH (n) RETURN id(n)", "property id"),
        ("RETURN pg_catalog.version()", "schema"),
        ("RETURN version()", "docs/graph.md"),
        ("RETURN 1, 2", "one map"),
        ("MATCH (n $map) RETURN n", "{name: $name}"),
        ("MATCH (n) RETURN m", "m is not defined here A name comes from MATCH, UNWIND or WITH"),
        ("MATCH (n) WITH n.name AS a RETURN n", "n is not defined here A name comes from MATCH, UNWIND or WITH"),
        ("MATCH (n) RETURN 1 / 0", "division by zero So says Apache AGE of a name or a value in the query"),
        ("MATCH (n) RETURN n LIMIT -1", "negative So says Apache AGE of a name or a value in the query"),
        ("RETURN 1 < 2 < 3", "a < b AND b < c"),
        ("RETURN toBoolean(1 = 1) IN (1 = 1)", "toBoolean"),
        ("MATCH ()-[e]->() RETURN startNode(e)", "both ends"),
        ("RETURN size(range(1, 20000000))", "in the client"),
        ('WITH "aaaaaaaaaa" AS c WITH replace(c, "a", c) AS c RETURN size(c)', "in the client"),
        ("WITH [1] AS c " + "WITH c + c AS c " * 4 + "RETURN size(c)", "several queries"),
        ("WITH [1] AS c WITH " + "c + " * 21 + "c AS c RETURN size(c)", "several queries"),
    ],
)
def test_the_hint_says_what_to_do(caller: Connection, query: str, says: str) -> None:
    with pytest.raises(errors.Error) as raised:
        caller.execute("select graphium.cypher(%s, %s)", [query, Jsonb({"map": {}})])
    assert says in f"{raised.value.diag.message_primary} {raised.value.diag.message_hint}"


@pytest.mark.parametrize("params", [None, [], "x", 1, True])
def test_params_that_are_no_object(caller: Connection, params: object) -> None:
    with pytest.raises(errors.Error) as raised:
        caller.execute("select graphium.cypher('RETURN 1', %s)", [None if params is None else Jsonb(params)])
    assert raised.value.sqlstate == "MG008"


def test_a_null_query_and_a_parameter_that_is_not_given(caller: Connection) -> None:
    for query in (None, "RETURN $nam"):
        with pytest.raises(errors.Error) as raised:
            caller.execute("select graphium.cypher(%s, %s)", [query, Jsonb({"name": 1})])
        assert raised.value.sqlstate == "MG008"


# ------------------------------------------------------------------------------------------ without the grammar
def straight(query: str, graph: str) -> bytes:
    return f"select * from ag_catalog.cypher('{graph}', $zz$ {query} $zz$) as (v ag_catalog.agtype)".encode()


@pytest.fixture
def as_cypher(db: Database, caller: Connection) -> tuple[Connection, str]:
    """A session with the rights of graphium.cypher()'s owner and no grammar in front, and the graph's name."""
    conn = db.connect()
    row = conn.execute("select graph_name::text from graphium.tenants where slug = 'acme'").fetchone()
    assert row is not None
    conn.execute("select graphium.set_caller('acme', is_local => false)")
    conn.execute("set search_path = ag_catalog; set role graphium_cypher")
    return conn, row[0]


@pytest.mark.parametrize(
    "query",
    [
        *(q for q in WRITES if "n = {}" not in q and "remove" not in q.lower()),
        *PATHS[:6],  # AGE 1.5 crashes on a path of variable length in exists()
        "MATCH ()-[e]->() RETURN startNode(e)",
        "MATCH ()-[e]->() RETURN endNode(e)",
        "RETURN {id: 844424930131969, label: 'Family', properties: {}}::vertex",
        "MATCH (n) RETURN vertex_stats(n)",
        "RETURN toStringList([1])",
        "RETURN ag_catalog.age_create_barbell_graph('x', 1, 2, 'a', 'b', 'c', 'd')",
    ],
    ids=repr,
)
def test_the_role_alone_may_not(as_cypher: tuple[Connection, str], query: str) -> None:
    conn, graph = as_cypher
    with pytest.raises(errors.Error) as raised:
        conn.execute(straight(query, graph))
    # AGE 1.5 refuses a few of these for another reason before it gets to the function.
    assert raised.value.sqlstate in ("42501", "42601", "0A000", "42883", "22023", "42703")
    conn.execute("reset role")
    assert Taxonomy(conn, "acme").assert_mirrored()


def test_the_role_alone_may_not_touch_tables(as_cypher: tuple[Connection, str]) -> None:
    conn, graph = as_cypher
    for statement in (
        f"insert into {graph}.\"Family\" (id, properties, anchor_id) values ('1', '{{}}', gen_random_uuid())",
        f"update {graph}.\"Family\" set properties = '{{}}'",
        f'delete from {graph}."Family"',
        f'truncate {graph}."Family"',
        f'drop table {graph}."Family"',
        f"select nextval('{graph}.\"Family_id_seq\"')",
        "select ag_catalog.create_graph('mine')",
        f"select ag_catalog.drop_graph('{graph}', true)",
        "select ag_catalog.load_labels_from_file('g', 'l', '/etc/passwd')",
        f"select * from ag_catalog.age_graph_stats('\"{graph}\"')",
        "delete from ag_catalog.ag_graph",
        "select * from graphium.dh_families",
    ):
        with pytest.raises(errors.Error) as raised:
            conn.execute(statement.encode())
        assert raised.value.sqlstate in ("42501", "42883"), statement


def test_another_tenants_graph_shows_the_role_nothing(as_cypher: tuple[Connection, str], db: Database) -> None:
    """Only graphium.cypher() chooses the graph, by the caller's tenant; the policies name the tenant too."""
    conn, _ = as_cypher
    db.connect("admin").execute("select graphium.create_tenant('other')")
    other = Taxonomy(db.connect(), "other")
    families, _, _ = other.small()
    # Even with a family of the same id on both sides.
    db.connect().execute(
        "insert into graphium.dh_families (tenant_id, id, name) select id, %s, 'twin' from graphium.tenants where slug = 'acme'",
        [families[0]],
    )
    for query in ("MATCH (n) RETURN n", "MATCH ()-[e]->() RETURN e", "MATCH (n:Family) RETURN n"):
        assert conn.execute(straight(query, f"graphium_{other.tenant.hex}")).fetchall() == []
    db.connect().execute("delete from graphium.dh_families where name = 'twin'")
    db.connect("admin").execute("select graphium.drop_tenant('other')")


@pytest.mark.parametrize("role", ["graphium_reader", "graphium_user", "graphium_app", "graphium_admin"])
def test_application_roles_reach_neither_age_nor_the_graphs(db: Database, caller: Connection, role: str) -> None:
    conn = db.connect(db.login(role))
    row = caller.execute("select (graphium.caller()).tenant").fetchone()
    assert row == ("acme",)
    [graph] = db.connect().execute("select graph_name::text from graphium.tenants where slug = 'acme'").fetchone() or ()
    for statement in (
        f'select * from {graph}."Family"',
        f"select * from {graph}._ag_label_vertex",
        "select * from ag_catalog.ag_graph",
        f"select * from ag_catalog.cypher('{graph}', $$ MATCH (n) RETURN n $$) as (v ag_catalog.agtype)",
        f"select ag_catalog.age_vle('\"{graph}\"', null, null, null, null, null, null)",
        f'set search_path = {graph}; select * from "Family"',
        "select graphium_private._create_graph(gen_random_uuid())",
        "set role graphium_cypher",
        "set role graphium_keeper",
    ):
        with pytest.raises(errors.Error) as raised:
            conn.execute(statement.encode())
        assert raised.value.sqlstate in ("42501", "42P01"), statement


def test_ag_catalog_is_as_bootstrap_makes_it(db: Database) -> None:
    superuser = db.connect()
    assert superuser.execute("select * from graphium_private._check_cypher_grants()").fetchall() == []
    with superuser.transaction(force_rollback=True):
        superuser.execute(
            "grant execute on function ag_catalog.age_vertex_stats(ag_catalog.agtype, ag_catalog.agtype) to graphium_cypher"
        )
        superuser.execute('grant execute on function ag_catalog.age_abs(variadic "any") to public')
        superuser.execute(
            "revoke execute on function ag_catalog.agtype_add(ag_catalog.agtype, ag_catalog.agtype) from graphium_cypher"
        )
        superuser.execute("alter function ag_catalog.graphid_eq(ag_catalog.graphid, ag_catalog.graphid) not leakproof")
        found = superuser.execute("select problem, function from graphium_private._check_cypher_grants()").fetchall()
        assert [(p, f.split("(")[0].removeprefix("ag_catalog.")) for p, f in found] == [
            ("everybody may execute it, and should not", "age_abs"),
            ("graphium_cypher may execute it, and should not", "age_vertex_stats"),
            ("graphium_cypher may not execute it, and should", "agtype_add"),
            ("it is not marked leakproof: traversals are slow", "graphid_eq"),
        ]


def test_the_two_lists_of_grants_are_one() -> None:
    """bootstrap.sql runs before there are functions, so it has a copy."""

    def listed(path: str) -> list[list[str]]:
        text = (ROOT / path).read_text("utf-8")
        text = text[text.index("('graphium_owner', '_label_id") :]
        return [
            part.split()
            for part in text[: text.index("int8_to_agtype'")].replace("(", "'").split("'")
            if part.strip(" ,)\n")
        ]

    assert listed("db/bootstrap.sql") == listed("db/functions/350_check_cypher_grants.sql")
