"""Search by words: BM25 by its definition, any script, any text without an error; and the postings behind it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest

from tests.search.conftest import read_as, search
from tests.search.corpus import Corpus, Row, bm25, plain_words
from tests.support.databases import Connection, as_caller

# Stems that English stemming leaves alone, with Zipf-like frequencies.
STEMS = [
    "tea",
    "milk",
    "road",
    "sun",
    "moon",
    "river",
    "stone",
    "bread",
    "salt",
    "lamp",
    "fox",
    "ant",
    "owl",
    "bee",
    "cat",
    "dog",
]


def texts(random: np.random.Generator, count: int) -> list[str]:
    weights = 1 / np.arange(1, len(STEMS) + 1)
    lengths = random.integers(1, 15, size=count)
    return [
        " ".join(random.choice(STEMS, size=n, p=weights / weights.sum())) + f" number{i}" for i, n in enumerate(lengths)
    ]


AUDIENCES: list[tuple[str, ...]] = [(), ("hr",), (), ("hr", "legal"), (), ("legal",), ("board", "public"), ("board",)]


@pytest.fixture(scope="module")
def corpus(new_corpus: Callable[..., Corpus]) -> Corpus:
    random = np.random.default_rng(21)
    made = new_corpus(8)
    made.plant(
        *[
            Row(
                family=f"family{n % 4}",
                specimen=f"specimen{n % 7}",
                content=text,
                embedding=random.normal(size=8).astype(np.float32) if n % 5 else None,
                memory_type="event" if n % 3 == 0 else "fact",
                required_scopes=AUDIENCES[n % len(AUDIENCES)],
            )
            for n, text in enumerate(texts(random, 400))
        ]
    )
    return made


def visible(corpus: Corpus, scopes: Sequence[str] | None) -> tuple[list[Row], int]:
    """The rows that a caller sees, and the number of documents: what the families' statement_count says, open ones."""
    is_open = [not r.required_scopes or "public" in r.required_scopes for r in corpus.rows]
    return [r for r in corpus.rows if r.is_visible(scopes)], sum(is_open)


@pytest.mark.parametrize("scopes", [(), ("hr",), ("legal", "hr"), ("zoo", "board", "hr", "legal"), None])
def test_bm25_by_its_definition(
    corpus: Corpus, app: Connection, admin: Connection, scopes: tuple[str, ...] | None
) -> None:
    """Also of statements that have several of the caller's scopes, and for an admin (None), who holds all."""
    conn, held = (admin, ()) if scopes is None else (app, scopes)
    random = np.random.default_rng(4)
    rows, documents = visible(corpus, scopes)
    for _ in range(30):
        query = " ".join(random.choice(STEMS, size=random.integers(1, 6)))
        scores = bm25(rows, query, documents)
        hits = search(conn, corpus, held, query_text=query, match_count=1000)
        assert {h.statement_id: h.score for h in hits} == pytest.approx(scores, rel=1e-5)
        assert [h.statement_id for h in hits] == [
            h.statement_id for h in sorted(hits, key=lambda h: (-h.score, h.statement_id))
        ]
        assert {h.similarity for h in hits} == {None}
        assert search(conn, corpus, held, query_text=query, match_count=7) == hits[:7]


def setter(boss: Connection, name: str, default: int) -> Iterator[Callable[[int], None]]:
    """Sets a setting; afterwards it is as it was."""

    def be(value: int) -> None:
        boss.execute("update graphium_private.settings set value = %s where name = %s", [value, name])

    yield be
    be(default)


@pytest.fixture
def step(boss: Connection) -> Iterator[Callable[[int], None]]:
    """Sets how many postings are scored at a time."""
    yield from setter(boss, "bm25_step", 10_000)


@pytest.fixture
def word_postings(boss: Connection) -> Iterator[Callable[[int], None]]:
    """Sets how many postings a search by words goes by."""
    yield from setter(boss, "word_postings", 30_000)


@pytest.mark.parametrize("scopes", [(), ("hr",), ("legal", "hr")])
@pytest.mark.parametrize("filters", [{}, {"families": ["family1"]}, {"memory_types": ["event"]}], ids=str)
def test_the_answer_is_the_same_however_few_words_are_scored_at_a_time(
    corpus: Corpus, app: Connection, step: Callable[[int], None], scopes: tuple[str, ...], filters: dict[str, Any]
) -> None:
    """Rare words and common ones, one row wanted or many, with a vector's candidates beside and without."""
    random = np.random.default_rng(8)
    for n in range(25):
        words = [
            *random.choice(STEMS, size=random.integers(1, 9)),
            *(f"number{i}" for i in random.integers(0, 450, n % 4)),
        ]
        arguments: dict[str, Any] = {
            "query_text": " ".join(words),
            "match_count": int(random.choice([1, 3, 10, 50])),
            **filters,
        }
        if n % 3 == 0:
            arguments["query_embedding"] = random.normal(size=8).astype(np.float32)
        answers = []
        for postings in (1_000_000, 100, 1):
            step(postings)
            answers.append(search(app, corpus, scopes, **arguments))
        assert answers[0] == answers[1] == answers[2]


def rarest(rows: Sequence[Row], words: Sequence[str], keys: Sequence[int], most: int) -> tuple[dict[str, int], bool]:
    """The rarest words with how many rows have them, until these are more than `most`; and whether others were left."""
    bags = [set(plain_words(row.content)) for row in rows]
    frequency = {word: n for word in words if (n := sum(word in bag for bag in bags))}
    chosen: dict[str, int] = {}
    for n, _, word in sorted((frequency[w], key, w) for w, key in zip(words, keys, strict=True) if w in frequency):
        if sum(chosen.values()) + n > most:
            break
        chosen[word] = n
    return chosen, len(chosen) < len(frequency)


def by_newest(
    rows: Sequence[Row],
    words: Sequence[str],
    known: dict[str, int],
    documents: int,
    longest: int,
    scored: Callable[[Row], bool],
    only: bool,
    upto: UUID,
) -> dict[UUID, float]:
    """Scores by words that are read in the newest rows: of each word and audience the `longest` newest from `upto`, back to
    where the first of these lists ends. `scored` says which rows are scored wherever they are, `only` that no others are."""
    k1, b = 1.2, 0.4
    bags = {row.id: Counter(plain_words(row.content)) for row in rows}
    lists: dict[tuple[str, frozenset[str]], list[UUID]] = {}
    for row in sorted(rows, key=lambda row: row.id, reverse=True):
        audience = frozenset() if "public" in row.required_scopes else frozenset(row.required_scopes)
        for word in set(words) & set(bags[row.id]) if row.id <= upto else ():
            lists.setdefault((word, audience), []).append(row.id)
    ends = [ids[longest - 1] for ids in lists.values() if longest and len(ids) >= longest]
    new = [(w, id) for (w, _), ids in lists.items() for id in ids[:longest] if not ends or id >= max(ends)]
    # what is not known of all rows is put as what these show
    counted = Counter(w for w, _ in new)
    per_row = documents / max(len({id for _, id in new}), 1)
    frequency = {w: known.get(w, per_row * counted[w]) for w in words}
    sample = [(w, row.id) for row in rows for w in known if w in bags[row.id]] or new
    mean = sum(sum(bags[id].values()) for _, id in sample) / len(sample)
    wanted = {row.id for row in rows if scored(row)} | (set() if only else {id for _, id in new})
    scores: dict[UUID, float] = {}
    for w in words:
        weight = math.log(1 + (max(documents - frequency[w], 0) + 0.5) / (frequency[w] + 0.5)) * (k1 + 1)
        for id in wanted:
            if n := bags[id][w]:
                length = sum(bags[id].values())
                scores[id] = scores.get(id, 0) + weight * n / (n + k1 * (1 - b + b * length / mean))
    return scores


@pytest.mark.parametrize("family", [None, "family2"])
@pytest.mark.parametrize("postings", [1, 60, 300, 10_000])
@pytest.mark.parametrize("count", [1, 5, 60])
def test_words_that_are_too_common(
    corpus: Corpus,
    app: Connection,
    boss: Connection,
    word_postings: Callable[[int], None],
    postings: int,
    count: int,
    family: str | None,
) -> None:
    """The rarest count until their postings come to word_postings. When too few rows have these, all do: in the newest,
    and where these are too few, in all. Few that a filter admits are looked up."""
    random = np.random.default_rng(postings + count)
    rows, documents = visible(corpus, ["hr"])
    word_postings(postings)
    paths = Counter[str]()
    left_out = 0
    for n in range(25):
        stems = random.permutation(STEMS)[: random.integers(1, 17)].tolist()
        words = [*stems, *{f"number{i}" for i in random.integers(0, 450, n % 4)}]
        keys = boss.execute("select graphium_private._keys_of(%s::text[])", [words]).fetchone()[0]  # type: ignore[index]
        known, is_part = rarest(rows, words, keys, postings)
        upto = max(row.id for row in rows if family in (None, row.family))
        if family is not None and is_part:
            path = "looked up"
            longest = max(postings // 10 // len(words), count)
            scores = by_newest(rows, words, known, documents, longest, lambda row: row.family == family, True, upto)
        else:
            path, scores = "rarest", bm25(rows, " ".join(known), documents)
            if is_part and len(scores) < count:
                rare = set(scores)
                path = "newest"
                longest = max(postings // 3 // len(words), count)
                scores = by_newest(rows, words, known, documents, longest, lambda row: row.id in rare, False, upto)  # noqa: B023
                if len(scores) < count:
                    path, scores = "all", bm25(rows, " ".join(words), documents)
        paths[path] += 1
        left_out += is_part and path == "rarest"
        admitted = {row.id for row in rows if family in (None, row.family)}
        scores = {id: score for id, score in scores.items() if id in admitted}
        filters = {} if family is None else {"families": [family]}
        hits = search(app, corpus, ["hr"], query_text=" ".join(words), match_count=count, **filters)
        assert [h.score for h in hits] == pytest.approx(sorted(scores.values(), reverse=True)[:count], rel=1e-5)
        assert all(h.score == pytest.approx(scores[h.statement_id], rel=1e-5) for h in hits)
    if postings == 10_000:
        assert set(paths) == {"rarest"}
    elif family is not None:
        assert paths["looked up"] > 0
    elif postings > count:
        assert left_out > 0
    if postings == 1 and count > 1:
        assert set(paths) == {"newest" if family is None else "looked up"}


WORDS = [f"word{i}" for i in range(24)]
LOOKED_UP = 7_500 // (2 + len(WORDS))  # rows: where a filter admits no more, they are


def test_words_that_are_too_common_are_looked_for_from_the_newest_that_the_filter_admits(
    new_corpus: Callable[..., Corpus], app: Connection, word_postings: Callable[[int], None]
) -> None:
    """All that it admits is older than what else has the words."""
    random = np.random.default_rng(3)
    corpus = new_corpus(3)
    for memory_type in ("event", "fact"):
        contents = [" ".join(random.choice(WORDS, size=20)) for _ in range(LOOKED_UP + 10)]
        corpus.plant(*[Row("f", content=content, memory_type=memory_type) for content in contents])
    word_postings(1)
    upto = max(row.id for row in corpus.rows if row.memory_type == "event")
    scores = by_newest(corpus.rows, WORDS, {}, len(corpus.rows), 10, lambda _: False, False, upto)
    hits = search(app, corpus, query_text=" ".join(WORDS), match_count=10, memory_types=["event"])
    assert [h.score for h in hits] == pytest.approx(sorted(scores.values(), reverse=True)[:10], rel=1e-5)
    assert all(h.score == pytest.approx(scores[h.statement_id], rel=1e-5) for h in hits)


def test_words_that_are_too_common_are_looked_for_everywhere_when_the_newest_are_not_admitted(
    new_corpus: Callable[..., Corpus], app: Connection, word_postings: Callable[[int], None]
) -> None:
    """The newest that the filter admits have none of the words, and what has them there is something else."""
    random = np.random.default_rng(3)
    corpus = new_corpus(3)
    for memory_type, n in (("event", 12), ("fact", 40)):
        contents = [" ".join(random.choice(WORDS, size=20)) for _ in range(n)]
        corpus.plant(*[Row("f", content=content, memory_type=memory_type) for content in contents])
    corpus.plant(*[Row("f", content=f"Rain {n}", memory_type="event") for n in range(LOOKED_UP + 10)])
    word_postings(1)
    scores = bm25(corpus.rows, " ".join(WORDS), len(corpus.rows))
    old = {row.id: scores[row.id] for row in corpus.rows if row.memory_type == "event" and row.id in scores}
    assert len(old) == 12
    hits = search(app, corpus, query_text=" ".join(WORDS), match_count=10, memory_types=["event"])
    assert [h.score for h in hits] == pytest.approx(sorted(old.values(), reverse=True)[:10], rel=1e-5)
    assert all(h.score == pytest.approx(old[h.statement_id], rel=1e-5) for h in hits)


@pytest.mark.parametrize("postings", [0, 2_147_483_647, 10**12])
def test_any_bound_is_one(corpus: Corpus, app: Connection, word_postings: Callable[[int], None], postings: int) -> None:
    word_postings(postings)
    assert len(search(app, corpus, query_text="tea milk", match_count=10)) == 10


def test_of_equal_scores_the_oldest_come_first_however_words_are_scored(
    new_corpus: Callable[..., Corpus], app: Connection, step: Callable[[int], None]
) -> None:
    corpus = new_corpus(3)
    ids = corpus.plant(*[Row("f", content=f"tea milk {('fox', 'owl')[n % 2]} end{n}") for n in range(60)])
    for postings in (1_000_000, 1):
        step(postings)
        for count in (1, 7, 59):
            hits = search(app, corpus, query_text="tea milk fox owl", match_count=count)
            assert [h.statement_id for h in hits] == ids[:count]
            assert len({h.score for h in hits}) == 1


def test_filters_hold_and_do_not_change_scores(corpus: Corpus, app: Connection) -> None:
    everything = search(app, corpus, query_text="tea river owl", match_count=1000)
    by_id = {r.id: r for r in corpus.rows}
    for filters, admits in (
        ({"families": ["family1", "family2"]}, lambda r: r.family in ("family1", "family2")),
        ({"specimens": ["specimen3"]}, lambda r: r.specimen == "specimen3"),
        (
            {"memory_types": ["event"], "families": ["family0"]},
            lambda r: r.memory_type == "event" and r.family == "family0",
        ),
    ):
        hits = search(app, corpus, query_text="tea river owl", match_count=1000, **filters)
        assert [(h.statement_id, h.score) for h in hits] == [
            (h.statement_id, h.score) for h in everything if admits(by_id[h.statement_id])
        ]  # type: ignore[no-untyped-call]
        assert 0 < len(hits) < len(everything)


def test_a_rare_word_outweighs_common_ones_and_none_has_to_match(corpus: Corpus, app: Connection) -> None:
    hits = search(app, corpus, query_text="Is there any tea at number18, or unheardof words?")
    assert hits[0].content.endswith("number18")
    assert len(hits) == 10
    assert {h.content.split()[-1] for h in search(app, corpus, query_text="number16 number18")} == {
        "number16",
        "number18",
    }


TEXTS = [
    "Ada prefers written feedback over meetings.",
    "太郎は東京に住んでいる。",
    "猫",
    "अनीता को क्या पसंद है",
    "Я люблю чай",
    "สวัสดีครับ วันนี้อากาศดี",
    "서울에서 만났다",
    "ሰላም ለዓለም",
    "Die ÄPFEL sind süß",
    "I had a 🍎 today",
    "See /srv/Data/report_2024.csv, v2.1",
    "x" * 3000,
]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("feedback", 0), ("FEEDBACK?", 0), ("meeting", 0), ("preferring", 0), ("東京", 1), ("太郎", 1), ("京都", 1),  # for its 京
         ("猫", 2), ("पसंद", 3), ("क्या", 3),
        ("ЧАЙ", 4), ("อากาศ", 5), ("서울", 6), ("ዓለም", None), ("ለዓለም", 7), ("äpfel", 8), ("A\u0308pfel", 8), ("ＡＰＰＬＥ", None), ("🍎", 9), ("🍌", None),
        ("report", 10), ("2024", 10), ("csv", 10), ("x" * 3000, 11), ("x" * 2999, None),
    ],
)  # fmt: skip
def test_words_in_any_script(new_corpus: Callable[..., Corpus], app: Connection, query: str, found: int | None) -> None:
    corpus = new_corpus(3)
    ids = corpus.plant(*[Row("f", content=text) for text in TEXTS])
    hits = [h.statement_id for h in search(app, corpus, query_text=query)]
    assert ids[found] in hits if found is not None else hits == []


@pytest.mark.parametrize(
    "query",
    ["", " \t\n\u00a0", "the of and", "?!…—", "\u200b", "a & | ! ( ) : * 'x", "'; drop table x; --", "%s %L %1$s $1 {} \\ \\\\", "$$ $query$", "\ufeff\u202e",
     "🍎🍌👩‍👩‍👧", "word " * 200, " ".join(f"word{n}" for n in range(500)), "x" * 100_000, "tea" * 1, "NULL", "tea\u0301", "Ω" * 50, "(((((", "a:*b & !c"],
    ids=lambda q: repr(q[:20]),
)  # fmt: skip
def test_no_text_is_an_error(corpus: Corpus, app: Connection, query: str) -> None:
    found = search(app, corpus, query_text=query)
    assert all(h.score > 0 for h in found)
    if not any(c.isalnum() for c in query) or query == "the of and":
        assert found == []
    # beside a vector, a text whose words are nowhere changes nothing
    vector = np.ones(8)
    both = search(app, corpus, query_embedding=vector, query_text=query)
    assert len(both) == 10
    if not found:
        assert both == search(app, corpus, query_embedding=vector)
    assert read_as(app, corpus, (), "prepare_query", query_text=query)


def test_words_of_version_2_are_those_of_version_1_in_english(boss: Connection) -> None:
    texts = [*TEXTS, "", "the of and", "Die Häuser und the houses, running's 10² ﬁne"]
    query = "select graphium_private.words_v1(t) = graphium_private.words_v2(t, 'english') from unnest(%s::text[]) as t"
    assert boss.execute(query, [texts]).fetchall() == [(True,)] * len(texts)


class TestLanguages:
    """A tenant's words are stemmed in its language."""

    @pytest.fixture
    def made(self, admin: Connection, boss: Connection) -> Iterator[Callable[[str], Corpus]]:
        slugs = []

        def make(language: str) -> Corpus:
            slugs.append(f"in {language}")
            admin.execute("select graphium.create_tenant(%s, dimensions => 3, language => %s)", [slugs[-1], language])
            return Corpus(boss, slugs[-1])

        yield make
        for slug in slugs:
            admin.execute("select graphium.drop_tenant(%s)", [slug])

    @pytest.mark.parametrize(
        ("language", "text", "found", "not_found"),
        [
            ("german", "Die Häuser der Stadt", ["haus", "Haeuser Hauses", "STÄDTE"], ["die der"]),
            ("russian", "Я читаю книги", ["книга", "книгу читать"], ["книжный", "я"]),
            ("french", "Nous mangions des pommes", ["pomme", "mangions"], ["nous des"]),
            ("english", "The houses; die Häuser", ["house", "häuser", "die"], ["haus", "the"]),
            ("simple", "The houses; die Häuser", ["HOUSES", "the", "häuser"], ["house", "haus"]),
        ],
    )
    def test_words_in_a_language(
        self,
        made: Callable[[str], Corpus],
        app: Connection,
        language: str,
        text: str,
        found: list[str],
        not_found: list[str],
    ) -> None:
        corpus = made(language)
        corpus.plant(Row("f", content=text, embedding=(1, 0, 0)), Row("f", content="東京 2024", embedding=(0, 1, 0)))
        for query in [*found, *not_found]:
            hits = search(app, corpus, query_text=query)
            assert [h.content for h in hits] == ([text] if query in found else []), query
            # beside a vector, too
            hits = search(app, corpus, query_embedding=(0, 1, 0), query_text=query, explain=True)
            assert {h.content: "words" in h.explanation for h in hits}[text] == (query in found), query
        assert [h.content for h in search(app, corpus, query_text="東京 20")] == ["東京 2024"]

    def test_postings_follow(
        self, made: Callable[[str], Corpus], app: Connection, admin: Connection, boss: Connection
    ) -> None:
        corpus, other = made("german"), made("english")
        contents = ["Die Häuser der Stadt", "Ein Haus", "Bäume"]
        ids = corpus.plant(*[Row("f", content=text) for text in contents])
        other.plant(*[Row("f", content=text) for text in contents])

        def words(of: Corpus) -> int:
            query = "select count(*) from graphium_private.postings where tenant_id = %s and length > 0"
            return int(boss.execute(query, [of.tenant_id]).fetchone()[0])  # type: ignore[index]

        # häuser and städte without their articles; "die", "der" and "ein" are words in English
        assert (words(corpus), words(other)) == (4, 7)
        with as_caller(app, corpus.slug, ["hr"]):
            app.execute("select graphium.set_required_scopes('statement', %s, '{hr}')", [ids[0]])
            app.execute("select graphium.forget_context(%s)", [[ids[1]]])
        assert words(corpus) == 3
        assert [h.content for h in search(app, corpus, ["hr"], query_text="haus")] == contents[:1]
        assert search(app, corpus, query_text="haus") == []
        assert boss.execute("select * from graphium_private._check_postings(%s)", [corpus.tenant_id]).fetchall() == []
        boss.execute("delete from graphium_private.postings where tenant_id = %s", [corpus.tenant_id])
        assert admin.execute("select graphium.rebuild_memory(%s)", [corpus.slug]).fetchone() == (2,)
        assert words(corpus) == 3
        admin.execute("select graphium.drop_tenant(%s)", [corpus.slug])
        assert (words(corpus), words(other)) == (0, 7)
        admin.execute("select graphium.create_tenant(%s, dimensions => 3)", [corpus.slug])  # for the fixture to drop

    @pytest.mark.parametrize("language", ["klingon", "", "English", "english_stem", "german'", None])
    def test_a_language_without_a_stemmer_is_refused(self, admin: Connection, language: str | None) -> None:
        with pytest.raises(psycopg.Error) as refused:
            admin.execute("select graphium.create_tenant('odd', dimensions => 3, language => %s)", [language])
        assert refused.value.sqlstate == "MG008"
        assert "simple" in (refused.value.diag.message_hint or "")


class TestPostings:
    """The postings are what the statements say, whoever changes them and how."""

    def problems(self, boss: Connection, corpus: Corpus) -> list[Any]:
        return boss.execute("select * from graphium_private._check_postings(%s)", [corpus.tenant_id]).fetchall()

    def count(self, boss: Connection, corpus: Corpus) -> int:
        row = boss.execute(
            "select count(*) from graphium_private.postings where tenant_id = %s and length > 0",
            [corpus.tenant_id],
        ).fetchone()
        assert row is not None
        return int(row[0])

    def test_ingest_forget_and_scopes(
        self, new_corpus: Callable[..., Corpus], app: Connection, boss: Connection
    ) -> None:
        corpus = new_corpus(3)
        with as_caller(app, corpus.slug, ["hr"]):
            ids = [
                r[0]
                for r in app.execute(
                    "select statement_id from graphium.ingest_context('f', 'g', 's', %s) order by ordinal",
                    [
                        '[{"content": "tea and tea and milk", "embedding": null}, {"content": "milk road", "embedding": null}]'
                    ],
                )
            ]
        assert self.count(boss, corpus) == 4
        assert self.problems(boss, corpus) == []
        with as_caller(app, corpus.slug, ["hr"]):
            app.execute("select graphium.set_required_scopes('statement', %s, '{hr}')", [ids[0]])
        assert self.problems(boss, corpus) == []
        assert [h.statement_id for h in search(app, corpus, query_text="milk")] == [ids[1]]
        assert [h.statement_id for h in search(app, corpus, ["hr"], query_text="milk tea")] == ids
        with as_caller(app, corpus.slug):
            app.execute("select graphium.forget_context(%s)", [[ids[1]]])
        assert self.count(boss, corpus) == 2
        assert self.problems(boss, corpus) == []
        boss.execute("delete from graphium.dh_families where tenant_id = %s", [corpus.tenant_id])
        assert self.count(boss, corpus) == 0

    def test_damage_is_seen(self, new_corpus: Callable[..., Corpus], boss: Connection) -> None:
        corpus = new_corpus(3)
        a, b, c = corpus.plant(*[Row("f", content=text) for text in ("tea milk", "milk road", "sun")])
        with boss.transaction(force_rollback=True):
            boss.execute(
                "delete from graphium_private.postings where statement_id = %s and word_key = (graphium_private._keys_of('{milk}'))[1]",
                [a],
            )
            boss.execute("update graphium_private.postings set required_scopes = '{hr}' where statement_id = %s", [b])
            assert {r[0] for r in self.problems(boss, corpus)} == {a, b}
            boss.execute("delete from graphium_private.postings where tenant_id = %s", [corpus.tenant_id])
            assert {r[0] for r in self.problems(boss, corpus)} == {a, b, c}
        assert self.problems(boss, corpus) == []

    def test_truncate_empties_them(self, boss: Connection, corpus: Corpus) -> None:
        with boss.transaction(force_rollback=True):
            boss.execute("truncate graphium.kg_statements cascade")
            assert self.count(boss, corpus) == 0
        assert self.count(boss, corpus) > 400

    def test_they_follow_their_statement_under_the_policy(self, corpus: Corpus, app: Connection) -> None:
        """Scores count visible rows only: what hr has in mind changes no number that others get."""
        before = [(h.statement_id, h.score) for h in search(app, corpus, query_text="tea bee")]
        corpus.plant(*[Row("family0", content="tea tea bee", required_scopes=("hr",)) for _ in range(50)])
        assert [(h.statement_id, h.score) for h in search(app, corpus, query_text="tea bee")] == before
        assert [(h.statement_id, h.score) for h in search(app, corpus, ("hr",), query_text="tea bee")] != before


def test_very_many_audiences_and_a_word_that_very_many_have(
    boss: Connection, app: Connection, new_corpus: Callable[..., Corpus], step: Callable[[int], None]
) -> None:
    """Ten look-ups for each of 60,000 audiences and 4,000 statements that tie are more than an int4 counts."""
    corpus = new_corpus(8)
    corpus.plant(*[Row("words", content="heron" if n < 4000 else "salt") for n in range(9000)])
    boss.execute(
        "insert into graphium_private.audiences (tenant_id, key, scope_keys) select %s, n, '{}' from generate_series(1, 60000) n",
        [corpus.tenant_id],
    )
    step(1)
    hits = search(app, corpus, query_text="heron salt")
    assert [h.statement_id for h in hits] == [row.id for row in corpus.rows[:10]]
