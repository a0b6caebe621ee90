"""Exact search: the ranking of a brute-force model in numpy, under any filters, for callers with different scopes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from tests.search.conftest import read_as, search
from tests.search.corpus import MEMORY_TYPES, Corpus, Row, days
from tests.support.databases import Connection, Database, as_caller

DIMENSIONS = 16
AUDIENCES = [(), (), (), ("public",), ("hr",), ("legal",), ("hr", "legal"), ("hr", "public")]
CALLERS: list[tuple[str, ...]] = [(), ("hr",), ("legal", "board"), ("hr", "legal")]


@pytest.fixture(scope="module")
def corpus(new_corpus: Callable[..., Corpus]) -> Corpus:
    """1,500 statements in 6 families, 2 genera each, 3 specimens each; some families and specimens are hidden."""
    random = np.random.default_rng(7)
    made = new_corpus(
        DIMENSIONS,
        family4=("hr",),
        family5=("legal",),
        family0__genus1__specimen2=("hr",),
        family1__genus0__specimen0=("legal",),
    )
    centres = random.normal(size=(6, DIMENSIONS))
    rows = []
    for n in range(1500):
        family = int(random.integers(6))
        rows.append(
            Row(
                family=f"family{family}",
                genus=f"genus{random.integers(2)}",
                specimen=f"specimen{random.integers(3)}",
                content=f"statement number {n}",
                embedding=(centres[family] + random.normal(size=DIMENSIONS)).astype(np.float32),
                memory_type=MEMORY_TYPES[random.integers(6)],
                layer_kind="preloaded" if random.random() < 0.2 else "on_demand",
                required_scopes=AUDIENCES[random.integers(len(AUDIENCES))],
                occurred_at=days(float(random.integers(100))) if random.random() < 0.5 else None,
                created_at=days(float(random.integers(100))),
            )
        )
    made.plant(*rows)
    return made


def visible_name(corpus: Corpus, path: str, scopes: tuple[str, ...]) -> bool:
    """Whether a family, genus or specimen may be named to the caller. A genus follows its family."""
    names = path.split("/")
    own = corpus.audiences.get(path if len(names) != 2 else names[0], ())
    return not own or bool(set(own) & set(scopes))


def admitted(corpus: Corpus, scopes: tuple[str, ...], filters: dict[str, Any]) -> Callable[[Row], bool]:
    def admits(r: Row) -> bool:
        paths = {
            "families": (r.family, r.family),
            "genera": (f"{r.family}/{r.genus}", r.genus),
            "specimens": (f"{r.family}/{r.genus}/{r.specimen}", r.specimen),
        }
        for name, (path, taxon) in paths.items():
            if name in filters and not (taxon in filters[name] and visible_name(corpus, path, scopes)):
                return False
        return (
            r.memory_type in filters.get("memory_types", MEMORY_TYPES)
            and r.layer_kind in filters.get("layer_kinds", ("preloaded", "on_demand"))
            and ("since" not in filters or r.happened_at >= filters["since"])
            and ("until" not in filters or r.happened_at < filters["until"])
        )

    return admits


def some_filters(random: np.random.Generator) -> dict[str, Any]:
    filters: dict[str, Any] = {}
    if random.random() < 0.4:
        filters["families"] = [f"family{n}" for n in random.choice(7, size=random.integers(1, 4), replace=False)]
    if random.random() < 0.3:
        filters["genera"] = [f"genus{random.integers(2)}", "no such genus"]
    if random.random() < 0.3:
        filters["specimens"] = [f"specimen{n}" for n in random.choice(4, size=random.integers(1, 3), replace=False)]
    if random.random() < 0.3:
        filters["memory_types"] = [
            str(t) for t in random.choice(MEMORY_TYPES, size=random.integers(1, 4), replace=False)
        ]
    if random.random() < 0.2:
        filters["layer_kinds"] = ["preloaded"]
    if random.random() < 0.3:
        filters["since"] = days(float(random.integers(60)))
    if random.random() < 0.3:
        filters["until"] = days(float(random.integers(40, 100)))
    return filters


@pytest.mark.parametrize("scopes", CALLERS, ids=lambda s: "+".join(s) or "none")
def test_ranking_under_any_filters(corpus: Corpus, app: Connection, scopes: tuple[str, ...]) -> None:
    random = np.random.default_rng(len(scopes) * 100 + 1)
    found_something = 0
    for _ in range(60):
        query = random.normal(size=DIMENSIONS).astype(np.float32)
        filters = some_filters(random)
        count = int(random.choice([1, 5, 10, 100]))
        hits = search(app, corpus, scopes, query_embedding=query, match_count=count, **filters)
        expected = corpus.nearest(query, scopes, admitted(corpus, scopes, filters))[:count]
        assert [h.statement_id for h in hits] == [id for id, _ in expected], filters
        assert [h.similarity for h in hits] == pytest.approx([cosine for _, cosine in expected], abs=1e-6)
        assert [h.rank for h in hits] == list(range(1, len(hits) + 1))
        assert [h.score for h in hits] == [h.similarity for h in hits]
        found_something += bool(hits)
    assert found_something > 30


def test_min_similarity_cuts_the_list_and_nothing_else(corpus: Corpus, app: Connection) -> None:
    query = np.ones(DIMENSIONS, dtype=np.float32)
    everything = corpus.nearest(query, ())
    bound = (everything[6][1] + everything[7][1]) / 2
    hits = search(app, corpus, query_embedding=query, match_count=10, min_similarity=bound)
    assert [h.statement_id for h in hits] == [id for id, _ in everything[:7]]
    assert search(app, corpus, query_embedding=query, min_similarity=1.5) == []
    assert len(search(app, corpus, query_embedding=query, min_similarity=-1, match_count=20)) == 20


def test_ties_break_on_id(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    rows = [Row("f", embedding=(1, 1, 0)) for _ in range(12)]
    corpus.plant(*rows[::-1])
    hits = search(app, corpus, query_embedding=(1, 0, 0), match_count=5)
    assert [h.statement_id for h in hits] == [r.id for r in rows[:5]]


def test_time_is_when_it_occurred_or_else_was_told_since_inclusive_until_exclusive(
    new_corpus: Callable[..., Corpus], app: Connection
) -> None:
    corpus = new_corpus(3)
    occurred, told = (
        Row("f", embedding=(1, 0, 0), occurred_at=days(5), created_at=days(50)),
        Row("f", embedding=(1, 1, 0), created_at=days(10)),
    )
    corpus.plant(occurred, told)

    def found(**times: Any) -> list[Any]:
        return [h.statement_id for h in search(app, corpus, query_embedding=(1, 0, 0), **times)]

    assert found(since=days(5), until=days(10)) == [occurred.id]
    assert found(since=days(10)) == [told.id]
    assert found(until=days(5)) == []
    assert found(since=days(20)) == []
    assert found(since=days(10), until=days(10) + timedelta(microseconds=1)) == [told.id]
    # whatever the session writes times like (psycopg itself reads ISO only, so ask for ids)
    app.execute("set datestyle = 'SQL, DMY'")
    app.execute("set timezone = 'Asia/Kolkata'")
    try:
        with as_caller(app, corpus.slug):
            assert app.execute(
                "select statement_id from graphium.search_context(query_embedding => '[1,0,0]',"
                " since => '2026-01-06 00:00Z', until => '2026-01-11 00:00Z')"
            ).fetchall() == [(occurred.id,)]
    finally:
        app.execute("reset datestyle")
        app.execute("reset timezone")


@pytest.mark.parametrize("name", ["families", "genera", "specimens", "memory_types", "layer_kinds"])
def test_empty_filter_matches_nothing_null_is_none_an_unknown_name_matches_nothing(
    corpus: Corpus, app: Connection, name: str
) -> None:
    query = np.ones(DIMENSIONS, dtype=np.float32)
    everything = search(app, corpus, query_embedding=query)
    assert len(everything) == 10
    assert search(app, corpus, query_embedding=query, **{name: []}) == []
    assert search(app, corpus, query_embedding=query, **{name: None}) == everything
    assert search(app, corpus, query_text="statement", **{name: []}) == []
    if name in ("memory_types", "layer_kinds"):
        return
    for unknown in (["nobody"], ["*"], ["%"], [""], ["  "], [None], ["family_"], ["x" * 300]):
        assert search(app, corpus, query_embedding=query, **{name: unknown}) == []
        assert search(app, corpus, query_text="statement", **{name: unknown}) == []


def test_reading_an_unknown_name_makes_nothing(corpus: Corpus, app: Connection, boss: Connection) -> None:
    before = boss.execute("select count(*) from graphium.dh_families").fetchone()
    search(app, corpus, query_embedding=np.ones(DIMENSIONS), families=["never heard of"])
    read_as(app, corpus, (), "recall_context", family="never heard of")
    read_as(app, corpus, (), "wake_up_context", families=["never heard of"])
    assert boss.execute("select count(*) from graphium.dh_families").fetchone() == before


def test_names_are_compared_as_they_are_stored(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    (id,) = corpus.plant(Row("Pēteris", specimen="O'Brien", embedding=(1, 0, 0)))
    for families in (["Pēteris"], ["Pe\u0304teris"], ["  Pēteris "]):
        assert [h.statement_id for h in search(app, corpus, query_embedding=(1, 0, 0), families=families)] == [id]
    assert search(app, corpus, query_embedding=(1, 0, 0), families=["pēteris"]) == []
    assert [h.specimen for h in search(app, corpus, query_embedding=(1, 0, 0), specimens=["O'Brien", "'"])] == [
        "O'Brien"
    ]


def test_hidden_parents_show_null_names_and_lose_no_row(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3, secret=("hr",), open__g__quiet=("hr",))
    in_secret = Row("secret", "g", "s", embedding=(1, 0, 0))
    of_quiet = Row("open", "g", "quiet", embedding=(1, 1, 0))
    corpus.plant(in_secret, of_quiet)
    hits = search(app, corpus, query_embedding=(1, 0, 0))
    assert [(h.statement_id, h.family, h.genus, h.specimen) for h in hits] == [
        (in_secret.id, None, None, "s"),
        (of_quiet.id, "open", "g", None),
    ]
    assert [h.statement_id for h in search(app, corpus, query_embedding=(1, 0, 0), families=["secret", "open"])] == [
        of_quiet.id
    ]
    assert search(app, corpus, query_embedding=(1, 0, 0), specimens=["quiet"]) == []
    assert [h.statement_id for h in search(app, corpus, query_embedding=(1, 0, 0), specimens=["s"])] == [in_secret.id]
    assert [h.family for h in search(app, corpus, ("hr",), query_embedding=(1, 0, 0))] == ["secret", "open"]
    recalled = read_as(app, corpus, (), "recall_context")
    assert [(r.statement_id, r.family, r.genus, r.specimen) for r in recalled] == [
        (of_quiet.id, "open", "g", None),
        (in_secret.id, None, None, "s"),
    ]


def test_small_tenant_among_many_foreign_rows(
    new_corpus: Callable[..., Corpus], app: Connection, boss: Connection
) -> None:
    """20,000 rows of others, hidden or foreign, lie nearer to the query than any of the caller's 600."""
    random = np.random.default_rng(3)
    query = random.normal(size=8)
    foreign, own = new_corpus(8), new_corpus(8)
    near = (query + 0.01 * random.normal(size=(20000, 8))).astype(np.float32)
    foreign.plant(*[Row(f"f{n % 50}", embedding=v) for n, v in enumerate(near[:15000])])
    own.plant(*[Row(f"h{n % 20}", embedding=v, required_scopes=("board",)) for n, v in enumerate(near[15000:])])
    own.plant(*[Row("mine", embedding=v) for v in random.normal(size=(600, 8)).astype(np.float32)])
    boss.execute("analyze graphium.kg_embeddings")
    expected = own.nearest(query, ())
    for count in (10, 497, 498, 600, 1000):
        hits = search(app, own, query_embedding=query, match_count=count)
        assert [h.statement_id for h in hits] == [id for id, _ in expected[:count]]


def test_the_twentieth_time_and_on_a_fresh_connection(corpus: Corpus, app: Connection, shared: Database) -> None:
    query = np.ones(DIMENSIONS, dtype=np.float32)
    arguments: dict[str, Any] = {
        "query_embedding": query,
        "query_text": "statement number 12",
        "families": ["family1", "family2"],
    }
    results = [search(app, corpus, ("hr",), **arguments) for _ in range(20)]
    assert len(results[0]) == 10
    assert all(r == results[0] for r in results)
    assert search(shared.connect("app"), corpus, ("hr",), **arguments) == results[0]
    assert search(shared.connect("app", prepare_threshold=0), corpus, ("hr",), **arguments) == results[0]
