"""wake_up_context: what comes, in which order, and never over the budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from tests.search.conftest import read_as
from tests.search.corpus import Corpus, Row
from tests.support.databases import Connection, Database


def tokens(text: str) -> int:
    return math.ceil(len(text) / 4)


def wake(conn: Connection, corpus: Corpus, scopes: tuple[str, ...] = (), **arguments: Any) -> list[Any]:
    rows = read_as(conn, corpus, scopes, "wake_up_context", **arguments)
    assert [r.position for r in rows] == list(range(1, len(rows) + 1))
    assert [r.tokens for r in rows] == [tokens(r.content) for r in rows]
    assert [r.running_tokens for r in rows] == list(np.cumsum([r.tokens for r in rows]))
    assert sum(r.tokens for r in rows) <= arguments.get("token_budget", 800)
    return rows


def ids(rows: list[Any]) -> list[UUID]:
    return [r.statement_id for r in rows]


def rule(n: int, count: int = 0, **more: Any) -> Row:
    return Row("rules", "style", "Ada", f"{n:04d}", layer_kind="preloaded", access_count=count, **more)


def expected(rows: list[Row], budget: int) -> list[UUID]:
    """Alternately the newest and the most repeated, each once; what does not fit is passed over."""
    newest = sorted(rows, key=lambda r: r.id, reverse=True)
    most_said = sorted((r for r in newest if r.access_count), key=lambda r: -r.access_count)
    turns = [row for pair in zip(newest, most_said + newest, strict=False) for row in pair]
    order = list({row.id: row for row in turns}.values())
    chosen, left = [], budget
    for row in order:
        if tokens(row.content) <= left:
            chosen.append(row.id)
            left -= tokens(row.content)
    return chosen


def test_preloaded_only_the_newest_first(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    rows = [rule(n) for n in range(20)]
    corpus.plant(*rows, Row("rules", "style", "Ada", "on demand"))
    assert ids(wake(app, corpus)) == [r.id for r in rows[::-1]]
    first = wake(app, corpus)[0]
    assert (first.content, first.family, first.genus, first.specimen, first.memory_type, first.tokens) == (
        "0019",
        "rules",
        "style",
        "Ada",
        "fact",
        1,
    )


def test_new_and_often_said_take_turns(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    counts = [0, 9, 0, 0, 5, 9, 0, 0, 1, 0]
    rows = [rule(n, count) for n, count in enumerate(counts)]
    corpus.plant(*rows)
    # newest: 9 8 7 6 …; most said: 5 (9), 1 (9), 4 (5), 8 (1)
    assert [int(r.content) for r in wake(app, corpus)] == [9, 5, 8, 1, 7, 4, 6, 3, 2, 0]
    assert ids(wake(app, corpus)) == expected(rows, 800)


def test_the_newest_rule_is_not_lost_behind_old_ones_nor_a_standing_one_behind_news(
    new_corpus: Callable[..., Corpus], app: Connection
) -> None:
    corpus = new_corpus(3)
    standing = rule(0, 1000)
    corpus.plant(
        standing, *[rule(n, 500) for n in range(1, 400)], *[rule(n) for n in range(400, 800)], newest := rule(9999)
    )
    assert ids(wake(app, corpus, token_budget=2)) == [newest.id, standing.id]


@pytest.mark.parametrize("seed", range(8))
def test_any_budget_any_lengths(new_corpus: Callable[..., Corpus], app: Connection, seed: int) -> None:
    random = np.random.default_rng(seed)
    corpus = new_corpus(3)
    rows = [
        Row(
            "f",
            content="é" * int(random.integers(1, 200)) + str(n),
            layer_kind="preloaded",
            access_count=int(random.choice([0, 0, 0, 1, 2, 50])),
        )
        for n in range(60)
    ]
    corpus.plant(*rows)
    for budget in (0, 1, 7, 50, 333, 10_000):
        fitting = [r for r in rows if tokens(r.content) <= budget]
        assert ids(wake(app, corpus, token_budget=budget)) == expected(fitting, budget)


def test_one_longer_than_the_whole_budget_is_passed_over(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    small = [rule(n) for n in range(3)]
    corpus.plant(*small, Row("rules", content="x" * 3201, layer_kind="preloaded", access_count=99))
    assert ids(wake(app, corpus)) == [r.id for r in small[::-1]]
    assert wake(app, corpus, token_budget=801)[0].tokens == 801
    assert wake(app, corpus, token_budget=0) == []


def test_none_at_all(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    assert wake(app, corpus) == []
    corpus.plant(Row("f"))
    assert wake(app, corpus) == []


def test_filters(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3, hidden=("hr",))
    rows = [Row(f"family{n % 2}", specimen=f"s{n % 3}", content=f"{n:04d}", layer_kind="preloaded") for n in range(12)]
    behind = Row("hidden", specimen="s9", content="behind", layer_kind="preloaded")
    gated = Row("family0", specimen="s0", content="gated", layer_kind="preloaded", required_scopes=("hr",))
    corpus.plant(*rows, behind, gated)

    def found(scopes: tuple[str, ...] = (), **filters: Any) -> list[str]:
        return [r.content for r in wake(app, corpus, scopes, **filters)]

    everything = ["behind", *[r.content for r in rows[::-1]]]
    assert found() == found(families=None, specimens=None) == everything
    assert found(families=["family1"]) == [r.content for r in rows[::-1] if r.family == "family1"]
    assert found(families=["family0"], specimens=["s0", "s1"]) == [
        r.content for r in rows[::-1] if r.family == "family0" and r.specimen in ("s0", "s1")
    ]
    assert found(families=[]) == found(specimens=[]) == found(families=["*"]) == found(families=["hidden"]) == []
    assert found(specimens=["s9"]) == ["behind"]
    assert found(("hr",), families=["hidden"]) == ["behind"]
    assert found(("hr",))[:2] == ["gated", "behind"]
    assert [r.family for r in wake(app, corpus) if r.content == "behind"] == [None]


def test_nothing_superseded(new_corpus: Callable[..., Corpus], app: Connection, boss: Connection) -> None:
    """Nor does it take a place among the candidates: with a window of 5, the five that hold are still found."""
    corpus = new_corpus(3, board=("board",))
    held = [Row("old", specimen="kept", content=f"held{n}", layer_kind="preloaded") for n in range(5)]
    gone = [Row("old", specimen="gone", content=f"gone{n}", layer_kind="preloaded", access_count=5) for n in range(11)]
    alone = Row("old", specimen="kept", content="alone", layer_kind="preloaded")
    corpus.plant(*held, *gone, alone, Row("new", content="new", layer_kind="preloaded"), Row("board", content="b"))
    corpus.edge("supersedes", "new", "old/general/gone")
    corpus.edge("supersedes", "new", alone.id)
    corpus.edge("related_to", "new", held[0].id)
    corpus.edge("supersedes", "board", held[1].id)
    boss.execute("update graphium_private.settings set value = 5 where name = 'wake_up_window'")
    try:
        assert [r.content for r in wake(app, corpus, token_budget=5)] == ["new", "held4", "held3"]
        assert [r.content for r in wake(app, corpus, token_budget=100)] == [
            "new",
            "held4",
            "held3",
            "held2",
            "held1",
            "held0",
        ]
        assert "held1" not in [r.content for r in wake(app, corpus, ("board",), token_budget=100)]
    finally:
        boss.execute("update graphium_private.settings set value = 1000 where name = 'wake_up_window'")


def test_the_same_bytes_while_nothing_changed(
    new_corpus: Callable[..., Corpus], app: Connection, shared: Database
) -> None:
    corpus = new_corpus(3)
    corpus.plant(*[rule(n, n % 4) for n in range(300)])
    first = wake(app, corpus)
    assert all(wake(app, corpus) == first for _ in range(12))
    assert wake(shared.connect("app"), corpus) == first


def test_beyond_the_window_only_a_larger_budget_looks(
    new_corpus: Callable[..., Corpus], app: Connection, boss: Connection
) -> None:
    corpus = new_corpus(3)
    rows = [rule(n, 9 if n == 0 else 0) for n in range(40)]
    corpus.plant(*rows)
    boss.execute("update graphium_private.settings set value = 10 where name = 'wake_up_window'")
    try:
        assert ids(wake(app, corpus, token_budget=10)) == [r.id for r in rows[:29:-1]]
        assert ids(wake(app, corpus, token_budget=40)) == expected(rows, 40)
    finally:
        boss.execute("update graphium_private.settings set value = 1000 where name = 'wake_up_window'")
