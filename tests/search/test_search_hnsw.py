"""Approximate search: the tenant's own index, the choice between the scans, and the plan that keeps the indexes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
import pytest

from tests.search.conftest import read, search
from tests.search.corpus import MEMORY_TYPES, Corpus, Row
from tests.support.concurrency import in_thread, wait_until
from tests.support.databases import Connection, Database, as_caller

DIMENSIONS = 16
LONG_AGO = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)
ROWS = 4000


@pytest.fixture(scope="module", autouse=True)
def low_thresholds(boss: Connection) -> None:
    """So that a few thousand rows are many."""
    for name, value in (
        ("hnsw_min_embeddings", 1000),
        ("hnsw_drop_below", 500),
        ("exact_scan_max", 300),
        ("exact_label_max", 5),
    ):
        boss.execute("update graphium_private.settings set value = %s where name = %s", [value, name])


@pytest.fixture(scope="module")
def maintainer(shared: Database, boss: Connection) -> Connection:
    """A login such as `graphium maintain` uses: an admin who may act as the owner, and no superuser."""
    login = shared.login("graphium_admin")
    boss.execute(f"grant graphium_owner to {shared.cluster.role(login)} with inherit false, set true".encode())
    return shared.connect(login)


def plan(conn: Connection) -> list[Any]:
    return read(conn, "maintenance_plan")


def maintain(conn: Connection) -> list[str]:
    """Run what the plan says; the actions taken."""
    steps = plan(conn)
    for step in steps:
        conn.execute(step.statement.encode())
    return [s.action for s in steps if s.tenant is not None]


def index_of(corpus: Corpus) -> str:
    return f"kg_embeddings_hnsw_{corpus.tenant_id.hex}"


def is_valid(boss: Connection, corpus: Corpus) -> bool | None:
    row = boss.execute(
        "select i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid where c.relname = %s",
        [index_of(corpus)],
    ).fetchone()
    return None if row is None else row[0]


@pytest.fixture(scope="module")
def corpus(new_corpus: Callable[..., Corpus], maintainer: Connection) -> Iterator[Corpus]:
    """4,000 statements in 8 families of very different sizes; one row in ten is for hr, and a few for the board."""
    random = np.random.default_rng(11)
    made = new_corpus(DIMENSIONS)
    centres = random.normal(size=(8, DIMENSIONS))
    sizes = [2000, 1000, 500, 250, 125, 100, 20, 5]
    rows = []
    for family, size in enumerate(sizes):
        for n in range(size):
            rows.append(
                Row(
                    family=f"family{family}",
                    genus=f"genus{n % 2}",
                    specimen=f"specimen{n % 5}",
                    content=f"statement {family} {n}",
                    embedding=(0.5 * centres[family] + random.normal(size=DIMENSIONS)).astype(np.float32),
                    memory_type=MEMORY_TYPES[0 if n % 400 else 5],
                    required_scopes=("board",) if n % 500 == 7 else ("hr",) if n % 10 == 3 else (),
                )
            )
    assert len(rows) == ROWS
    made.plant(*[rows[i] for i in random.permutation(ROWS)])
    maintain(maintainer)
    yield made


class Scans:
    """How often an index was scanned in the transaction, by the server's own count."""

    def __init__(self, conn: Connection, corpus: Corpus) -> None:
        self.conn, self.corpus = conn, corpus

    def hnsw(self) -> int:
        row = self.conn.execute(
            "select pg_stat_get_xact_numscans(c.oid) from pg_class c where c.relname = %s", [index_of(self.corpus)]
        ).fetchone()
        return row[0] if row else 0


def searched(conn: Connection, corpus: Corpus, scopes: Sequence[str] = (), **arguments: Any) -> tuple[list[Any], int]:
    """Hits and how often the HNSW index was scanned for them."""
    with as_caller(conn, corpus.slug, scopes):
        scans = Scans(conn, corpus)
        before = scans.hnsw()
        hits = read(conn, "search_context", follow_symbiosis=False, **arguments)
        return hits, scans.hnsw() - before


def test_recall_and_path_without_filters(corpus: Corpus, app: Connection) -> None:
    random = np.random.default_rng(2)
    right = 0
    for _ in range(50):
        query = random.normal(size=DIMENSIONS).astype(np.float32)
        hits, scans = searched(app, corpus, ("hr",), query_embedding=query)
        assert scans == 1
        assert [h.similarity for h in hits] == sorted((h.similarity for h in hits), reverse=True)
        right += len({h.statement_id for h in hits} & {id for id, _ in corpus.nearest(query, ("hr",))[:10]})
    assert right >= 0.99 * 500


@pytest.mark.parametrize(("ratio", "looks"), [(0.75, [1, 1]), (0.4, [1, 2]), (0, [2, 2])])
def test_a_query_about_what_is_there_looks_once_and_another_twice(
    corpus: Corpus, app: Connection, boss: Connection, ratio: float, looks: list[int]
) -> None:
    """What decides is how much nearer the nearest of the first look is than the last: here worked out by brute force."""
    row = corpus.rows[0].embedding
    assert row is not None
    boss.execute("update graphium_private.settings set value = %s where name = 'hnsw_easy_ratio'", [ratio])
    try:
        for side, look in zip((1, -1), looks, strict=True):  # near a row, or on the far side of all
            query = (side * row + 0.1 * np.ones(DIMENSIONS)).astype(np.float32)
            right = [s for _, s in corpus.nearest(query, ("hr", "board"))[:80]]
            assert (1 - right[0] <= ratio * (1 - right[-1])) == (look == 1)
            hits, scans = searched(app, corpus, ["hr", "board"], query_embedding=query, match_count=10)
            assert scans == look
            assert [h.similarity for h in hits] == pytest.approx(right[:10], abs=1e-6)
    finally:
        boss.execute("update graphium_private.settings set value = 0.75 where name = 'hnsw_easy_ratio'")


@pytest.mark.parametrize(
    ("filters", "path"),
    [
        ({}, "hnsw"),
        ({"families": ["family0"]}, "hnsw"),
        ({"families": ["family3"]}, "exact"),
        ({"families": ["family3", "family1"]}, "hnsw"),
        ({"genera": ["genus1"]}, "hnsw"),
        ({"specimens": ["specimen4"], "families": ["family1"]}, "exact"),  # 200 of a family of 1,000: counted
        ({"specimens": ["specimen4"], "families": ["family0"]}, "hnsw"),  # 400
        ({"memory_types": ["fact"]}, "hnsw"),
        ({"since": LONG_AGO}, "hnsw"),
        ({"since": LONG_AGO, "until": LONG_AGO + datetime.timedelta(days=1)}, "exact"),
    ],
    ids=str,
)
def test_which_scan_a_filter_takes(
    corpus: Corpus, app: Connection, admin: Connection, filters: dict[str, Any], path: str
) -> None:
    query = np.ones(DIMENSIONS, dtype=np.float32)
    hits, scans = searched(app, corpus, query_embedding=query, match_count=5, **filters)
    assert (scans > 0) == (path == "hnsw")
    expected = corpus.nearest(query, (), lambda r: r.family in filters.get("families", [r.family])
        and r.genus in filters.get("genera", [r.genus]) and r.specimen in filters.get("specimens", [r.specimen])
        and r.memory_type in filters.get("memory_types", [r.memory_type]))  # fmt: skip
    if "until" in filters:
        expected = []
    assert [h.statement_id for h in hits] == [id for id, _ in expected[:5]]

    with as_caller(app, corpus.slug):
        [told] = read(app, "explain_search", query_embedding=query, match_count=5, **filters)
    assert told.admitted == len(expected)
    assert told.path == ("exact or hnsw" if filters else "hnsw")
    assert told.index_name == index_of(corpus)
    with as_caller(admin, corpus.slug):
        [told] = read(admin, "explain_search", query_embedding=query, match_count=5, **filters)
    assert told.path.split(",")[0] == path
    assert told.index_name == (index_of(corpus) if path == "hnsw" else None)


def indexes_read(conn: Connection, corpus: Corpus) -> dict[str, int]:
    """How often the transaction scanned the tenant's own index, and each of those that all tenants share."""
    rows = conn.execute(
        "select coalesce(p.relname, c.relname), sum(pg_stat_get_xact_numscans(c.oid))::int from pg_index i join pg_class c on c.oid = i.indexrelid"
        " left join pg_inherits h on h.inhrelid = c.oid left join pg_class p on p.oid = h.inhparent"
        " where i.indrelid in (select relid from pg_partition_tree('graphium.kg_embeddings')) group by 1"
    ).fetchall()
    names = {index_of(corpus): "hnsw", "kg_embeddings_of_type": "type", "kg_embeddings_of_family": "family and type",
             "kg_embeddings_in_family": "family"}  # fmt: skip
    return {names[name]: scans for name, scans in rows if name in names}


@pytest.mark.parametrize(
    ("arguments", "path", "read_from"),
    [
        ({}, "hnsw, first look", {"hnsw": 1}),
        ({"ratio": -1}, "hnsw, second look", {"hnsw": 2}),
        ({"match_count": 120}, "hnsw, second look", {"hnsw": 1}),
        ({"memory_types": ["decision"], "match_count": 4}, "hnsw, read on", {"hnsw": 3, "type": 1}),
        ({"memory_types": ["decision"], "match_count": 15}, "exact, after hnsw", {"hnsw": 2, "type": 1, "family": 1}),
        ({"memory_types": ["decision"], "labels": 15}, "exact", {"type": 2}),
        ({"families": ["family3"]}, "exact", {"family": 1}),
        ({"families": ["family3"], "memory_types": ["decision"]}, "exact", {"family and type": 1}),
        ({"families": ["family3"], "since": LONG_AGO}, "exact", {"family and type": 1}),
        ({"families": ["family0"], "memory_types": ["decision"]}, "exact", {"family and type": 2}),
        ({"families": ["family0"]}, "hnsw, first look", {"hnsw": 1}),
    ],
    ids=str,
)
def test_each_path_reads_its_index(
    corpus: Corpus,
    app: Connection,
    admin: Connection,
    boss: Connection,
    arguments: dict[str, Any],
    path: str,
    read_from: dict[str, int],
) -> None:
    """15 decisions in all, 1 of them in family3 and 5 in family0; and what is in few indexes is found completely."""
    boss.execute("analyze graphium.kg_embeddings")
    asked = {"query_embedding": corpus.rows[0].embedding, "match_count": 5, **arguments}
    changed = {"hnsw_easy_ratio": asked.pop("ratio", 0.75), "exact_label_max": asked.pop("labels", 5)}
    try:
        for name, value in changed.items():
            boss.execute("update graphium_private.settings set value = %s where name = %s", [value, name])
        with as_caller(admin, corpus.slug):
            [told] = read(admin, "explain_search", **asked)
        with as_caller(app, corpus.slug, ["hr", "board"]):
            before = indexes_read(app, corpus)
            hits = read(app, "search_context", follow_symbiosis=False, **asked)
            scans = {name: count - before[name] for name, count in indexes_read(app, corpus).items()}
    finally:
        for name, value in (("hnsw_easy_ratio", 0.75), ("exact_label_max", 5)):
            boss.execute("update graphium_private.settings set value = %s where name = %s", [value, name])
    nearest = {id for id, _ in corpus.nearest(asked["query_embedding"], None)[:400]}  # of 4,000
    assert sum(r.id in nearest and r.memory_type == "decision" for r in corpus.rows) == 1  # which a second look finds
    assert told.path == path
    assert {name: count for name, count in scans.items() if count} == read_from
    expected = [id for id, _ in corpus.nearest(asked["query_embedding"], None, lambda r: r.family in asked.get("families", [r.family])
        and r.memory_type in asked.get("memory_types", [r.memory_type]))][: asked["match_count"]]  # fmt: skip
    assert len(hits) == len(expected)
    assert len({h.statement_id for h in hits} & set(expected)) >= 0.98 * len(expected)


def test_the_paths_that_are_explained_to_an_admin(corpus: Corpus, admin: Connection) -> None:
    query = np.ones(DIMENSIONS, dtype=np.float32)
    row = corpus.rows[0].embedding
    assert row is not None
    said = {}
    with as_caller(admin, corpus.slug):
        for arguments in (
            {"query_embedding": row},
            {"query_embedding": query, "match_count": 200},
            {"query_embedding": query, "memory_types": ["decision"], "match_count": 20},
            {"query_text": "statement"},
        ):
            [told] = read(admin, "explain_search", **arguments)
            said[told.path] = (told.part, told.reason, told.admitted)
    plain = "the tenant has an index of its own, and no filter leaves few vectors"
    decisions = sum(r.memory_type == "decision" for r in corpus.rows)
    assert said == {
        "hnsw, first look": ("vector", plain, ROWS),
        "hnsw, second look": ("vector", plain, ROWS),
        "exact, after hnsw": ("vector", plain, decisions),
        "postings": ("words", "1 distinct words, each looked up under every audience that the caller is of", ROWS),
    }


def test_too_few_from_the_index_are_made_up_exactly(corpus: Corpus, app: Connection) -> None:
    """Rare labels, rare scopes, more rows than there are: complete and in the right order."""
    query = np.ones(DIMENSIONS, dtype=np.float32)
    rare = corpus.nearest(query, (), lambda r: r.memory_type == "decision")
    hits, scans = searched(app, corpus, query_embedding=query, match_count=20, memory_types=["decision"])
    assert scans == 2  # near, and further; not to the end of the index
    assert 5 < len(rare) < 20
    assert [h.statement_id for h in hits] == [id for id, _ in rare]

    everything = corpus.nearest(query, ())
    for count in (497, 498, 1000):
        hits, _ = searched(app, corpus, query_embedding=query, match_count=count)
        assert len(hits) == count
        found = {h.statement_id for h in hits}
        assert len(found & {id for id, _ in everything[:count]}) >= 0.98 * count


def test_rows_hidden_from_the_caller_cost_nobody_a_hit(
    new_corpus: Callable[..., Corpus], app: Connection, maintainer: Connection
) -> None:
    """1,500 rows at the query point are for others; the caller's own 12 are far away. All 12 come back."""
    random = np.random.default_rng(5)
    query = random.normal(size=8)
    corpus = new_corpus(8)
    corpus.plant(
        *[
            Row("f", embedding=v, required_scopes=("board",))
            for v in (query + 0.05 * random.normal(size=(1500, 8))).astype(np.float32)
        ]
    )
    own = [Row("f", embedding=v) for v in random.normal(size=(12, 8)).astype(np.float32)]
    corpus.plant(*own)
    assert maintain(maintainer) == ["create index"]
    hits, scans = searched(app, corpus, query_embedding=query, match_count=12)
    assert scans == 2
    assert [h.statement_id for h in hits] == [id for id, _ in corpus.nearest(query, ())]


def test_the_twentieth_time_and_on_a_fresh_connection(corpus: Corpus, app: Connection, shared: Database) -> None:
    arguments: dict[str, Any] = {"query_embedding": np.ones(DIMENSIONS), "query_text": "statement 3", "match_count": 30}
    first = search(app, corpus, **arguments)
    assert all(search(app, corpus, **arguments) == first for _ in range(20))
    assert search(shared.connect("app"), corpus, **arguments) == first


def test_settings_of_the_search_end_with_it(corpus: Corpus, shared: Database) -> None:
    conn = shared.connect("app")
    with as_caller(conn, corpus.slug):
        conn.execute("select '[1]'::vector")
        before = conn.execute(
            "select name, setting from pg_settings where name ~ '^(hnsw|enable_|jit$|datestyle$|search_path$|plan_cache)' order by 1"
        ).fetchall()
        assert len(read(conn, "search_context", query_embedding=np.ones(DIMENSIONS), match_count=500)) == 500
        assert (
            conn.execute(
                "select name, setting from pg_settings where name ~ '^(hnsw|enable_|jit$|datestyle$|search_path$|plan_cache)' order by 1"
            ).fetchall()
            == before
        )


def test_first_thing_on_a_fresh_connection(corpus: Corpus, shared: Database) -> None:
    """pgvector is loaded by the call itself, and its settings exist only from then on."""
    hits, scans = searched(shared.connect("app"), corpus, query_embedding=np.ones(DIMENSIONS))
    assert (len(hits), scans) == (10, 1)


class TestMaintenance:
    def test_nothing_to_do_is_no_row(self, corpus: Corpus, maintainer: Connection) -> None:
        assert maintain(maintainer) == []
        assert plan(maintainer) == []

    def test_it_is_for_admins(self, shared: Database, app: Connection) -> None:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            plan(app)
        assert plan(shared.connect("admin")) == []

    def test_grows_shrinks_and_between_the_thresholds_stays(
        self, new_corpus: Callable[..., Corpus], maintainer: Connection, boss: Connection
    ) -> None:
        corpus = new_corpus(4)
        random = np.random.default_rng(1)
        rows = [Row(f"f{n % 3}", embedding=v) for n, v in enumerate(random.normal(size=(1000, 4)))]
        corpus.plant(*rows[:999])
        assert maintain(maintainer) == []
        corpus.plant(rows[999])
        (_, _, create, *_) = steps = plan(maintainer)
        assert [(s.step, s.tenant, s.action) for s in steps] == [
            (1, None, "set up"), (2, None, "set up"), (3, corpus.slug, "create index"),
            (4, None, "clean up"), (5, None, "clean up"), (6, None, "clean up"),
        ]  # fmt: skip
        assert "1000 embeddings" in create.reason
        assert steps[1].statement == "set max_parallel_maintenance_workers = 0"
        maintainer.execute(steps[0].statement.encode())
        maintainer.execute(create.statement.encode())
        maintainer.execute("reset role")
        # Broken off here: a plan says what is left. Nothing but vectors goes into the index, and none into statistics.
        assert [s.statement for s in plan(maintainer)] == [steps[n].statement for n in (0, 1, 3, 4, 5)]
        assert maintain(maintainer) == []
        assert plan(maintainer) == []
        boss.execute("analyze graphium.kg_embeddings")
        assert (
            boss.execute(
                "select stavalues1::text from pg_statistic where starelid = %s::regclass",
                [f"graphium.{index_of(corpus)}"],
            ).fetchall()
            == []
        )
        assert is_valid(boss, corpus)
        for expected, left in (([], 500), (["drop index"], 499)):
            boss.execute(
                "delete from graphium.kg_statements where tenant_id = %s and id in"
                " (select id from graphium.kg_statements where tenant_id = %s order by id offset %s)",
                [corpus.tenant_id, corpus.tenant_id, left],
            )
            assert maintain(maintainer) == expected
        assert is_valid(boss, corpus) is None
        assert maintainer.execute(
            "select current_user = session_user, current_setting('max_parallel_maintenance_workers') = (select reset_val from pg_settings where name = 'max_parallel_maintenance_workers')"
        ).fetchone() == (True, True)

    def test_a_broken_off_build_is_cleared_and_made_again(
        self, corpus: Corpus, app: Connection, maintainer: Connection, boss: Connection
    ) -> None:
        boss.execute(
            "update pg_index set indisvalid = false where indexrelid = %s::regclass", [f"graphium.{index_of(corpus)}"]
        )
        hits, scans = searched(app, corpus, query_embedding=np.ones(DIMENSIONS))
        assert (len(hits), scans) == (10, 0)
        steps = [s for s in plan(maintainer) if s.tenant]
        assert [(s.action, s.statement.split(" graphium.")[0]) for s in steps] == [
            ("drop index", "drop index concurrently if exists"),
            ("create index", f"create index concurrently if not exists {index_of(corpus)} on"),
        ]
        assert "broken off" in steps[0].reason
        assert maintain(maintainer) == ["drop index", "create index"]
        assert is_valid(boss, corpus)
        assert searched(app, corpus, query_embedding=np.ones(DIMENSIONS))[1] == 1

    def test_an_index_on_the_column_itself_serves_no_search_and_is_made_anew(
        self, corpus: Corpus, app: Connection, maintainer: Connection, boss: Connection
    ) -> None:
        """Callers could read along one (docs/side-channels.md); they were made so at first."""
        row = boss.execute("select pg_get_indexdef(%s::regclass)", [f"graphium.{index_of(corpus)}"]).fetchone()
        assert row is not None
        boss.execute(f"drop index graphium.{index_of(corpus)}".encode())
        boss.execute(
            row[0].replace("graphium_private._indexed_direction(embedding, statement_id)", "embedding").encode()
        )
        hits, scans = searched(app, corpus, query_embedding=np.ones(DIMENSIONS))
        assert (len(hits), scans) == (10, 0)
        assert [s.reason for s in plan(maintainer) if s.action == "drop index"] == [
            "it tells of hidden vectors, and searches do not use it: it is not on _indexed_direction(embedding, statement_id)"
        ]
        assert maintain(maintainer) == ["drop index", "create index"]
        assert boss.execute("select pg_get_indexdef(%s::regclass)", [f"graphium.{index_of(corpus)}"]).fetchone() == row
        assert searched(app, corpus, query_embedding=np.ones(DIMENSIONS))[1] == 1

    def test_callers_write_into_an_indexed_tenant(
        self, new_corpus: Callable[..., Corpus], app: Connection, maintainer: Connection
    ) -> None:
        """What is indexed is computed with the rights of whoever writes: the owner inserts, the keeper moves audiences."""
        corpus = new_corpus(4)
        corpus.plant(*[Row("f", embedding=v) for v in np.random.default_rng(4).normal(size=(1000, 4))])
        assert maintain(maintainer) == ["create index"]
        with as_caller(app, corpus.slug, ["hr"]):
            app.execute(
                """select graphium.ingest_context('f', 'g', 's', '[{"content": "new", "embedding": [9, 1, 2, 3]}]')"""
            )
            app.execute("select graphium.set_required_scopes('family', %s, '{hr}', true)", [corpus.ids["f"]])
        hits, scans = searched(app, corpus, ["hr"], query_embedding=[9, 1, 2, 3], match_count=1)
        assert ([h.content for h in hits], scans) == (["new"], 1)
        assert searched(app, corpus, query_embedding=[9, 1, 2, 3])[0] == []

    @pytest.mark.parametrize("dimensions", [16, 2001])
    def test_equal_vectors_take_as_much_room_as_others(
        self, new_corpus: Callable[..., Corpus], boss: Connection, maintainer: Connection, dimensions: int
    ) -> None:
        """Whether built or inserted: else what an ingest costs would tell whether a hidden row has the vector that it guesses."""
        random = np.random.default_rng(7)
        equal, others = new_corpus(dimensions), new_corpus(dimensions)
        sizes: dict[Corpus, list[int]] = {equal: [], others: []}
        for _ in ("built", "inserted"):
            vectors = random.normal(size=(1000, dimensions))
            equal.plant(*[Row("f", embedding=vectors[0]) for _ in vectors])
            others.plant(*[Row("f", embedding=v) for v in vectors])
            maintain(maintainer)
            for corpus, measured in sizes.items():
                row = boss.execute("select pg_relation_size(%s::regclass)", [f"graphium.{index_of(corpus)}"]).fetchone()
                assert row is not None
                measured.append(row[0])
        assert sizes[equal] == pytest.approx(sizes[others], rel=0.1)

    def test_killed_in_mid_build(
        self, new_corpus: Callable[..., Corpus], shared: Database, maintainer: Connection, boss: Connection
    ) -> None:
        """A transaction that is older than the build holds it up; then the builder is killed. Meanwhile others leave it alone."""
        corpus = new_corpus(4)
        corpus.plant(*[Row("f", embedding=v) for v in np.random.default_rng(4).normal(size=(1000, 4))])
        older, builder = shared.connect("app"), shared.connect()
        statement = next(s.statement for s in plan(maintainer) if s.action == "create index")
        with older.transaction():
            older.execute("set transaction isolation level repeatable read")
            older.execute("select count(*) from graphium.kg_embeddings")
            with in_thread(lambda: builder.execute(statement.encode())) as build:
                wait_until(
                    lambda: (
                        boss.execute(
                            "select wait_event_type from pg_stat_activity where pid = %s", [builder.info.backend_pid]
                        ).fetchone()
                        == ("Lock",)
                        and is_valid(boss, corpus) is False
                    ),
                    "the build waits for the older transaction",
                )
                assert plan(maintainer) == []
                boss.execute("select pg_terminate_backend(%s)", [builder.info.backend_pid])
                assert isinstance(build.exception(), psycopg.OperationalError)
        wait_until(
            lambda: (
                boss.execute(
                    "select count(*) from pg_stat_activity where pid = %s", [builder.info.backend_pid]
                ).fetchone()
                == (0,)
            ),
            "it is gone",
        )
        assert is_valid(boss, corpus) is False
        assert maintain(maintainer) == ["drop index", "create index"]
        assert is_valid(boss, corpus)

    def test_the_index_of_a_dropped_tenant_goes(
        self, new_corpus: Callable[..., Corpus], maintainer: Connection, boss: Connection
    ) -> None:
        corpus = new_corpus(4)
        corpus.plant(*[Row("f", embedding=v) for v in np.random.default_rng(4).normal(size=(1000, 4))])
        assert maintain(maintainer) == ["create index"]
        maintainer.execute("select graphium.drop_tenant(%s)", [corpus.slug])
        (_, _, drop, *_) = plan(maintainer)
        assert (drop.tenant, drop.action, drop.reason) == (None, "drop index", "it belongs to no tenant")
        for step in plan(maintainer):
            maintainer.execute(step.statement.encode())
        assert is_valid(boss, corpus) is None

    def test_above_2000_dimensions_by_halfvec_above_4000_never(
        self, new_corpus: Callable[..., Corpus], app: Connection, maintainer: Connection, boss: Connection
    ) -> None:
        boss.execute(
            "update graphium_private.settings set value = 20 where name in ('hnsw_min_embeddings', 'hnsw_drop_below')"
        )
        try:
            random = np.random.default_rng(9)
            half, huge = new_corpus(2048), new_corpus(4096)
            for corpus, dimensions in ((half, 2048), (huge, 4096)):
                corpus.plant(*[Row("f", embedding=v.astype(np.float32)) for v in random.normal(size=(40, dimensions))])
            planned = {s.tenant for s in plan(maintainer) if s.action == "create index"}
            assert half.slug in planned
            assert huge.slug not in planned
            maintain(maintainer)
            for corpus, dimensions, index_scans in ((half, 2048, 2), (huge, 4096, 0)):  # random ones are no easy query
                query = random.normal(size=dimensions).astype(np.float32)
                hits, scans = searched(app, corpus, query_embedding=query, match_count=5)
                assert scans == index_scans
                expected = corpus.nearest(query, ())[:5]
                assert [h.statement_id for h in hits] == [id for id, _ in expected]
                assert [h.similarity for h in hits] == pytest.approx([s for _, s in expected], abs=1e-6)
        finally:
            for name, value in (("hnsw_min_embeddings", 1000), ("hnsw_drop_below", 500)):
                boss.execute("update graphium_private.settings set value = %s where name = %s", [value, name])


def test_the_choice_is_no_ones_to_ask(shared: Database, app: Connection) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute("select graphium_private._choose_scan(gen_random_uuid(), 3, null, null, null, null)")
