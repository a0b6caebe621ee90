"""recall_context: filters, and pages whose borders hold while rows come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.search.conftest import read_as
from tests.search.corpus import MEMORY_TYPES, Corpus, Row, days, new_id
from tests.support.databases import Connection


@pytest.fixture(scope="module")
def corpus(new_corpus: Callable[..., Corpus]) -> Corpus:
    made = new_corpus(3)
    made.plant(
        *[
            Row(
                f"family{n % 3}",
                f"genus{n % 2}",
                f"specimen{n % 5}",
                memory_type=MEMORY_TYPES[n % 6],
                layer_kind="preloaded" if n % 7 == 0 else "on_demand",
                required_scopes=("hr",) if n % 4 == 0 else (),
                occurred_at=days(n) if n % 2 else None,
                created_at=days(100 + n),
            )
            for n in range(300)
        ]
    )
    return made


def recall(conn: Connection, corpus: Corpus, scopes: tuple[str, ...] = (), **arguments: Any) -> list[UUID]:
    return [r.statement_id for r in read_as(conn, corpus, scopes, "recall_context", **arguments)]


def pages(conn: Connection, corpus: Corpus, scopes: tuple[str, ...] = (), **arguments: Any) -> list[list[UUID]]:
    found: list[list[UUID]] = []
    while page := recall(conn, corpus, scopes, **arguments, after=found[-1][-1] if found else None):
        found.append(page)
    return found


def expected(
    corpus: Corpus, scopes: tuple[str, ...] = (), admits: Callable[[Row], bool] = lambda r: True
) -> list[UUID]:
    return sorted((r.id for r in corpus.rows if r.is_visible(scopes) and admits(r)), reverse=True)


@pytest.mark.parametrize("scopes", [(), ("hr",)])
@pytest.mark.parametrize(
    ("filters", "admits"),
    [
        ({}, lambda r: True),
        ({"family": "family1"}, lambda r: r.family == "family1"),
        ({"genus": "genus1"}, lambda r: r.genus == "genus1"),
        ({"specimen": "specimen2"}, lambda r: r.specimen == "specimen2"),
        ({"family": "family2", "specimen": "specimen2"}, lambda r: (r.family, r.specimen) == ("family2", "specimen2")),
        (
            {"family": "family2", "genus": "genus0", "specimen": "specimen3"},
            lambda r: (r.family, r.genus, r.specimen) == ("family2", "genus0", "specimen3"),
        ),
        (
            {"memory_types": ["event", "advice"], "genus": "genus0"},
            lambda r: r.memory_type in ("event", "advice") and r.genus == "genus0",
        ),
        ({"layer_kinds": ["preloaded"]}, lambda r: r.layer_kind == "preloaded"),
        ({"since": days(51), "until": days(120)}, lambda r: days(51) <= r.happened_at < days(120)),
        ({"family": "nobody"}, lambda r: False),
        ({"family": ""}, lambda r: False),
        ({"memory_types": []}, lambda r: False),
        ({"layer_kinds": []}, lambda r: False),
        ({"statement_ids": []}, lambda r: False),
    ],
    ids=lambda p: str(p) if isinstance(p, dict) else "",
)
def test_filters_and_pages(
    corpus: Corpus, app: Connection, scopes: tuple[str, ...], filters: dict[str, Any], admits: Callable[[Row], bool]
) -> None:
    everything = expected(corpus, scopes, admits)
    for size in (7, 1000):
        found = pages(app, corpus, scopes, page_size=size, **filters)
        assert [id for page in found for id in page] == everything
        assert all(len(page) == size for page in found[:-1])


def test_by_id_newest_first_hidden_and_unknown_left_out(corpus: Corpus, app: Connection) -> None:
    ids = [r.id for r in corpus.rows[:12]]
    wanted = [*ids[::-1], *ids[:2], new_id()]
    assert recall(app, corpus, statement_ids=wanted) == expected(corpus, (), lambda r: r.id in ids)
    assert recall(app, corpus, ("hr",), statement_ids=wanted, family="family0") == expected(
        corpus, ("hr",), lambda r: r.id in ids and r.family == "family0"
    )
    assert recall(app, corpus, statement_ids=[ids[0]]) == []


def test_default_page(corpus: Corpus, app: Connection) -> None:
    assert recall(app, corpus) == expected(corpus)[:50]


def test_rows_that_come_and_go_between_pages(
    new_corpus: Callable[..., Corpus], app: Connection, boss: Connection
) -> None:
    corpus = new_corpus(3)
    old = corpus.plant(*[Row("f") for _ in range(30)])
    first = recall(app, corpus, page_size=10)
    assert first == old[:19:-1]
    # the last row of the page, one of the page and one of the next go; a new one comes
    boss.execute(
        "delete from graphium.kg_statements where tenant_id = %s and id = any (%s)",
        [corpus.tenant_id, [old[20], old[25], old[19]]],
    )
    (new,) = corpus.plant(Row("f"))
    second = recall(app, corpus, page_size=10, after=first[-1])
    assert second == old[18:8:-1]
    assert recall(app, corpus, page_size=10, after=second[-1]) == old[8::-1]
    assert recall(app, corpus, page_size=10)[0] == new


def test_columns_come_back_as_they_went_in(
    new_corpus: Callable[..., Corpus], app: Connection, boss: Connection
) -> None:
    corpus = new_corpus(3)
    row = Row(
        "F",
        "G",
        "S",
        "It’s\n„this“ — 太郎 🍎",
        memory_type="advice",
        layer_kind="preloaded",
        required_scopes=("b", "hr"),
        occurred_at=days(1.5),
        created_at=days(3),
        access_count=7,
    )
    corpus.plant(row)
    metadata = {"a": [1, [None, True]], "n": 12345678901234567890, "o": {"": ""}}
    boss.execute(
        "update graphium.kg_statements set source = 'chat 7', position = 3, metadata = %s where tenant_id = %s",
        ['{"a": [1, [null, true]], "n": 12345678901234567890, "o": {"": ""}}', corpus.tenant_id],
    )
    (got,) = read_as(app, corpus, ("hr",), "recall_context")
    assert got._asdict() == {
        "statement_id": row.id, "content": row.content, "family": "F", "genus": "G", "specimen": "S", "memory_type": "advice", "layer_kind": "preloaded",
        "is_superseded": False, "access_count": 7, "required_scopes": ["b", "hr"], "occurred_at": days(1.5), "created_at": days(3),
        "source": "chat 7", "position": 3, "metadata": metadata,
    }  # fmt: skip
    (hit,) = read_as(app, corpus, ("hr",), "search_context", query_text="太郎")
    assert {k: v for k, v in hit._asdict().items() if k in got._fields} == got._asdict()
