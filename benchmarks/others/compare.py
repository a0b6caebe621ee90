"""One size: load all systems batch by batch, index, search, then add some more, their calls taking turns."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.bench import Bench, Tenant
from benchmarks.data import Floats
from benchmarks.measure import percentile
from benchmarks.others.systems import COUNT, EF_SEARCH, Corpus, LangGraph, Ours, Plain, System, stored
from benchmarks.rows.search import GOOD_RECALL

BATCH = 500
MORE = 10  # batches into the loaded and indexed systems
TRIALS = 20  # queries of each kind, to choose ef_search by
SLICES = 5


@dataclass(frozen=True)
class Loaded:
    """How one system took the statements. Rates are statements per second; a spread is that of five slices."""

    system: str
    load: float  # the index included
    load_spread: tuple[float, float]
    load_cpu: float | None  # of the server, per batch, in milliseconds
    index_seconds: float
    more: float  # with the index in place
    more_spread: tuple[float, float]
    more_cpu: float | None
    megabytes: float


@dataclass(frozen=True)
class Searched:
    """How one system answered one kind of query. Milliseconds; the spread is that of the median over five slices."""

    case: str
    system: str
    p50: float
    p95: float
    spread: tuple[float, float]
    cpu: float | None  # of the server, per search
    recall: float
    fewer: int  # answers of fewer rows than there were to find


@dataclass(frozen=True)
class Compared:
    """One size."""

    size: int
    small: int
    versions: dict[str, str]
    settled: dict[str, str]
    loaded: list[Loaded]
    searched: list[Searched]


@dataclass(frozen=True)
class _Part:
    """A tenant: its statements are first..last of the corpus, 500 to a family."""

    tenant: str
    first: int
    last: int
    queries: dict[str, range]

    def batches(self) -> Iterator[tuple[str, str, int, int]]:
        for first in range(self.first, self.last, BATCH):
            yield self.tenant, f"family {first}", first, min(first + BATCH, self.last)


def compare(bench: Bench, size: int, python: Path | None, more_batches: int = MORE) -> Compared:
    """Compare at `size` statements, in one tenant, with a small tenant beside it. Without `python`: without LangGraph."""
    small = max(100, size // 100)
    corpus, parts, more = _corpus(bench, {"large": size, "small": small}, more_batches)
    tenants: dict[str, Tenant] = {part.tenant: bench.tenant(part.tenant) for part in parts}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def langgraph(name: str) -> list[LangGraph]:
            dsn = bench.database.superuser
            return [stack.enter_context(LangGraph.running(name, python, dsn, corpus, folder))] if python else []

        systems: list[System] = [Ours(bench, corpus, tenants), *langgraph("LangGraph"), Plain(bench, corpus)]
        before = stored(bench, systems)
        first = _load(systems, [batch for part in parts for batch in part.batches()])
        index = []
        for system in systems:
            start = time.perf_counter()
            system.build_index()
            index.append(time.perf_counter() - start)
        with bench.superuser() as conn:
            conn.execute("vacuum (analyze)")
        size_on_disk = stored(bench, systems)
        judge = _Judge(corpus, parts)
        settled = {system.name: _settle(system, parts, judge) for system in systems[1:]}
        versions = {system.name: system.version for system in systems if isinstance(system, LangGraph)}
        searching = [*systems[:2], *langgraph("LangGraph, nothing tuned"), *systems[2:]]
        searched = [line for part in parts for line in _search(searching, part, judge)]

        then = _load(systems, list(more.batches()))
        loaded = [
            Loaded(
                system.name,
                sum(load.rows) / (sum(load.ms) / 1000 + seconds),
                _slices(load.rates()),
                load.cpu,
                seconds,
                sum(added.rows) / (sum(added.ms) / 1000),
                _slices(added.rates()),
                added.cpu,
                (after - empty) / 1e6,
            )
            for system, load, seconds, added, empty, after in zip(
                systems, first, index, then, before, size_on_disk, strict=True
            )
        ]
        return Compared(size, small, versions, settled, loaded, searched)


def _corpus(bench: Bench, tenants: dict[str, int], more_batches: int) -> tuple[Corpus, list[_Part], _Part]:
    """Statements of the tenants, more of the first, then trial queries and queries of each kind for each tenant."""
    generator, queries = bench.generator, TRIALS + bench.sizes.queries
    centres = {tenant: generator.families(-(-rows // BATCH)) for tenant, rows in tenants.items()}
    large = next(iter(tenants))
    centres["more"] = generator.families(more_batches)
    vectors: list[Floats] = []
    places = {}

    def add(some: Floats) -> range:
        start = sum(map(len, vectors))
        vectors.append(some)
        return range(start, start + len(some))

    for name, rows in (*tenants.items(), ("more", more_batches * BATCH)):
        places[name] = add(generator.around(np.repeat(centres[name], BATCH, axis=0)[:rows]))
    statements = sum(map(len, vectors))
    kinds = {}
    for tenant in tenants:
        other = next(name for name in tenants if name != tenant)
        kinds[tenant] = {
            kind: add(generator.around(some[generator.random.integers(0, len(some), queries)]))
            for kind, some in (("on topic", centres[tenant]), ("off topic", centres[other]))
        }
    # distinct texts, so that nobody folds them: what is measured stores every one of them
    texts = [f"{text[:-1]} {n}." for n, text in enumerate(generator.sentences(statements))]
    texts += [f"query {n}" for n in range(sum(map(len, vectors)) - statements)]
    parts = [_Part(name, places[name].start, places[name].stop, kinds[name]) for name in tenants]
    return Corpus(texts, np.concatenate(vectors)), parts, _Part(large, places["more"].start, places["more"].stop, {})


@dataclass
class _Batches:
    """What a system took for batches, one after the other."""

    rows: list[int] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    cpu: float | None = None

    def rates(self) -> list[float]:
        return [1000 * rows / ms for rows, ms in zip(self.rows, self.ms, strict=True)]


def _load(systems: Sequence[System], batches: Sequence[tuple[str, str, int, int]]) -> list[_Batches]:
    """Put every batch into every system."""
    taken = [_Batches() for _ in systems]
    before = [_cpu(system) for system in systems]
    for n, (tenant, folder, first, last) in enumerate(batches):
        for which in _turns(len(systems), n):
            taken[which].rows.append(last - first)
            taken[which].ms.append(systems[which].put(tenant, folder, first, last))
    for system, batch, start in zip(systems, taken, before, strict=True):
        batch.cpu = _between(start, _cpu(system), len(batches))
    return taken


def _search(systems: Sequence[System], part: _Part, judge: _Judge) -> Iterator[Searched]:
    for kind, numbers in part.queries.items():
        queries = numbers[TRIALS:]
        took: list[list[float]] = [[] for _ in systems]
        found: list[list[tuple[float, int]]] = [[] for _ in systems]
        for query in numbers[:TRIALS]:  # warmed up: plans of prepared statements are settled
            for system in systems:
                system.search(part.tenant, query)
        before = [_cpu(system) for system in systems]
        for n, query in enumerate(queries):
            for which in _turns(len(systems), n):
                ms, rows = systems[which].search(part.tenant, query)
                took[which].append(ms)
                found[which].append(judge.recall(part.tenant, query, rows))
        after = [_cpu(system) for system in systems]
        for system, times, judged, start, end in zip(systems, took, found, before, after, strict=True):
            yield Searched(
                f"{judge.rows(part.tenant):,} statements, {kind}",
                system.name,
                statistics.median(times),
                percentile(times, 0.95),
                _slices(times),
                _between(start, end, len(queries)),
                float(np.mean([recall for recall, _ in judged])),
                sum(short for _, short in judged),
            )


def _settle(system: System, parts: Sequence[_Part], judge: _Judge) -> str:
    """Set the least ef_search with a recall of 0.99 over trial queries of all kinds, else the one with the best."""
    best = (0.0, 0)
    for ef_search in EF_SEARCH:
        system.tune(ef_search)
        found = [
            judge.recall(part.tenant, query, system.search(part.tenant, query)[1])[0]
            for part in parts
            for numbers in part.queries.values()
            for query in numbers[:TRIALS]
        ]
        best = max(best, (float(np.mean(found)), ef_search), key=lambda pair: pair[0])
        if best[0] >= GOOD_RECALL:
            break
    system.tune(best[1])
    return f"hnsw.ef_search {best[1]}, hnsw.iterative_scan relaxed_order, plan_cache_mode force_custom_plan"


class _Judge:
    """Brute force over all statements of a tenant, beforehand."""

    def __init__(self, corpus: Corpus, parts: Sequence[_Part]) -> None:
        self._corpus = corpus
        self._members = {part.tenant: range(part.first, part.last) for part in parts}
        self._least: dict[tuple[str, int], float] = {}
        for part in parts:
            vectors = corpus.vectors[part.first : part.last]
            for queries in part.queries.values():
                for query in queries:
                    similarity = vectors @ corpus.vectors[query]
                    wanted = min(COUNT, len(vectors))
                    self._least[part.tenant, query] = float(np.partition(similarity, -wanted)[-wanted]) - 1e-6

    def rows(self, tenant: str) -> int:
        return len(self._members[tenant])

    def recall(self, tenant: str, query: int, found: Sequence[int]) -> tuple[float, int]:
        """Share of the nearest ten that were found (of equally near ones any will do), and whether there were too few."""
        wanted, least, vectors = min(COUNT, self.rows(tenant)), self._least[tenant, query], self._corpus.vectors
        right = [n for n in set(found) if n in self._members[tenant] and vectors[n] @ vectors[query] >= least]
        return min(1.0, len(right) / wanted), int(len(found) < wanted)


def _turns(count: int, n: int) -> list[int]:
    """Everybody's turn, another one first each time."""
    return [(n + k) % count for k in range(count)]


def _slices(values: Sequence[float]) -> tuple[float, float]:
    """Least and greatest median of five consecutive slices."""
    count = min(SLICES, len(values))
    edges = [len(values) * k // count for k in range(count + 1)]
    medians = [statistics.median(values[a:b]) for a, b in itertools.pairwise(edges)]
    return min(medians), max(medians)


def _between(start: float | None, end: float | None, count: int) -> float | None:
    return None if start is None or end is None else (end - start) / count


def _cpu(system: System) -> float | None:
    """Milliseconds that the system's backend has been on a CPU, where the server is on this machine and this is Linux."""
    time.sleep(0.01)  # until it waits for us
    try:
        return int(Path(f"/proc/{system.backend}/schedstat").read_text().split()[0]) / 1e6
    except OSError:
        return None
