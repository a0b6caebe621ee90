"""What all reading functions promise alike: refusals, no writes, and plans that touch few rows under the policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

from tests.search.conftest import read, read_as, refused
from tests.search.corpus import MEMORY_TYPES, Corpus, Row
from tests.support.databases import Connection, Database, as_caller

V = (1, 0, 0)
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search_context", {"query_embedding": V}),
    ("search_context", {"query_text": "tea"}),
    ("search_context", {"query_embedding": V, "query_text": "tea"}),
    ("recall_context", {}),
    ("wake_up_context", {}),
    ("search_families", {"query_embedding": V}),
    ("context_tree", {}),
    ("prepare_query", {"query_text": "tea"}),
]
CALL_IDS = [f"{name}({', '.join(arguments)})" for name, arguments in CALLS]


@pytest.fixture(scope="module")
def small(new_corpus: Callable[..., Corpus]) -> Corpus:
    corpus = new_corpus(3)
    corpus.plant(
        Row("a", content="tea", embedding=V, layer_kind="preloaded"), Row("b", content="milk", embedding=(0, 1, 0))
    )
    corpus.edge("related_to", "a", "b")
    return corpus


@pytest.mark.parametrize(("function", "arguments"), CALLS, ids=CALL_IDS)
class TestEveryReadingFunction:
    @pytest.mark.parametrize("tenant", ["", "  ", "nobody", "*"])
    def test_needs_a_tenant(
        self, app: Connection, small: Corpus, function: str, arguments: dict[str, Any], tenant: str
    ) -> None:
        with app.transaction(force_rollback=True):
            app.execute("select set_config('graphium.tenant', %s, true)", [tenant])
            with pytest.raises(psycopg.Error) as caught:
                read(app, function, **arguments)
        assert caught.value.sqlstate == "MG001"

    def test_runs_in_a_read_only_transaction(
        self, app: Connection, small: Corpus, function: str, arguments: dict[str, Any]
    ) -> None:
        with app.transaction():
            app.execute("set transaction read only")
            app.execute("select graphium.set_caller(%s)", [small.slug])
            assert read(app, function, **arguments)

    def test_serves_a_principal_who_only_reads(
        self, shared: Database, admin: Connection, small: Corpus, function: str, arguments: dict[str, Any]
    ) -> None:
        login = shared.login()
        admin.execute(
            "select graphium.add_principal(%s, %s, '{}', read_only => true)", [shared.cluster.role(login), small.slug]
        )
        assert read(shared.connect(login), function, **arguments)

    def test_leaves_nothing_behind(
        self, app: Connection, boss: Connection, small: Corpus, function: str, arguments: dict[str, Any]
    ) -> None:
        def everything() -> Any:
            return boss.execute(
                "select array_agg(s) from graphium.kg_statements s where tenant_id = %s", [small.tenant_id]
            ).fetchall()

        before = everything()
        read_as(app, small, (), function, **arguments)
        assert everything() == before


@pytest.mark.parametrize(
    ("function", "arguments", "code"),
    [
        ("search_context", {}, "MG008"),
        ("search_context", {"query_embedding": None, "query_text": None}, "MG008"),
        *[("search_context", {"query_embedding": V, "match_count": n}, "MG008") for n in (0, -1, 1001, None)],
        *[("search_context", {"query_text": "tea", "symbiosis_count": n}, "MG008") for n in (-1, 1001, None)],
        ("search_context", {"query_text": "tea", "min_similarity": 0.5}, "MG008"),
        ("search_context", {"query_embedding": V, "min_similarity": float("nan")}, "MG008"),
        ("search_context", {"query_text": "tea", "follow_symbiosis": None}, "MG008"),
        *[("search_context", {"query_embedding": v}, "MG005") for v in ((1, 0), (1, 0, 0, 0), (0, 0, 0), (1e30, 1e30, 0), (1e-30, 0, 0))],
        ("search_context", {"query_embedding": V, "embedding_model": "another"}, "MG005"),
        ("search_families", {"query_embedding": None}, "MG008"),
        ("search_families", {"query_embedding": (1, 0)}, "MG005"),
        ("search_families", {"query_embedding": (0, 0, 0)}, "MG005"),
        ("search_families", {"query_embedding": V, "embedding_model": "another"}, "MG005"),
        *[("search_families", {"query_embedding": V, "match_count": n}, "MG008") for n in (0, 1001, None)],
        *[("recall_context", {"page_size": n}, "MG008") for n in (0, -5, 1001, None)],
        *[("wake_up_context", {"token_budget": n}, "MG008") for n in (-1, None)],
    ],
    ids=str,
)  # fmt: skip
def test_refusals(app: Connection, small: Corpus, function: str, arguments: dict[str, Any], code: str) -> None:
    assert refused(app, small, function, **arguments) == code


TYPES = "Any of fact, event, discovery, preference, advice, decision; or leave it out."
LAYERS = "Any of preloaded, on_demand; or leave it out."
TIMES = "What is found has happened at since or later, and before until."


@pytest.mark.parametrize("function", ["search_context", "explain_search", "recall_context"])
@pytest.mark.parametrize(
    ("filters", "message", "hint"),
    [
        ({"memory_types": ["prefrence"]}, 'memory_types: "prefrence" is not known', TYPES),
        ({"memory_types": ["fact", "Fact"]}, 'memory_types: "Fact" is not known', TYPES),
        ({"memory_types": [""]}, 'memory_types: "" is not known', TYPES),
        ({"memory_types": ["fact", None]}, "memory_types: NULL is not known", TYPES),
        ({"memory_types": ["x" * 300]}, f'memory_types: "{"x" * 100}" is not known', TYPES),
        ({"layer_kinds": ["fact"]}, 'layer_kinds: "fact" is not known', LAYERS),
        ({"memory_types": ["decision"], "layer_kinds": ["on_demand", "%"]}, 'layer_kinds: "%" is not known', LAYERS),
        ({"since": "2026-03-02", "until": "2026-03-01"}, "since must be before until", TIMES),
        ({"since": "2026-03-01 12:00Z", "until": "2026-03-01 13:00+01"}, "since must be before until", TIMES),
    ],
    ids=str,
)
@pytest.mark.parametrize("names", [None, ["nobody"]])
def test_filters_that_nothing_could_ever_match(
    app: Connection,
    small: Corpus,
    function: str,
    filters: dict[str, Any],
    message: str,
    hint: str,
    names: list[str] | None,
) -> None:
    """Refused, whether the other filters match something or not."""
    query = {} if function == "recall_context" else {"query_text": "tea"}
    others = {"family": names[0]} if names and not query else {"families": names} if names else {}
    with pytest.raises(psycopg.Error) as caught:
        read_as(app, small, (), function, **query, **others, **filters)
    diag = caught.value.diag
    assert (diag.sqlstate, diag.message_primary, diag.message_hint) == ("MG008", message, hint)


def test_accepted_at_the_edges(app: Connection, small: Corpus) -> None:
    assert (
        len(read_as(app, small, (), "search_context", query_embedding=V, match_count=1000, symbiosis_count=1000)) == 2
    )
    assert len(read_as(app, small, (), "search_context", query_embedding=V, match_count=1, symbiosis_count=0)) == 1
    assert len(read_as(app, small, (), "search_context", query_embedding=V, embedding_model="all-MiniLM-L6-v2")) == 2
    assert len(read_as(app, small, (), "search_context", query_embedding=V, min_similarity=1e300)) == 0
    assert len(read_as(app, small, (), "search_context", query_embedding=V, min_similarity=2)) == 0
    assert len(read_as(app, small, (), "search_context", query_embedding=V, min_similarity=-1e300)) == 2
    assert len(read_as(app, small, (), "search_context", query_embedding=V, since="-infinity", until="infinity")) == 2
    assert len(read_as(app, small, (), "wake_up_context", token_budget=2147483647)) == 1
    assert read_as(app, small, (), "search_context", query_text="") == []


# ------------------------------------------------------------------------------------------------------------ plans


Counts = Counter[str]


def count(conn: Connection) -> Counts:
    """What the server counted: rows read per table, and under "lookups" calls of the identity lookup.

    Not since the transaction began, but since the session last passed its counts on: look before and after.
    """
    counts: Counts = Counter()
    for name, rows in conn.execute(
        "select relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables"
        " where schemaname in ('graphium', 'graphium_private')"
    ):
        counts["kg_embeddings" if name.startswith("kg_embeddings_p") else name] += rows
    for (calls,) in conn.execute("select calls from pg_stat_xact_user_functions where funcname = 'resolve_caller'"):
        counts["lookups"] = calls
    return counts


@pytest.fixture(scope="module")
def large(new_corpus: Callable[..., Corpus], boss: Connection) -> Corpus:
    """6,000 statements beside another tenant with as many; one in three is hidden from a caller without scopes."""
    random = np.random.default_rng(31)
    for _ in range(2):
        corpus = new_corpus(3)
        corpus.plant(
            *[
                Row(
                    f"family{n % 40}",
                    f"genus{n % 2}",
                    f"specimen{n % 200}",
                    content=f"tea word{n % 100} number{n}",
                    embedding=v,
                    memory_type=MEMORY_TYPES[n % 6],
                    layer_kind="preloaded" if n % 2 else "on_demand",
                    required_scopes=("hr",) if n % 3 == 0 else (),
                )
                for n, v in enumerate(random.normal(size=(6000, 3)))
            ]
        )
    boss.execute(
        "vacuum analyze graphium.kg_statements, graphium.kg_embeddings, graphium_private.postings, graphium.dh_specimens"
    )
    return corpus


@pytest.fixture(scope="module")
def watched(shared: Database, boss: Connection) -> Iterator[Connection]:
    """An application whose function calls are counted."""
    login = shared.login("graphium_app")
    boss.execute(f"alter role {shared.cluster.role(login)} set track_functions = 'pl'".encode())
    yield shared.connect(login)


def counted(conn: Connection, corpus: Corpus, function: str, **arguments: Any) -> tuple[list[Any], Counts]:
    with as_caller(conn, corpus.slug):
        before = count(conn)
        rows = read(conn, function, **arguments)
        after = count(conn)
        after.subtract(before)
        return rows, after


# Six times, so that a plan which is made anew five times and then kept is seen too.
TIMES = 6


@pytest.mark.parametrize(
    ("function", "arguments", "bounds"),
    [
        # exact: the tenant's vectors, each once (or the whole partition, should the other large tenant be half of it);
        # then a handful of statements by id
        ("search_context", {"query_embedding": V}, {"kg_embeddings": 12000, "kg_statements": 60}),
        # a filter reads what it admits: 150 of a family, 30 of a specimen
        (
            "search_context",
            {"query_embedding": V, "families": ["family7"]},
            {"kg_embeddings": 150, "kg_statements": 60},
        ),
        (
            "search_context",
            {"query_embedding": V, "specimens": ["specimen9"]},
            {"kg_embeddings": 30, "kg_statements": 60},
        ),
        # words: the visible postings of those words, 40 and 1, are counted and scored
        ("search_context", {"query_text": "word7 number8"}, {"postings": 82, "kg_statements": 60, "kg_embeddings": 0}),
        ("recall_context", {}, {"kg_statements": 240}),
        ("recall_context", {"family": "family7"}, {"kg_statements": 240}),
        ("recall_context", {"genus": "genus1"}, {"kg_statements": 40 * 80 + 60}),  # 40 families have one
        ("recall_context", {"family": "family7", "genus": "genus1"}, {"kg_statements": 240}),
        ("recall_context", {"specimen": "specimen9"}, {"kg_statements": 130}),
        ("wake_up_context", {}, {"kg_statements": 12000 + 1500 + 2 * 1000}),
        ("prepare_query", {"query_text": "what of specimen9"}, {"kg_statements": 0, "dh_specimens": 600}),
    ],
    ids=lambda p: str(p) if isinstance(p, dict) and "kg_statements" not in p and "postings" not in p else "",
)
def test_rows_touched(
    large: Corpus, watched: Connection, function: str, arguments: dict[str, Any], bounds: dict[str, int]
) -> None:
    for _ in range(TIMES):
        rows, counts = counted(watched, large, function, **arguments)
        assert rows
        for table, bound in bounds.items():
            assert counts[table] <= bound, table


def test_common_words_are_counted_and_scored_for_candidates_only(
    large: Corpus, watched: Connection, boss: Connection
) -> None:
    """4,000 visible statements have the one word, 40 the other. The 40 are scored, and the common word looked up for them."""
    arguments = {"query_text": "tea word7", "match_count": 10}
    try:
        answers = []
        for step, bounds in ((10_000, (8_080, 8_080)), (100, (4_081, 4_120))):
            boss.execute("update graphium_private.settings set value = %s where name = 'bm25_step'", [step])
            rows, counts = counted(watched, large, "search_context", **arguments)
            answers.append(rows)
            assert bounds[0] <= counts["postings"] <= bounds[1]
        assert answers[0] == answers[1]
        assert {r.content.split()[1] for r in answers[0]} == {"word7"}
    finally:
        boss.execute("update graphium_private.settings set value = 10000 where name = 'bm25_step'")


def test_a_page_costs_the_same_at_any_depth(large: Corpus, watched: Connection) -> None:
    ids = sorted((r.id for r in large.rows), reverse=True)
    costs = []
    for depth in (0, 3000, 5900):
        rows, counts = counted(watched, large, "recall_context", after=ids[depth], page_size=50)
        assert len(rows) == 50
        costs.append(counts["kg_statements"])
    assert max(costs) <= min(costs) + 40


@pytest.mark.parametrize(("function", "arguments"), CALLS, ids=CALL_IDS)
def test_the_caller_is_looked_up_per_query_and_not_per_row(
    large: Corpus, watched: Connection, function: str, arguments: dict[str, Any]
) -> None:
    for more in ({"match_count": 1000} if function == "search_context" else {}, {}):
        for _ in range(TIMES):
            rows, counts = counted(watched, large, function, **{**arguments, **more})
            assert rows
            assert counts["lookups"] <= 60
