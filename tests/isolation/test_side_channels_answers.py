"""Nothing that a caller is told depends on what is hidden from him: the same calls in two worlds, one of which hides something.

Each channel plants its own difference. That the difference is there, the same calls show to somebody who may see it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.isolation.two_worlds import Transcript, World, differences
from tests.support.databases import Database

numbers = itertools.count(1)

TEA = [1, 0, 0, 0]
CUT = [0, 0, 1, 0.2]  # what is hidden, and what the caller guesses
NEAR_CUT = [0, 0, 1, 0.201]
QUERY = "[0.4,0.1,0.9,0.2]"
TABLES = {
    "tenants": "id",
    "dh_families": "id",
    "dh_genera": "id",
    "dh_specimens": "id",
    "kg_statements": "id",
    "kg_statement_variants": "statement_id, variant_key",
    "kg_embeddings": "statement_id",
    "dh_symbioses": "id",
}


# ------------------------------------------------------------------------------------------ what everybody sees
def furnish(w: World) -> None:
    w.say("Ada likes tea.", TEA, source="standup", position=3)
    w.say("Ada likes tea", TEA, source="standup")  # a variant
    w.say("Ada presented the quarterly numbers.", [0.3, 1, 0.1, 0], source="standup")
    w.say("Always answer Ada in French.", [0, 1, 0, 0], layer_kind="preloaded")
    w.say("Bob prefers short meetings.", [0.2, 0.2, 0.2, 1], specimen="Bob", memory_type="preference")
    [runs] = w.say("Ada runs marathons.", [1, 1, 0, 0], family="leisure")
    [salary] = w.say("Salaries rise in May.", [0, 0.1, 1, 0], ["hr"], family="staff", born=["hr"])
    [old] = w.say("Salaries rise in June.", [0.1, 0, 1, 0.1], ["hr"], family="archive", born=["hr"])
    w.say("Never mention salaries.", None, ["hr"], family="staff", layer_kind="preloaded")
    w.link("supersedes", salary, old)
    w.link("related_to", {"family": "work", "genus": "notes", "specimen": "Ada"}, runs)


def furnish_more(w: World) -> None:
    """After something was hidden, so that it lies in the middle."""
    w.say("Ada drinks coffee on Mondays.", [0.9, 0, 0.3, 0], source="standup")
    w.say("Use the blue template.", [0, 0.9, 0.1, 0], layer_kind="preloaded", family="leisure")
    w.say("Ada likes tea.", TEA)
    w.say("Bob is on leave in May.", [0, 0, 0.9, 0.4], ["hr"], specimen="Bob")


# ------------------------------------------------------------------------------------------ what is hidden
def secret(w: World, *, family: str = "work", specimen: str = "Ada", **more: Any) -> UUID:
    """The sentence that the caller guesses."""
    [id] = w.say("The budget is cut by half.", CUT, ["board"], family=family, specimen=specimen, **{"born": [], **more})
    return id


def the_same_sentence(w: World) -> None:
    w.ids["statement"] = secret(w)


def the_same_vector(w: World) -> None:
    [w.ids["statement"]] = w.say("Half of it goes away.", CUT, ["board"])


def what_the_caller_knows(w: World) -> None:
    """Sentences that he sees, once more, for others only."""
    [w.ids["statement"], *_] = w.say([{"content": "Ada likes tea.", "embedding": TEA}], scopes=["board"])
    w.say("Salaries rise in May.", [0, 0.1, 1, 0], ["board"], family="staff")


def often_said(w: World) -> None:
    w.ids["statement"] = secret(w)
    for n in range(5):
        w.say("the budget is cut by half", CUT, ["board"], source="standup", position=40 + n)


def places_in_a_source(w: World) -> None:
    w.ids["statement"] = secret(w, source="standup", position=900)
    w.say("The budget is cut by half", CUT, ["board"], source="standup", position=1200)
    w.say("Ask again in June.", None, ["board"], source="minutes")


def a_family_full(w: World) -> None:
    """The family's summary and counts, if they were over everything."""
    rows = [{"content": f"Item {n} of the plan.", "embedding": [0.1, n % 3, n % 5, n % 7]} for n in range(1, 40)]
    [w.ids["statement"], *_] = w.say(rows, scopes=["board"])
    w.say(rows, scopes=["board"], family="staff")


def a_word_made_common(w: World) -> None:
    rows = [
        {"content": f"Tea number {n}, tea again and tea for may and the budget.", "embedding": None} for n in range(60)
    ]
    [w.ids["statement"], *_] = w.say(rows, scopes=["board"])


def a_very_long_text(w: World) -> None:
    [w.ids["statement"]] = w.say(
        "Salaries, tea and budget: " + " ".join(f"word{n}" for n in range(3000)), CUT, ["board"]
    )


def a_pool_full_of_better_hits(w: World) -> None:
    """More than fusion_pool, nearer and with all the words."""
    rows = [
        {
            "content": f"Budget tea {n}: salaries, Ada, may.",
            "embedding": [0.4, 0.1, 0.9, 0.2 + n / 1e6],
            "exact_only": True,
        }
        for n in range(250)
    ]
    [w.ids["statement"], *_] = w.say(rows, scopes=["board"], family="staff")


def edges_with_a_hidden_end(w: World) -> None:
    w.ids["statement"] = secret(w, family="leisure")
    tea = statement(w, "Ada likes tea.")
    w.ids["edge"] = w.link("related_to", tea, w.ids["statement"])
    w.link("contradicts", w.ids["statement"], {"family": "work"})
    w.ids["specimen"] = specimen(w, "Zed", "leisure")
    w.link("related_to", {"family": "leisure", "genus": "notes", "specimen": "Zed"}, {"family": "staff"})


def a_hundred_edges(w: World) -> None:
    """More than any budget of hops, and older than the visible ones."""
    rows = [{"content": f"Step {n}.", "embedding": [0.4, 0.1, 0.9, n]} for n in range(100)]
    tea = statement(w, "Ada likes tea.")
    for id in w.say(rows, scopes=["board"], family="leisure"):
        w.ids["statement"], w.ids["edge"] = id, w.link("related_to", tea, id)


def superseded_by_something_hidden(w: World) -> None:
    w.ids["statement"] = secret(w, family="leisure")
    for content in ("Ada likes tea.", "Always answer Ada in French.", "Salaries rise in May."):
        w.ids["edge"] = w.link("supersedes", w.ids["statement"], statement(w, content))


def superseded_by_a_hidden_family(w: World) -> None:
    a_hidden_family(w)
    w.ids["edge"] = w.link("supersedes", {"family": "merger"}, {"family": "work", "genus": "notes"})
    w.link("supersedes", {"family": "work", "genus": "notes"}, {"family": "merger"})


def preloaded_for_others(w: World) -> None:
    rows = [{"content": f"Rule {n}.", "embedding": None, "layer_kind": "preloaded"} for n in range(120)]
    for _ in range(2):
        [w.ids["statement"], *_] = w.say(rows, scopes=["board"])


def a_hidden_family(w: World) -> None:
    w.ids["statement"] = secret(w, family="merger", genus="targets", specimen="Zed Corp", born=["board"])
    w.ids["family"], w.ids["genus"] = w.id_of("dh_families", "merger"), w.id_of("dh_genera", "targets")
    w.ids["specimen"] = w.id_of("dh_specimens", "Zed Corp")


def a_hidden_specimen(w: World) -> None:
    w.ids["specimen"] = specimen(w, "Zed Corp", "work")
    w.ids["statement"] = secret(w, specimen="Zed Corp")


def an_audience_that_was_edited(w: World) -> None:
    a_hidden_family(w)
    for kind in ("statement", "specimen", "family"):
        w.as_admin("select graphium.set_required_scopes(%s, %s, '{board,ceo}', cascade => true)", kind, w.ids[kind])
    w.as_admin("select graphium.rename_taxon('family', %s, 'Project Zed')", w.ids["family"])
    w.as_admin("select graphium.rename_taxon('specimen', %s, 'tea')", w.ids["specimen"])


def deleted_again(w: World) -> None:
    a_pool_full_of_better_hits(w)
    edges_with_a_hidden_end(w)
    a_hidden_family(w)
    w.as_admin("select graphium.forget_taxon('family', %s)", w.ids["family"])
    w.as_admin("select graphium.forget_taxon('specimen', %s)", specimen(w, "Zed", "leisure"))
    with w.app.transaction():
        w.app.execute("select graphium.set_caller(%s, '{board}')", [w.slug])
        w.app.execute(
            "select graphium.forget_context(array(select id from graphium.kg_statements where required_scopes = '{board}'))"
        )


def another_tenant(w: World) -> None:
    """All of the above, and what the caller sees, in another tenant, open to everybody there."""
    other = World(w.db, f"other {w.slug}", w.app, w.admin, w.boss)
    furnish(other)
    a_hidden_family(other)
    edges_with_a_hidden_end(other)
    other.say("The budget is cut by half.", CUT)
    furnish_more(other)
    w.ids.update(other.ids)


CHANNELS: list[Callable[[World], None]] = [
    the_same_sentence, the_same_vector, what_the_caller_knows, often_said, places_in_a_source, a_family_full,
    a_word_made_common, a_very_long_text, a_pool_full_of_better_hits, edges_with_a_hidden_end, a_hundred_edges,
    superseded_by_something_hidden, superseded_by_a_hidden_family, preloaded_for_others, a_hidden_family,
    a_hidden_specimen, an_audience_that_was_edited, deleted_again, another_tenant,
]  # fmt: skip
NOBODY_SEES_IT = (deleted_again, another_tenant)


def statement(w: World, content: str) -> UUID:
    found = w.as_admin("select id from graphium.kg_statements where content = %s order by id limit 1", content)
    assert isinstance(found, UUID)
    return found


def specimen(w: World, name: str, family: str) -> UUID:
    w.say(f"{name} is one of us.", None, ["board"], family=family, specimen=name)
    return w.id_of("dh_specimens", name)


# ------------------------------------------------------------------------------------------ what the caller does
def glance(t: Transcript, ids: dict[str, UUID]) -> None:
    for table, key in TABLES.items():
        t(f"select * from graphium.{table} order by {key}")
    t("select * from graphium.context_tree()")
    t("select * from graphium.search_context(%s, 'tea salaries may budget zed', 1000)", QUERY)
    t("select * from graphium.search_families(%s)", QUERY)
    t("select * from graphium.wake_up_context()")
    t("select found from graphium.cypher('MATCH (f)-[e]->(g) RETURN [f.name, type(e), g.name]') as found order by 1")


def look(t: Transcript, ids: dict[str, UUID]) -> None:
    """Every function that reads, every table, and the graph."""
    glance(t, ids)
    t("select * from graphium.caller()")
    for table in TABLES:
        t(f"select count(*) from graphium.{table}")

    for arguments in (
        f"query_embedding => '{QUERY}'",
        f"query_embedding => '{QUERY}', match_count => 3, symbiosis_count => 1",
        f"query_embedding => '{QUERY}', match_count => 1000, symbiosis_count => 1000",
        f"query_embedding => '{QUERY}', min_similarity => 0.6",
        f"query_embedding => '{QUERY}', layer_kinds => '{{preloaded}}'",
        f"query_embedding => '{QUERY}', memory_types => '{{preference}}', since => '2020-01-01'",
        "query_text => 'tea salaries may budget half zed'",
        "query_text => 'tea', match_count => 1",
        "query_text => 'The budget is cut by half.'",
        f"query_embedding => '{QUERY}', query_text => 'Does Ada like tea, or is the budget cut?'",
        f"query_embedding => '{QUERY}', query_text => 'tea in May', match_count => 2, min_similarity => 0.1",
        f"query_embedding => '{QUERY}', query_text => 'What about Zed Corp and Bob in the merger in May 2024?', match_count => 1000",
        f"query_embedding => '{QUERY}', families => '{{work,merger}}'",
        f"query_embedding => '{QUERY}', families => '{{merger}}'",
        f"query_embedding => '{QUERY}', specimens => '{{Zed Corp,Ada}}', query_text => 'budget tea'",
        f"query_embedding => '{QUERY}', genera => '{{targets}}'",
    ):
        t(f"select * from graphium.search_context({arguments}, explain => true)")
        if "min_similarity" not in arguments and "symbiosis_count" not in arguments:
            t(f"select * from graphium.explain_search({arguments})")
    for count in (1, 2, 50):
        t("select * from graphium.search_families(%s, %s)", QUERY, count)
    for budget in (0, 6, 15, 40, 5000):
        t("select * from graphium.wake_up_context(%s)", budget)
    t("select * from graphium.wake_up_context(100, families => '{work,merger}', specimens => '{Ada,Zed Corp}')")
    for question in ("What about Zed Corp and Ada in May 2024?", "Is Bob in the merger with Zed?", "zed"):
        t("select * from graphium.prepare_query(%s, '2025-01-01')", question)

    after: Any = None
    for _ in range(30):  # to the end, two by two
        page = t("select * from graphium.recall_context(page_size => 2, after => %s)", after)
        if not page:
            break
        after = page[-1][0]
    for arguments in (
        "family => 'merger'",
        "family => 'work', genus => 'notes', specimen => 'Zed Corp'",
        "genus => 'targets'",
        "specimen => 'Ada'",
    ):
        t(f"select * from graphium.recall_context({arguments})")
    for id in ids.values():
        t("select * from graphium.recall_context(after => %s)", id)
        t("select * from graphium.recall_context(statement_ids => %s)", [id])

    for query in (
        "MATCH (n) RETURN count(*)",
        "MATCH (n) RETURN n.name",
        "MATCH (n {name: 'merger'}) RETURN n.name",
        "MATCH (n) WHERE n.name STARTS WITH 'Z' RETURN n.id",
        "MATCH (f:Family)-[:CONTAINS_SPECIMEN]->(s) WITH f.name AS f, count(s) AS n RETURN {family: f, n: n}",
        "MATCH (n) WHERE 1 / (size(n.name) - 8) > 0 RETURN n.name",  # fails on a row of that length
        "MATCH (n) WHERE toInteger(n.name) > 0 RETURN n.name",
        "MATCH (n) RETURN id(n)",
    ):
        t("select found from graphium.cypher(%s) as found order by 1", query)


def act(t: Transcript, ids: dict[str, UUID]) -> None:
    """Every function that writes, on what he guesses and on what he has ids of."""
    say = "select * from graphium.ingest_context('work', 'notes', %s, %s)"
    secret = {"content": "The budget is cut by half.", "embedding": CUT}
    t(say, "Ada", Jsonb([secret]))
    t(say, "Ada", Jsonb([secret | {"content": "By half the budget is cut", "embedding": NEAR_CUT}]))
    t(
        say,
        "Ada",
        Jsonb([secret | {"required_scopes": ["hr"]}, secret | {"required_scopes": ["hr"], "source": "standup"}]),
    )
    t(say, "Ada", Jsonb([{"content": "New here.", "source": "standup"}, {"content": "And here.", "source": "minutes"}]))
    t(say, "Ada", Jsonb([secret | {"required_scopes": ["board"]}]))  # MG006: he does not hold it
    t(say, "Ada", Jsonb([secret | {"embedding": [1, 2]}]))
    t(say, "Ada", Jsonb([{"content": "Ada likes tea!", "embedding": TEA, "source": "standup", "position": 41}]))
    t("select * from graphium.ingest_context('new', 'notes', 'Ada', %s, '{board}')", Jsonb([secret]))
    for id in ids.values():
        t("select graphium.forget_context(%s)", [id])
        for kind in ("family", "specimen", "statement"):
            t("select graphium.set_required_scopes(%s, %s, '{hr}', cascade => true)", kind, id)
        t("select graphium.set_required_scopes('statement', %s, '{board}')", id)
        t("select graphium.set_many_required_scopes('statement', %s, '{hr}')", [id])
    if t.is_principal:  # an application may know which tenants there are
        t("select graphium.set_caller(%s)", f"other {t.world.slug}")
    # for administrators only
    t("select graphium.rename_taxon('family', %s, 'x')", ids["family"])
    t("select graphium.forget_taxon('specimen', %s)", ids["specimen"])
    t("select graphium.move_specimen(%s, %s)", ids["specimen"], ids["genus"])
    t("select graphium.unlink_symbiosis(%s)", ids["edge"])
    t('select graphium.link_symbiosis(\'related_to\', \'{"family": "work"}\', \'{"family": "merger"}\')')
    for call in (
        "check_memory()", "check_graph()", "rebuild_graph()", "rebuild_memory()", "maintenance_plan()", "list_tenants()",
        "list_principals()", "drop_tenant('other')", "create_tenant('other')", "remove_principal('nobody')",
    ):  # fmt: skip
        t(f"select * from graphium.{call}")
    t("select * from graphium.scope_edits")
    t("select * from graphium.principals")
    t(
        "select graphium.set_required_scopes('family', (select id from graphium.dh_families where name = 'leisure'), '{hr}', cascade => true)"
    )
    t(
        "select graphium.forget_context(array(select id from graphium.kg_statements where specimen_id = (select id from graphium.dh_specimens where name = 'Bob')))"
    )


def calls(t: Transcript, ids: dict[str, UUID]) -> None:
    look(t, ids)
    act(t, ids)
    glance(t, ids)


# ------------------------------------------------------------------------------------------ the worlds
@pytest.fixture(scope="module")
def low_limits(db: Database) -> None:
    """So that hidden rows would fill what is cut off at a limit."""
    for name in ("wake_up_window", "fusion_pool"):
        db.connect().execute("update graphium_private.settings set value = 20 where name = %s", [name])


@pytest.fixture(scope="module")
def make(db: Database, low_limits: None) -> Callable[[Callable[[World], None] | None], World]:
    app, admin, boss = db.connect("app"), db.connect("admin"), db.connect()

    def world(hide: Callable[[World], None] | None) -> World:
        w = World(db, f"world {next(numbers)}", app, admin, boss)
        furnish(w)
        if hide is not None:
            hide(w)
        w.name_ids()
        furnish_more(w)
        return w

    return world


def told(w: World, caller: str, script: Callable[[Transcript, dict[str, UUID]], None]) -> Transcript:
    """The transcript of an application's caller with the scope hr, of a principal with it, or of one who sees the hidden."""
    if caller == "principal":
        conn, scopes = w.db.principal(w.slug, ["hr"]), None
    else:
        conn, scopes = w.db.connect("app"), ["hr"] if caller == "app" else ["hr", "board", "ceo"]
    transcript = Transcript(w, conn, scopes)
    script(transcript, w.ids)
    conn.close()
    return transcript


@pytest.fixture(scope="module")
def plain(make: Callable[..., World]) -> Iterator[Callable[..., Transcript]]:
    """The transcript of a world that hides nothing, made once for each caller and script."""
    known: dict[Any, Transcript] = {}

    def transcript(caller: str, script: Callable[..., None]) -> Transcript:
        if (caller, script) not in known:
            known[caller, script] = told(make(None), caller, script)
        return known[caller, script]

    yield transcript


@pytest.mark.parametrize("caller", ["app", "principal"])
def test_two_worlds_that_are_the_same(
    make: Callable[..., World], plain: Callable[..., Transcript], caller: str
) -> None:
    """Otherwise nothing below would mean anything."""
    assert differences(plain(caller, calls), told(make(None), caller, calls)) == []
    lines = plain(caller, calls).lines
    assert len(lines) > 130
    answered = [line for line in lines if isinstance(line[2], tuple) and line[2][2]]
    refused = {line[2][0] for line in lines if isinstance(line[2], list)}
    assert len(answered) > 60
    assert refused - {"MG002"} == {"MG005", "MG006", "MG007", "MG010", "42501"}


@pytest.mark.parametrize("hide", CHANNELS, ids=lambda hide: hide.__name__)
def test_nothing_hidden_shows(
    make: Callable[..., World], plain: Callable[..., Transcript], hide: Callable[[World], None]
) -> None:
    caller = "principal" if CHANNELS.index(hide) % 2 else "app"
    world = make(hide)
    if hide not in NOBODY_SEES_IT:
        assert differences(plain("insider", glance), told(world, "insider", glance)) != [], (
            "there is nothing to be hidden"
        )
    assert differences(plain(caller, calls), told(world, caller, calls)) == []


@pytest.mark.parametrize("table", ["kg_statements", "dh_specimens", "dh_families"])
def test_without_the_policy_it_would_show(
    make: Callable[..., World], plain: Callable[..., Transcript], table: str
) -> None:
    """The comparison finds a leak when there is one."""
    world = make(a_hidden_family)
    policy = sql.Identifier("as if somebody forgot about scopes")
    world.boss.execute(
        sql.SQL(
            "create policy {} on graphium.{} using (tenant_id = (select graphium_private.caller_tenant_id()))"
        ).format(policy, sql.Identifier(table))
    )
    try:
        assert differences(plain("app", glance), told(world, "app", glance)) != []
    finally:
        world.boss.execute(sql.SQL("drop policy {} on graphium.{}").format(policy, sql.Identifier(table)))
