"""What an outside tester tried with a psql prompt: maintenance that runs his code, counters of his own transaction, plans, and an index."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from tests.isolation.attack import SECRET, TEA, Attacker, World, build, ids
from tests.isolation.two_worlds import World as TwoWorlds
from tests.search.corpus import Corpus, Row, vector_text
from tests.support.databases import Database, as_caller


def arranged(is_so: object) -> None:
    """What must hold for an attack to be one."""
    if not is_so:
        pytest.fail("the attack is not arranged as it should be")


@pytest.fixture(scope="module")
def world(db: Database) -> World:
    made = build(db)
    with as_caller(made.app, "acme"):  # so that indexes are used, and a family has open rows beside a hidden one
        made.app.execute(
            "select graphium.ingest_context('plain', 'g', 's', (select jsonb_agg(jsonb_build_object('content', 'plain row ' || n, 'embedding', null)) from generate_series(1, 300) n))"
        )
    made.boss.execute("update graphium_private.settings set value = 50 where name = 'projected_family_min'")
    with as_caller(made.app, "acme"):
        made.app.execute(
            "select graphium.ingest_context('large', 'g', 's', (select jsonb_agg(jsonb_build_object('content', 'row ' || n, 'embedding', jsonb_build_array(sqrt(1 - (n / 60.0) ^ 2) * cos(2.4 * n), sqrt(1 - (n / 60.0) ^ 2) * sin(2.4 * n), -n / 60.0))) from generate_series(1, 60) n))"
        )
    with as_caller(made.app, "acme", ["hr"]):
        made.app.execute(
            "select graphium.ingest_context('large', 'g', 's', %s, '{hr}')",
            [json.dumps([{"content": "makes the projections", "embedding": [3, 2, 1]}])],
        )
        made.app.execute(
            "select graphium.ingest_context('plain', 'g', 's', %s, '{hr}')",
            [json.dumps([{"content": f"{SECRET} among the plain ones", "embedding": [3, 2, 1]}])],
        )
        made.app.execute(
            "select graphium.ingest_context(%s, %s, 's', %s, '{hr}')",
            [
                f"{SECRET} family",
                f"{SECRET} g",
                json.dumps(
                    [{"content": f"{SECRET} was said"}, {"content": f"{SECRET.title()}  was said.", "source": SECRET}]
                ),
            ],
        )
    with as_caller(made.app, "other"):
        made.app.execute("select graphium.ingest_context('plain', 'g', 's', '[{\"content\": \"kilimanjaro\"}]')")
    arranged(made.boss.execute("select from graphium_private.projections where required_scopes = '{hr}'").rowcount == 1)
    with as_caller(made.admin, "acme"):
        made.admin.execute(
            "select graphium.link_symbiosis('contradicts', '{\"family\": \"plain\"}', %s, %s)",
            [json.dumps({"family": f"{SECRET} family"}), SECRET],
        )
    made.boss.execute("vacuum analyze")
    return made


@pytest.fixture
def attacker(world: World) -> Attacker:
    attacker = world.attacker("builder")
    attacker.tries("drop schema mine cascade", "create schema mine")
    return attacker


# ------------------------------------------------------------------------------------------ his code, run by maintenance
# PostgreSQL runs functions in indexes, views and defaults as the table's owner, whoever maintains it; but session_user stays the
# maintainer's, and a superuser is a member of every role.
BURGLARY = """
  create table mine.loot (who text, tenant text, text text);
  create function mine.put(text, text) returns void language sql as $$ insert into mine.loot values (session_user, $1, $2) $$;
  create function mine.go() returns void language plpgsql as $$
    declare t text; r record;
    begin
      if session_user = '{me}' then return; end if;
      perform mine.put(null, 'ran as ' || current_user);
      foreach t in array '{{acme,other}}'::text[] loop
        begin
          perform set_config('graphium.tenant', t, true);
          for r in {query} loop perform mine.put(t, r.content); end loop;
        exception when others then perform mine.put(t, sqlerrm);
        end;
      end loop;
    end $$;
  create function mine.f(int) returns int language plpgsql immutable as $$ begin perform mine.go(); return $1; end $$;
  create table mine.bait (x int) with (autovacuum_analyze_threshold = 1, autovacuum_analyze_scale_factor = 0);
  create index i on mine.bait (mine.f(x));
  create materialized view mine.m as select mine.f(x) as x from mine.bait;
  create unique index on mine.m (x);
  insert into mine.bait values (1), (2)"""
MAINTENANCE = [
    "analyze mine.bait",
    "vacuum full mine.bait",
    "reindex index mine.i",
    "reindex index concurrently mine.i",
    "cluster mine.bait using i",
    "refresh materialized view mine.m",
    "refresh materialized view concurrently mine.m",
]
QUERIES = {
    "table": "select content from graphium.kg_statements",
    "function": "select content from graphium.recall_context()",
    "set_caller": "select s.content from (select graphium.set_caller(t) offset 0) as c, lateral (select content from graphium.recall_context() where c is not null) as s",
}


@pytest.mark.parametrize(
    ("statement", "by"),
    [
        *((statement, "function") for statement in MAINTENANCE),
        *(("analyze mine.bait", by) for by in ("table", "set_caller")),
    ],
)
def test_maintenance_by_a_superuser_runs_code_of_the_owner_who_stays_himself(
    world: World, attacker: Attacker, statement: str, by: str
) -> None:
    attacker.conn.execute(BURGLARY.format(me=world.role("builder"), query=QUERIES[by]).encode())
    world.boss.execute(statement.encode())
    found = attacker.rows("select text from mine.loot")
    arranged(f"ran as {world.role('builder')}" in found)
    attacker.assert_heard_nothing()


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("maintainer", ["principal", "app", "admin"])
def test_maintenance_by_another_login_shows_the_owner_nothing_of_his(
    world: World, attacker: Attacker, maintainer: str, query: str
) -> None:
    """Who is granted MAINTAIN, as everybody is here, comes to the table by a bare ANALYZE."""
    attacker.conn.execute(BURGLARY.format(me=world.role("builder"), query=QUERIES[query]).encode())
    attacker.conn.execute("grant maintain on mine.bait to public")
    if maintainer == "principal":
        login = world.db.login()
        with as_caller(world.admin, "acme"):
            world.admin.execute("select graphium.add_principal(%s, 'acme', '{hr}')", [world.db.cluster.role(login)])
        victim = world.db.connect(login)
    else:
        victim = world.db.connect(world.db.login(f"graphium_{maintainer}"))
        victim.execute("select graphium.set_caller('acme', '{hr}', is_local => false)")
    arranged(any(SECRET in content for (content,) in victim.execute("select content from graphium.kg_statements")))
    for statement in ("analyze", "vacuum analyze"):
        victim.execute(statement.encode())
    found = attacker.rows("select text from mine.loot")
    arranged(f"ran as {world.role('builder')}" in found)
    assert {text for text in found if "ran as" not in text} == {
        "nobody is a caller in what a materialized view, an index or maintenance runs (a security-restricted operation)"
    }
    attacker.assert_heard_nothing()


HELD = [
    f"pg_{try_}advisory_{xact}lock{shared}({types})"
    for try_ in ("", "try_")
    for xact in ("", "xact_")
    for shared in ("", "_shared")
    for types in ("1", "1, 1")
]


@pytest.mark.parametrize("call", HELD)
def test_nobody_fills_the_lock_table_with_advisory_locks(attacker: Attacker, call: str) -> None:
    """Some 8,000 of them, and nobody can connect to the server any more."""
    assert attacker.tries(f"select {call}") == "42501"


TAKES_LOCKS = [  # or tells of others' transactions, with no right on what it is given
    "pg_get_object_address('schema', '{pg_catalog}', '{}')",
    "brin_summarize_new_values('graphium.kg_statements_pkey')",
    "brin_summarize_range('graphium.kg_statements_pkey', 1)",
    "brin_desummarize_range('graphium.kg_statements_pkey', 1)",
    "pg_xact_status('3')",
    "pg_stat_get_slru()",
]


@pytest.mark.parametrize("call", TAKES_LOCKS)
def test_what_asks_no_rights_is_for_who_watches_the_server(attacker: Attacker, call: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"^permission denied for function"):
        attacker.conn.execute(f"select {call}".encode())
    attacker.tries("rollback")


@pytest.mark.parametrize(
    "view",
    [
        "pg_stat_all_tables",
        "pg_stat_all_indexes",
        "pg_statio_all_tables",
        "pg_statio_all_indexes",
        "pg_stat_database",
        "pg_stat_io",
        "pg_stat_wal",
    ],
)
def test_counters_of_other_sessions_are_for_who_watches_the_server(world: World, attacker: Attacker, view: str) -> None:
    """They tell how many words another caller looked for, and in how many statements these are."""
    assert attacker.tries(f"select * from {view}") == "42501"
    login = world.db.login("pg_monitor")
    assert world.db.connect(login).execute(f"select * from {view}".encode()).rowcount > 0


def test_check_security_neither_waits_for_a_stranger_s_table_nor_fails_by_one(world: World, attacker: Attacker) -> None:
    deep = "abs(" * 4900 + "x" + ")" * 4900
    for name, condition in (("locked", "true"), ("deep", f"{deep} > 0")):
        attacker.conn.execute(f"create temp table {name} (x int)".encode())
        attacker.conn.execute(
            f"create policy p on {name} using ({condition} and (select (graphium.caller()).tenant) is not null)".encode()
        )
    attacker.conn.execute("create index on locked (x) where x is not null")
    before = world.boss.execute("select lint, object from graphium.check_security()").fetchall()
    with attacker.conn.transaction():
        attacker.conn.execute("lock table locked in access exclusive mode")
        assert world.boss.execute("select lint, object from graphium.check_security()").fetchall() == before
    assert not any("deep" in object or "locked" in object for _, object in before)
    attacker.tries("drop table locked, deep")


# ------------------------------------------------------------------------------------------ counters of one's own transaction
COUNTERS = """
  select json_object_agg(c.relname, json_build_array(pg_stat_get_xact_tuples_returned(c.oid), pg_stat_get_xact_tuples_fetched(c.oid),
           pg_stat_get_xact_tuples_inserted(c.oid), pg_stat_get_xact_tuples_updated(c.oid), pg_stat_get_xact_tuples_deleted(c.oid)) order by c.relname)
    from pg_class c where c.relnamespace::regnamespace::text in ('graphium', 'graphium_private') and c.relkind in ('r', 'i')"""
INDEXED = "set enable_seqscan = off; set enable_bitmapscan = off"


def counted(attacker: Attacker, call: str) -> dict[str, list[int]]:
    """Rows that a call read and wrote, table by table and index by index. The second time, when its plans are made."""
    before: dict[str, list[int]] = {}
    after: dict[str, list[int]] = {}
    for _ in range(2):
        attacker.tries("begin", "savepoint a")
        [before] = attacker.rows(COUNTERS)
        attacker.tries(call)
        attacker.tries("rollback to a")
        [after] = attacker.rows(COUNTERS)
        attacker.tries("rollback")
    return {name: [b - a for a, b in zip(before[name], after[name], strict=True)] for name in after}


HIDDEN_WORD = ("select from graphium.search_context(query_text => '{}')", SECRET, "yamoussoukro")
CALLS = {
    "a word": HIDDEN_WORD,
    "a word, along symbioses": ("select from graphium.search_context(query_text => 'tea {}', families => '{{plain}}')", SECRET, "yamoussoukro"),
    "a sentence": ("""select from graphium.ingest_context('plain', 'g', 's', '[{{"content": "{} among the plain ones"}}]')""", SECRET, "yamoussoukro"),
    "a vector": ("""select from graphium.ingest_context('plain', 'g', 's', '[{{"content": "new", "embedding": {}}}]')""", "[3, 2, 1]", "[-3, -2, 1]"),
    "a vector in a large family": ("""select from graphium.ingest_context('large', 'g', 's', '[{{"content": "new", "embedding": {}}}]')""", "[3, 2, 1]", "[-3, -2, 1]"),
    "another tenant's word": ("select from graphium.search_context(query_text => '{}')", "kilimanjaro", "yamoussoukro"),
    "a tenant": ("select graphium.set_caller('{}')", "other", "yamoussoukro"),
}  # fmt: skip
TOLD = {  # as docs/side-channels.md says
    "a family's name": ("select from graphium.recall_context(family => '{}')", f"{SECRET} acme", "yamoussoukro acme"),
    "a family's name in a search": ("select from graphium.search_context(query_text => 'tea', families => '{{\"{}\"}}')", f"{SECRET} acme", "yamoussoukro acme"),
    "a specimen's name": ("select from graphium.recall_context(specimen => '{}')", f"{SECRET} person", "yamoussoukro person"),
    "an id, recalled": ("select from graphium.recall_context(statement_ids => '{{{}}}')", "id", "01a22c30-0000-7000-8000-000000000000"),
    "an id, forgotten": ("select graphium.forget_context('{{{}}}')", "id", "01a22c30-0000-7000-8000-000000000000"),
}  # fmt: skip


@pytest.mark.parametrize("what", [*CALLS, *TOLD])
def test_counters_are_the_same_for_a_right_guess(world: World, what: str) -> None:
    reader = world.attacker("principal")
    reader.tries(*INDEXED.split("; "))
    call, right, wrong = (CALLS | TOLD)[what]
    right = world.hidden["acme"] if right == "id" else right
    is_same = counted(reader, call.format(right)) == counted(reader, call.format(wrong))
    assert is_same is (what in CALLS)


def test_pages_are_the_same_for_a_right_guess(world: World) -> None:
    reader = world.attacker("reader")
    reader.tries(*INDEXED.split("; "))

    def pages(word: str) -> list[str]:
        for _ in range(8):  # until plans and caches are as they stay
            plan = reader.rows(
                f"explain (analyze, buffers, costs off, timing off, summary off) {HIDDEN_WORD[0].format(word)}"
            )
        return [line for line in plan if "Buffers" in line]

    arranged(pages("tea") != pages("yamoussoukro"))
    assert pages(SECRET) == pages("yamoussoukro")


# ------------------------------------------------------------------------------------------ plans
def told(attacker: Attacker, query: str) -> list[str]:
    plan = "\n".join(attacker.rows(f"explain (analyze, costs off, timing off, summary off, buffers off) {query}"))
    return re.findall(r"actual rows=[0-9.]+ loops=\d+|never executed|Removed by Filter: \d+", plan)


def among(words: list[str], what: str) -> str:
    """A condition that costs nothing: whether what is one of any number of words."""
    return f"('{json.dumps(dict.fromkeys(words, 1))}'::jsonb)[{what}] is not null"


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("kg_statements", among(["yamoussoukro"] * 9 + ["hr"], "required_scopes[1]")),
        ("dh_families", among(["hr"], "required_scopes[1]")),
        ("kg_statements", f"metadata['{SECRET}'] is not null"),
        ("kg_statements", among([f"{SECRET} of acme earns {n} euros" for n in range(1, 9999)], "content")),
        ("dh_families", among([f"{SECRET} acme", *(f"guess {n}" for n in range(999))], "name")),
        ("dh_genera", f"name = '{SECRET} g'"),
        ("kg_statement_variants", f"content = '{SECRET.title()}  was said.'"),
        ("kg_statement_variants", f"source = '{SECRET}'"),
        ("dh_symbioses", f"note = '{SECRET}'"),
        ("dh_symbioses", "kind = 'contradicts'"),
    ],
    ids=[
        "scopes of statements",
        "scopes of families",
        "metadata",
        "ten thousand sentences",
        "a thousand names",
        "a genus",
        "a variant",
        "the source of a variant",
        "the note of an edge",
        "the kind of an edge",
    ],
)
def test_a_free_condition_hears_no_hidden_row(world: World, table: str, condition: str) -> None:
    reader = world.attacker("reader")
    reader.tries("set enable_indexscan = off", "set enable_bitmapscan = off")
    miss = re.sub(f"{SECRET}|{SECRET.title()}|hr|contradicts", "yamoussoukro", condition)
    query = f"select from graphium.{table} where "
    assert told(reader, query + condition) == told(reader, query + miss)


@pytest.mark.parametrize(
    ("table", "column"), [("dh_families", "id"), ("kg_statements", "id"), ("kg_statements", "family_id")]
)
def test_ids_of_ones_own_tenant_can_be_spelled_out(world: World, table: str, column: str) -> None:
    reader = world.attacker("reader")
    reader.tries("set enable_seqscan = off", "set enable_bitmapscan = off", "set enable_indexonlyscan = off")

    def hidden(low: int, high: int) -> int:
        low_id, high_id = (f"{n:032x}" for n in (low, high))
        plan = told(reader, f"select from graphium.{table} where {column} between '{low_id}' and '{high_id}'")
        return sum(int(line.split()[-1]) for line in plan if "Removed" in line)

    low, high = 0, 2**128 - 1
    everything = hidden(low, high)
    for _ in range(128):
        middle = (low + high) // 2
        if hidden(low, middle):  # something is hidden in the lower half
            high = middle
        else:
            low = middle + 1
    spelled = f"{low:032x}"
    known = world.boss.execute(
        sql.SQL("select replace({}::text, '-', '') from graphium.{}").format(
            sql.Identifier(column), sql.Identifier(table)
        )
    ).fetchall()
    assert everything > 0
    assert (spelled,) in known  # as docs/side-channels.md says


PRINTING = "client_min_messages = log; set debug_print_parse = on; set debug_print_rewritten = on; set debug_print_plan = on; set debug_pretty_print = off; set trace_sort = on"
SAY = """select from graphium.ingest_context('work', 'notes', 'Ada', '[{{"content": "Ada says {0}", "embedding": [{0}, 4, 1, 0]}}]')"""
PRINTED = [
    "select content from graphium.kg_statements order by content",
    "select from graphium.dh_families join graphium.dh_genera on family_id = dh_families.id",
    *(SAY.format(n) for n in range(1, 8)),  # a statement that is planned for its values, and one that is planned once
    SAY.format(7),
    SAY.format(9).replace("work", "of his own"),
    "select from graphium.search_context(query_text => 'Ada tea', query_embedding => '[1,2,3,0]')",
    "select from graphium.search_families('[1,2,3,0]')",
    "select from graphium.prepare_query('what did Ada say last week')",
    "select from graphium.recall_context(specimen => 'Ada', page_size => 3)",
    "select from graphium.wake_up_context()",
    "select from graphium.context_tree()",
    "select from graphium.cypher('MATCH (n)-[e]->(m) RETURN count(*)')",
    "select graphium.set_required_scopes('statement', id, '{public}') from graphium.kg_statements where content = 'Ada says 3'",
    "select graphium.set_required_scopes('specimen', id, '{public}') from graphium.dh_specimens where name = 'Ada'",
    "select graphium.set_required_scopes('family', id, '{public}', true) from graphium.dh_families where name = 'work'",
    "select graphium.forget_context(array(select id from graphium.kg_statements where content ~ 'says'))",
]  # fmt: skip


@pytest.fixture(scope="module")
def with_and_without(world: World) -> list[str]:
    """Logins in two tenants that differ in 40 hidden statements, enough for their family to be projected."""
    world.boss.execute("update graphium_private.settings set value = 20 where name = 'projected_family_min'")
    logins = []
    for hides in (False, True):
        slug = f"printed {hides}"
        tenant = TwoWorlds(world.db, slug, world.app, world.admin, world.boss)
        tenant.say("Ada likes tea.", [1, 0, 0, 0])
        if hides:
            vectors = np.random.default_rng(1).normal(size=(40, 4)).tolist()
            tenant.say([{"content": f"hidden {v}", "embedding": v} for v in vectors], scopes=["hr"], born=[])
            tenant.say("hidden family", [1, 1, 1, 1], ["hr"], family="staff", born=["hr"])
        login = world.db.login()
        world.admin.execute("select graphium.add_principal(%s, %s, '{}')", [world.db.cluster.role(login), slug])
        world.logins[slug] = login
        logins.append(slug)
    world.boss.execute("analyze")
    return logins


def printed(world: World, who: str, *removals: str) -> set[tuple[str, ...]]:
    """What the server prints of its own accord while he goes through the calls: titles, constants of trees, sizes of sorts.

    A set, because a plan is made again whenever somebody else's analyze lets it.
    """
    said = set()
    with world.unguarded(who, *removals) as reader:
        reader.tries(f"set {PRINTING}")
        for call in PRINTED:
            assert reader.tries(call) is None, reader.heard[-1]
        for line in reader.heard:
            if line.startswith("LOG"):
                constants = re.findall(r":consttype (\d+) [^}]*?:constvalue (\d+) \[ ([-0-9 ]+) \]", line)
                title = line.split(" | ")[1].split(": CPU")[0]
                # ids are others in each world, and whether a plan has one as a constant depends on when it was made
                said.add((title, *(f"{t} {size} {value}" for t, size, value in constants if t not in ("2950", "2951"))))
    return said


def test_printed_plans_and_sorts_are_the_same_whatever_is_hidden(world: World, with_and_without: list[str]) -> None:
    """A plan inside a function of ours has its variables as constants, and trace_sort says how much was sorted."""
    without, with_hidden = (printed(world, who) for who in with_and_without)
    arranged({"plan:", "parse tree:", "rewritten parse tree:"} < {title for title, *_ in without})
    assert with_hidden == without

    functions = world.boss.execute("select p.oid::regprocedure::text from pg_proc p where 'client_min_messages=warning' = any (p.proconfig)")  # fmt: skip
    unguarded = [f"alter function {name} reset client_min_messages" for (name,) in functions]
    without, with_hidden = (printed(world, who, *unguarded) for who in with_and_without)
    more = {part for line in with_hidden - without for part in line}
    arranged("20 8 48 0 0 0 0 0 0 0" in more)  # 8 statements that he sees, and 40
    arranged(any("sort" in title for title, *_ in with_hidden))


@pytest.mark.parametrize("table", ["kg_statement_variants", "dh_genera", "dh_symbioses", "kg_statements"])
def test_plans_of_policies_have_no_hidden_id(world: World, table: str) -> None:
    reader = world.attacker("reader")
    reader.tries("set client_min_messages = log", "set debug_print_plan = on", "set debug_pretty_print = off")
    for _ in range(2):
        reader.rows(f"select count(*) from graphium.{table}")
    arranged(any("plan:" in line for line in reader.heard))
    hidden = world.boss.execute(
        "select id from graphium.kg_statements where 'hr' = any (required_scopes)"
        " union all select id from graphium.dh_families where 'hr' = any (required_scopes)"
    ).fetchall()
    for (id,) in hidden:
        spelled = " ".join(str(int.from_bytes(bytes([byte]), "little", signed=True)) for byte in id.bytes)
        assert not any(spelled in line for line in reader.heard)


SERIALIZABLE = "begin isolation level serializable"


UNDER_SERIALIZABLE = [
    *(f"select count(*) from graphium.{table}" for table in ("kg_statements", "kg_embeddings", "dh_families", "dh_symbioses", "kg_statement_variants", "tenants")),
    "select * from graphium.search_context('[3, 2, 1]')",
    "select * from graphium.search_context(query_text => 'plain')",
    f"select * from graphium.recall_context(family => '{SECRET} family')",
    "select * from graphium.context_tree()",
    "select graphium.ingest_context('plain', 'g', 's', '[{\"content\": \"x\", \"source\": \"y\"}]')",
    "select graphium.cypher('MATCH (n) RETURN n')",
    "select * from graphium.caller()",
]  # fmt: skip


@pytest.mark.parametrize("begin", [SERIALIZABLE, f"{SERIALIZABLE} read only", f"{SERIALIZABLE} read only deferrable"])
def test_a_principal_is_refused_under_serializable(world: World, begin: str) -> None:
    """What a transaction has read, hidden rows and pages included, decides which of two fails (40001), and which statement of it."""
    attacker = world.attacker("builder")
    attacker.tries(begin)
    for statement in UNDER_SERIALIZABLE:
        attacker.tries("savepoint s")
        expected = {"0A000"} | ({"25006"} if "ingest" in statement and "read only" in begin else set())
        assert attacker.tries(statement) in expected, statement
        attacker.tries("rollback to s")
    attacker.tries("rollback")
    attacker.tries("begin isolation level repeatable read")
    assert attacker.rows("select content from graphium.kg_statements where content like 'plain row 7'")
    attacker.tries("rollback")


def test_under_serializable_a_source_would_show_by_its_page(world: World) -> None:
    """Why: where it would be in the index is a comparison with the sources that begin its pages, hidden ones too."""
    world.admin.execute(SERIALIZABLE)
    world.admin.execute("select graphium.set_caller('acme')")
    world.admin.execute(
        "select graphium.ingest_context('plain', 'g', 's', '[{\"content\": \"plain row 7\", \"source\": \"a guess\"}]')"
    )
    marked = world.boss.execute(
        "select relation::regclass::text from pg_locks where mode = 'SIReadLock' and locktype = 'page' and pid = %s",
        [world.admin.info.backend_pid],
    ).fetchall()
    world.admin.execute("rollback")
    assert ("graphium.kg_statements_in_source",) in marked


@pytest.mark.parametrize("login", ["principal", "reader", "builder", "stranger"])
def test_nobody_sees_which_rows_a_serializable_transaction_has_read(world: World, login: str) -> None:
    attacker = world.attacker(login)
    assert attacker.tries("select relation, page, tuple from pg_locks where mode = 'SIReadLock'") == "42501"
    assert attacker.tries("select from pg_lock_status()") == "42501"
    with world.boss.transaction(force_rollback=True):  # they are there, and maintenance sees locks
        world.boss.execute("set transaction isolation level serializable")
        world.boss.execute("select count(*) from graphium.kg_statements")
        world.boss.execute("set local role graphium_keeper")
        arranged(world.boss.execute("select from pg_locks where mode = 'SIReadLock'").rowcount)


@pytest.mark.parametrize("login", ["principal", "reader", "builder", "stranger"])
def test_nobody_sees_what_other_sessions_wait_for_or_read(world: World, login: str) -> None:
    attacker = world.attacker(login)
    watched = [
        "pg_blocking_pids({})",
        "pg_safe_snapshot_blocking_pids({})",
        "pg_isolation_test_session_is_blocked({}, '{{0}}')",
    ]
    if world.boss.info.server_version >= 180000:
        watched += ["pg_stat_get_backend_io({})", "pg_stat_get_backend_wal({})"]
    for call in watched:
        asked = f"select {call.format(world.app.info.backend_pid)}"
        assert attacker.tries(asked) == "42501"
        with world.boss.transaction(force_rollback=True):  # who watches the server does
            world.boss.execute("set local role pg_monitor")
            arranged(world.boss.execute(asked.encode()).rowcount)


@pytest.mark.parametrize("login", ["principal", "reader", "builder", "stranger"])
def test_nobody_keeps_a_snapshot_for_sessions_to_come(world: World, login: str) -> None:
    attacker = world.attacker(login)
    attacker.tries("begin isolation level repeatable read")
    assert attacker.tries("select pg_export_snapshot()") == "42501"
    attacker.tries("rollback")


def test_a_kept_snapshot_would_outlive_an_edit(world: World) -> None:
    """Why: a session that begins later reads what was hidden before it began."""
    note = "select content from graphium.kg_statements where content = 'kept in a snapshot'"
    with as_caller(world.app, "acme"):
        said = [{"content": "kept in a snapshot", "embedding": None}]
        made = world.app.execute(
            "select statement_id from graphium.ingest_context('plain', 'g', 's', %s)", [json.dumps(said)]
        ).fetchone()
    keeper = world.db.connect()
    keeper.execute("begin isolation level repeatable read")
    kept = keeper.execute("select pg_export_snapshot()").fetchone()
    with as_caller(world.app, "acme", ["hr"]):
        world.app.execute("select graphium.set_required_scopes('statement', %s, '{hr}')", made)
    attacker = world.attacker("reader")
    assert attacker.rows(note) == []
    attacker.tries("begin isolation level repeatable read")
    assert kept is not None
    assert attacker.tries(f"set transaction snapshot '{kept[0]}'") is None
    assert attacker.rows(note) == ["kept in a snapshot"]
    attacker.tries("rollback")
    keeper.execute("rollback")
    with as_caller(world.admin, "acme"):
        world.admin.execute("select graphium.forget_context(array[%s::uuid])", made)


# The indexes whose order a caller could read along. EXPLAIN (ANALYZE) counts what the policies take away before a row of his.
ALONG = "set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off; set enable_incremental_sort = off; set enable_indexonlyscan = off"
BETWEEN = {  # a row that he plants in front of what is hidden, one behind it, how he reads up to it, and the index that would tell
    "a family's name": (
        "select graphium.ingest_context('{}', 'g', 's', '[{{\"content\": \"planted\"}}]')", f"{SECRET[:-1]}q", f"{SECRET}~",
        "select name from graphium.dh_families where name <= '{}'", "select name from graphium.dh_families order by tenant_id, name limit {}",
        "graphium.dh_families (tenant_id, name)",
    ),
    "a source": (
        "select graphium.ingest_context('plain', 'g', 's', '[{{\"content\": \"planted\", \"source\": \"{}\"}}]')", f"{SECRET[:-1]}q", f"{SECRET}~",
        "select source from graphium.kg_statements where source <= '{}'", "select source from graphium.kg_statements where source is not null order by tenant_id, source limit {}",
        "graphium.kg_statements (tenant_id, source) where source is not null",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BETWEEN)
def test_no_name_or_source_is_halved_by_the_order_of_an_index(world: World, what: str) -> None:
    plant, before, behind, up_to, read, index = BETWEEN[what]
    with as_caller(world.app, "acme", ["hr"]):
        world.app.execute(
            "select graphium.ingest_context('plain', 'g', 's', %s, '{hr}')",
            [json.dumps([{"content": "with a source that is hidden", "source": SECRET}])],
        )
    writer = world.attacker("principal")
    writer.tries(*ALONG.split("; "))

    def passed_over(name: str) -> list[str]:
        writer.tries("begin", plant.format(name))
        mine = len(writer.rows(up_to.format(name)))
        found = told(writer, read.format(mine))
        writer.tries("rollback")
        return [line for line in found if "Removed" in line]

    assert passed_over(before) == passed_over(behind)
    world.boss.execute(f"create index told on {index}".encode())
    try:
        arranged(passed_over(before) != passed_over(behind))
    finally:
        world.boss.execute("drop index graphium.told")


def test_no_hash_of_a_hidden_wording_is_halved(world: World) -> None:
    [key] = world.boss.execute(
        "select v.variant_key from graphium.kg_statement_variants v where v.content ~ 'was said'"
    ).fetchall()
    reader = world.attacker("reader")
    reader.tries(*ALONG.split("; "))

    def passed_over(low: bytes, high: bytes) -> list[str]:
        return told(
            reader,
            f"select from graphium.kg_statement_variants where variant_key >= '\\x{low.hex()}' and variant_key < '\\x{high.hex()}'",
        )

    cut = bytes([key[0][0]])
    assert passed_over(b"", cut) == passed_over(cut, b"\xff" * 17)


def test_no_index_that_callers_can_use_has_text_in_it(world: World) -> None:
    """The whole kind: of tables with memory in them."""
    found = world.boss.execute(
        """select i.indexrelid::regclass::text, a.attname, t.typname
             from pg_index i
             join pg_class c on c.oid = i.indrelid and c.relnamespace = 'graphium'::regnamespace
             cross join unnest(i.indkey::int[]) with ordinality as k(attnum, n)
             join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
             join pg_type t on t.oid = a.atttypid
            where k.n <= i.indnkeyatts and has_column_privilege('graphium_reader', i.indrelid, k.attnum::int2, 'select')
              and t.typname not in ('uuid', 'int4', 'int8')
              and coalesce(pg_get_expr(i.indpred, i.indrelid), '') !~ '_is_ours_to_read' -- below
             and c.relname not in ('tenants', 'principals', 'scope_edits')"""
    ).fetchall()
    assert found == [("graphium.dh_symbioses_once", "kind", "text")]  # one of three words


def test_a_schema_that_is_named_like_a_graph_is_nobodys_graph(world: World) -> None:
    """Its triggers would run as the keeper when the taxonomy is truncated, and a lint would have it given to graphium_owner."""
    builder = world.attacker("builder")
    name = "graphium_0123456789abcdef0123456789abcdef"
    label = f'{name}."Family"'
    assert (
        builder.tries(
            f"create schema {name}",
            f"create table {label} (i int)",
            f"create table {name}.loot (who text)",
            f"create function {name}.t() returns trigger language plpgsql as 'begin insert into {name}.loot values (current_user); return null; end'",
            f"create trigger t before truncate on {label} execute function {name}.t()",
            f"grant usage on schema {name} to public",
            f"grant all on {label}, {name}.loot to public",
        )
        is None
    )
    try:
        named = world.boss.execute("select object, remedy from graphium.check_security()").fetchall()
        assert [row for row in named if name in str(row)] == []
        with world.boss.transaction(force_rollback=True):
            world.boss.execute("truncate graphium.dh_families cascade")
            assert world.boss.execute(f"select who from {name}.loot".encode()).fetchall() == []
    finally:
        world.boss.execute(f"drop schema {name} cascade".encode())


NOISY = [
    "trace_sort = on",
    "trace_notify = on",
    "debug_print_parse = on",
    "debug_print_rewritten = on",
    "debug_print_plan = on",
    "client_min_messages = debug5",
    "jit = on; set jit_above_cost = 0; set jit_debugging_support = on",
    "debug_parallel_query = on; set log_parser_stats = on",
]


@pytest.mark.parametrize("setting", NOISY)
def test_noise_has_no_word_of_what_is_hidden(world: World, setting: str) -> None:
    writer = world.attacker("principal")
    writer.tries("set client_min_messages = log", *f"set {setting}".split("; "))
    family = writer.rows("select id from graphium.dh_families where name = 'plain'")[0]
    for statement in (
        "select * from graphium.recall_context(page_size => 5)",
        "select * from graphium.search_context(query_text => 'tea plain', query_embedding => '[1,2,3]')",
        "select graphium.cypher('MATCH (n)-[e]->(m) RETURN n')",
        f"begin; select graphium.set_required_scopes('family', '{family}', '{{public}}', true); rollback",
        """begin; select graphium.ingest_context('plain', 'g', 's', '[{"content": "noise", "embedding": [3, 2, 1]}]'); rollback""",
    ):
        writer.tries(*statement.split("; "))
    # bytes of a constant, as a printed plan has them
    spelled = " ".join(str(byte) for byte in SECRET.encode())
    writer.assert_heard_nothing()
    assert not any(spelled in line for line in writer.heard)


def test_a_call_that_is_cancelled_says_nothing_hidden(world: World) -> None:
    """The context of an error has the text of the statement that was running, with the constants that we wrote into it."""
    writer = world.attacker("principal")
    hidden = [
        str(row[0])
        for row in world.boss.execute("select id from graphium.kg_statements where 'hr' = any (required_scopes)")
    ]
    hidden += [
        str(row[0])
        for row in world.boss.execute("select id from graphium.dh_families where 'hr' = any (required_scopes)")
    ]
    writer.tries("set statement_timeout = '2ms'", "set enable_hashjoin = off", "set jit = off")
    cancelled = 0
    for _ in range(15):
        for call in (
            "search_context(query_text => 'tea plain row zanzibars', query_embedding => '[1,2,3]', match_count => 1000)",
            "recall_context(page_size => 1000)",
            "context_tree()",
            "wake_up_context()",
            "cypher('MATCH (a)-[e]->(b) RETURN [a, e, b]')",
            """ingest_context('plain', 'g', 's', '[{"content": "cancelled", "embedding": [3, 2, 1]}]')""",
        ):
            writer.tries("begin")
            cancelled += writer.tries(f"select * from graphium.{call}") == "57014"
            writer.tries("rollback")
    assert cancelled
    assert not any(id in line for id in hidden for line in writer.heard)
    writer.heard = [line.replace("zanzibars", "") for line in writer.heard]
    assert not any("4711" in line for line in writer.heard)


# ------------------------------------------------------------------------------------------ the index of a large tenant
numbers = itertools.count(1)
POINT = np.random.default_rng(5).normal(size=8)
SET = "update graphium_private.settings set value = %s where name = %s"


@pytest.fixture(scope="module")
def corpora(world: World) -> Callable[[int], tuple[Corpus, Attacker]]:
    """Tenants with an index, with some rows at POINT that are for the board; and a principal of each who is not on it."""
    db = world.db
    for name, value in (("hnsw_min_embeddings", 300), ("hnsw_drop_below", 100)):
        world.boss.execute(SET, [value, name])
    login = db.login("graphium_admin")
    world.boss.execute(f"grant graphium_owner to {db.cluster.role(login)} with inherit false, set true".encode())
    admin = db.connect(login)

    def make(hidden: int) -> tuple[Corpus, Attacker]:
        slug = f"eyes {next(numbers)}"
        admin.execute("select graphium.create_tenant(slug => %s, dimensions => 8)", [slug])
        corpus = Corpus(world.boss, slug)
        random = np.random.default_rng(7)
        corpus.plant(
            *[Row("f", content=f"visible {n}", embedding=v) for n, v in enumerate(random.normal(size=(400, 8)).astype(np.float32))],
            *[Row("f", content="x", embedding=v, required_scopes=("board",)) for v in (POINT + 0.01 * random.normal(size=(hidden, 8))).astype(np.float32)],
        )  # fmt: skip
        for (statement,) in admin.execute("select statement from graphium.maintenance_plan()").fetchall():
            admin.execute(statement.encode())
        world.boss.execute("analyze graphium.kg_embeddings")
        world.logins[slug] = db.login()
        admin.execute("select graphium.add_principal(%s, %s, '{}')", [world.role(slug), slug])
        return corpus, world.attacker(slug)

    return make


@pytest.fixture(scope="module")
def alone_and_not(corpora: Callable[[int], tuple[Corpus, Attacker]]) -> Iterator[list[tuple[Corpus, Attacker]]]:
    yield [corpora(0), corpora(3)]


ONE_BY_ONE = "set enable_sort = off; set enable_seqscan = off; set enable_bitmapscan = off; select '[1]'::vector; set hnsw.ef_search = 1; set hnsw.iterative_scan = off"
NEAREST = "select 1 from graphium.kg_embeddings where tenant_id = '{tenant}' order by {what} limit 1"


def nearest(what: str) -> str:
    return NEAREST.replace("{what}", what)


def asks(reader: Attacker, corpus: Corpus, *statements: str) -> tuple[Any, int]:
    """What the last gives, or the SQLSTATE of the first that fails; and how often the tenant's index was scanned."""
    name = f"kg_embeddings_hnsw_{corpus.tenant_id.hex}"
    query = f"select i.indexrelid, i.indrelid::regclass, pg_get_indexdef(i.indexrelid) from pg_index i join pg_class c on c.oid = i.indexrelid where c.relname = '{name}'"
    [(oid, partition, definition)] = reader.rows(query)
    known = {
        "tenant": corpus.tenant_id,
        "point": f"'{vector_text(POINT)}'::vector(8)",
        "index": name,
        "partition": partition,
    }
    # As an attacker takes it from the catalog.
    known["indexed"] = definition[definition.index("((") + 1 : definition.index(" vector_cosine_ops")]
    *first, last = (statement.format(**known) for statement in statements)
    scans = f"select pg_stat_get_xact_numscans({oid})"
    reader.tries("savepoint asked")
    try:
        for statement in (*ONE_BY_ONE.split("; "), *first):
            reader.conn.execute(statement.encode())
        [before] = reader.rows(scans)
        answer = reader.rows(last)
        return answer, reader.rows(scans)[0] - before
    except psycopg.Error as error:
        reader.tries("rollback to asked")
        return error.sqlstate, 0


READS: dict[str, list[str]] = {
    "the column": [nearest("embedding <=> {point}")],
    "what was indexed once": [nearest("embedding::vector(8) <=> {point}")],
    "a constant that is one after planning": [nearest("embedding::vector(8) <=> (select {point})")],
    "prepared": ["prepare p(vector) as " + nearest("embedding::vector(8) <=> $1"), "execute p({point})"],
    "prepared for all": ["set plan_cache_mode = force_generic_plan", "prepare q(vector) as " + nearest("embedding::vector(8) <=> $1"), "execute q({point})"],
    "a cursor": ["declare c cursor for " + nearest("embedding::vector(8) <=> {point}"), "fetch all from c"],
    "a distance that is returned": ["select (d = d)::int from (select embedding::vector(8) <=> {point} as d from graphium.kg_embeddings where tenant_id = '{tenant}') as e order by d limit 1"],
    "a view": ["create temp view v as select tenant_id, embedding::vector(8) as e from graphium.kg_embeddings", "select 1 from v where tenant_id = '{tenant}' order by e <=> {point} limit 1"],
    "a lateral join": ["select 1 from (values ({point})) as q(v), lateral (" + nearest("embedding::vector(8) <=> q.v") + ") as n"],
    "a function that is inlined": ["create function pg_temp.f(vector) returns vector language sql immutable as 'select $1'", nearest("pg_temp.f(embedding)::vector(8) <=> {point}")],
    "a function of the same name and body": [
        "create function pg_temp._indexed_direction(public.vector, uuid) returns public.vector language plpgsql immutable strict as 'begin return $1; end'",
        nearest("pg_temp._indexed_direction(embedding, statement_id)::vector(8) <=> {point}"),
    ],
    "an operator of his own": ["create operator pg_temp.<=> (function = public.cosine_distance, leftarg = vector, rightarg = vector)", nearest("embedding::vector(8) operator(pg_temp.<=>) {point}")],
    "a domain": ["create domain pg_temp.d as vector(8)", nearest("embedding::pg_temp.d <=> {point}")],
}  # fmt: skip


@pytest.fixture
def both(alone_and_not: list[tuple[Corpus, Attacker]]) -> Iterator[list[tuple[Corpus, Attacker]]]:
    for _, reader in alone_and_not:
        reader.reset()
        reader.tries("begin")
    yield alone_and_not
    for _, reader in alone_and_not:
        reader.reset()


@pytest.mark.parametrize("statements", READS.values(), ids=READS)
def test_the_index_does_not_say_whether_something_hidden_is_nearest(
    both: list[tuple[Corpus, Attacker]], statements: list[str]
) -> None:
    for corpus, reader in both:
        assert asks(reader, corpus, *statements) == ([1], 0)


NAMED = nearest("{indexed} <=> {point}")
REFUSED: dict[str, list[str]] = {
    "its expression": [NAMED],
    "its plan": ["explain " + NAMED],
    "in a function": ["create function pg_temp.f(vector) returns vector language sql immutable as 'select graphium_private._indexed_direction($1, null)'", nearest("pg_temp.f(embedding)::vector(8) <=> {point}")],
    "in a function that was not looked at": [
        "set check_function_bodies = off",
        "create function pg_temp.f(vector) returns vector language sql immutable as 'select graphium_private._indexed_direction($1, null)'",
        nearest("pg_temp.f(embedding)::vector(8) <=> {point}"),
    ],
    "in a view": ["create temp view v as select {indexed} as e, tenant_id from graphium.kg_embeddings"],
    "by its path": ["set search_path = graphium_private, public", nearest("_indexed_direction(embedding, statement_id)::vector(8) <=> {point}")],
    "called": ["select graphium_private._indexed_direction('[1]', gen_random_uuid())"],
    "an operator for it": ["create operator pg_temp.@@@@ (function = graphium_private._indexed_direction, leftarg = vector, rightarg = uuid)"],
    "a cast by it": ["create type pg_temp.t as (x int)", "create cast (vector as pg_temp.t) with function graphium_private._indexed_direction(vector, uuid)"],
    "an aggregate of it": ["create aggregate pg_temp.a(uuid) (sfunc = graphium_private._indexed_direction, stype = vector)"],
    "the partition": ["select 1 from {partition} order by embedding::vector(8) <=> {point} limit 1"],
    "a copy of the partition": ["create temp table t (like {partition} including indexes)"],
    "an index of his own": ["create index on {partition} using hnsw ((embedding::vector(8)) vector_cosine_ops)"],
    "made anew": ["reindex index graphium.{index}"],
    "the scan of ours": ["select graphium_private._scan_hnsw('{tenant}', 8, {point}, '', 1, false)"],
    "as the owner": ["set role graphium_owner"],
    "as a session of the owner": ["set session authorization graphium_owner"],
}  # fmt: skip


@pytest.mark.parametrize("statements", REFUSED.values(), ids=REFUSED)
def test_the_expression_of_the_index_is_nobodys_to_name(
    both: list[tuple[Corpus, Attacker]], statements: list[str]
) -> None:
    for corpus, reader in both:
        assert asks(reader, corpus, *statements) in (("42501", 0), ("42883", 0))


@pytest.mark.parametrize(
    ("removals", "read"),
    [
        (["grant usage on schema graphium_private to {login}", "grant execute on function graphium_private._indexed_direction, graphium_private._index_key to {login}", "grant select on graphium_private.index_key to {login}"], NAMED),
        (["create index on {partition} using hnsw ((embedding::vector(8)) vector_cosine_ops) where tenant_id = '{tenant}'"], nearest("embedding::vector(8) <=> {point}")),
    ],
    ids=["who may name it", "an index on the column"],
)  # fmt: skip
def test_reading_along_an_index_would_say_it(
    world: World, alone_and_not: list[tuple[Corpus, Attacker]], removals: list[str], read: str
) -> None:
    found = []
    for corpus, _ in alone_and_not:
        [(partition,)] = world.boss.execute(
            "select distinct tableoid::regclass::text from graphium.kg_embeddings where tenant_id = %s",
            [corpus.tenant_id],
        ).fetchall()
        login = world.role(corpus.slug)
        known = {"login": login, "partition": partition, "tenant": corpus.tenant_id}
        with world.unguarded(corpus.slug, *(removal.format(**known) for removal in removals)) as unguarded:
            found.append(asks(unguarded, corpus, read)[0])
    assert found == [[1], []]


SEARCH = "select count(*) from graphium.search_context({{point}}, match_count => {}, follow_symbiosis => false)"


def test_a_principal_searches_exactly_for_along_the_index_counters_tell(
    world: World, both: list[tuple[Corpus, Attacker]]
) -> None:
    """400 are visible in one tenant; in the other, three of the nearest 400 are not, and the index would be read twice."""
    for is_along, told in ((0, (0, 0)), (1, (1, 2))):
        world.boss.execute(SET, [is_along, "principals_use_hnsw"])
        for (corpus, reader), at_the_limit in zip(both, told, strict=True):
            for count in range(395, 401):
                scans = at_the_limit if count > 397 else told[0]
                assert asks(reader, corpus, SEARCH.format(count)) == ([count], scans)
    world.boss.execute(SET, [0, "principals_use_hnsw"])


@pytest.mark.parametrize(
    ("is_along", "paths"),
    [
        (0, {("exact", 400), ("postings", 400), ("exact", 0)}),
        (1, {("hnsw", 400), ("postings", 400), ("exact or hnsw", 400), ("exact or hnsw", 0)}),
    ],
)
def test_what_is_explained_of_a_search_is_the_same_with_and_without_hidden_rows(
    world: World, both: list[tuple[Corpus, Attacker]], is_along: int, paths: set[tuple[str, int]]
) -> None:
    """Three of the nearest are hidden in one of the two; the thresholds lie between what a reader sees and what there is."""
    for name, value in (("exact_scan_max", 401), ("exact_label_max", 401), ("principals_use_hnsw", is_along)):
        world.boss.execute(SET, [value, name])
    told = []
    for corpus, reader in both:
        told.append([])
        for more in (
            "",
            ", 'visible', 399",
            ", match_count => 1000",
            ", families => '{f}'",
            ", specimens => '{nobody}'",
            ", since => '2000-01-01'",
        ):
            told[-1] += reader.rows(
                f"select part, path, replace(index_name, '{corpus.tenant_id.hex}', ''), reason, admitted from graphium.explain_search('{vector_text(POINT)}'{more})"
            )
    assert told[0] == told[1]
    assert {(path, admitted) for _, path, _, _, admitted in told[0]} == paths
    with as_caller(world.admin, both[1][0].slug):  # it does depend on what is hidden
        said = "select path, admitted from graphium.explain_search(%s, families => '{f}')"
        assert world.admin.execute(said, [vector_text(POINT)]).fetchall() == [("hnsw, first look", 403)]
    with as_caller(world.admin, both[0][0].slug):
        assert world.admin.execute(said, [vector_text(POINT)]).fetchall() == [("exact", 400)]
    for name, value in (("exact_scan_max", 100_000), ("exact_label_max", 20_000), ("principals_use_hnsw", 0)):
        world.boss.execute(SET, [value, name])


def test_nobody_reads_along_the_index_on_type_and_time(world: World, both: list[tuple[Corpus, Attacker]]) -> None:
    """He would find out by halves when hidden things happened. (Our searches do read along it.)"""
    corpus, reader = both[0]
    query = f"explain select 1 from graphium.kg_embeddings r where tenant_id = '{corpus.tenant_id}' and memory_type = 'fact' and happened_at > now()"
    ours = query + " and graphium_private._is_ours_to_read(tenant_id)"
    reader.tries("set enable_seqscan = off")
    plan = " ".join(reader.rows(query))
    assert "kg_embeddings" in plan
    assert "memory_type_happened" not in plan
    assert reader.tries(ours) == "42501"
    with world.boss.transaction(force_rollback=True):
        world.boss.execute("set local role graphium_owner")
        world.boss.execute("set local enable_seqscan = off")
        assert "memory_type_happened" in " ".join(line for (line,) in world.boss.execute(ours.encode()))


@pytest.mark.parametrize(
    ("family", "told"), [("", [800, 806, 0, 0]), (", families => '{{f}}'", [400, 403, 0, 0])], ids=["", "of a family"]
)
def test_counters_do_not_tell_of_what_type_and_when_hidden_rows_are(
    world: World, alone_and_not: list[tuple[Corpus, Attacker]], family: str, told: list[int]
) -> None:
    """400 are visible in one tenant; in the other, three more are of that type too. Without a family they are counted, then compared."""
    search = f"select count(*) from graphium.search_context({{point}}, memory_types => '{{{{fact}}}}', since => '2000-01-01'{family})"
    counted = "select coalesce(sum(pg_stat_get_xact_tuples_returned(oid)), 0)::int from pg_class where relname ~ 'memory_type_happened_.*idx'"
    seen = []
    for is_along in (1, 0):
        world.boss.execute(SET, [is_along, "principals_use_hnsw"])
        for corpus, reader in alone_and_not:
            reader.reset()
            reader.tries("begin")
            [before] = reader.rows(counted)  # of transactions before that nobody has collected yet
            assert asks(reader, corpus, search)[0] == [10]
            seen += [after - before for after in reader.rows(counted)]
            reader.tries("rollback")
    assert seen == told


@pytest.fixture
def along_the_index(world: World) -> Iterator[None]:
    world.boss.execute(SET, [1, "principals_use_hnsw"])
    yield
    world.boss.execute(SET, [0, "principals_use_hnsw"])


def test_searches_use_the_index_where_a_dba_lets_them(
    along_the_index: None, both: list[tuple[Corpus, Attacker]]
) -> None:
    for corpus, reader in both:
        assert asks(reader, corpus, "select count(*) from graphium.search_context({point}, match_count => 20)") == (
            [20],
            1,
        )


@pytest.mark.parametrize(
    "settings",
    [
        "hnsw.ef_search = 1; set hnsw.iterative_scan = off",
        "hnsw.max_scan_tuples = 1; set hnsw.iterative_scan = strict_order",
        "hnsw.scan_mem_multiplier = 1; set work_mem = '64kB'",
        "enable_indexscan = off; set enable_bitmapscan = off",
        "enable_seqscan = off; set enable_sort = off; set cursor_tuple_fraction = 1e-6",
        "random_page_cost = 1e10; set cpu_operator_cost = 1e10",
        "plan_cache_mode = force_generic_plan; set debug_parallel_query = on",
    ],
)
@pytest.mark.parametrize("is_along", [0, 1])
def test_the_callers_settings_do_not_change_what_a_search_finds(
    world: World, alone_and_not: list[tuple[Corpus, Attacker]], settings: str, is_along: int
) -> None:
    world.boss.execute(SET, [is_along, "principals_use_hnsw"])
    for _, reader in alone_and_not:
        reader.reset()
        call = f"select content, similarity from graphium.search_context(query_embedding => '{vector_text(POINT)}', match_count => 20)"
        usual = reader.rows(call)
        reader.tries("select '[1]'::vector", *f"set {settings}".split("; "))
        assert reader.rows(call) == usual
        assert len(usual) == 20
    world.boss.execute(SET, [0, "principals_use_hnsw"])


# ------------------------------------------------------------------------------------------ writing beside what is hidden
def test_nobody_s_words_come_to_stand_among_hidden_ones(world: World) -> None:
    """Who holds one of two scopes may write for both. Were words posted under each scope, his would follow hidden ones of the other,
    equal words together, and he would count these by when a page of the index has to be split."""
    one = json.dumps([{"content": "swordfish", "embedding": None}])
    with as_caller(world.app, "acme", ["hr"]):
        world.app.execute("select graphium.ingest_context('plain', 'g', 's', %s, '{hr}')", [one])
    writer = world.db.principal("acme", ["sales"])
    for audience in (["hr", "sales"], ["sales"], ["hr", "legal", "sales"]):
        writer.execute("select graphium.ingest_context('plain', 'g', 's', %s, %s)", [one, audience])
    posted = world.boss.execute(
        "select p.audience_key, array_agg(distinct s.required_scopes::text) from graphium_private.postings p"
        "  join graphium.kg_statements s on s.id = p.statement_id"
        " where p.word_key = (graphium_private._keys_of(graphium_private.words_v1('swordfish')))[1] group by 1"
    ).fetchall()
    assert sorted(audiences for _, audiences in posted) == [["{hr,legal,sales}"], ["{hr,sales}"], ["{hr}"], ["{sales}"]]


# ------------------------------------------------------------------------------------------ what stands in a query's text
def test_no_error_shows_the_keys_of_words_and_scopes(world: World) -> None:
    """From those that PostgreSQL's own hash makes of known words, its secret was computed in seconds."""
    attacker = world.attacker("builder")
    calls = [
        f"select * from graphium.{function}(query_text => 'zebra {SECRET} {' '.join(map(str, range(100)))}', since => '2020-01-01 00:00+00')"
        for function in ("search_context", "explain_search")
    ]
    attacker.tries("set timezone = '<X>+20'")  # what is written in that zone cannot be read
    assert [attacker.tries(call) for call in calls] == [None, None]
    attacker.heard.clear()
    for after in range(1, 30):  # somewhere in the midst of it
        attacker.tries(f"set statement_timeout = {after}")
        for call in calls:
            attacker.tries(call)
    attacker.tries("reset statement_timeout")
    arranged(any("57014" in line or "statement timeout" in line for line in attacker.heard))
    assert not [line for line in attacker.heard if re.search(r"-?\d{15,}", line)]


# ------------------------------------------------------------------------------------------ ending the server
def test_a_parallel_build_is_reported_as_long_as_a_login_may_ask_for_one(world: World) -> None:
    """CVE-2026-3172: with maintenance_work_mem = '64kB' and six workers a build by the owner of any table overwrites shared
    memory, and the server ends with a stuck spinlock after two minutes. (So it is not tried here.)"""
    version = world.boss.execute("select extversion from pg_extension where extname = 'vector'").fetchone()
    arranged(world.attacker("builder").tries("set max_parallel_maintenance_workers = 6") is None)
    with world.boss.transaction(force_rollback=True):
        world.boss.execute("set local max_parallel_maintenance_workers = 0")
        found = world.boss.execute(
            "select lint from graphium.check_security() where lint = 'known_fault' and object ~ 'vector'"
        ).fetchall()
    assert found or tuple(map(int, (version or ["0"])[0].split("."))) >= (0, 8, 2)


DEEP = [
    ("RETURN $x", '{"x": ' + "[" * 2000 + "]" * 2000 + "}"),
    ("RETURN $x = $x", '{"x": ' + "[" * 2000 + "]" * 2000 + "}"),
    ("RETURN $x", '{"x": ' + '{"a":' * 2000 + "1" + "}" * 2000 + "}"),
    ("RETURN $x", '{"x": 1e400}'),
    ("RETURN $x", '{"x": 123456789012345678901234567890}'),
    ("RETURN (-9223372036854775807 - 1) / $x", '{"x": -1}'),
    ("RETURN (-9223372036854775807 - 1) % $x", '{"x": -1}'),
    ("RETURN $x[$i]", '{"x": [1, 2], "i": -9223372036854775808}'),
    ("RETURN $x[0..9223372036854775807]", '{"x": [1]}'),
    ("RETURN substring($s, $i, $j)", '{"s": "abc", "i": 2147483647, "j": 2147483647}'),
    ("RETURN left($s, $i)", '{"s": "abc", "i": -1}'),
    ("RETURN right($s, $i)", '{"s": "abc", "i": 9223372036854775807}'),
    ("RETURN split($s, $s)", '{"s": ""}'),
    ("RETURN $x =~ $y", '{"x": "' + "a" * 40 + '", "y": "(a*)*(a*)*(a*)*b\\\\1"}'),
    ("UNWIND $x AS a WITH a ORDER BY a RETURN a", '{"x": [1, [2], {"a": 3}, null, "x", 1.5, true, [[]], {}]}'),
    ("UNWIND $x AS a RETURN max(a)", '{"x": [1, [2], {"a": 3}, null, "x"]}'),
    ("MATCH (n) RETURN percentileCont(n.id, $x)", '{"x": [1]}'),
    ("MATCH (n) RETURN n[$k]", '{"k": {}}'),
    ("MATCH p = (a)-[e]->(b) RETURN p[0]", "{}"),
    ("MATCH p = (a)-[e]->(b) RETURN p + p", "{}"),
    ("MATCH (a)-[e]->(b) RETURN e + a", "{}"),
    ("RETURN {" + ",".join(f"a{n}: 1" for n in range(2000)) + "}", "{}"),
    ("RETURN " + " OR ".join(["true"] * 2000), "{}"),
]


@pytest.mark.parametrize(("query", "params"), DEEP, ids=ids(DEEP))
def test_no_depth_or_extreme_ends_the_server(world: World, query: str, params: str) -> None:
    reader = world.attacker("reader")
    reader.tries("set statement_timeout = '10s'")
    literals = (sql.Literal(value).as_string(reader.conn) for value in (query, params))
    code = reader.tries("select left(v::text, 50) from graphium.cypher({}, {}) as v".format(*literals))
    assert code is None or code[:2] in ("MG", "54", "22", "57"), reader.heard[-1]
    assert reader.rows("select count(*) > 0 from graphium.kg_statements") == [True]


# ------------------------------------------------------------------------------------------ what is written into SQL of ours
HOSTILE = ["\\'", "\\\\' or true --", "' or true) --", "$q$", "%s %1$s %I", "\\", "E'", "\u8868'", "\u7e17'", "{NULL}", "NULL", '"', "g\\'; select 1; --"]  # fmt: skip


@pytest.mark.parametrize("client", ["utf8", "sjis", "gbk", "big5", "latin1", "sql_ascii"])
def test_values_that_want_to_be_sql(world: World, client: str) -> None:
    """Filters become the text of queries: no quoting that a setting or a client's encoding changes lets a value out of its quotes."""
    reader = world.attacker("reader")
    reader.tries("set standard_conforming_strings = off", "set escape_string_warning = off", "set backslash_quote = on", "set array_nulls = off",
                 "set datestyle = 'SQL, DMY'", "set intervalstyle = sql_standard", "set extra_float_digits = -15", "set timezone = 'Asia/Kolkata'")  # fmt: skip
    reader.conn.execute(f"set client_encoding = {client}".encode())
    for value in HOSTILE:
        literal = "U&'" + "".join(f"\\+{ord(c):06x}" for c in value) + "'"
        reader.conn.execute("set standard_conforming_strings = on")
        reader.conn.execute(f"create or replace temp view v as select {literal}::text as x".encode())
        reader.conn.execute("set standard_conforming_strings = off")
        for call in (
            "search_context(query_text => x || ' tea', families => array[x], genera => array[x], specimens => array[x])",
            "recall_context(family => nullif(x, ''))",
            "wake_up_context(families => array[x])",
            "cypher('MATCH (n) WHERE n.name = $x RETURN n', jsonb_build_object('x', x))",
        ):
            assert reader.rows(f"select r from v, graphium.{call} as r") == []
        for labels in ("memory_types => array[x]", "layer_kinds => array['on_demand', x]"):
            for call in ("search_context(query_text => 'tea', ", "recall_context("):
                assert reader.tries(f"select r from v, graphium.{call}{labels}) as r") in (
                    "MG008",
                    "22P05",
                )  # what the client cannot write is not told him
        reader.rows(
            "select r.specimens, r.since, length(r.dense_text) from v, graphium.prepare_query(x || ' what did the person say last week') as r"
        )
    reader.assert_heard_nothing()


def test_savepoints_and_deferral_leave_everything_counted(world: World) -> None:
    """Written, taken back and written again in parts of a transaction: health is looked at when the module ends."""
    writer = world.attacker("principal")
    say = """select statement_id from graphium.ingest_context('plain', 'g{0}', 's', '[{{"content": "in parts {0}", "embedding": [{0}, 1, 1], "source": "parts"}}]')"""
    writer.tries("begin", "set constraints all deferred")
    for n in range(1, 6):
        writer.tries(f"savepoint s{n}", say.format(n))
        if n % 2:
            writer.tries(f"rollback to s{n}")
    assert writer.tries("set constraints all immediate") is None
    made = writer.rows("select id from graphium.kg_statements where source = 'parts'")
    assert len(made) == 2
    writer.rows(f"select graphium.forget_context('{{{','.join(map(str, made))}}}')")
    assert writer.tries("commit") is None
    assert writer.rows("select count(*) from graphium.kg_statements where source = 'parts'") == [0]


def test_nothing_can_be_left_prepared(world: World) -> None:
    """A prepared transaction would hold a family's lock after its login went away: no timeout ends it."""
    writer = world.attacker("principal")
    writer.tries(
        "begin", """select graphium.ingest_context('plain', 'g', 's', '[{"content": "left", "embedding": null}]')"""
    )
    assert writer.tries("prepare transaction 'left'") is not None
    writer.tries("rollback")


def test_the_attackers_world_was_left_as_it_was(world: World) -> None:
    """And he saw what is his all the time."""
    started = time.monotonic()
    assert world.attacker("reader").rows("select content from graphium.kg_statements where content ~ 'Tea'") == [TEA]
    assert time.monotonic() - started < 60
