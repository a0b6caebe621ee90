"""Conversations with questions about them, and how well a search found what answers them. Connects to nothing.

Reads what the data sets LoCoMo and LongMemEval consist of, in their own form.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from graphium_db.errors import BadArgumentError

CUTOFFS = (1, 5, 10)
_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "inference", 4: "single-hop", 5: "adversarial"}  # LoCoMo's numbers
_TIMES = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M")


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said. `name` is unique in the conversation, `session` where it was said, `position` its place."""

    name: str
    session: str
    position: int
    speaker: str
    text: str
    occurred_at: datetime | None


@dataclass(frozen=True, slots=True)
class Question:
    """`turns` and `sessions`: the names of those that hold the answer. Turns may be unknown where sessions are not."""

    text: str
    category: str
    turns: frozenset[str]
    sessions: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """`left_out`: how many of its questions name no evidence that there is; they are not among `questions`."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    left_out: int = 0

    @property
    def ended_at(self) -> datetime | None:
        """The latest time at which something was said: what a question's "last week" is relative to."""
        return max((turn.occurred_at for turn in self.turns if turn.occurred_at), default=None)


# --- reading ---------------------------------------------------------------------------------------------------------


def read(data: Any) -> list[Conversation]:
    """The conversations of a parsed file of either data set.

    Raises:
        BadArgumentError: it is neither, or a turn lacks what a turn has.
    """
    items = data if isinstance(data, list) else [data]
    read_one = next((_READERS[key] for key in _READERS if all(isinstance(i, dict) and key in i for i in items)), None)
    if not items or read_one is None:
        raise BadArgumentError(
            "the file is neither LoCoMo's nor LongMemEval's",
            "A list of objects with `conversation` and `qa`, or with `haystack_sessions` and `question`.",
        )
    found = []
    for number, item in enumerate(items, start=1):
        try:
            found.append(read_one(item, number))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadArgumentError(
                f"conversation {number} cannot be read: {type(error).__name__} {error}",
                "It has to be in the form in which the data set is published.",
            ) from None
    names = [conversation.name for conversation in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadArgumentError(f'two conversations are named "{twice}"', "Their names are to be different.")
    return found


def _locomo(item: Mapping[str, Any], number: int) -> Conversation:
    conversation = item["conversation"]
    turns: list[Turn] = []
    for key in sorted((k for k in conversation if re.fullmatch(r"session_\d+", k)), key=lambda k: int(k[8:])):
        when = _time(conversation.get(f"{key}_date_time"))
        for position, turn in enumerate(conversation[key]):
            (name,) = turn_names(turn["dia_id"])
            caption = turn.get("blip_caption")
            text = " ".join(filter(None, [turn.get("text", "").strip(), f"[{caption}]" if caption else None]))
            if _is_something(text):
                turns.append(Turn(name, key, position, turn["speaker"], text, when))
    session_of = {turn.name: turn.session for turn in turns}
    questions = []
    for qa in item["qa"]:
        named = frozenset(turn_names(qa.get("evidence") or [])) & session_of.keys()
        if named:
            category = _CATEGORIES.get(qa.get("category"), str(qa.get("category")))
            questions.append(Question(qa["question"], category, named, frozenset(session_of[name] for name in named)))
    name = str(item.get("sample_id", f"conversation {number}"))
    return Conversation(name, tuple(turns), tuple(questions), len(item["qa"]) - len(questions))


def turn_names(evidence: object) -> list[str]:
    """The turns that LoCoMo's evidence means: "D8:6; D9:17" is two, "D:11:26" is D11:26, "D30:05" D30:5, "D" none."""
    texts = evidence if isinstance(evidence, list) else [evidence]
    return [
        f"D{int(session)}:{int(turn)}" for text in texts for session, turn in re.findall(r"D:?(\d+):(\d+)", str(text))
    ]


def _longmemeval(item: Mapping[str, Any], number: int) -> Conversation:
    ids = item["haystack_session_ids"]
    dates = item.get("haystack_dates") or [None] * len(ids)
    turns: list[Turn] = []
    answers = set()
    for place, (id, when, session) in enumerate(zip(ids, dates, item["haystack_sessions"], strict=True)):
        for position, turn in enumerate(session):
            if _is_something(turn["content"]):
                name = f"{place}:{position}"
                turns.append(Turn(name, id, position, turn["role"], turn["content"], _time(when)))
                if turn.get("has_answer"):
                    answers.add(name)
    sessions = frozenset(item["answer_session_ids"]) & frozenset(ids)
    id = str(item.get("question_id", f"question {number}"))
    # as its authors do: what cannot be answered is nowhere to be found
    is_answered = bool(sessions) and not id.endswith("_abs")
    question = Question(item["question"], item.get("question_type", "all"), frozenset(answers), sessions)
    return Conversation(id, tuple(turns), (question,) if is_answered else (), int(not is_answered))


_READERS = {"conversation": _locomo, "haystack_sessions": _longmemeval}


def _is_something(text: str) -> bool:
    """Whether there is anything to see: a statement cannot be blank."""
    return any(not char.isspace() and unicodedata.category(char) not in ("Cc", "Cf") for char in text)


def _time(text: str | None) -> datetime | None:
    for form in _TIMES if text else ():
        try:
            return datetime.strptime(str(text).strip(), form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    return None


# --- scoring ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question got. Ranks are those of its evidence, from 1; None: not among the hits.

    Attributes:
        session_ranks: a session ranks by its best turn, among the sessions that were found.
        milliseconds: how long the call took.
    """

    conversation: str
    question: str
    category: str
    turn_ranks: dict[str, int | None]
    session_ranks: dict[str, int | None]
    milliseconds: float


def answer(
    conversation: Conversation,
    question: Question,
    hits: Sequence[Sequence[tuple[Conversation, Turn]]],
    milliseconds: float,
) -> Answer:
    """Where the evidence of a question is among hits, best first. A hit is as many turns as said the same."""
    turns: dict[tuple[str, str], int] = {}
    sessions: dict[tuple[str, str], int] = {}
    for rank, hit in enumerate(hits, start=1):
        for where, turn in hit:
            turns.setdefault((where.name, turn.name), rank)
            sessions.setdefault((where.name, turn.session), len(sessions) + 1)
    return Answer(
        conversation.name,
        question.text,
        question.category,
        {name: turns.get((conversation.name, name)) for name in sorted(question.turns)},
        {name: sessions.get((conversation.name, name)) for name in sorted(question.sessions)},
        milliseconds,
    )


@dataclass(frozen=True, slots=True)
class Score:
    """Means over questions, by cutoff (`CUTOFFS`). Recall: the share of a question's evidence among the first so many.

    Attributes:
        turn, turn_error: recall of turns, and its standard error; None where no question says which turns.
        session: recall of sessions.
        any_session: the share of the questions of which at least one session is among the first.
    """

    questions: int
    turn: dict[int, float] | None
    turn_error: dict[int, float] | None
    session: dict[int, float]
    any_session: dict[int, float]


def scores(answers: Sequence[Answer]) -> list[tuple[str, Score]]:
    """By category, in the order of their names, and of all."""
    categories = sorted({answer.category for answer in answers})
    return [
        *((name, score([answer for answer in answers if answer.category == name])) for name in categories),
        ("all", score(answers)),
    ]


def score(answers: Sequence[Answer]) -> Score:
    """Of one answer or more."""
    of_turns = [answer.turn_ranks for answer in answers if answer.turn_ranks]
    of_sessions = [answer.session_ranks for answer in answers]
    turns = {k: [_recall(ranks, k) for ranks in of_turns] for k in CUTOFFS} if of_turns else {}
    return Score(
        questions=len(answers),
        turn={k: _mean(recalls) for k, recalls in turns.items()} or None,
        turn_error={k: _error(recalls) for k, recalls in turns.items()} or None,
        session={k: _mean([_recall(ranks, k) for ranks in of_sessions]) for k in CUTOFFS},
        any_session={k: _mean([float(_recall(ranks, k) > 0) for ranks in of_sessions]) for k in CUTOFFS},
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest of the values that so many percent of them do not exceed."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


def _recall(ranks: Mapping[str, int | None], k: int) -> float:
    return sum(rank is not None and rank <= k for rank in ranks.values()) / len(ranks)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _error(values: Sequence[float]) -> float:
    mean = _mean(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1) / len(values))
