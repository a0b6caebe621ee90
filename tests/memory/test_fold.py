"""The fold in SQL against an independent one in Python, and by hand."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.memory.model import (
    DASHES,
    DIGITS,
    DOUBLE_QUOTES,
    EM_DASHES,
    FINAL_MARKS,
    PATH_CHARACTERS,
    SINGLE_QUOTES,
    UNSEEN,
    WHITE_SPACE,
    fold,
)
from tests.support.databases import Connection

TOGETHER = [
    ("Ada likes tea", "Ada likes tea."),
    ("Ada likes tea!", "ada likes tea"),
    ("Ada likes tea\n", "  Ada\u00a0likes  tea "),
    ("Ada\u200b likes tea", "Ada likes tea"),
    ("Caf\u00e9", "Cafe\u0301"),
    ("Caf\u00e9", "Cafe\u200b\u0301"),  # what keeps the accent apart is not seen
    ("\u1e96ello", "H\u0331ello"),  # composes in lower case only
    ("“Ada” — ‘tea’", "\"Ada\" - 'tea'"),
    ("Call +44\u2011555", "Call +44-555"),
    ("\u2068Ada\u2069 likes \u200ftea", "Ada likes tea"),
    ("お茶が好き。", "お茶が好き"),
    ("Ταυτότητα", "ταυτότητα"),
    ("ﬁ is a ligature", "ﬁ is a ligature."),
    ("Take your time—rest", "Take your time - rest"),
    ("Ｃａｌｌ ５５５．", "Call 555"),
    ("It was 30℃", "It was 30°C"),
    ("I'M sure I'Ll go, Don'T ask", "I'm sure I'll go, don't ask"),
]
APART = [
    ("Ada likes tea?", "Ada likes tea"),
    ("10² metres", "102 metres"),
    ("ﬁ", "fi"),
    ("the US team", "the us team"),
    ("/srv/Data", "/srv/data"),
    ("iPhone", "iphone"),
    ("v2B", "v2b"),
    ("X²", "x²"),
    ("Ａ１", "ａ１"),
    ("DON'T", "don't"),
    ("a well—known", "a well-known"),
    ("1½", "11/2"),
    ("Key=Abc", "key=abc"),
    ("git add .", "git add"),
    ("año", "ano"),
    ("👩\u200d🚀", "👩🚀"),  # a joiner carries meaning
    ("می\u200cخواهم", "میخواهم"),
    ("abc\u202edef", "abcdef"),  # an override changes what is read
    ("🍎", "🍌"),
    ("does like", "does not like"),
    ("Alice paid Bob", "Bob paid Alice"),
    ("The deadline is October 15th", "The deadline is October 16th"),
    ("use Postgres, not MySQL", "use MySQL, not Postgres"),
]


def in_sql(conn: Connection, texts: list[str]) -> list[str]:
    return [
        r[0]
        for r in conn.execute(
            "select graphium_private.fold_v1(t) from unnest(%s::text[]) with ordinality as u(t, n) order by n", [texts]
        )
    ]


@pytest.mark.parametrize(("one", "other"), TOGETHER)
def test_folds_together(boss: Connection, one: str, other: str) -> None:
    first, second = in_sql(boss, [one, other])
    assert first == second == fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_stays_apart(boss: Connection, one: str, other: str) -> None:
    first, second = in_sql(boss, [one, other])
    assert first != second
    assert (first, second) == (fold(one), fold(other))


def test_values_by_hand(boss: Connection) -> None:
    given = [
        " The  US “team”\tuses v2B on /Srv/Data!! ",
        "Really?!",
        "Wait...",
        ".",
        "",
        "\u200b \u3000",
        "A.",
        "e.g. This.",
    ]
    assert in_sql(boss, given) == [
        'the US "team" uses v2B on /Srv/Data',
        "really?",
        "wait",
        ".",
        "",
        "",
        "a",
        "e.g. this",
    ]


# Characters that this Python and every server know. Marks that are letters and symbols that have case are left to
# PostgreSQL's tables; the combining diacritics and the symbols that matter are in `special`.
known = st.characters(min_codepoint=1, exclude_categories=("Cs", "Cn", "Co", "Mn", "Mc", "So"))
special = st.sampled_from(
    list(
        WHITE_SPACE
        + UNSEEN
        + SINGLE_QUOTES
        + DOUBLE_QUOTES
        + DASHES
        + EM_DASHES
        + FINAL_MARKS
        + PATH_CHARACTERS
        + DIGITS
    )
    + list("aAbBéÉiİıIsſẞßΣσςǅǆKÅ?,;()")
    + ["\u0301", "\u0331", "\u0308", "\u030c", "\u200c", "\u200d", "\u202e", "🍎", "한", "ᄒ", "ᅡ"]
)
texts = st.lists(st.one_of(special, special, known, st.just(" ")), max_size=24).map("".join)


@example(["\u2014\t\u2014"])
@given(st.lists(texts, min_size=1, max_size=40))
@settings(max_examples=150)
def test_agrees_with_python(boss: Connection, batch: list[str]) -> None:
    folded = in_sql(boss, batch)
    assert folded == [fold(t) for t in batch]
    assert in_sql(boss, folded) == folded  # folding a fold changes nothing
    assert in_sql(boss, [unicodedata.normalize("NFD", t) for t in batch]) == folded


def test_every_character_in_a_word(boss: Connection) -> None:
    """But for the ideographs and Hangul syllables, of which every hundredth."""
    every = [
        c
        for n, c in enumerate(map(chr, range(1, sys.maxunicode + 1)))
        if unicodedata.category(c) not in ("Cn", "Cs", "Co", "Mn", "Mc", "So")
        and (unicodedata.category(c) != "Lo" or n < 0x2E80 or n % 100 == 0)
    ]
    given_ = [f"{c}x yZ{c}. {c}" for c in every]
    wrong = [(t, s) for t, s in zip(given_, in_sql(boss, given_), strict=True) if s != fold(t)]
    assert wrong == []


def test_hash_is_of_the_fold(boss: Connection) -> None:
    import hashlib

    row = boss.execute("select graphium_private.fold_hash_v1('Ada  likes “tea”.')").fetchone()
    assert row == (hashlib.sha256(b'ada likes "tea"').digest()[:16],)
