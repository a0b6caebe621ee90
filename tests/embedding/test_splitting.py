"""Text into sentences: nothing lost, and cut where a reader would cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphium_db.splitting import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n\t ", []),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Dr. Smith met Mr. Jones at 5 p.m. on Jan. 3. They discussed the U.S. budget, e.g. taxes.",
            ["Dr. Smith met Mr. Jones at 5 p.m. on Jan. 3.", "They discussed the U.S. budget, e.g. taxes."],
        ),
        ("See https://example.com/a.b?c=d. It works.", ["See https://example.com/a.b?c=d.", "It works."]),
        ("Version 2.13.0 is out. We use v1.2.", ["Version 2.13.0 is out.", "We use v1.2."]),
        ("A line that\nis wrapped by hand. Next.", ["A line that\nis wrapped by hand.", "Next."]),
        ("No stop here\n\nNext paragraph", ["No stop here", "Next paragraph"]),
        ("To buy:\n- milk\n- tea\n* eggs\n• salt", ["To buy:", "- milk", "- tea", "* eggs", "• salt"]),
        ("1. Buy milk. 2. Call Bob.", ["1. Buy milk.", "2. Call Bob."]),
        ("1) first\n2) second", ["1) first", "2) second"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |\n|---|---|", "| 1 | 2 |"]),
        ("これは文です。本当？はい。", ["これは文です。", "本当？", "はい。"]),
        ("👍", ["👍"]),
        ("...", ["..."]),
        ("Half a pair \ud800 here. Next.", ["Half a pair \ud800 here.", "Next."]),
    ],
)
def test_cuts(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


_TEXT = st.text(st.one_of(st.sampled_from("ab1 .!?\n\t\"'()-–•*#|>。é😂\r\u2028\u00a0"), st.characters()), max_size=80)


@given(_TEXT)
def test_no_character_is_lost(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


@pytest.mark.parametrize("unit", ["a", ". ", "1. ", "- \n", "\n\n", "!", "a. "])
def test_long_lines_take_linear_time(unit: str) -> None:
    start = time.process_time()
    split_sentences(unit * (1_000_000 // len(unit)))
    assert time.process_time() - start < 10
