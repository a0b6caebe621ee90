"""prepare_query: names out of the text, and the time that it names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

from tests.search.conftest import read_as, refused
from tests.search.corpus import Corpus
from tests.support.databases import Connection

NAMES = [
    "Ada",
    "Ada Lovelace",
    "Pēteris",
    "太郎",
    "अनीता",
    "O'Brien",
    "C++",
    "a.b",
    "Acme Corp",
    "X",
    "(odd)",
    "Anna-Lena",
]
NOW = datetime(2026, 3, 18, 12, tzinfo=timezone.utc)  # a Wednesday


@pytest.fixture(scope="module")
def corpus(new_corpus: Callable[..., Corpus]) -> Corpus:
    made = new_corpus(3, f__g__Boss=("hr",))
    for name in [*NAMES, "Boss"]:
        made.taxon(f"f/g/{name}")
    made.taxon("f2/g/Ada")
    return made


def prepare(conn: Connection, corpus: Corpus, text: str | None, scopes: tuple[str, ...] = (), **arguments: Any) -> Any:
    (row,) = read_as(conn, corpus, scopes, "prepare_query", query_text=text, **arguments)
    return row


@pytest.mark.parametrize(
    ("text", "dense", "names"),
    [
        ("What does Ada like?", "What does like?", ["Ada"]),
        ("what does ADA  like", "what does like", ["Ada"]),
        ("Ada's hobbies", "hobbies", ["Ada"]),
        ("Ada’s hobbies, ada", "hobbies,", ["Ada"]),
        ("Is Ada Lovelace older than Ada?", "Is older than ?", ["Ada Lovelace", "Ada"]),
        ("When was Ada Lovelace born", "When was born", ["Ada Lovelace"]),
        ("The Adar bridge and Canada", "The Adar bridge and Canada", None),
        ("PĒTERIS un pēteris", "un", ["Pēteris"]),
        ("Pe\u0304teris came", "came", ["Pēteris"]),
        ("太郎は何が好きですか", "は何が好きですか", ["太郎"]),
        ("अनीता को क्या पसंद है", "को क्या पसंद है", ["अनीता"]),
        ("Did O'Brien write C++ at Acme  Corp?", "Did write at ?", ["O'Brien", "C++", "Acme Corp"]),
        ("axb a.b", "axb", ["a.b"]),
        ("an (odd) thing", "an thing", ["(odd)"]),
        ("Anna-Lena and Anna", "and Anna", ["Anna-Lena"]),
        ("x marks", "marks", ["X"]),
        ("Ada", "Ada", ["Ada"]),
        ("Ada?", "Ada?", ["Ada"]),
        ("Boss said", "Boss said", None),
        ("", "", None),
        (None, None, None),
    ],
)
def test_names(corpus: Corpus, app: Connection, text: str | None, dense: str | None, names: list[str] | None) -> None:
    row = prepare(app, corpus, text)
    assert (row.dense_text, row.specimens) == (dense, names)


def test_only_visible_specimens_are_known(corpus: Corpus, app: Connection) -> None:
    row = prepare(app, corpus, "Boss said", ("hr",))
    assert (row.dense_text, row.specimens) == ("said", ["Boss"])


def day(year: int, month: int, number: int = 1) -> datetime:
    return datetime(year, month, number, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("on 2024-05-08", day(2024, 5, 8), day(2024, 5, 9)),
        ("8 May 2024", day(2024, 5, 8), day(2024, 5, 9)),
        ("May 8th, 2024", day(2024, 5, 8), day(2024, 5, 9)),
        ("the 8th of May", day(2025, 5, 8), day(2025, 5, 9)),
        ("March 18", day(2026, 3, 18), day(2026, 3, 19)),
        ("March 19", day(2025, 3, 19), day(2025, 3, 20)),
        ("29 February", day(2024, 2, 29), day(2024, 3, 1)),
        ("in December", day(2025, 12), day(2026, 1)),
        ("in May 2023", day(2023, 5), day(2023, 6)),
        ("2023-05", day(2023, 5), day(2023, 6)),
        ("in 2023", day(2023, 1), day(2024, 1)),
        ("in the year 2023", day(2023, 1), day(2024, 1)),
        ("today", day(2026, 3, 18), day(2026, 3, 19)),
        ("yesterday", day(2026, 3, 17), day(2026, 3, 18)),
        ("last week", day(2026, 3, 9), day(2026, 3, 16)),
        ("this week", day(2026, 3, 16), day(2026, 3, 23)),
        ("last month", day(2026, 2), day(2026, 3)),
        ("last year", day(2025, 1), day(2026, 1)),
        ("three weeks ago", day(2026, 2, 23), day(2026, 3, 2)),
        ("a year ago", day(2025, 1), day(2026, 1)),
        ("the past 10 days", datetime(2026, 3, 8, 12, tzinfo=timezone.utc), NOW),
        ("since May 8", day(2025, 5, 8), None),
        ("after March 2024", day(2024, 4), None),
        ("before 2023", None, day(2023, 1)),
        ("until last week", None, day(2026, 3, 16)),
        ("in January and February", day(2026, 1), day(2026, 3)),
        ("in March and August", day(2025, 8), day(2026, 4)),
        ("in August and March", day(2025, 8), day(2026, 4)),
        ("in May, June and August 2024", day(2024, 5), day(2024, 9)),
        ("in March, and may I ask", day(2026, 3), day(2026, 4)),
        ("between March and May", day(2025, 3), day(2025, 6)),
        ("from March to May", day(2025, 3), day(2025, 6)),
        ("between March and May 2024", day(2024, 3), day(2024, 6)),
        ("May to August 2024", day(2024, 5), day(2024, 9)),
        ("from November to February", day(2025, 11), day(2026, 3)),
        ("between November and February 2025", day(2024, 11), day(2025, 3)),
        ("from November 2024 to February", day(2024, 11), day(2025, 3)),
        ("from 3 May to 9 May", day(2025, 5, 3), day(2025, 5, 10)),
        ("between 3 and 9 May 2024", day(2024, 5, 3), day(2024, 5, 10)),
        ("from the 3rd to the 9th of May", day(2025, 5, 3), day(2025, 5, 10)),
        ("May 3-9, 2024", day(2024, 5, 3), day(2024, 5, 10)),
        ("2024-05-08 to 2024-06-01", day(2024, 5, 8), day(2024, 6, 2)),
        ("in 2022 and 2024", day(2022, 1), day(2025, 1)),
        ("after 3 May and before 9 May 2024", day(2024, 5, 4), day(2024, 5, 9)),
        ("since February until yesterday", day(2026, 2), day(2026, 3, 18)),
        ("since February or March", day(2026, 2), None),
        ("the day before yesterday", day(2026, 3, 16), day(2026, 3, 17)),
        ("the week before 8 May 2024", day(2024, 5, 1), day(2024, 5, 8)),
        ("in August last year", day(2025, 8), day(2025, 9)),
        ("last year in February", day(2025, 2), day(2025, 3)),
        ("last August", day(2025, 8), day(2025, 9)),
        ("the week of May 4", day(2025, 4, 28), day(2025, 5, 5)),  # a Sunday
        ("the third week of May", day(2025, 5, 15), day(2025, 5, 22)),
        ("the first week of last month", day(2026, 2), day(2026, 2, 8)),
        ("a couple of weeks ago", day(2026, 3, 2), day(2026, 3, 9)),
        ("a couple of months ago", day(2026, 1), day(2026, 2)),
        ("a year ago today", day(2025, 1), day(2026, 1)),
        ("last Monday", day(2026, 3, 16), day(2026, 3, 17)),
        ("on Wednesday", day(2026, 3, 11), day(2026, 3, 12)),
        ("on Monday, 6 May 2024", day(2024, 5, 6), day(2024, 5, 7)),
        ("from Monday to Friday", day(2026, 3, 9), day(2026, 3, 14)),
        ("last weekend", day(2026, 3, 14), day(2026, 3, 16)),
        ("last night", day(2026, 3, 17), day(2026, 3, 18)),
        ("this morning", day(2026, 3, 18), day(2026, 3, 19)),
        ("half a year ago", None, None),
        ("1.5 years ago", None, None),
        ("a few weeks ago", None, None),
        ("two or three weeks ago", None, None),
        ("a year and two months ago", None, None),
        ("Quarter 2 of this year", None, None),
        ("in Q2 2025", None, None),
        ("the third week of 2024", None, None),
        ("the last week of May", None, None),
        ("the weekend of 3 May", None, None),
        ("the first Monday of May", None, None),
        ("between Christmas and 3 May", None, None),
        ("Feb 30 and 3 March", None, None),
        ("before January 2024 and after May 2025", None, None),
        ("on Mondays", None, None),
        ("when May and June came", None, None),
        ("may I march on 2000 dollars", None, None),
        ("Feb 30 2023", None, None),
        ("2024-13-01", None, None),
        ("the other day ago", None, None),
        ("version 2024.1 in 2024.1", None, None),
        ("tomorrow never knows", None, None),
    ],
)  # fmt: skip
def test_times(corpus: Corpus, app: Connection, text: str, since: datetime | None, until: datetime | None) -> None:
    app.execute("set timezone = 'UTC'")
    row = prepare(app, corpus, f"What happened {text}?", now=NOW)
    assert (row.since, row.until) == (since, until)
    assert row.dense_text == f"What happened {text}?"


def test_of_a_long_text_only_the_beginning_is_read_for_times(corpus: Corpus, app: Connection) -> None:
    row = prepare(app, corpus, f"{'word ' * 198} today, yesterday", now=NOW)
    assert (row.since, row.until) == (day(2026, 3, 18), day(2026, 3, 19))
    for text in ("may ", "in march and ", "1 may 2 ", "3 and ", "half a ", ".-,"):
        assert prepare(app, corpus, text * 5000, now=NOW).specimens is None


def test_days_begin_in_the_session_time_zone(corpus: Corpus, app: Connection) -> None:
    app.execute("set timezone = 'Asia/Tokyo'")
    try:
        row = prepare(app, corpus, "yesterday", now=datetime(2026, 3, 18, 20, tzinfo=timezone.utc))
        assert row.since == datetime(2026, 3, 17, 15, tzinfo=timezone.utc)
    finally:
        app.execute("reset timezone")


def test_now_is_now_unless_told_and_finite(corpus: Corpus, app: Connection) -> None:
    row = prepare(app, corpus, "today")
    assert row.since <= datetime.now(timezone.utc) < row.until
    assert refused(app, corpus, "prepare_query", query_text="today", now="infinity") == "MG008"
