"""`graphium bench-retrieval`: reading the data sets, scores worked out by hand, and what it leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from graphium_db import retrieval
from graphium_db.errors import BadArgumentError
from graphium_db.retrieval import Conversation, Question, Turn
from tests.cli.conftest import Ran
from tests.client.embedders import WordEmbedder
from tests.support.databases import Database

Run = Callable[..., Ran]


def turn(speaker: str, id: str, text: str, **more: str) -> dict[str, str]:
    return {"speaker": speaker, "dia_id": id, "text": text} | more


def asked(question: str, category: int, *evidence: str) -> dict[str, Any]:
    return {"question": question, "category": category, "evidence": list(evidence)}


# Every question shares its rare words with one turn of its conversation, and all of them with one of the other.
LOCOMO: list[dict[str, Any]] = [
    {
        "sample_id": "quay",
        "conversation": {
            "speaker_a": "Ines",
            "speaker_b": "Olu",
            "session_2_date_time": "9:05 am on 3 March, 2024",
            "session_2": [
                turn("Ines", "D2:1", "The ferry now carries bicycles."),
                turn("Olu", "D2:2", "Thanks!", blip_caption="a lighthouse at dusk"),
            ],
            "session_10_date_time": "1:56 pm on 8 May, 2024",
            "session_10": [
                turn("Olu", "D10:1", "My sister repairs violins."),
                turn("Ines", "D10:2", "The ferry now carries bicycles."),
                turn("Ines", "D10:3", ""),
            ],
            "session_11_date_time": "soon",
            "session_11": [],
        },
        "qa": [
            asked("Who repairs violins?", 4, "D10:1"),
            asked("Where was a lighthouse shown at dusk?", 1, "D2:2; D10:9"),
            asked("What carries bicycles?", 4, "D:10:02"),
            asked("Who knows?", 3, "D"),
            {"question": "Who else?", "category": 3},
        ],
    },
    {
        "sample_id": "mill",
        "conversation": {
            "session_1": [
                turn("Ines", "D1:1", "The repairs of violins: who pays."),
                turn("Sam", "D1:2", "Nobody grinds barley here."),
            ]
        },
        "qa": [asked("Who grinds barley?", 5, "D1:2")],
    },
]


@pytest.fixture
def file(tmp_path: Path) -> Callable[[Any], str]:
    def file(data: Any) -> str:
        path = tmp_path / "data.json"
        path.write_text(json.dumps(data), "utf-8")
        return str(path)

    return file


@pytest.fixture
def admin(db: Database, environment: pytest.MonkeyPatch) -> WordEmbedder:
    """The shell of an admin, with an embedder of the tests'."""
    embedder = WordEmbedder()
    environment.setattr("graphium_db.embedding.default_embedder", lambda: embedder)
    environment.setenv("GRAPHIUM_DSN", db.dsn("admin"))
    return embedder


@pytest.mark.parametrize(
    ("evidence", "names"),
    [
        (["D8:6; D9:17"], ["D8:6", "D9:17"]),
        (["D:11:26"], ["D11:26"]),
        ("D30:05", ["D30:5"]),
        (["D1:3", "D1:4 D2:5"], ["D1:3", "D1:4", "D2:5"]),
        (["D"], []),
        ([], []),
    ],
)
def test_evidence_is_read_as_it_was_meant(evidence: object, names: list[str]) -> None:
    assert retrieval.turn_names(evidence) == names


def test_a_conversation_of_locomo() -> None:
    quay, mill = retrieval.read(LOCOMO)
    march = datetime(2024, 3, 3, 9, 5, tzinfo=timezone.utc)
    may = datetime(2024, 5, 8, 13, 56, tzinfo=timezone.utc)
    assert quay == Conversation(
        name="quay",
        turns=(
            Turn("D2:1", "session_2", 0, "Ines", "The ferry now carries bicycles.", march),
            Turn("D2:2", "session_2", 1, "Olu", "Thanks! [a lighthouse at dusk]", march),
            Turn("D10:1", "session_10", 0, "Olu", "My sister repairs violins.", may),
            Turn("D10:2", "session_10", 1, "Ines", "The ferry now carries bicycles.", may),
        ),
        questions=(
            Question("Who repairs violins?", "single-hop", frozenset({"D10:1"}), frozenset({"session_10"})),
            # D10:9 does not exist
            Question(
                "Where was a lighthouse shown at dusk?", "multi-hop", frozenset({"D2:2"}), frozenset({"session_2"})
            ),
            Question("What carries bicycles?", "single-hop", frozenset({"D10:2"}), frozenset({"session_10"})),
        ),
        left_out=2,
    )
    assert (mill.name, mill.turns[0].occurred_at, mill.questions[0].category) == ("mill", None, "adversarial")


LONGMEMEVAL = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "Which instrument does my sister repair?",
    "haystack_session_ids": ["s_b", "s_a"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
    "haystack_sessions": [
        [{"role": "user", "content": "Is the ferry late?"}, {"role": "assistant", "content": "\u200b"}],
        [
            {"role": "user", "content": "My sister repairs violins.", "has_answer": True},
            {"role": "assistant", "content": "Lovely."},
        ],
    ],
    "answer_session_ids": ["s_a", "s_gone"],
}


def test_a_haystack_of_longmemeval() -> None:
    (haystack,) = retrieval.read(LONGMEMEVAL)
    early = datetime(2023, 5, 20, 2, 21, tzinfo=timezone.utc)
    late = datetime(2023, 5, 21, 10, 0, tzinfo=timezone.utc)
    assert haystack == Conversation(
        name="q1",
        turns=(
            Turn("0:0", "s_b", 0, "user", "Is the ferry late?", early),  # and a turn of which nothing is seen
            Turn("1:0", "s_a", 0, "user", "My sister repairs violins.", late),
            Turn("1:1", "s_a", 1, "assistant", "Lovely.", late),
        ),
        questions=(
            Question(
                "Which instrument does my sister repair?",
                "single-session-user",
                frozenset({"1:0"}),
                frozenset({"s_a"}),
            ),
        ),
    )
    (unanswerable,) = retrieval.read([LONGMEMEVAL | {"question_id": "q1_abs"}])
    assert (unanswerable.questions, unanswerable.left_out) == ((), 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "neither LoCoMo's nor LongMemEval's"),
        ({"rows": []}, "neither"),
        (["text"], "neither"),
        ([LOCOMO[0], LONGMEMEVAL], "neither"),
        ([LOCOMO[0], LOCOMO[0]], 'two conversations are named "quay"'),
        ([LOCOMO[0] | {"qa": None}], "conversation 1 cannot be read: TypeError"),
        ([LONGMEMEVAL | {"haystack_session_ids": ["s_a"]}], "conversation 1 cannot be read: ValueError"),
        ([{"conversation": {"session_1": [{"dia_id": "7", "speaker": "a", "text": "b"}]}, "qa": []}], "conversation 1"),
    ],
)
def test_what_is_in_neither_form_is_refused(data: Any, message: str) -> None:
    with pytest.raises(BadArgumentError, match=message):
        retrieval.read(data)


def test_scores_by_hand() -> None:
    def said(name: str, session: str, where: Conversation) -> tuple[Conversation, Turn]:
        return where, Turn(name, session, 0, "Ines", "text", None)

    here = Conversation("here", (), ())
    there = Conversation("there", (), ())
    hits = [
        [said("t4", "two", here)],  # of session two, so that it comes first
        [said("t1", "one", there)],  # has the names of evidence, and is another conversation's
        [said("t1", "one", here)],
        [said("t9", "three", here), said("t2", "two", here)],  # said twice
    ]
    first = retrieval.answer(
        here, Question("?", "b", frozenset({"t1", "t2"}), frozenset({"one", "two"})), hits, milliseconds=3
    )
    assert first.turn_ranks == {"t1": 3, "t2": 4}
    assert first.session_ranks == {"one": 3, "two": 1}
    second = retrieval.answer(here, Question("?", "a", frozenset({"t4"}), frozenset({"two"})), hits, milliseconds=1)
    third = retrieval.answer(here, Question("?", "a", frozenset({"t5"}), frozenset({"gone"})), hits, milliseconds=2)
    assert (third.turn_ranks, third.session_ranks) == ({"t5": None}, {"gone": None})

    (a, of_a), (b, of_b), (everything, overall) = retrieval.scores([first, second, third])
    assert (a, b, everything) == ("a", "b", "all")
    assert (of_a.questions, of_b.questions, overall.questions) == (2, 1, 3)
    assert of_b.turn == {1: 0, 5: 1, 10: 1}
    assert of_b.session == {1: 0.5, 5: 1, 10: 1}
    assert of_b.any_session == {1: 1, 5: 1, 10: 1}
    assert of_a.turn == {1: 0.5, 5: 0.5, 10: 0.5}
    assert of_a.turn_error == {1: 0.5, 5: 0.5, 10: 0.5}  # 1 and 0: deviation √½, over √2
    assert overall.turn == pytest.approx({1: 1 / 3, 5: 2 / 3, 10: 2 / 3})
    assert overall.session == pytest.approx({1: 0.5, 5: 2 / 3, 10: 2 / 3})
    assert overall.turn_error == pytest.approx({1: 1 / 3, 5: 1 / 3, 10: 1 / 3})  # 0, 1, 0: deviation √⅓, over √3

    without = retrieval.answer(here, Question("?", "a", frozenset(), frozenset({"one"})), hits, milliseconds=1)
    assert (retrieval.score([without]).turn, retrieval.score([without]).turn_error) == (None, None)


@pytest.mark.parametrize(("percent", "value"), [(50, 3), (95, 5), (80, 4), (81, 5), (1, 1)])
def test_percentiles(percent: int, value: int) -> None:
    assert retrieval.percentile([5, 1, 4, 2, 3], percent) == value


def test_locomo_from_end_to_end(admin: WordEmbedder, run: Run, file: Callable[[Any], str], tmp_path: Path) -> None:
    before = run("tenant", "list", "--json").json
    ran = run("bench-retrieval", file(LOCOMO), "-o", str(tmp_path / "figures.json"))
    assert (ran.code, ran.err) == (0, "")
    figures = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    assert (figures["conversations"], figures["turns"], figures["statements"], figures["left_out"]) == (2, 6, 5, 2)
    within, everywhere = figures["asked"]

    def first(asked: dict[str, Any]) -> dict[str, Any]:
        return {a["question"]: (a["turn_ranks"], a["session_ranks"]) for a in asked["answers"]}

    assert first(within) == {
        "Who repairs violins?": ({"D10:1": 1}, {"session_10": 1}),
        "Where was a lighthouse shown at dusk?": ({"D2:2": 1}, {"session_2": 1}),
        "What carries bicycles?": ({"D10:2": 1}, {"session_10": 2}),  # said in session 2 already
        "Who grinds barley?": ({"D1:2": 1}, {"session_1": 1}),
    }
    # the mill has all three words
    assert first(everywhere)["Who repairs violins?"] == ({"D10:1": 2}, {"session_10": 2})
    assert within["scores"]["all"]["session"] == {"1": 0.75, "5": 1, "10": 1}
    assert everywhere["scores"]["single-hop"]["turn"] == {"1": 0.5, "5": 1, "10": 1}
    assert 0 < within["milliseconds"]["p50"] <= within["milliseconds"]["p95"]

    lines = ran.out.splitlines()
    assert lines[0] == "2 conversations, 5 statements"
    assert lines[2].startswith("In the family of the conversation; a call takes ")
    assert lines[3].split() == ["category", "asked", "turn@1", "@5", "@10", "session@1", "@5", "@10"]
    assert lines[5].split() == ["adversarial", "1", *["100.0"] * 6]
    assert lines[7].split() == ["single-hop", "2", "100.0", "100.0", "100.0", "50.0", "100.0", "100.0"]
    assert lines[8].split() == ["all", "4", "100.0", "100.0", "100.0", "75.0", "100.0", "100.0"]
    assert lines[9:11] == ["one of the sessions: 75.0 @1, 100.0 @5, 100.0 @10", "standard error of turn@10: 0.0"]
    assert lines[12].startswith("In all families; ")
    assert max(map(len, lines)) <= 80
    assert run("tenant", "list", "--json").json == before


def test_longmemeval_from_end_to_end(admin: WordEmbedder, run: Run, file: Callable[[Any], str]) -> None:
    (only,) = run(
        "bench-retrieval", file([LONGMEMEVAL, LONGMEMEVAL | {"question_id": "q2"}]), "--limit", "1", "--json"
    ).json["asked"]
    (answer,) = only["answers"]
    assert answer["session_ranks"] == {"s_a": 1}
    assert only["where"] == "In the family of the conversation"


@pytest.mark.parametrize("when", ["The ferry now carries bicycles.", "Who grinds barley?"])
def test_nothing_stays_after_ctrl_c(admin: WordEmbedder, run: Run, file: Callable[[Any], str], when: str) -> None:
    def interrupt() -> None:
        if when in admin.texts:
            assert len(run("tenant", "list", "--json").json) == len(before) + 1
            raise KeyboardInterrupt

    before = run("tenant", "list", "--json").json
    admin.while_embedding = interrupt
    assert run("bench-retrieval", file(LOCOMO)).code == 130
    assert run("tenant", "list", "--json").json == before


def test_what_cannot_be_measured(
    acme: str, admin: WordEmbedder, db: Database, run: Run, file: Callable[[Any], str], tmp_path: Path
) -> None:
    (tmp_path / "no.json").write_text("{", "utf-8")
    ran = run("bench-retrieval", str(tmp_path / "no.json"))
    assert (ran.code, ran.err.splitlines()[0][:31]) == (2, "Error: the file is not JSON: Ex")
    ran = run("bench-retrieval", file([LOCOMO[1] | {"qa": []}]))
    assert (ran.code, ran.err.splitlines()[0]) == (2, "Error: the file has no question whose evidence is in it")
    ran = run("bench-retrieval", file(LOCOMO), "--dsn", db.dsn("app"))
    assert ran.code == 4
    assert "graphium_admin" in ran.err
