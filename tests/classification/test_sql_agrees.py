"""`graphium.classify` gives the answer of `graphium_db.classify`, for every text."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphium_db import classify
from graphium_db.classification import _UNICODE_FROM, LAYER_KINDS, MEMORY_TYPES, rule_set
from tests.support.databases import Connection, Database


@pytest.fixture(scope="module")
def conn(db: Database) -> Connection:
    """A caller who has named no tenant."""
    return db.connect("app")


def in_sql(conn: Connection, texts: list[str]) -> list[tuple[Any, ...]]:
    return conn.execute(
        "select c.memory_type, c.layer_kind, c.rule from unnest(%s::text[]) with ordinality as t(text, n),"
        " graphium.classify(content => t.text) as c order by t.n",
        [texts],
    ).fetchall()


def in_python(texts: list[str]) -> list[tuple[str, str, str]]:
    return [(c.memory_type, c.layer_kind, c.rule) for c in map(classify, texts)]


EXAMPLES = [text for rule in rule_set().rules for text in (*rule.match, *rule.no_match)]
WORDS = sorted(word for word in rule_set().lexicon if word and not word.startswith("-"))
MARKS = [
    *" \t\n\r\v\f\x1c\x85.,;:!?-_'\"()[]{}<>*`|~^#\\/$&@0",
    *_UNICODE_FROM,
    *"éİıſK\u0301\u200d\ufffd🍎三",
    "..",
    "'s",
    "` `",
    "https://a.b/",
    ": ",
    " = ",
    'a("b")',
    "('",
]

word = st.sampled_from(WORDS)
odd = st.one_of(st.sampled_from(MARKS), st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
sentence = st.lists(
    st.tuples(st.one_of(word, word, word.map(str.title), odd), st.sampled_from([" ", " ", " ", "", ", "]))
)
text = st.one_of(
    sentence.map(lambda parts: "".join(w + space for w, space in parts)),
    st.tuples(st.sampled_from(EXAMPLES), odd, st.integers(0, 40)).map(lambda t: t[0][: t[2]] + t[1] + t[0][t[2] :]),
    st.lists(odd, max_size=40).map("".join),
)


@given(st.lists(text, min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_agree(conn: Connection, texts: list[str]) -> None:
    assert in_sql(conn, texts) == in_python(texts)


def test_agree_on_examples(conn: Connection) -> None:
    assert in_sql(conn, EXAMPLES) == in_python(EXAMPLES)


def test_agree_on_every_character(conn: Connection) -> None:
    characters = [chr(c) for c in range(1, 0x3100) if not 0xD800 <= c <= 0xDFFF] + ["\uff01", "\ufeff", "\U0001f34e"]
    texts = [f"I{c}decided{c} to move" for c in characters] + [f"i don{c}t like{c}tea{c}" for c in characters]
    assert in_sql(conn, texts) == in_python(texts)


def test_agree_on_long_text(conn: Connection) -> None:
    texts = [
        "so " * 400,
        "x" * 999 + " I decided",
        "I decided " + "x" * 100_000,
        "é" * 995 + "I decided",
        "a. " * 5_000,
    ]
    assert in_sql(conn, texts) == in_python(texts)


DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def texts_in(found: Any) -> Iterator[str]:
    """Every text anywhere inside of JSON."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, (list, dict)):
        for item in found.values() if isinstance(found, dict) else found:
            yield from texts_in(item)


@pytest.mark.skipif(not DATA.exists(), reason="measuring data is not here: ../shared/data")
def test_agree_on_all_corpora(conn: Connection) -> None:
    texts: set[str] = set()
    for file in sorted(DATA.iterdir()):
        if file.suffix == ".json":
            texts |= set(texts_in(json.loads(file.read_text("utf-8"))))
        elif file.suffix == ".jsonl":
            texts |= {text for line in file.read_text("utf-8").splitlines() for text in texts_in(json.loads(line))}
        elif file.suffix == ".gz":
            texts |= set(gzip.decompress(file.read_bytes()).decode().splitlines())
    texts |= {sentence for text in texts if len(text) > 100 for sentence in re.split(r"(?<=[.!?\n])", text)}
    listed = sorted(text for text in texts if "\0" not in text)
    assert len(listed) > 30_000
    for start in range(0, len(listed), 5000):
        part = listed[start : start + 5000]
        assert in_sql(conn, part) == in_python(part)


def test_null_has_no_kind(conn: Connection) -> None:
    assert conn.execute("select c from graphium.classify(null) as c").fetchall() == [((None, None, None),)]


@pytest.mark.parametrize("unit", ["a", " ", "so ", "I really ", "if you ", ".", "é", "`", "a://", "= ", "|"])
def test_long_lines_are_fast(conn: Connection, unit: str) -> None:
    line = unit * (100_000 // len(unit))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        in_sql(conn, [line])
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05


@pytest.mark.parametrize(
    ("labels", "function", "column"),
    [(MEMORY_TYPES, "_memory_types", "memory_type"), (LAYER_KINDS, "_layer_kinds", "layer_kind")],
)
def test_labels_are_the_same_everywhere(db: Database, labels: tuple[str, ...], function: str, column: str) -> None:
    """In Python, in SQL, and in the check of every table that has the column."""
    with db.connect() as boss:
        assert boss.execute(f"select graphium_private.{function}()".encode()).fetchone() == (list(labels),)
        checks = boss.execute(
            """select conrelid::regclass::text, pg_get_constraintdef(oid) from pg_constraint
                where contype = 'c' and connamespace = 'graphium'::regnamespace and pg_get_constraintdef(oid) like %s""",
            [f"%({column} = ANY (ARRAY[%"],
        ).fetchall()
    assert "graphium.kg_statements" in {table for table, _ in checks}
    assert {tuple(re.findall("'(.*?)'", check)) for _, check in checks} == {labels}
