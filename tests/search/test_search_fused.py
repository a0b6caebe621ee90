"""Search by vector and words: the formula of functions/205_rank_pool.sql, each signal alone, what it says of itself, and what replaces what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from tests.search.conftest import read_as, refused, search
from tests.search.corpus import Corpus, Row, bm25, plain_words
from tests.search.reference import Candidate, fused
from tests.support.databases import Connection

STEMS = ["tea", "milk", "road", "sun", "moon", "river", "stone", "bread", "salt", "lamp", "fox", "ant", "owl", "bee", "cat", "dog"]  # fmt: skip
AUDIENCES: list[tuple[str, ...]] = [(), ("hr",), (), ("hr", "legal"), (), ("legal",), ("board", "public"), ("board",)]
MAY = datetime(2024, 5, 1, tzinfo=timezone.utc)
JUNE = datetime(2024, 6, 1, tzinfo=timezone.utc)


@pytest.fixture
def setting(boss: Connection) -> Iterator[Callable[[str, float], None]]:
    before = boss.execute("select name, value from graphium_private.settings").fetchall()

    def be(name: str, value: float) -> None:
        boss.execute("update graphium_private.settings set value = %s where name = %s", [value, name])

    yield be
    for name, value in before:
        be(name, value)


@pytest.fixture(scope="module")
def corpus(new_corpus: Callable[..., Corpus]) -> Corpus:
    random = np.random.default_rng(21)
    weights = 1 / np.arange(1, len(STEMS) + 1)
    made = new_corpus(8)
    made.plant(
        *[
            Row(
                family=f"family{n % 4}",
                specimen=f"person{n % 12}",
                content=" ".join(random.choice(STEMS, size=random.integers(1, 15), p=weights / weights.sum()))
                + f" number{n}"
                + ("?" if n % 6 == 0 else ""),
                embedding=random.normal(size=8).astype(np.float32) if n % 5 else None,
                required_scopes=AUDIENCES[n % len(AUDIENCES)],
                source=f"talk {n // 9}" if n % 7 else None,
                position=n % 9,
                occurred_at=MAY + timedelta(days=n % 60) if n % 3 else None,
            )
            for n in range(400)
        ]
    )
    return made


def boost(row: Row, names: Sequence[str], families: set[str], time: tuple[datetime, datetime] | None) -> float:
    """For what the query names, less for being a question."""
    total = 0.1 * (row.specimen in names) + 0.3 * (row.family in families) - 0.15 * row.content.endswith("?")
    if time is not None:
        since, until = time
        total += 0.3 * (since <= row.happened_at < until) + 0.15 * (
            until <= row.happened_at < until + timedelta(days=7)
        )
    return total


@pytest.mark.parametrize("scopes", [(), ("hr",)])
@pytest.mark.parametrize("asked", ["", "person3", "in May 2024", "person3 and person7 in May 2024"])
def test_the_formula(
    corpus: Corpus, app: Connection, setting: Callable[[str, float], None], scopes: tuple[str, ...], asked: str
) -> None:
    setting("candidate_postings", 1_000_000)
    app.execute("set timezone = 'UTC'")
    random = np.random.default_rng(6)
    rows = [row for row in corpus.rows if row.is_visible(scopes)]
    documents = sum(not r.required_scopes or "public" in r.required_scopes for r in corpus.rows)
    time = (MAY, JUNE) if "May" in asked else None
    names = [n for n in ("person3", "person7") if n in asked]
    for _ in range(6):
        stems = list(dict.fromkeys(random.choice(STEMS, size=3)))
        query = random.normal(size=8).astype(np.float32)
        # what is left of the text when names are taken out: "and", "in" are no words
        words = stems + (["may", "2024"] if time else [])
        found = sorted(bm25(rows, " ".join(words), documents).items(), key=lambda w: (-w[1], w[0]))
        all_cosines = dict(corpus.nearest(query, scopes))
        ids = set(list(all_cosines)[:200]) | {id for id, _ in found[:100]}
        pool = [r for r in rows if r.id in ids]
        families = {r.family for r in pool if r.specimen in names}
        scores = fused(
            [
                Candidate(
                    r.id,
                    plain_words(r.content),
                    all_cosines.get(r.id),
                    r.source,
                    r.position,
                    boost(r, names, families, time),
                )
                for r in pool
            ],
            words,
        )
        hits = search(
            app, corpus, scopes, query_embedding=query, query_text=" ".join(stems) + " " + asked, match_count=20
        )
        assert len(hits) == 20
        best = sorted(scores.values(), reverse=True)
        assert [h.score for h in hits] == pytest.approx(best[:20], abs=2e-5)
        assert {h.statement_id: h.score for h in hits} == pytest.approx(
            {h.statement_id: scores[h.statement_id] for h in hits}, abs=2e-5
        )
        assert [h.similarity for h in hits] == [
            pytest.approx(all_cosines[h.statement_id], abs=1e-6) if h.statement_id in all_cosines else None
            for h in hits
        ]


# ------------------------------------------------------------------------------------------------- each signal, by hand
V = (1, 0, 0)


def scores_of(app: Connection, corpus: Corpus, text: str, scopes: Sequence[str] = (), **more: Any) -> list[float]:
    """Of all statements of a tiny corpus, in the order in which they were planted. All of one vector: each is as near as can be."""
    hits = {
        h.statement_id: h.score
        for h in search(app, corpus, scopes, query_embedding=V, query_text=text, match_count=50, **more)
    }
    return [round(hits[row.id], 4) for row in corpus.rows if row.id in hits]


def test_a_statement_of_whom_the_query_names(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    """Near 1 and words 1 are .5 each. Whoever has no source has a fifth of himself, halved, added: × 1.1."""
    corpus = new_corpus(3)
    corpus.plant(
        *[Row(f, specimen=s, content="tea", embedding=V) for f, s in (("f", "Ada"), ("f", "Bob"), ("g", "Bob"))]
    )
    assert scores_of(app, corpus, "tea") == [1.1, 1.1, 1.1]
    assert scores_of(app, corpus, "Ada's tea") == [1.54, 1.43, 1.1]  # + .1 + .3; + .3 for the family
    assert scores_of(app, corpus, "tea for BOB") == [1.43, 1.54, 1.54]


def test_a_name_is_no_word(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    """So the statement that has the name is not ahead for that. By words alone it is a word."""
    corpus = new_corpus(3)
    corpus.plant(*[Row("f", specimen="Ada", content=text, embedding=V) for text in ("tea", "Hey Ada")])
    assert scores_of(app, corpus, "Ada's tea") == [1.54, 0.99]
    assert {h.content for h in search(app, corpus, query_text="Ada")} == {"Hey Ada"}


def test_a_hidden_name_is_a_word_and_boosts_nothing(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3, f__g__Ada=("hr",))
    corpus.plant(*[Row("f", "g", "Ada", content=text, embedding=V) for text in ("tea", "Hey Ada")])
    # "ada" is in one of two: ln(1 + 1.5 / 1.5) for both words; "tea" is the shorter statement
    one, two = (1 / (1 + 1.2 * (0.6 + 0.4 * n / 1.5)) for n in (1, 2))
    assert scores_of(app, corpus, "Ada's tea") == [1.1, round(1.1 * (0.5 + 0.5 * two / one), 4)]
    assert scores_of(app, corpus, "Ada's tea", ("hr",)) == [1.54, 0.99]


def test_a_question_answers_nothing(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    corpus.plant(*[Row("f", content=text, embedding=V) for text in ("tea", "tea?", "tea ？ ", "tea؟", "tea?!")])
    assert scores_of(app, corpus, "tea") == [1.1, 0.935, 0.935, 0.935, 1.1]


def test_the_time_that_the_query_names(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    second = timedelta(seconds=1)
    at = [MAY - second, MAY, JUNE - second, JUNE, JUNE + timedelta(days=7) - second, JUNE + timedelta(days=7)]
    corpus.plant(*[Row("f", content="tea", embedding=V, occurred_at=when) for when in at])
    corpus.plant(Row("f", content="tea", embedding=V, created_at=MAY))
    app.execute("set timezone = 'UTC'")
    told = [1.1, 1.43, 1.43, 1.265, 1.265, 1.1, 1.43]
    assert scores_of(app, corpus, "tea in May 2024") == told
    assert scores_of(app, corpus, "tea last month", now=JUNE + timedelta(days=20)) == told
    assert scores_of(app, corpus, "tea before June 2024") == [1.43, 1.43, 1.43, 1.1, 1.1, 1.1, 1.43]
    assert scores_of(app, corpus, "tea since June 2024") == [1.1, 1.1, 1.1, 1.43, 1.43, 1.43, 1.1]
    assert refused(app, corpus, "search_context", query_embedding=V, query_text="tea", now="infinity") == "MG008"
    far = datetime(9999, 12, 31, tzinfo=timezone.utc)
    assert scores_of(app, corpus, "tea yesterday", now=far) == [1.1] * 7
    for now in ("294276-12-31", "4713-01-01 BC"):
        assert len(search(app, corpus, query_embedding=V, query_text="tea yesterday", now=now)) == 7


def test_words_that_were_said_nearby(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    """Before: × 1, × ½ two before; after: × ½, × ¼. Not of another source, not three off."""
    corpus = new_corpus(3)
    corpus.plant(
        *[Row("f", content="tea" if n == 5 else "road", embedding=V, source="talk", position=n) for n in range(2, 9)],
        Row("f", content="road", embedding=V, source="another", position=6),
        Row("f", content="road", embedding=V, position=6),
    )
    shares = [0, 0.25, 0.5, 1, 1, 0.5, 0]
    # ½ for being near; five best of the source: 1, 1, .75, .75, .625
    around = 0.5 * (1 + 1 + 0.75 + 0.75 + 0.625) / 5
    assert scores_of(app, corpus, "tea") == [round(0.5 + 0.5 * s + around, 4) for s in shares] + [0.55, 0.55]


def test_hidden_neighbours_say_nothing(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    corpus.plant(
        Row("f", content="tea", embedding=V, source="talk", position=1, required_scopes=("hr",)),
        Row("f", content="road", embedding=V, source="talk", position=2),
        Row("f", content="tea", embedding=V),
    )
    assert scores_of(app, corpus, "tea") == [0.55, 1.1]
    assert scores_of(app, corpus, "tea", ("hr",)) == [1.2, 1.2, 1.1]


def test_places_at_the_end_of_numbers_and_shared_places(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    places = [2**63 - 1, -(2**63), 7, 7, 8, None]
    corpus.plant(
        *[
            Row("f", content="tea" if n == 2 else "road", embedding=V, source="talk", position=place)
            for n, place in enumerate(places)
        ]
    )
    around = 0.5 * (1 + 1 + 0.5 + 0.5 + 0.5) / 5
    assert scores_of(app, corpus, "tea") == [round(b + around, 4) for b in (0.5, 0.5, 1, 0.5, 1, 0.5)]


def test_a_source_lifts_what_is_in_it(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    """By its five best, none below nothing."""
    corpus = new_corpus(3)
    corpus.plant(
        *[Row("f", content="tea", embedding=V, source="long", position=10 * n) for n in range(7)],
        *[Row("f", content="tea", embedding=V, source="short", position=10 * n) for n in range(2)],
        Row("f", content="tea", embedding=V),
    )
    assert scores_of(app, corpus, "tea") == [1.5] * 7 + [1.2] * 2 + [1.1]


def test_near_and_far(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    """Cosines 1, .6 and -1 are 1, .8 and 0 of the way; what has no vector is nowhere. similarity stays the cosine."""
    corpus = new_corpus(3)
    rows = [Row("f", content="road", embedding=v) for v in (V, (3, 4, 0), (-1, 0, 0))] + [Row("f", content="tea")]
    corpus.plant(*rows)
    assert scores_of(app, corpus, "tea") == [0.55, 0.44, 0.0, 0.55]
    hits = search(app, corpus, query_embedding=V, query_text="tea", min_similarity=0.5)
    assert [(h.statement_id, round(h.similarity, 4)) for h in hits] == [(rows[0].id, 1), (rows[1].id, 0.6)]


def test_of_equals_the_oldest_come_first_and_always_the_same(
    new_corpus: Callable[..., Corpus], app: Connection
) -> None:
    corpus = new_corpus(3)
    ids = corpus.plant(*[Row("f", content=f"tea {('fox', 'owl')[n % 2]}", embedding=V) for n in range(60)])
    for count in (1, 7, 60):
        hits = search(app, corpus, query_embedding=V, query_text="tea fox owl", match_count=count)
        assert [h.statement_id for h in hits] == ids[:count]


def test_words_that_are_nowhere_change_nothing(corpus: Corpus, app: Connection) -> None:
    query = np.arange(1, 9)
    dense = search(app, corpus, query_embedding=query, match_count=30)
    for text in ("", "the of and", "nowhere unheardof", "🍎", "ничего", " ".join(f"word{n}" for n in range(500))):
        assert search(app, corpus, query_embedding=query, query_text=text, match_count=30) == dense


def test_whoever_is_named_counts_even_if_no_word_is_anywhere(
    new_corpus: Callable[..., Corpus], app: Connection
) -> None:
    corpus = new_corpus(3)
    corpus.plant(*[Row(s, specimen=s, content="tea", embedding=V) for s in ("Ada", "Bob")])
    assert scores_of(app, corpus, "Bob's whereabouts") == [0.55, 0.99]


@pytest.mark.parametrize(
    "text", ["tea " * 500, " ".join(STEMS * 30), "tea 🍎 чай お茶", "x" * 100_000 + " tea", "'; tea --"]
)
def test_degenerate_texts_beside_a_vector(corpus: Corpus, app: Connection, text: str) -> None:
    assert len(search(app, corpus, query_embedding=np.ones(8), query_text=text)) == 10


def test_common_words_are_counted_only_so_far(
    new_corpus: Callable[..., Corpus], app: Connection, setting: Callable[[str, float], None]
) -> None:
    """With a budget of two postings "tea" (three) finds no candidates, but counts where the vector found them."""
    corpus = new_corpus(3)
    corpus.plant(
        *[Row("f", content="road", embedding=V) for _ in range(2)],
        *[Row("f", content="tea", embedding=(0, 1, 0)) for _ in range(3)],
        Row("f", content="fox", embedding=(0, 1, 0)),
    )
    setting("candidate_postings", 2)
    setting("fusion_pool", 2)
    found = search(app, corpus, query_embedding=V, query_text="tea fox", match_count=1)
    assert [h.content for h in found] == ["road"]
    assert {h.content for h in search(app, corpus, query_embedding=V, query_text="tea", match_count=1)} == {"road"}
    assert len(search(app, corpus, query_embedding=V, query_text="tea fox", match_count=6)) == 6


@pytest.mark.parametrize("postings", [1, 7, 60, 300, 100_000])
@pytest.mark.parametrize("count", [1, 4, 30, 90])
def test_candidates_are_those_with_the_rarest_words(
    corpus: Corpus, boss: Connection, setting: Callable[[str, float], None], postings: int, count: int
) -> None:
    """However many words there are, and however few of their postings need be counted to know the rarest."""
    setting("candidate_postings", postings)
    random = np.random.default_rng(count)
    rows = [row for row in corpus.rows if row.is_visible(["hr"])]
    bags = {row.id: Counter(plain_words(row.content)) for row in rows}
    for _ in range(5):
        numbers = [f"number{n}" for n in random.choice(500, size=count, replace=False)]  # one in four is nowhere
        words = [*random.permutation(STEMS)[: random.integers(1, 17)], *numbers][: max(count, 2)]
        keys = boss.execute("select graphium_private._keys_of(%s::text[])", [words]).fetchone()[0]  # type: ignore[index]
        frequency = {w: sum(w in bag for bag in bags.values()) for w in words}
        chosen: set[str] = set()
        for _, _, word in sorted((frequency[w], key, w) for w, key in zip(words, keys, strict=True) if frequency[w]):
            if sum(frequency[w] for w in chosen) + frequency[word] > postings:
                break
            chosen.add(word)
        found = boss.execute(
            "select graphium_private._match_rarest(t.id, %s, graphium_private._keys_of(array["
            " graphium_private._audience('{}')::text, graphium_private._audience('{hr}')::text,"
            " graphium_private._audience('{hr,legal}')::text]), '', 1000) from graphium.tenants t where t.id = %s",
            [words, corpus.tenant_id],
        ).fetchone()[0]  # type: ignore[index]
        assert set(found) == {id for id, bag in bags.items() if chosen & set(bag)}
        assert len(found) == len(set(found))


def test_where_vectors_are_few_a_common_word_finds_all(
    new_corpus: Callable[..., Corpus], app: Connection, setting: Callable[[str, float], None]
) -> None:
    corpus = new_corpus(3)
    corpus.plant(Row("f", content="road", embedding=V), *[Row("f", content=f"tea {n}") for n in range(5)])
    setting("candidate_postings", 2)
    assert len(search(app, corpus, query_embedding=V, query_text="tea", match_count=6)) == 6


# ------------------------------------------------------------------------------------------------- what it says of itself
def test_explanations(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    first, second, third = corpus.plant(
        Row("f", specimen="Ada", content="milk and tea?", embedding=V, source="talk", position=1, occurred_at=MAY),
        Row("f", content="road", embedding=(0, 1, 0), source="talk", position=2),
        Row("g", content="stone"),
    )
    edge = corpus.edge("related_to", first, third)
    app.execute("set timezone = 'UTC'")
    asked = {
        "query_embedding": V,
        "query_text": "tea and milk of Ada in May 2024",
        "explain": True,
        "symbiosis_count": 5,
    }
    hits = search(app, corpus, **asked, follow_symbiosis=True, families=["f"])
    why = {h.statement_id: h.explanation for h in hits}
    assert list(why) == [first, second, third]
    # bases: .5 + .5 + .1 + .3 + .3 - .15 = 1.55, and 0 + .5 + .3 = .8; around: half a fifth of both
    assert why[first] == {
        "similarity": 1, "dense_rank": 1, "lexical_rank": 1, "words_score": 1, "words": ["tea", "milk"], "named_specimen": 0.1,
        "named_family": 0.3, "named_time": 0.3, "question": -0.15, "source": pytest.approx(0.235),
    }  # fmt: skip
    assert why[second] == {
        "similarity": 0, "dense_rank": 2, "lexical_rank": 2, "words_score": 1, "words_nearby": ["tea", "milk"], "named_family": 0.3,
        "source": pytest.approx(0.235),
    }  # fmt: skip
    assert why[third] == {"symbiosis_id": str(edge), "symbiosis_kind": "related_to"}
    assert hits[0].score == pytest.approx(1.785)
    assert [h[:-1] for h in hits] == [h[:-1] for h in search(app, corpus, **{**asked, "explain": False}, follow_symbiosis=True, families=["f"])]  # fmt: skip
    [hit] = search(app, corpus, query_text="milk of tea", explain=True)
    assert hit.explanation == {"lexical_rank": 1, "words": ["milk", "tea"]}
    assert [h.explanation for h in search(app, corpus, query_embedding=V, explain=True)] == [
        {"similarity": 1, "dense_rank": 1},
        {"similarity": 0, "dense_rank": 2},
    ]
    assert search(app, corpus, query_embedding=V)[0].explanation is None


# ------------------------------------------------------------------------------------------------- what replaces what
class TestSuperseded:
    """Statement n is at (1, n / 10, 0): the lower the number the nearer."""

    def order(self, app: Connection, corpus: Corpus, scopes: Sequence[str] = (), **more: Any) -> list[int]:
        hits = search(app, corpus, scopes, query_embedding=V, **more)
        return [int(h.content.split()[1]) for h in hits]

    def plant(self, new_corpus: Callable[..., Corpus], count: int, **audiences: Sequence[str]) -> Corpus:
        corpus = new_corpus(3, **audiences)
        corpus.plant(*[Row(f"f{n}", content=f"number {n}", embedding=(1, n / 10, 0)) for n in range(count)])
        return corpus

    def test_it_ranks_below_what_replaced_it_and_nothing_else_moves(
        self, new_corpus: Callable[..., Corpus], app: Connection
    ) -> None:
        corpus = self.plant(new_corpus, 6)
        ids = [row.id for row in corpus.rows]
        corpus.edge("supersedes", ids[3], ids[1])
        corpus.edge("supersedes", ids[0], ids[4])
        corpus.edge("contradicts", ids[5], ids[2])
        assert self.order(app, corpus) == [0, 2, 3, 1, 4, 5]
        hits = search(app, corpus, query_embedding=V)
        assert [h.rank for h in hits] == [1, 2, 3, 4, 5, 6]
        assert [h.is_superseded for h in hits] == [False, False, False, True, True, False]
        assert self.order(app, corpus, query_text="number") == [0, 2, 3, 1, 4, 5]
        # what replaced it is not among those that are wanted: nothing to be below of, and an edge leads there
        assert self.order(app, corpus, match_count=2) == [0, 1]
        assert self.order(app, corpus, match_count=2, follow_symbiosis=True)[:3] == [0, 1, 3]

    def test_chains_circles_and_whole_families(self, new_corpus: Callable[..., Corpus], app: Connection) -> None:
        corpus = self.plant(new_corpus, 8)
        ids = [row.id for row in corpus.rows]
        corpus.edge("supersedes", ids[1], ids[0])
        corpus.edge("supersedes", "f2/general/someone", ids[1])
        corpus.edge("supersedes", ids[4], "f3")
        corpus.edge("supersedes", ids[6], ids[5])
        corpus.edge("supersedes", ids[5], ids[6])
        assert self.order(app, corpus) == [2, 1, 0, 4, 3, 5, 6, 7]

    def test_an_edge_that_is_hidden_moves_nothing(self, new_corpus: Callable[..., Corpus], app: Connection) -> None:
        corpus = self.plant(new_corpus, 3, f1=("hr",))
        ids = [row.id for row in corpus.rows]
        corpus.edge("supersedes", "f1", ids[0])
        assert self.order(app, corpus) == [0, 1, 2]
        assert self.order(app, corpus, ("hr",)) == [1, 0, 2]


def test_prepare_and_search_read_a_text_alike(corpus: Corpus, app: Connection) -> None:
    """What a client embeds is the text of which the search takes the words."""
    [row] = read_as(app, corpus, (), "prepare_query", query_text="person3 and tea")
    assert (row.dense_text, row.specimens) == ("and tea", ["person3"])
    hits = search(app, corpus, query_embedding=np.ones(8), query_text="person3 and tea", explain=True)
    assert {w for h in hits for w in h.explanation.get("words", [])} == {"tea"}
