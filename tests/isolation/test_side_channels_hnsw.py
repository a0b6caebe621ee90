"""Approximate search: what others hide changes neither how many of his rows a caller finds, nor which."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.search.corpus import Corpus, Row, vector_text
from tests.support.databases import Connection, Database, as_caller

numbers = itertools.count(1)
DIMENSIONS = 12
VISIBLE = 500


@pytest.fixture(scope="module", autouse=True)
def low_thresholds(db: Database) -> None:
    for name, value in (("hnsw_min_embeddings", 1000), ("hnsw_drop_below", 500)):
        db.connect().execute("update graphium_private.settings set value = %s where name = %s", [value, name])


@pytest.fixture(scope="module")
def admin(db: Database) -> Connection:
    """An admin such as `graphium maintain` connects as: one who may act as the owner."""
    login = db.login("graphium_admin")
    db.connect().execute(f"grant graphium_owner to {db.cluster.role(login)} with inherit false, set true".encode())
    return db.connect(login)


@pytest.fixture(scope="module")
def make(db: Database, admin: Connection) -> Callable[..., Corpus]:
    """A tenant of VISIBLE open rows, the same in each, and of others that lie round a point, for the board."""
    boss = db.connect()

    def corpus(point: Any, hidden: int, spread: float = 0.3) -> Corpus:
        random = np.random.default_rng(7)
        slug = f"hnsw {next(numbers)}"
        admin.execute("select graphium.create_tenant(slug => %s, dimensions => %s)", [slug, DIMENSIONS])
        made = Corpus(boss, slug)
        rows = [
            Row("f", content=f"visible {n}", embedding=v)
            for n, v in enumerate(random.normal(size=(VISIBLE, DIMENSIONS)).astype(np.float32))
        ]
        near = (point + spread * random.normal(size=(hidden, DIMENSIONS))).astype(np.float32)
        made.plant(*rows, *[Row("f", content="x", embedding=v, required_scopes=("board",)) for v in near])
        for (statement,) in admin.execute("select statement from graphium.maintenance_plan()").fetchall():
            admin.execute(statement.encode())
        return made

    return corpus


POINT = np.random.default_rng(5).normal(size=DIMENSIONS)


@pytest.fixture(scope="module")
def alone(make: Callable[..., Corpus]) -> Corpus:
    return make(POINT, 0)


@pytest.fixture(scope="module")
def among_many(make: Callable[..., Corpus]) -> Iterator[Corpus]:
    """More hidden rows round the point than pgvector reads before it gives up (hnsw.max_scan_tuples)."""
    yield make(POINT, 20_000)


def queries() -> list[Any]:
    random = np.random.default_rng(2)
    return [(POINT + spread * random.normal(size=DIMENSIONS)).astype(np.float32) for spread in [0, 0.1, 0.3, 0.5] * 5]


def found(conn: Connection, corpus: Corpus, query: Any, **arguments: Any) -> list[tuple[Any, ...]]:
    given = {"query_embedding": vector_text(query), **arguments}
    call = ", ".join(f"{name} => %({name})s" for name in given)
    with as_caller(conn, corpus.slug):
        return conn.execute(
            f"select content, similarity, score from graphium.search_context({call})".encode(), given
        ).fetchall()


def scans(conn: Connection, corpus: Corpus) -> int:
    row = conn.execute(
        "select coalesce(sum(pg_stat_get_xact_numscans(oid)), 0) from pg_class where relname = %s",
        [f"kg_embeddings_hnsw_{corpus.tenant_id.hex}"],
    ).fetchone()
    return int(row[0]) if row else 0


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"match_count": 50},
        {"query_text": "visible 7", "match_count": 10},
        {"min_similarity": 0.2},
        {"match_count": 1},
    ],
    ids=str,
)
def test_the_right_rows_among_20000_hidden_ones_at_the_query_point(
    db: Database, alone: Corpus, among_many: Corpus, arguments: dict[str, Any]
) -> None:
    app = db.connect("app")
    for query in queries():
        mine = found(app, alone, query, **arguments)
        theirs = found(app, among_many, query, **arguments)
        assert theirs == mine
        if "query_text" not in arguments:
            floor = arguments.get("min_similarity", -1)
            right = [s for _, s in alone.nearest(query, ())[: arguments.get("match_count", 10)] if s >= floor]
            assert [s for _, s, _ in mine] == pytest.approx(right, abs=1e-6)


def test_it_was_the_index_that_was_asked(db: Database, alone: Corpus, among_many: Corpus) -> None:
    """Near, and further, and then no more: pgvector would read on, give up, and hand out what is not the nearest."""
    app = db.connect("app")
    for corpus, expected in ((alone, 0), (among_many, 2)):
        with as_caller(app, corpus.slug):
            app.execute("select graphium.search_context(%s)", [vector_text(POINT)])
            assert scans(app, corpus) == expected
    [(read_on,)] = (
        db.connect()
        .execute(
            "select array_agg(content) from (select s.content from graphium.kg_statements s, graphium_private._scan_hnsw(%s, %s, %s, %s, 10, true) n"
            " where s.id = n.statement_id order by n.distance) as r",
            [among_many.tenant_id, DIMENSIONS, vector_text(POINT), " and r.required_scopes = '{}'"],
        )
        .fetchall()
    )
    assert set(read_on) != {c for c, *_ in found(app, alone, POINT)}


def test_at_every_distance_from_what_is_hidden(db: Database, make: Callable[..., Corpus], alone: Corpus) -> None:
    """Where some of the nearest are visible, the index decides: it may miss a row here and there, but not the number."""
    app = db.connect("app")
    corpus = make(POINT, 3_000, 1.0)
    random = np.random.default_rng(3)
    missed = 0
    for _ in range(25):
        query = (POINT + random.uniform(0, 2) * random.normal(size=DIMENSIONS)).astype(np.float32)
        for count in (10, 60):
            mine, theirs = found(app, alone, query, match_count=count), found(app, corpus, query, match_count=count)
            assert len(theirs) == len(mine) == count
            missed += len({c for c, *_ in mine} - {c for c, *_ in theirs})
    assert missed <= 0.01 * 25 * 70
