"""The hop along symbioses: both directions, all kinds, ends narrowed to anything, hidden ends; and supersession."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from tests.search.conftest import read_as
from tests.search.corpus import Corpus, Row, days
from tests.support.databases import Connection

X, NEAR_X, Y = (1, 0, 0), (0.9, 0.3, 0), (0, 1, 0)


def hop(conn: Connection, corpus: Corpus, scopes: Sequence[str] = (), **arguments: Any) -> tuple[list[Any], list[Any]]:
    """Primary hits and symbiosis hits. One primary hit near X unless told otherwise."""
    arguments = {"query_embedding": X, "match_count": 1, **arguments}
    if arguments["query_embedding"] is None:
        del arguments["query_embedding"]
    hits = read_as(conn, corpus, scopes, "search_context", **arguments)
    assert [h.rank for h in hits] == list(range(1, len(hits) + 1))
    primary = [h for h in hits if not h.is_symbiosis]
    assert hits[: len(primary)] == primary
    return primary, hits[len(primary) :]


@pytest.fixture
def corpus(new_corpus: Callable[..., Corpus]) -> Corpus:
    """`a` holds the statement that the query finds; `b` and `c` are reachable only by an edge."""
    return new_corpus(3)


def plant_abc(corpus: Corpus) -> tuple[UUID, UUID, UUID]:
    first = Row("a", "ga", "sa", embedding=X)
    in_b = Row("b", "gb", "sb", embedding=NEAR_X)
    in_c = Row("c", "gc", "sc", embedding=Y)
    corpus.plant(first, in_b, in_c)
    return first.id, in_b.id, in_c.id


@pytest.mark.parametrize("kind", ["related_to", "contradicts", "supersedes"])
@pytest.mark.parametrize("is_forward", [True, False])
def test_both_directions_and_all_kinds(corpus: Corpus, app: Connection, kind: str, is_forward: bool) -> None:
    _, b, _ = plant_abc(corpus)
    edge = corpus.edge(kind, *(("a", "b") if is_forward else ("b", "a")))
    primary, found = hop(app, corpus)
    assert [(h.statement_id, h.symbiosis_kind, h.symbiosis_id, h.is_symbiosis) for h in found] == [
        (b, kind, edge, True)
    ]
    assert found[0].similarity == pytest.approx(0.9 / np.hypot(0.9, 0.3), abs=1e-6)
    assert found[0].score == found[0].similarity
    assert (primary[0].symbiosis_kind, primary[0].symbiosis_id) == (None, None)
    # what is superseded is the edge's target, wherever the search came from
    assert [h.is_superseded for h in primary + found] == [
        kind == "supersedes" and not is_forward,
        kind == "supersedes" and is_forward,
    ]


@pytest.mark.parametrize("near_end", ["a", "a/ga", "a/ga/sa", "statement"])
@pytest.mark.parametrize("far_end", ["b", "b/gb", "b/gb/sb", "statement"])
def test_ends_narrowed_to_anything(corpus: Corpus, app: Connection, near_end: str, far_end: str) -> None:
    """An end touches what it covers, and leads to what it covers: there is one covered row and three beside it."""
    first, b, _ = plant_abc(corpus)
    corpus.plant(
        Row("b", "gb", "sb", embedding=Y), Row("b", "gb", "sb2", embedding=Y), Row("b", "gb2", "sb", embedding=Y)
    )
    edge = corpus.edge(
        "related_to", first if near_end == "statement" else near_end, b if far_end == "statement" else far_end
    )
    _, found = hop(app, corpus)
    covered = {"b": 4, "b/gb": 3, "b/gb/sb": 2, "statement": 1}[far_end]
    assert found[0].statement_id == b
    assert len(found) == covered
    assert {h.symbiosis_id for h in found} == {edge}


@pytest.mark.parametrize("near_end", ["a/ga2", "a/ga/sa2", "statement", "c"])
def test_an_edge_that_does_not_touch_a_hit_leads_nowhere(corpus: Corpus, app: Connection, near_end: str) -> None:
    plant_abc(corpus)
    (other,) = corpus.plant(Row("a", "ga2", "sa2", embedding=Y))
    corpus.plant(Row("a", "ga", "sa2", embedding=Y))
    corpus.edge("related_to", other if near_end == "statement" else near_end, "b")
    assert hop(app, corpus)[1] == []


def test_best_first_over_all_edges_and_never_more_than_asked(corpus: Corpus, app: Connection) -> None:
    random = np.random.default_rng(8)
    corpus.plant(Row("a", embedding=X))
    rows = [Row(f"f{n % 3}", embedding=v) for n, v in enumerate(random.normal(size=(60, 3)))]
    corpus.plant(*rows)
    for n in range(3):
        corpus.edge("related_to", "a", f"f{n}")
    expected = [id for id, _ in corpus.nearest(X, ()) if id in {r.id for r in rows}]
    for count in (0, 1, 5, 60, 1000):
        # only family a is searched, so that nothing of the others is a primary hit
        assert [h.statement_id for h in hop(app, corpus, families=["a"], symbiosis_count=count)[1]] == expected[:count]
    assert len(hop(app, corpus, families=["a"])[1]) == 5
    assert hop(app, corpus, families=["a"], follow_symbiosis=False)[1] == []


def test_a_primary_hit_does_not_come_again_and_takes_no_place(corpus: Corpus, app: Connection) -> None:
    rows = [Row(family, embedding=(1, n / 100, 0)) for n, family in enumerate(["a", "b", "b", "b", "b"])]
    corpus.plant(*rows)
    corpus.edge("related_to", "a", "b")
    primary, found = hop(app, corpus, match_count=3, symbiosis_count=1)
    assert [h.statement_id for h in primary] == [r.id for r in rows[:3]]
    assert [h.statement_id for h in found] == [rows[3].id]


def test_a_row_at_the_end_of_several_edges_comes_once_with_the_first(corpus: Corpus, app: Connection) -> None:
    first, b, _ = plant_abc(corpus)
    edges = [
        corpus.edge("related_to", "a", "b"),
        corpus.edge("contradicts", "a", "b"),
        corpus.edge("supersedes", first, b),
    ]
    _, found = hop(app, corpus)
    assert [(h.statement_id, h.symbiosis_id, h.symbiosis_kind) for h in found] == [(b, edges[0], "related_to")]


def test_edges_of_one_primary_hit_each(corpus: Corpus, app: Connection) -> None:
    a, b, _c = plant_abc(corpus)
    corpus.plant(Row("d", embedding=(0, 0, 1)))
    corpus.edge("related_to", "a", "d")
    corpus.edge("related_to", "d", "c")
    primary, found = hop(app, corpus, match_count=2)
    assert [h.statement_id for h in primary] == [a, b]
    assert len(found) == 1, "one hop, not two: c is an edge further"
    assert found[0].family == "d"


def test_hidden_ends_and_hidden_rows(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    """An edge with an end that the caller may not see is not there; hidden rows behind a visible one cost no place."""
    corpus = new_corpus(3, hidden=("hr",), open__g__quiet=("hr",))
    corpus.plant(Row("a", embedding=X))
    behind_hidden = Row("hidden", embedding=NEAR_X)
    of_quiet = Row("open", "g", "quiet", embedding=(0.5, 0.5, 0))
    gated = [Row("open", "g", "loud", embedding=(1, 0.001 * n, 0), required_scopes=("hr",)) for n in range(1, 8)]
    loud = Row("open", "g", "loud", embedding=Y)
    corpus.plant(behind_hidden, of_quiet, *gated, loud)
    edges = [
        corpus.edge("related_to", "a", "hidden"),
        corpus.edge("related_to", "a", "open/g/quiet"),
        corpus.edge("related_to", "a", gated[0].id),
    ]
    assert hop(app, corpus, families=["a"])[1] == []
    corpus.edge("related_to", "open", "a")
    assert [(h.statement_id, h.specimen) for h in hop(app, corpus, families=["a"])[1]] == [
        (of_quiet.id, None),
        (loud.id, "loud"),
    ]
    found = hop(app, corpus, ("hr",), families=["a"])[1]
    assert [h.statement_id for h in found] == [g.id for g in gated[:5]]
    assert found[0].symbiosis_id == edges[2]


def test_filters_on_taxa_are_left_behind_the_others_hold(corpus: Corpus, app: Connection) -> None:
    rows = [
        Row("a", "ga", "sa", embedding=X, occurred_at=days(5)),
        Row("b", "gb", "sb", embedding=(1, 0.1, 0), memory_type="event", occurred_at=days(5)),
        Row("b", "gb", "sb", embedding=(1, 0.2, 0), layer_kind="preloaded", occurred_at=days(5)),
        Row("b", "gb", "sb", embedding=(1, 0.3, 0), occurred_at=days(50)),
        Row("b", "gb", "sb", embedding=(1, 3, 0), occurred_at=days(5)),
    ]
    corpus.plant(*rows)
    corpus.edge("related_to", "a", "b")

    def found(**filters: Any) -> list[int]:
        return [[r.id for r in rows].index(h.statement_id) for h in hop(app, corpus, **filters)[1]]

    assert found(families=["a"], genera=["ga"], specimens=["sa"]) == [1, 2, 3, 4]
    assert found(memory_types=["fact"]) == [2, 3, 4]
    assert found(layer_kinds=["on_demand"]) == [1, 3, 4]
    assert found(since=days(1), until=days(10)) == [1, 2, 4]
    assert found(min_similarity=0.5) == [1, 2, 3]


def test_statements_without_a_vector(corpus: Corpus, app: Connection) -> None:
    """A region is entered by the query's vector or words; an end that is one statement is taken as it is."""
    _a, b, _c = plant_abc(corpus)
    plain = Row("b", "gb", "sb", content="gravel road")
    alone = Row("d", content="nothing in common")
    corpus.plant(plain, alone)
    corpus.edge("related_to", "a", "b")
    corpus.edge("related_to", "a", alone.id)
    _, found = hop(app, corpus)
    assert [(h.statement_id, h.similarity is None) for h in found] == [(b, False), (alone.id, True)]
    _, found = hop(app, corpus, query_text="a gravel road", families=["a"])
    assert [h.statement_id for h in found] == [b, plain.id, alone.id]
    assert [h.similarity is None for h in found] == [False, True, True]
    # by words alone
    corpus.plant(Row("a", "ga", "sa", content="road works"))
    primary, found = hop(app, corpus, query_embedding=None, query_text="road gravel", families=["a"])
    assert [h.content for h in primary] == ["road works"]
    assert [(h.statement_id, h.similarity, h.score > 0) for h in found] == [
        (plain.id, None, True),
        (alone.id, None, False),
    ]
    # a bound on similarity leaves out what has none
    assert [h.statement_id for h in hop(app, corpus, min_similarity=0.5)[1]] == [b]


@pytest.mark.parametrize("target", ["b", "b/gb", "b/gb/sb", "statement"])
def test_supersession_is_what_the_caller_may_see(
    new_corpus: Callable[..., Corpus], app: Connection, target: str
) -> None:
    corpus = new_corpus(3, hidden=("hr",))
    rows = [
        Row("b", "gb", "sb", embedding=X),
        Row("b", "gb2", "sb2", embedding=(1, 0.1, 0)),
        Row("hidden", embedding=Y),
    ]
    corpus.plant(*rows)
    corpus.edge("supersedes", "hidden", rows[0].id if target == "statement" else target)
    covered = [True, target == "b"]

    def marks(scopes: Sequence[str]) -> list[bool]:
        searched = hop(app, corpus, scopes, match_count=2, follow_symbiosis=False)[0]
        recalled = read_as(app, corpus, scopes, "recall_context", family="b")
        assert [r.is_superseded for r in recalled[::-1]] == [h.is_superseded for h in searched]
        return [h.is_superseded for h in searched]

    assert marks(()) == [False, False], "the edge's other end is hidden, so the edge is"
    assert marks(("hr",)) == covered
