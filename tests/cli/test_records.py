"""How lines are collected before they are sent."""

from __future__ import annotations

from typing import Any

from graphium_db.cli import records
from graphium_db.cli.records import Record


def lines(*specimens: str, **fields: Any) -> list[Record]:
    """Lines 1, 2, … about these specimens; a field is a list with one value per line, None for none."""
    return [
        Record(
            n + 1,
            {"family": "f", "genus": "g", "specimen": specimen, "content": "c"}
            | {name: values[n] for name, values in fields.items() if values[n] is not None},
        )
        for n, specimen in enumerate(specimens)
    ]


def sent(window: list[Record]) -> list[list[int]]:
    return [[record.line for record in group] for group in records._by_specimen(window)]


def test_lines_about_a_specimen_go_together() -> None:
    assert sent(lines(*"abacb")) == [[1, 3], [2, 5], [4]]


def test_a_source_that_numbers_its_lines_need_not_stay_in_order() -> None:
    assert sent(lines(*"aba", source=["chat"] * 3, position=[1, 2, 3])) == [[1, 3], [2]]


def test_lines_that_are_numbered_by_their_arrival_arrive_in_order() -> None:
    assert sent(lines(*"aba", source=["chat"] * 3)) == [[1], [2], [3]]
    assert sent(lines(*"abab", source=["chat", "mail", "chat", "mail"])) == [[1, 3], [2, 4]]
    # line 3 gets the place after line 2's, line 4 is about another source
    assert sent(lines(*"abab", source=["chat", "chat", "chat", None], position=[None, 7, None, None])) == [
        [1],
        [2],
        [3],
        [4],
    ]
    # `a` was opened before `b`, yet line 2 comes before line 3
    assert sent(lines(*"aba", source=[None, "chat", "chat"], position=[None, 5, None])) == [[1], [2], [3]]


def test_a_window_ends_with_a_batch_to_embed_or_when_it_is_long() -> None:
    bare = [Record(n, {"content": "c"}) for n in range(1000)]
    assert len(records._window(iter(bare))) == records.BATCH
    ready = [Record(n, {"content": "c", "embedding": None}, records.WINDOW_BYTES // 100) for n in range(1000)]
    assert len(records._window(iter(ready))) == 101
