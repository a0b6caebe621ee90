"""Cost growth: the same calls in one tenant of more and more statements.

Each size has a database of its own with one tenant in it, so that what is on disk is the tenant's. All statements are
preloaded, for wake_up_context. Each size is compared with the one before. `make bench ROWS=growth SIZES="…"` takes others.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.bench import Bench, Connection, Statement, column, maintain
from benchmarks.data import CALLER_SCOPES, Memory, binary, load
from benchmarks.filters import SEARCH, Filter
from benchmarks.measure import Line, Run, percentile, server_cpu, times, value_text
from benchmarks.rows.ingest import BATCH, FAMILY, as_json
from benchmarks.rows.ingest import OURS as INGEST
from benchmarks.rows.search import OURS as BY_VECTOR
from benchmarks.truth import Truth

SERIES = "growth: "
WARM_UP = 8
BY_WORDS = "select * from graphium.search_context(query_text => $1, match_count => 10)"

# of the tenant: tables with their indexes and TOAST
SIZES = {
    "statements": "pg_total_relation_size('graphium.kg_statements')",
    "words": "pg_total_relation_size('graphium_private.postings')",
    "vectors": "(select sum(pg_total_relation_size(relid)) from pg_partition_tree('graphium.kg_embeddings'))",
}

BENDS = """Where the curves bend, and why:

- *In proportion to the rows*, without a bend: an exact search, which reads every vector; a search by common words, which reads a
  posting for each statement that has one; the tree, which counts; everything on disk. A rare word costs what its own postings do.
- *Flat*: a page of recall, which is read backwards from an index; wake-up, which looks at the newest `wake_up_window`
  statements; an ingest into families of the same size where there is no HNSW index.
- *HNSW* bends the search by vector from a line to a logarithm. What is off topic takes the second look, at `hnsw_ef_hard` rows: its
  price is that number, hardly the tenant's size; what grows instead is what it misses. An insert into the index walks it too.
- *An ingest into the largest family* rises with the family up to `projected_family_min` (3,000 embeddings), where projections take
  over: from there it does not rise, and the first ingest above it, which makes them, pays for all.
- *A filter* is scanned exactly, so in proportion to what it admits, up to `exact_scan_max` (100,000: here the largest family has them
  in a tenant of some 950,000) for families, and up to `exact_label_max` (20,000: 4 % of 500,000) for types. Beyond, the index's second look takes over.
- *Building the index* is a little steeper than the rows as long as the graph fits into `maintenance_work_mem`, and much steeper
  from where it does not: [tuning](tuning.md#memory) says how much it needs.
- *Everything* bends up where what it reads no longer fits into memory; above all the walks along an index, which look at pages in no order."""

Measured = tuple[str, str, Sequence[float], str]  # what, unit, values, note


def run(bench: Bench) -> Iterator[Line]:
    if bench.server is None:
        return
    before: dict[str, float] = {}
    for size in bench.sizes.growth:
        alone = Bench(bench.server.database(), bench.sizes, bench.generator, bench.server)
        alone.configure()
        for what, unit, taken, note in measure(alone, size):
            value = statistics.median(taken)
            p95 = percentile(taken, 0.95) if len(taken) > 1 else None
            case = f"{size:,} rows, {what}"
            yield Line(case, unit, value, before.get(what), p95, note=note, series=SERIES + what, at=size)
            before[what] = value


def measure(bench: Bench, size: int) -> Iterator[Measured]:
    count = max(10, bench.sizes.queries // 3) + WARM_UP
    generator = bench.generator
    memory = generator.memory(bench.tenant("growing"), size)
    with bench.superuser() as conn, bench.database.connect_as("growing", CALLER_SCOPES) as caller:
        start = time.perf_counter()
        load(conn, memory, layer_kind="preloaded")
        yield "COPY, with all that triggers derive", "rows/s", [size / (time.perf_counter() - start)], ""
        for what, expression in SIZES.items():
            yield f"on disk: {what}", "MB", [_number(conn, expression) / 1e6], ""

        vector, words = Statement(caller, BY_VECTOR), Statement(caller, BY_WORDS)
        page = Statement(caller, "select * from graphium.recall_context(after => $1)")
        tree = Statement(caller, "select * from graphium.context_tree()")
        wake_up = Statement(caller, "select * from graphium.wake_up_context()")
        ingest, filtered = Statement(caller, INGEST), Statement(caller, SEARCH)
        middle = sorted(map(str, memory.rows.ids))[size // 2]
        topics = {
            "on topic": generator.on_topic(memory, count),
            "off topic": generator.around(generator.families(count)),
        }
        queries = {topic: [(binary(q),) for q in some] for topic, some in topics.items()}

        yield _timed(caller, "search by vector, exact", each(vector, queries["on topic"]), count)
        for what, some_texts in texts(memory, count).items():
            yield _timed(caller, f"search by words, {what}", each(words, some_texts), count)
        yield _timed(caller, "recall_context, a page of 50", each(page, [(middle,)]), count)
        yield _timed(caller, "context_tree", each(tree, [()]), count)
        yield _timed(caller, "wake_up_context", each(wake_up, [()]), count)

        start = time.perf_counter()
        has_index = maintain(conn, memory.tenant)
        if has_index:
            yield "building the HNSW index", "s", [time.perf_counter() - start], ""
            name = f"graphium.kg_embeddings_hnsw_{memory.tenant.id.hex}"
            yield "on disk: HNSW index", "MB", [_number(conn, f"pg_relation_size('{name}')") / 1e6], ""
            for topic, some in topics.items():
                yield _timed(caller, f"search by vector, HNSW, {topic}", each(vector, queries[topic]), count)
                truth = Truth(memory, some)
                found = [column(vector(*query), "statement_id") for query in queries[topic]]
                recall = np.mean([truth.recall(i, ids, memory.seen) for i, ids in enumerate(found)])
                yield f"recall@10 by HNSW, {topic}", "recall", [float(recall)], ""
            largest = int(np.bincount(memory.rows.family).argmax())
            for filter in (
                Filter("in the largest family", families=(largest,)),
                Filter("decisions (4 %)", memory_types=(5,)),
            ):
                sent = [filter.arguments(query) for query in topics["on topic"]]
                yield _timed(caller, f"search by vector, {filter.name}", each(filtered, sent), count)
            yield from _ingest(bench, memory, caller, ingest, count, "HNSW")
            conn.execute(f"drop index {name}".encode())
        yield from _ingest(bench, memory, caller, ingest, count, "no HNSW")


def _ingest(
    bench: Bench, memory: Memory, caller: Connection, ingest: Statement, count: int, index: str
) -> Iterator[Measured]:
    families = np.bincount(memory.rows.family, minlength=len(memory.family_ids))
    near = np.argsort(np.abs(families - FAMILY), kind="stable").tolist()
    some = max(1, len(near) // 8)
    batches = 1 + max(1, bench.sizes.hnsw_batches // 2)
    for what, turns, batch, number, warm_up in (
        (f"one statement, families of {FAMILY}", near[:some], 1, count, WARM_UP),
        ("one statement, the largest family", [int(families.argmax())], 1, count, WARM_UP),
        (f"{BATCH} statements, families of {FAMILY}", near[some:], BATCH, batches, 1),  # each into another
    ):
        inputs = []
        for family in itertools.islice(itertools.cycle(turns), number):
            rows = bench.generator.rows(memory.centres, np.repeat(family, batch))
            taxa = (f"family {family}", f"genus {2 * family}", f"specimen {4 * family}")
            inputs.append((*taxa, as_json(rows, slice(None))))
        yield _timed(caller, f"ingest of {what}, {index}", each(ingest, inputs), number, warm_up)


def table(lines: list[Line]) -> str:
    """What by size, with the factor from one size to the next, and where the curves bend."""
    sizes = sorted({line.at for line in lines if line.at})
    rows = [
        ["", f"{sizes[0]:,} rows", *itertools.chain.from_iterable(("×", f"{size:,} rows") for size in sizes[1:])],
        ["---", *["---:"] * (2 * len(sizes) - 1)],
        ["*rows*", "", *itertools.chain.from_iterable((f"*{b / a:.3g}*", "") for a, b in itertools.pairwise(sizes))],
    ]
    for series in dict.fromkeys(line.series for line in lines):
        found = {line.at: line for line in lines if line.series == series}
        cells = []
        for size in sizes:
            line = found.get(size)
            if size != sizes[0]:
                cells.append(f"{line.ratio:.3g}" if line and line.ratio else "")
            cells.append(value_text(line.ours, line.ours_p95, line.unit) if line else "")
        rows.append([series.removeprefix(SERIES), *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n\n" + BENDS


def each(statement: Statement, inputs: Sequence[tuple[Any, ...]]) -> Run:
    return lambda i: statement(*inputs[i % len(inputs)])


def _timed(caller: Connection, what: str, call: Run, count: int, warm_up: int = WARM_UP) -> Measured:
    """The first are for warming up: an ingest cannot be repeated, for what is sent twice is deduplicated."""
    times(call, warm_up, warm_up=0)
    before = server_cpu([caller.info.backend_pid])
    taken = times(lambda i: call(warm_up + i), count - warm_up, warm_up=0)
    after = server_cpu([caller.info.backend_pid])
    cpu = f"server CPU {(after[0] - before[0]) / len(taken):.3g} ms a call" if before and after else ""
    return what, "ms", taken, cpu


def texts(memory: Memory, count: int) -> dict[str, list[tuple[str]]]:
    """Of some statements: three words, and the rarest."""
    sentences = [text.rstrip(".").lower().split() for text in memory.rows.contents]
    frequency = Counter(word for words in sentences for word in words)
    some = sentences[:: len(sentences) // count][:count]
    return {
        "three of a statement": [(" ".join(words[:3]),) for words in some],
        "its rarest": [(min(words, key=lambda word: frequency[word]),) for words in some],
    }


def _number(conn: Connection, expression: str) -> float:
    row = conn.execute(f"select {expression}".encode()).fetchone()
    assert row is not None
    return float(row[0])
