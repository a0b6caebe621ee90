"""EXPLAIN, statistics and errors as witnesses: what they tell about rows that a caller cannot see, and what not.

A condition whose operator is leakproof may be run on hidden rows. That returns none of them, but whoever can find out
whether it was true of any row finds out a text by halving: see db/policies/040_order.sql and db/bootstrap.sql, part 5.
"""

from __future__ import annotations

import re

import pytest

from tests.isolation.attack import SECRET, TEA, Attacker, World, build
from tests.support.databases import Database

# Without indexes each condition is a filter; with them it may be a condition of the index.
SEQUENTIAL = "set enable_indexscan = off; set enable_indexonlyscan = off; set enable_bitmapscan = off"
INDEXED = "set enable_seqscan = off"
UNORDERED = "drop policy before_conditions_of_callers on graphium.kg_statements"
COSTLY = "alter function pg_catalog.uuid_eq(uuid, uuid) cost 1"
LEAKPROOF = "alter function pg_catalog.text_{}(text, text) leakproof"


@pytest.fixture(scope="module")
def world(db: Database) -> World:
    return build(db)


@pytest.fixture(scope="module")
def reader(world: World) -> Attacker:
    return world.attacker("reader")


def told(attacker: Attacker, query: str) -> list[str]:
    """What EXPLAIN (ANALYZE) says, but for the query itself: rows counted, and parts never executed."""
    plan = "\n".join(attacker.rows(f"explain (analyze, costs off, timing off, summary off, buffers off) {query}"))
    return re.findall(
        r"actual rows=[0-9.]+ loops=\d+|never executed|Removed by Filter: \d+|Heap Fetches: \d+|Searches: \d+", plan
    )


def fails(attacker: Attacker, query: str) -> str | None:
    """Whether the caller was looked up at all: he cannot be, with scopes like these."""
    attacker.tries("set graphium.scopes = '{bad'")
    try:
        return attacker.tries(query)
    finally:
        attacker.tries("reset graphium.scopes")


# Each condition twice: true of a hidden row, and of no row. Whole values only where equality is all there is.
CONDITIONS = {
    "kg_statements": [
        "content = '{0} of other earns 4711 euros'",
        "content = any ('{{{0} of other earns 4711 euros}}')",
        "content = any ('{{{0} of acme earns 4711 euros}}')",
        "content >= any ('{{{0}}}') and content < any ('{{{0}~}}')",
        "content between '{0}' and '{0}~'",
        "starts_with(content, '{0}')",
        "content::name >= '{0}' and content::name < '{0}~'",
        "content::bpchar ~>=~ '{0}' and content::bpchar ~<~ '{0}~'",
        "greatest(content, '{0}') = content and least(content, '{0}~') = content",
        "text_larger(content, '{0}') = content and text_smaller(content, '{0}~') = content",
        "(content, 1) > ('{0}', 0) and (content, 1) < ('{0}~', 0)",
        "md5(content) = md5('{0} of other earns 4711 euros')",
        "source > '{0}' and source < '{0}~'",
        "metadata['{0}'] = '1'",
        "required_scopes[1] = '{0}r'",
        "('{{\"{0} of other earns 4711 euros\": 1}}'::jsonb)[content] is not null",
        "(('{{\"{0} of other earns 4711 euros\": {{\"{0} file\": 1}}}}'::jsonb)[content])[source] is not null",
    ],
    "dh_families": ["name > '{0}' and name < '{0}~'", "name ~>~ '{0}' and name ~<~ '{0}~'", "starts_with(name, '{0}')", "name = any ('{{{0} other}}')"],
    "dh_specimens": ["name > '{0}' and name < '{0}~'", "name >= '{0} ' collate \"C\" and name < '{0}~' collate \"C\""],
    "dh_genera": ["name > any ('{{{0}}}') and name < any ('{{{0}~}}')"],
    "kg_statement_variants": ["content > '{0}' and content < '{0}~'", "starts_with(lower(content), '{0}')"],
    "dh_symbioses": ["note > '{0}' and note < '{0}~'", "starts_with(note, '{0}')"],
    "tenants": ["slug > 'o' and slug < 'p'", "starts_with(slug, 'o')"],
}  # fmt: skip
NO_SUCH = "yamoussoukro"


def pairs(table: str, condition: str) -> tuple[str, str]:
    query = f"select from graphium.{table} where {condition}"
    if table == "tenants":
        return query, query.replace("'o'", "'q'").replace("'p'", "'r'")
    return query.format(SECRET), query.format(NO_SUCH)


CASES = [(table, condition) for table, conditions in CONDITIONS.items() for condition in conditions]


@pytest.mark.parametrize(("table", "condition"), CASES, ids=[f"{t} {c}" for t, c in CASES])
def test_a_condition_that_is_true_of_a_hidden_row_looks_like_one_that_is_not(
    reader: Attacker, table: str, condition: str
) -> None:
    hit, miss = pairs(table, condition)
    for settings in (SEQUENTIAL, "reset all", INDEXED):
        reader.reset()
        reader.tries(settings)
        assert told(reader, hit) == told(reader, miss), settings
        assert fails(reader, hit) == fails(reader, miss)
        assert reader.rows(hit) == reader.rows(miss) == []


@pytest.mark.parametrize(
    ("removals", "is_told"),
    [([UNORDERED], False), ([COSTLY], False), ([UNORDERED, COSTLY], True)],
    ids=["by cost alone", "where nobody can set the cost", "neither"],
)
def test_without_the_order_any_text_of_any_tenant_could_be_guessed(
    world: World, removals: list[str], is_told: bool
) -> None:
    query = "select from graphium.kg_statements where content = any ('{%s}')"
    right, wrong = query % f"{SECRET} of other earns 4711 euros", query % f"{SECRET} of other earns 4712 euros"
    with world.unguarded("reader", *removals) as reader:
        reader.tries(SEQUENTIAL)
        assert (told(reader, right) != told(reader, wrong)) == is_told
        # Without EXPLAIN too: a caller who cannot be looked up is an error once he is looked up.
        reader.tries("set graphium.scopes = '{bad'")
        assert (reader.tries(wrong) is None) == is_told
        if is_told:
            assert reader.tries(right) == "MG008"


def test_without_the_marks_a_hidden_name_could_be_spelled_out(world: World) -> None:
    """Letter by letter, by the rows that an index found and the policy removed. With it, nothing is spelled."""

    def spell(attacker: Attacker) -> str:
        attacker.tries(INDEXED)
        known, query = SECRET[0], "select from graphium.dh_families where name >= '{0}' and name <= '{0}zzzz'"
        nothing = told(attacker, query.format("zz"))
        while len(known) < len(SECRET):
            found = [
                letter
                for letter in sorted(set(SECRET) | set("cdefg"))
                if told(attacker, query.format(known + letter)) != nothing
            ]
            if not found:
                break
            known += found[0]
        return known

    assert spell(world.attacker("reader")) == SECRET[0]
    marks = [LEAKPROOF.format(name) for name in ("ge", "le")]
    with world.unguarded("reader", *marks) as reader:
        assert spell(reader) == SECRET[0]
    with world.unguarded("reader", *marks, "create index on graphium.dh_families (tenant_id, name)") as reader:
        assert spell(reader) == SECRET


def test_no_function_that_orders_texts_is_leakproof(world: World) -> None:
    left = world.boss.execute(
        "select p.oid::regprocedure::text from pg_proc p where p.proleakproof and p.pronamespace = 'pg_catalog'::regnamespace"
        " and p.proargtypes::oid[] && '{text,bpchar,varchar}'::regtype[]::oid[] order by 1"
    ).fetchall()
    assert {row[0].split("(")[0] for row in left} <= {
        "texteq", "textne", "nameeqtext", "namenetext", "texteqname", "textnename", "bpchareq", "bpcharne",
    }  # fmt: skip


# ------------------------------------------------------------------------------------------ estimates
def estimate(attacker: Attacker, query: str) -> list[str]:
    """Costs and numbers of rows that the planner expects."""
    return re.findall(r"\(cost=.*?\)", "\n".join(attacker.rows(f"explain {query}")))


def test_estimates_tell_of_numbers_and_times_of_all_tenants_and_of_no_text(world: World) -> None:
    """No statistics are kept of texts (migration 0010), and an operator that is not leakproof would not be shown any."""
    with world.boss.transaction(force_rollback=True):
        world.boss.execute(
            "insert into graphium.kg_statements (tenant_id, id, family_id, genus_id, specimen_id, content, memory_type, source, access_count)"
            " select s.tenant_id, gen_random_uuid(), s.family_id, s.genus_id, s.specimen_id, %s, 'fact', %s, 7"
            "   from graphium.kg_statements s, generate_series(1, 3000) where s.id = %s",
            [f"{SECRET} again and again", f"{SECRET} file", world.hidden["other"]],
        )
        world.boss.execute("analyze graphium.kg_statements")
        world.boss.execute(f"set local session authorization {world.role('reader')}".encode())
        reader = Attacker(world.boss)
        query = "select from graphium.kg_statements where {}"
        for right, wrong, is_told in (
            (f"content = '{SECRET} again and again'", "content = 'x'", False),
            (f"content > '{SECRET}'", "content < 'a'", False),
            (f"source = '{SECRET} file'", "source = 'x'", False),
            (f"source between '{SECRET}' and '{SECRET}~'", "source between 'x' and 'x~'", False),
            ("access_count = 7", "access_count = 8", True),
        ):
            assert (estimate(reader, query.format(right)) != estimate(reader, query.format(wrong))) == is_told, right


def test_what_is_told_of_ones_own_tenant(world: World, reader: Attacker) -> None:
    """The rest of the risk: a whole id that is guessed right, of a hidden row of one's own tenant, and of no other. And no name."""
    reader.reset()
    reader.tries(INDEXED)
    name = "select from graphium.dh_families where name = '{}'"
    for guess in (f"{SECRET} acme", f"{SECRET} other"):
        assert told(reader, name.format(guess)) == told(reader, name.format(NO_SUCH))
    id = "select from graphium.kg_statements where id = '{}'"
    no_such = told(reader, id.format("01a22c30-0000-7000-8000-000000000000"))
    assert told(reader, id.format(world.hidden["acme"])) != no_such
    assert told(reader, id.format(world.hidden["other"])) == no_such
    assert reader.rows(name.format(f"{SECRET} acme")) == []
    slug = "select from graphium.tenants where slug = '{}'"  # its unique key is the one that does not start with the tenant
    assert told(reader, slug.format("other")) != told(reader, slug.format(NO_SUCH))


def test_sizes_and_counts_of_whole_tables_are_told_to_any_login(world: World) -> None:
    """Also those of a tenant's graph and index, which have his id in their names. Never a text."""
    stranger = world.attacker("stranger")
    graph = world.graphs["other"]
    assert (
        stranger.rows(f"select count(*) from pg_class where relnamespace = '{graph}'::regnamespace and reltuples > 0")[
            0
        ]
        > 0
    )
    assert stranger.rows(
        f"select pg_relation_size(c.oid) > 0 from pg_class c where c.relnamespace = '{graph}'::regnamespace and c.relname = 'Family'"
    ) == [True]
    assert stranger.tries("select n_live_tup from pg_stat_user_tables") == "42501"  # where hardening.sql is in force
    stranger.assert_heard_nothing()


def test_a_database_without_the_marks_is_noticed(world: World) -> None:
    """As after pg_restore or pg_upgrade: bootstrap.sql is to be run again, and doctor says so."""
    with world.boss.transaction(force_rollback=True):
        world.boss.execute(f"{LEAKPROOF.format('lt')}; alter function pg_catalog.uuid_eq(uuid, uuid) cost 1".encode())
        found = world.boss.execute("select function, problem from graphium_private._check_cypher_grants()").fetchall()
        assert [function for function, _ in found] == ["text_lt(text,text)", "uuid_eq(uuid,uuid)"]
    assert world.boss.execute("select * from graphium_private._check_cypher_grants()").fetchall() == []


def test_the_reader_reads_as_before(reader: Attacker) -> None:
    reader.reset()
    assert reader.rows(
        "select content from graphium.kg_statements where content = 'Tea is drunk at noon' and starts_with(content, 'Tea') and content < 'U'"
    ) == [TEA]
    reader.tries(INDEXED)
    plan = "\n".join(
        reader.rows("explain select * from graphium.kg_statements where id = '01a22c30-0000-7000-8000-000000000000'")
    )
    assert re.search(r"Index Cond: .*tenant_id = .* AND .*id = ", plan), plan
    plan = "\n".join(reader.rows("explain select * from graphium.dh_families where name = 'x'"))
    assert re.search(r"Index Cond: .*tenant_id = ", plan), plan
