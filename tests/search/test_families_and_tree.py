"""search_families and context_tree: what the caller may see, counted over what the caller may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.search.conftest import read_as
from tests.search.corpus import Corpus, Row
from tests.support.databases import Connection


def families(conn: Connection, corpus: Corpus, scopes: tuple[str, ...] = (), **arguments: Any) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in read_as(conn, corpus, scopes, "search_families", **arguments)]


def test_families_by_their_summaries(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3, hidden=("hr",))
    corpus.plant(
        Row("x", embedding=(1, 0, 0)),
        Row("x", embedding=(0.8, 0.6, 0)),
        Row("x", embedding=(0, 0, 1), required_scopes=("hr",)),
        Row("y", embedding=(0, 1, 0)),
        Row("hidden", embedding=(1, 0, 0), required_scopes=("hr",)),
        Row("no vectors"),
        Row("only gated", embedding=(1, 0, 0), required_scopes=("hr",)),
    )
    corpus.taxon("empty")
    query = (1, 0.5, 0)

    def cosine(v: Any) -> Any:
        return pytest.approx(float(np.dot(v, query) / np.linalg.norm(v) / np.linalg.norm(query)), abs=1e-6)

    assert families(app, corpus, query_embedding=query) == [
        ("x", cosine((0.9, 0.3, 0)), 2),
        ("y", cosine((0, 1, 0)), 1),
    ]
    assert families(app, corpus, ("hr",), query_embedding=query) == [
        ("x", cosine((0.9, 0.3, 0)), 2),
        ("hidden", cosine((1, 0, 0)), 1),
        ("y", cosine((0, 1, 0)), 1),
    ]
    assert families(app, corpus, query_embedding=query, match_count=1) == [("x", cosine((0.9, 0.3, 0)), 2)]


def test_families_break_ties_on_id(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3)
    corpus.plant(*[Row(name, embedding=(1, 1, 0)) for name in ("q", "b", "z", "a")])
    assert [f for f, _, _ in families(app, corpus, query_embedding=(1, 0, 0), match_count=3)] == ["q", "b", "z"]


def tree(conn: Connection, corpus: Corpus, scopes: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    rows = read_as(conn, corpus, scopes, "context_tree")
    for r in rows:  # an id and its name are hidden together, and are those of the taxon
        for id, path in ((r.family_id, (r.family,)), (r.genus_id, (r.family, r.genus))):
            assert (id is None) == (path[-1] is None)
            assert id is None or id == corpus.ids["/".join(path)]
        assert (r.specimen_id is None) == (r.specimen is None)
        assert (r.family_scopes, r.specimen_scopes) == (corpus.scopes_of(r.family_id), corpus.scopes_of(r.specimen_id))
    return [(r.family, r.genus, r.specimen, r.statements) for r in rows]


def test_tree(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(
        3,
        hidden=("hr",),
        void=("hr",),
        open__g__quiet1=("hr",),
        open__g__quiet2=("hr",),
        open__h__mute=("hr",),
        open__i__nil=("hr",),
    )
    corpus.plant(
        Row("open", "g", "loud"),
        Row("open", "g", "loud"),
        Row("open", "g", "loud", required_scopes=("hr",)),
        Row("open", "g", "quiet1"),
        Row("open", "g", "quiet2"),
        Row("open", "h", "mute"),
        Row("hidden", "g1", "s1"),
        Row("hidden", "g2", "s2", required_scopes=("hr",)),
        Row("Zoo", "Ä", "b"),
    )
    for path in ("open/g/idle", "open/i/nil", "open/j", "bare", "void/g/s", "hidden/g1/seen"):
        corpus.taxon(path)
    assert tree(app, corpus) == [
        ("Zoo", "Ä", "b", 1),
        ("bare", None, None, 0),
        ("open", "g", "idle", 0),
        ("open", "g", "loud", 2),
        ("open", "g", None, 2),  # of quiet1 and quiet2
        ("open", "h", None, 1),  # of mute
        ("open", "i", None, 0),  # as if nil were not there
        ("open", "j", None, 0),
        (None, None, "s", 0),
        (None, None, "s1", 1),
        (None, None, "s2", 0),
        (None, None, "seen", 0),
    ]
    assert tree(app, corpus, ("hr",)) == [
        ("Zoo", "Ä", "b", 1),
        ("bare", None, None, 0),
        ("hidden", "g1", "s1", 1),
        ("hidden", "g1", "seen", 0),
        ("hidden", "g2", "s2", 1),
        ("open", "g", "idle", 0),
        ("open", "g", "loud", 3),
        ("open", "g", "quiet1", 1),
        ("open", "g", "quiet2", 1),
        ("open", "h", "mute", 1),
        ("open", "i", "nil", 0),
        ("open", "j", None, 0),
        ("void", "g", "s", 0),
    ]


def test_all_that_is_hidden_is_one_row(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    corpus = new_corpus(3, one=("hr",), two=("hr",), one__g__s=("hr",), two__g__s=("hr",))
    corpus.plant(Row("one", "g", "s"), Row("two", "g", "s"), Row("two", "g", "s", required_scopes=("hr",)))
    assert tree(app, corpus) == [(None, None, None, 2)]
    assert tree(app, corpus, ("hr",)) == [("one", "g", "s", 1), ("two", "g", "s", 2)]


def test_statements_are_counted_whatever_the_size_of_their_audience(
    new_corpus: Callable[..., Corpus], app: Connection
) -> None:
    corpus = new_corpus(3, f__g__hidden=("hr",))
    # the longest scopes that there are, as many as an index entry has room for
    long = tuple(n + "\U00010348" * 199 for n in "abc")
    some = ("hr", "it", "law", "ops")
    for specimen in ("seen", "hidden"):
        corpus.plant(
            Row("f", "g", specimen),
            Row("f", "g", specimen, required_scopes=("public", "z")),
            Row("f", "g", specimen, required_scopes=("it",)),
            Row("f", "g", specimen, required_scopes=("hr", "it")),
            Row("f", "g", specimen, required_scopes=long),
            Row("f", "g", specimen, required_scopes=some),
            Row("f", "g", specimen, required_scopes=(*some, "public")),
            Row("f", "g", specimen, required_scopes=tuple(f"{n:03}" + "x" * 197 for n in range(64))),
        )
    assert tree(app, corpus) == [("f", "g", "seen", 3), ("f", "g", None, 3)]
    assert tree(app, corpus, ("it",)) == [("f", "g", "seen", 6), ("f", "g", None, 6)]
    assert tree(app, corpus, ("hr", long[1])) == [("f", "g", "hidden", 6), ("f", "g", "seen", 6)]
    assert tree(app, corpus, ("063" + "x" * 197,)) == [("f", "g", "seen", 4), ("f", "g", None, 4)]


def test_an_empty_tenant_has_an_empty_tree(new_corpus: Callable[..., Corpus], app: Connection) -> None:
    assert tree(app, new_corpus(3)) == []
