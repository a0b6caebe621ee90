"""`exact_only`: a vector that is trusted identifies its text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphium_db.embedding import MiniLMEmbedder, is_plain
from tests.embedding.pairs import APART, CASES_OF_A_NUMBER
from tests.memory.model import fold

EMBEDDER = MiniLMEmbedder("onnx")


@pytest.mark.parametrize(
    "text",
    [
        "Ada likes tea.",
        "I don't like well-known places!",
        "  The user\nwants email notifications ",
    ],
)
def test_short_plain_text_is_identified(text: str) -> None:
    assert not EMBEDDER.embed([text])[0].exact_only


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Mood: 👍",  # unknown to the tokenizer
        "ฉันชอบชา",
        "Tengo muchos años.",  # accents are thrown away
        "Read the file at /srv/Data",  # case is, too
        "IT told me about it.",
        "My iPhone broke.",
        "The port is 5432.",  # a digit's share is small
        "I ran 10 km.",
        "Ada \u0007likes tea.",  # control characters are thrown away
        "git add .",  # spaces are: "git add."
        "so-called 'friends'",
        "Ada likes tea, Bob likes milk, Eve likes juice, and Dan likes water.",  # more than 10 word pieces
        "x" * 150,  # one unknown token
    ],
)
def test_other_text_is_not(text: str) -> None:
    assert EMBEDDER.embed([text])[0].exact_only


WORDS = st.from_regex(r"[A-Za-z][a-z]{0,5}(['-][a-z]{1,3}){0,2}[,;.!?]?", fullmatch=True)
PLAIN = st.builds(
    lambda words, spaces: "".join(space + word for word, space in zip(words, spaces, strict=False)),
    st.lists(WORDS, min_size=1, max_size=6),
    st.lists(st.sampled_from([" ", "  ", "\n", "\t"]), min_size=6, max_size=6),
)


@given(PLAIN, PLAIN)
def test_tokens_determine_plain_text_up_to_the_fold(one: str, other: str) -> None:
    tokenizer, _ = EMBEDDER._load()
    assert is_plain(one)
    a, b = (tokenizer.encode(text) for text in (one, other))
    if a.ids == b.ids and "[UNK]" not in a.tokens:
        assert fold(one) == fold(other)


@given(PLAIN, st.data())
def test_respaced_text_is_plain_only_when_it_folds_alike(text: str, data: st.DataObject) -> None:
    """The same tokens in another spelling: spaces put in or taken out beside marks, case changed."""
    at = data.draw(st.integers(0, len(text)))
    other = data.draw(
        st.sampled_from([text[:at] + " " + text[at:], text[:at] + text[at:].lstrip(), text[:at] + text[at:].upper()])
    )
    tokenizer, _ = EMBEDDER._load()
    if is_plain(other) and tokenizer.encode(text).ids == tokenizer.encode(other).ids:
        assert fold(text) == fold(other)


@pytest.mark.parametrize(("one", "other"), APART + CASES_OF_A_NUMBER)
def test_statements_that_differ_stay_apart(one: str, other: str) -> None:
    a, b = EMBEDDER.embed([one, other])
    similar = np.dot(a.vector, b.vector) >= 0.999 and not (a.exact_only or b.exact_only)
    assert not similar
    assert fold(one) != fold(other)
