"""Single statements from several sessions at once, against as many sessions that insert one bare row each.

Every ingest and every bare insert is a transaction of its own, so both wait for the same commits. The kinds take turns.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.bench import Bench, Connection, Statement
from benchmarks.data import CALLER_SCOPES, binary
from benchmarks.measure import Bar, Line
from benchmarks.rows.search import OURS as SEARCH
from graphium_db.calls import vector_text

BAR = Bar("≥ 0.8×", lambda ours, bare: ours >= 0.8 * bare)
ONCE = Bar("no error, each once", lambda wrong, _: wrong == 0)
TENANT = "sessions"
THE_SAME = 25

INGEST = "select * from graphium.ingest_context(family => $1, genus => 'genus', specimen => 'specimen', statements => $2::jsonb)"
BARE = "insert into raw_sessions (content) values ($1)"

Work = Callable[[int], object]


def run(bench: Bench) -> Iterator[Line]:
    bench.tenant(TENANT)
    families = itertools.count()
    with bench.superuser() as conn:
        conn.execute(
            "create table raw_sessions (id bigint generated always as identity primary key, content text not null)"
        )
    inputs = _inputs(bench, 100 + int(2000 * bench.sizes.seconds))
    memory = bench.searched(bench.sizes.tenants[1])
    queries = [binary(q) for q in bench.generator.on_topic(memory, 100)]

    def bare(_: int) -> tuple[Connection, Work]:
        conn = bench.database.connect()
        insert = Statement(conn, BARE)
        return conn, lambda i: insert(inputs[i % len(inputs)][:60])

    def ingest(family: int) -> tuple[Connection, Work]:
        conn = bench.database.connect_as(TENANT)
        statement = Statement(conn, INGEST)
        return conn, lambda i: statement(f"family {family}", inputs[i % len(inputs)])

    def search(_: int) -> tuple[Connection, Work]:
        conn = bench.database.connect_as(memory.tenant.slug, CALLER_SCOPES)
        statement = Statement(conn, SEARCH)
        return conn, lambda i: statement(queries[i % len(queries)])

    for sessions in bench.sizes.sessions:
        rates: dict[str, list[float]] = {"bare": [], "own": [], "one": [], "search": []}
        for _ in range(bench.sizes.rounds):
            fresh = [next(families) for _ in range(sessions)]
            for kind, make, of in (
                ("bare", bare, fresh),
                ("own", ingest, fresh),
                ("one", ingest, [next(families)] * sessions),
                ("search", search, fresh),
            ):
                opened = [make(n) for n in of]
                rates[kind].append(_rate([work for _, work in opened], bench.sizes.seconds))
                for conn, _ in opened:
                    conn.close()
        middle = {kind: statistics.median(values) for kind, values in rates.items()}
        of_each = [o / b for o, b in zip(rates["own"], rates["bare"], strict=True)]
        yield Line(
            f"{sessions} sessions, each into a family of its own",
            "ingests/s",
            middle["own"],
            middle["bare"],
            spread=(min(of_each), max(of_each)),
            bar=BAR if sessions == 8 else None,
            note=f"into one family {middle['one']:,.0f}/s; searches of {memory.size:,} rows {middle['search']:,.0f}/s",
            series="sessions",
            at=sessions,
            extra=middle,
        )
    yield _the_same_statements(bench)


def _rate(works: list[Work], duration: float) -> float:
    """Calls per second of all threads together."""
    done = [0] * len(works)
    errors: list[BaseException] = []
    together = threading.Barrier(len(works) + 1)
    stop = threading.Event()

    def loop(n: int) -> None:
        try:
            works[n](n)  # the first call plans
            together.wait()
            while not stop.is_set():
                done[n] += 1
                works[n](len(works) * done[n] + n)
        except BaseException as error:
            errors.append(error)
            together.abort()

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(len(works))]
    for thread in threads:
        thread.start()
    with contextlib.suppress(threading.BrokenBarrierError):
        together.wait()
        start = time.perf_counter()
        time.sleep(duration)
    stop.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(done) / (time.perf_counter() - start)


def _the_same_statements(bench: Bench) -> Line:
    """Eight sessions ingest the same statements into one family at once."""
    inputs = _inputs(bench, THE_SAME)
    errors: list[BaseException] = []

    def ingest_all() -> None:
        try:
            with bench.database.connect_as(TENANT) as conn:
                statement = Statement(conn, INGEST)
                for text in inputs:
                    statement("the same", text)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ingest_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with bench.superuser() as conn:
        row = conn.execute(
            "select count(*) from graphium.kg_statements s join graphium.dh_families f on f.id = s.family_id where f.name = 'the same'"
        ).fetchone()
    assert row is not None
    return Line(
        f"8 sessions, the same {THE_SAME} statements into one family",
        "wrong",
        len(errors) + abs(row[0] - THE_SAME),
        bar=ONCE,
        note="errors and duplicates; " + (str(errors[0]) if errors else "no deadlock"),
    )


def _inputs(bench: Bench, count: int) -> list[str]:
    centres = bench.generator.families(50)
    rows = bench.generator.rows(centres, np.arange(count) % 50)
    return [
        json.dumps([{"content": content, "embedding": vector_text(vector)}])
        for content, vector in zip(rows.contents, rows.vectors, strict=True)
    ]
