"""The systems that are compared: how each is filled, indexed, tuned and asked."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psycopg
from pgvector.psycopg import register_vector

from benchmarks.bench import Bench, Tenant, maintain
from benchmarks.data import DIMENSIONS, Floats
from graphium_db import Graphium

COUNT = 10
EF_SEARCH = (40, 100, 200, 400)


@dataclass(frozen=True)
class Corpus:
    """All texts with their vectors, those of queries at the end; a text's number is its place."""

    texts: list[str]
    vectors: Floats


class System(Protocol):
    """What is measured. A tenant is known by name; statements and queries by their numbers in the corpus."""

    name: str
    backend: int  # process id on the server
    tables: str  # condition on pg_namespace n and pg_class c: what it stores

    def put(self, tenant: str, folder: str, first: int, last: int) -> float:
        """Store the statements first..last in one call. Milliseconds."""

    def build_index(self) -> None:
        """What is left to do after the first load."""

    def tune(self, ef_search: int) -> None:
        """Set how far an approximate index is searched."""

    def search(self, tenant: str, query: int) -> tuple[float, list[int]]:
        """Milliseconds, and the numbers of the nearest statements of the tenant."""


class Ours:
    """`graphium_db.Graphium`, as an application that speaks for the tenant. Nothing is tuned: the search decides itself."""

    name = "Graphium"
    tables = "n.nspname not in ('public', 'plain', 'pg_catalog', 'information_schema', 'pg_toast')"

    def __init__(self, bench: Bench, corpus: Corpus, tenants: dict[str, Tenant]) -> None:
        self._bench, self._corpus, self._tenants = bench, corpus, tenants
        self._conn = psycopg.connect(bench.database.app, autocommit=True)
        self._memories = {slug: Graphium(connection=self._conn, tenant=slug) for slug in tenants}
        self._numbers: dict[Any, int] = {}
        self.backend = self._conn.info.backend_pid

    def put(self, tenant: str, folder: str, first: int, last: int) -> float:
        texts, vectors = self._corpus.texts[first:last], self._corpus.vectors[first:last]
        start = time.perf_counter()
        rows = self._memories[tenant].ingest_context(
            folder,
            "notes",
            "log",
            [{"content": text, "embedding": vector} for text, vector in zip(texts, vectors, strict=True)],
        )
        took = 1000 * (time.perf_counter() - start)
        self._numbers.update((row.statement_id, first + row.ordinal - 1) for row in rows)
        return took

    def build_index(self) -> None:
        with self._bench.superuser() as conn:
            for tenant in self._tenants.values():
                maintain(conn, tenant)

    def tune(self, ef_search: int) -> None:
        pass

    def search(self, tenant: str, query: int) -> tuple[float, list[int]]:
        vector = self._corpus.vectors[query]
        start = time.perf_counter()
        hits = self._memories[tenant].search_context(query_embedding=vector, match_count=COUNT)
        return 1000 * (time.perf_counter() - start), [self._numbers[hit.statement_id] for hit in hits]


class Plain:
    """One table as pgvector's README has it: COPY, then HNSW, a B-tree for the filter, iterative scans."""

    name = "a table by hand"
    tables = "n.nspname = 'plain'"

    def __init__(self, bench: Bench, corpus: Corpus) -> None:
        self._corpus = corpus
        self._conn = psycopg.connect(bench.database.superuser, autocommit=True)
        register_vector(self._conn)
        self._conn.execute("create schema plain")
        self._conn.execute(
            f"create table plain.memories (id bigint primary key, tenant text not null, folder text not null, content text not null, created_at timestamptz not null default now(), embedding vector({DIMENSIONS}) not null)".encode()
        )
        self._conn.execute("create index on plain.memories (tenant)")
        self._conn.execute("set hnsw.iterative_scan = relaxed_order")
        # psycopg prepares what it runs often; a plan for any tenant would take the index for a small one too
        self._conn.execute("set plan_cache_mode = force_custom_plan")
        self.backend = self._conn.info.backend_pid

    def put(self, tenant: str, folder: str, first: int, last: int) -> float:
        start = time.perf_counter()
        with self._conn.cursor().copy(
            "copy plain.memories (id, tenant, folder, content, embedding) from stdin (format binary)"
        ) as copy:
            copy.set_types(["int8", "text", "text", "text", "vector"])
            for n in range(first, last):
                copy.write_row((n, tenant, folder, self._corpus.texts[n], self._corpus.vectors[n]))
        return 1000 * (time.perf_counter() - start)

    def build_index(self) -> None:
        self._conn.execute("create index on plain.memories using hnsw (embedding vector_cosine_ops)")

    def tune(self, ef_search: int) -> None:
        self._conn.execute("select set_config('hnsw.ef_search', %s, false)", [str(ef_search)])

    def search(self, tenant: str, query: int) -> tuple[float, list[int]]:
        vector = self._corpus.vectors[query]
        start = time.perf_counter()
        rows = self._conn.execute(
            "select id, folder, content, created_at, 1 - (embedding <=> %(query)s) as similarity from plain.memories"
            " where tenant = %(tenant)s order by embedding <=> %(query)s limit %(count)s",
            {"query": vector, "tenant": tenant, "count": COUNT},
        ).fetchall()
        return 1000 * (time.perf_counter() - start), [row[0] for row in rows]


class LangGraph:
    """`PostgresStore` with its HNSW index, the tenant being the first part of the namespace; langgraph_worker.py has it."""

    tables = "n.nspname = 'public'"

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name, self._process = name, process
        hello = self._answer()
        self.backend, self.version = int(hello["pid"]), str(hello["version"])

    @classmethod
    @contextlib.contextmanager
    def running(cls, name: str, python: Path, dsn: str, corpus: Corpus, folder: Path) -> Iterator[LangGraph]:
        texts, vectors = folder / "texts.json", folder / "vectors.f32"
        texts.write_text(json.dumps(corpus.texts), "utf-8")
        vectors.write_bytes(corpus.vectors.tobytes())
        with subprocess.Popen(
            [python, Path(__file__).with_name("langgraph_worker.py"), dsn, texts, vectors, str(DIMENSIONS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            yield cls(name, process)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process with LangGraph has ended; what it said is above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ask(self, *call: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def put(self, tenant: str, folder: str, first: int, last: int) -> float:
        return float(self._ask("put", tenant, folder, first, last)["ms"])

    def build_index(self) -> None:
        pass  # store.setup() made it

    def tune(self, ef_search: int) -> None:
        settings = {"hnsw.ef_search": str(ef_search), "hnsw.iterative_scan": "relaxed_order"}
        self._ask("tune", settings | {"plan_cache_mode": "force_custom_plan"})

    def search(self, tenant: str, query: int) -> tuple[float, list[int]]:
        answer = self._ask("search", tenant, query, COUNT)
        return float(answer["ms"]), answer["found"]


def stored(bench: Bench, systems: Sequence[System]) -> list[int]:
    """Bytes that each system takes on disk, indexes included."""
    with bench.superuser() as conn:
        found = []
        for system in systems:
            row = conn.execute(
                "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c join pg_namespace n on n.oid = c.relnamespace"
                f" where c.relkind in ('r', 'm') and {system.tables}".encode()
            ).fetchone()
            assert row is not None
            found.append(int(row[0]))
    return found
