"""How lines are collected before they are sent."""

from __future__ import annotations

from typing import Any

import pytest

from graphium_db.cli import records
from graphium_db.cli.records import Record


def lines(*families: str, **fields: Any) -> list[Record]:
    """Lines 1, 2, … of these families; a field is a list with one value per line, None for none."""
    return [
        Record(
            n + 1,
            {"family": family, "genus": "g", "specimen": "s", "content": "c"}
            | {name: values[n] for name, values in fields.items() if values[n] is not None},
        )
        for n, family in enumerate(families)
    ]


def sent(*windows: list[Record]) -> list[list[list[int]]]:
    """The calls of each window, as the numbers of their lines."""
    made: list[list[int]] = []
    calls = []
    with records._Lanes() as lanes:
        for window in windows:
            futures = lanes.send(window, lambda lines: made.append([line.line for line in lines]) or [])  # type: ignore[func-returns-value]
            for future in futures:
                future.result()
            calls.append(sorted(made))
            made.clear()
    return calls


def test_lines_of_a_family_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CALL", 4)
    assert sent(lines(*"abacb")) == [[[1, 3, 4], [2, 5]]]


def test_what_fits_into_a_call_stays_in_order() -> None:
    assert sent(lines(*"abacb")) == [[[1, 2, 3, 4, 5]]]


def test_a_family_keeps_its_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CALL", 2)
    # the second lane has had one line fewer, but `a` goes where it went before
    assert sent(lines(*"aba"), lines(*"cac")) == [[[1, 3], [2]], [[1, 3], [2]]]


def test_a_call_has_so_many_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CALL", 2)
    assert sent(lines(*"aaaaab")) == [[[1, 2], [3, 4], [5], [6]]]


def test_a_source_that_numbers_its_lines_need_not_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CALL", 2)
    assert sent(lines(*"aba", source=["chat"] * 3, position=[1, 2, 3])) == [[[1, 3], [2]]]


def test_lines_that_are_numbered_by_their_arrival_arrive_in_order() -> None:
    assert sent(lines(*"aba", source=["chat"] * 3)) == [[[1, 2, 3]]]
    assert sent(lines(*"abab", source=["chat", "chat", "chat", None], position=[None, 7, None, None])) == [
        [[1, 2, 3, 4]]
    ]


def test_a_window_ends_with_a_batch_to_embed_or_when_it_is_long() -> None:
    bare = [Record(n, {"content": "c"}) for n in range(1000)]
    assert len(records._window(iter(bare))) == records.BATCH
    ready = [Record(n, {"content": "c", "embedding": None}, records.WINDOW_BYTES // 100) for n in range(1000)]
    assert len(records._window(iter(ready))) == 101
