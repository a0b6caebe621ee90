"""What settings cost and give, measured: docs/tuning.md quotes it.

    python -m benchmarks.tuning [--rows 20000] [--only SECTION …]

Sizes, counts and recall are the same on any machine. CPU is that of the server's process, of calls that took turns: other
work on the machine changes a ratio of two little. The server is an embedded one with the settings of `graphium up`, or
GRAPHIUM_BENCH_DSN's.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
import secrets
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pgvector import Vector
from psycopg import sql
from psycopg.conninfo import make_conninfo

from benchmarks import report
from benchmarks.bench import FULL, Bench, Connection, Database, Server, Statement, column, maintain
from benchmarks.data import CALLER_SCOPES, Floats, Generator, binary, load
from benchmarks.filters import SEARCH, Filter
from benchmarks.measure import Taken, interleave, server_cpu
from benchmarks.rows.growth import BY_WORDS, texts
from benchmarks.rows.ingest import BATCH, FAMILY, as_json
from benchmarks.rows.ingest import OURS as INGEST
from benchmarks.rows.search import OURS as BY_VECTOR
from benchmarks.truth import Truth
from graphium_db import server as embedded

QUERIES = 40
BY_BOTH = "select * from graphium.search_context(query_embedding => $1::vector, query_text => $2, match_count => 10)"
Arguments = tuple[Any, ...]
NO_FILTER = Filter("")
WRITTEN = "select pg_current_wal_insert_lsn() - '0/0'"
HNSW = "hnsw (({0}) {1}_cosine_ops) with (m = 16, ef_construction = 200)"


@dataclass(frozen=True)
class Call:
    """What is called: a new iterator of arguments each time, and for recall the queries and which rows are admitted."""

    text: str
    arguments: Callable[[], Iterator[Arguments]]
    count: int = QUERIES
    queries: Floats | None = None
    filter: Filter = NO_FILTER

    def on(self, conn: Connection) -> Callable[[int], Any]:
        statement, arguments = Statement(conn, self.text), self.arguments()
        return lambda _: statement(*next(arguments))


class World:
    """A tenant with its index, and the calls that settings are tried on."""

    def __init__(self, server: Server, size: int) -> None:
        self.server, self.size = server, size
        self.bench = Bench(server.database(), FULL, Generator(20261130), server)
        generator = self.bench.generator
        self.memory = memory = generator.memory(self.bench.tenant("tuned"), size)
        self.boss = self.bench.database.connect()
        load(self.boss, memory, layer_kind="preloaded")
        maintain(self.boss, memory.tenant)
        self.index = f"graphium.kg_embeddings_hnsw_{memory.tenant.id.hex}"
        families = np.bincount(memory.rows.family)
        largest, near = int(families.argmax()), np.argsort(np.abs(families - FAMILY), kind="stable").tolist()
        on, off = generator.on_topic(memory, QUERIES), generator.around(generator.families(QUERIES))
        words = texts(memory, QUERIES)["three of a statement"]

        def search(queries: Floats, filter: Filter = NO_FILTER) -> Call:
            text = SEARCH if filter.name else BY_VECTOR
            return Call(
                text,
                repeat([filter.arguments(q) if filter.name else (binary(q),) for q in queries]),
                QUERIES,
                queries,
                filter,
            )

        self.calls = {
            "search, on topic": search(on),
            "search, off topic": search(off),
            "search, the largest family": search(off, Filter("family", families=(largest,))),
            "search, a type (4 %)": search(off, Filter("type", memory_types=(5,))),
            "search, a type (15 %)": search(off, Filter("type", memory_types=(1,))),
            "search, words": Call(BY_WORDS, repeat(words)),
            "search, both": Call(BY_BOTH, repeat((binary(q), *w) for q, w in zip(on, words, strict=True))),
            "recall, a page": Call("select * from graphium.recall_context()", repeat([()])),
            "wake-up": Call("select * from graphium.wake_up_context()", repeat([()])),
            "context tree": Call("select * from graphium.context_tree()", repeat([()])),
            "ingest of 1": Call(INGEST, lambda: self.inputs(near[:1], 1)),
            "ingest of 1, the largest family": Call(INGEST, lambda: self.inputs([largest], 1)),
        }  # fmt: skip
        self.batches = Call(INGEST, lambda: self.inputs(near[1:], BATCH), 4)

    def inputs(self, families: Sequence[int], batch: int) -> Iterator[Arguments]:
        for family in itertools.cycle(families):
            rows = self.bench.generator.rows(self.memory.centres, np.repeat(family, batch))
            yield f"family {family}", f"genus {2 * family}", f"specimen {4 * family}", as_json(rows, slice(None))

    def caller(self, **settings: str) -> Connection:
        conn = self.bench.database.connect_as("tuned", CALLER_SCOPES)
        for name, value in settings.items():
            conn.execute("select set_config(%s, %s, false)", [name, value])
        return conn

    @contextlib.contextmanager
    def principal(self) -> Iterator[Connection]:
        """With a login that is this tenant, as a person has it."""
        name, password = f"{self.server.login}_principal", secrets.token_hex(16)
        login = sql.Identifier(name)
        self.boss.execute(sql.SQL("create role {} login password {}").format(login, sql.Literal(password)))
        try:
            self.boss.execute("select graphium.add_principal(%s, 'tuned', '{hr}')", [name])
            dsn = make_conninfo(self.bench.database.superuser, user=name, password=password)
            with Database("", dsn).connect_as("tuned", CALLER_SCOPES) as conn:
                yield conn
        finally:
            self.boss.execute(sql.SQL("drop owned by {}").format(login))
            self.boss.execute(sql.SQL("drop role {}").format(login))

    def compare(self, call: Call, ours: Connection, reference: Connection) -> Taken:
        backends = (ours.info.backend_pid, reference.info.backend_pid)
        return interleave(call.on(ours), call.on(reference), call.count, min(8, call.count), backends)


def repeat(arguments: Iterable[Arguments]) -> Callable[[], Iterator[Arguments]]:
    some = list(arguments)
    return lambda: itertools.cycle(some)


def number(conn: Connection, query: str, *parameters: Any) -> float:
    row = conn.execute(query.encode(), list(parameters)).fetchone()
    assert row is not None
    return float(row[0])


def cpu_of(conn: Connection) -> float:
    found = server_cpu([conn.info.backend_pid])
    return found[0] if found else float("nan")


def print_table(title: str, head: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    print(f"\n**{title}**\n")
    for line in itertools.chain([head, ["---"] * len(head)], rows):
        cells = (
            f"{cell:,.0f}"
            if isinstance(cell, float) and cell >= 100
            else f"{cell:.3g}"
            if isinstance(cell, float)
            else str(cell)
            for cell in line
        )
        print("| " + " | ".join(cells) + " |", flush=True)


# ---------------------------------------------------------------- sections
def sizes(world: World) -> None:
    """What is on disk, and what each call reads of it."""
    vectors = number(
        world.boss, "select sum(pg_total_relation_size(relid)) from pg_partition_tree('graphium.kg_embeddings')"
    )
    index = number(world.boss, "select pg_relation_size(%s::regclass)", world.index)
    found = {
        "statements": number(world.boss, "select pg_total_relation_size('graphium.kg_statements')"),
        "words": number(world.boss, "select pg_total_relation_size('graphium_private.postings')"),
        "vectors": vectors - index,
        "HNSW index": index,
    }
    rows = [(what, size / 1024 / world.size) for what, size in found.items()]
    print_table(f"{world.size:,} statements with their indexes", ("", "kB a statement"), rows)
    with world.caller() as caller:
        print_table(
            "Pages of 8 kB that a call looks at",
            ("call", "pages"),
            [(n, pages(caller, c)[0]) for n, c in world.calls.items()],
        )


def pages(conn: Connection, call: Call, count: int = 20) -> tuple[float, float]:
    """Medians: all that a call looked at, and what of it was not in shared_buffers."""
    looked, missed = [], []
    query = "explain (analyze, buffers, timing off, format json) " + re.sub(r"\$\d", "%s", call.text)
    for arguments in itertools.islice(call.arguments(), min(count, call.count) + 6):
        sent = [Vector.from_binary(a).to_text() if isinstance(a, bytes) else a for a in arguments]
        with conn.transaction(force_rollback=True):  # what is ingested would be no row of the truth
            row = conn.execute(query.encode(), sent).fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        looked.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        missed.append(plan["Shared Read Blocks"])
    return float(statistics.median(looked[6:])), float(statistics.median(missed[6:]))  # what is planned once is planned


def build(world: World) -> None:
    """What building an HNSW index needs of maintenance_work_mem, and costs with less."""
    conn = world.boss
    notices: list[str] = []
    conn.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    conn.execute("set max_parallel_maintenance_workers = 0")

    def make(memory: str, on: str) -> tuple[float, float, int | None]:
        """Milliseconds of CPU, bytes of the index, and after how many vectors the memory was full."""
        notices.clear()
        conn.execute("select set_config('maintenance_work_mem', %s, false)", [memory])
        before = cpu_of(conn)
        conn.execute(f"create index tried on {on}".encode())
        took = cpu_of(conn) - before
        [(name, size)] = conn.execute(
            "select oid::regclass::text, pg_relation_size(oid) from pg_class where relname = 'tried'"
        )
        conn.execute(f"drop index {name}".encode())
        full = [int(n) for text in notices for n in re.findall(r"no longer fits .* after (\d+) tuples", text)]
        return took, float(size), full[0] if full else None

    rows: list[Sequence[object]] = []
    random = np.random.default_rng(1)
    for dimensions in (384, 768, 1024, 1536, 2000, 3072):
        conn.execute("create temp table tried_on (v vector)")
        with conn.cursor().copy("copy tried_on from stdin") as copy:
            for vector in random.standard_normal((2000, dimensions), dtype=np.float32):
                copy.write_row([Vector(vector).to_text()])
        cells: list[object] = [dimensions]
        for kind in ("vector", "halfvec"):
            if kind == "vector" and dimensions > 2000:
                cells += ["—", "—"]
                continue
            _, size, full = make("1MB", "tried_on using " + HNSW.format(f"v::{kind}({dimensions})", kind))
            cells += [size / 1024 / 2000, 1024 / full if full else "?"]
        rows.append(cells)
        conn.execute("drop table tried_on")
    head = ("dimensions", "vector: index, kB a vector", "memory, kB a vector", "halfvec: index", "memory")
    print_table("HNSW indexes (m 16, ef_construction 200) by the type of their vectors", head, rows)

    row = conn.execute("select pg_get_indexdef(%s::regclass)", [world.index]).fetchone()
    assert row is not None
    like_ours = row[0].split(" ON ", 1)[1]
    conn.execute("set role graphium_owner")
    need = 3 * world.size // 1024
    found: dict[str, list[tuple[float, float, int | None]]] = {}
    for memory in (f"{need}MB", f"{need // 4}MB", f"{need // 16}MB") * 2:
        found.setdefault(memory, []).append(make(memory, like_ours))
    conn.execute("reset role")
    least = min(took for took, _, _ in next(iter(found.values())))
    rows = [(memory, min(t for t, _, _ in some) / least, some[0][2] or "all") for memory, some in found.items()]
    print_table(
        f"Building over {world.size:,} vectors",
        ("maintenance_work_mem", "CPU, ratio", "vectors until it was full"),
        rows,
    )


def halfvec(world: World) -> None:
    """An index on halfvec beside ours, read as ours is: ef_search candidates along it, then ordered by the vector."""
    row = world.boss.execute("select pg_get_indexdef(%s::regclass)", [world.index]).fetchone()
    assert row is not None
    world.boss.execute("set role graphium_owner")
    world.boss.execute("set max_parallel_maintenance_workers = 0")
    world.boss.execute(re.sub(r"kg_embeddings_hnsw_\w+", "half", row[0]).replace("vector", "halfvec").encode())
    world.boss.execute("reset role")
    by_hand = """
      select statement_id from (
        select e.statement_id, e.embedding <=> $1::vector as distance from graphium.kg_embeddings e where e.tenant_id = '{tenant}'
         order by graphium_private._indexed_direction(e.embedding, e.statement_id)::{kind}(384) <=> $1::{kind}(384) limit {ef}) as n
       order by distance limit 10"""
    rows: list[Sequence[object]] = []
    with world.bench.database.connect() as one, world.bench.database.connect() as other:
        sides = {"halfvec": one, "vector": other}
        for topic, ef in itertools.product(("on topic", "off topic"), (40, 100, 400, 800)):
            call = world.calls[f"search, {topic}"]
            assert call.queries is not None
            truth, everything = Truth(world.memory, call.queries), np.ones(world.size, dtype=bool)
            runs, recalls = [], []
            for kind, conn in sides.items():
                conn.execute("select set_config('hnsw.ef_search', %s, false)", [str(ef)])
                text = by_hand.format(tenant=world.memory.tenant.id, kind=kind, ef=ef)
                sent = itertools.islice(call.arguments(), QUERIES)
                found = [column(Statement(conn, text)(*arguments), "statement_id") for arguments in sent]
                recalls.append(np.mean([truth.recall(i, ids, everything) for i, ids in enumerate(found)]))
                runs.append(Call(text, call.arguments).on(conn))
            backends = (one.info.backend_pid, other.info.backend_pid)
            cpu = interleave(runs[0], runs[1], QUERIES, backends=backends).cpu
            ratio = cpu[0] / cpu[1] if cpu else "?"
            rows.append((f"{topic}, ef_search {ef}", f"{recalls[1]:.3f}", f"{recalls[0]:.3f}", ratio))
    half = number(world.boss, "select pg_relation_size('graphium.half')")
    share = half / number(world.boss, "select pg_relation_size(%s::regclass)", world.index)
    title = f"halfvec(384) instead of vector(384), {world.size:,} vectors: an index of {share:.2f} of the size"
    print_table(title, ("", "recall@10, vector", "recall@10, halfvec", "CPU, ratio"), rows)
    world.boss.execute("drop index graphium.half")


def thresholds(world: World) -> None:
    """Rows of graphium_private.settings, each at several values that take turns."""
    rows: list[Sequence[object]] = []
    topics = ("search, on topic", "search, off topic")
    with world.principal() as principal, world.caller() as caller:
        for conn, name, values, calls in (
            (principal, "principals_use_hnsw", (0, 1), topics),
            (caller, "hnsw_ef_first", (40, 80, 160), topics[:1]),
            (caller, "hnsw_easy_ratio", (0.6, 0.75, 0.9), topics),
            (caller, "hnsw_ef_hard", (200, 400, 800, 1000), topics[1:]),
            (caller, "exact_label_max", (0, 20000), ("search, a type (4 %)", "search, a type (15 %)")),
            (caller, "exact_scan_max", (0, 100000), ("search, the largest family",)),
            (caller, "fusion_pool", (50, 200, 1000), ("search, both",)),
            (caller, "wake_up_window", (100, 1000, 10000), ("wake-up",)),
            # this writes: what it adds would be no row of the truth
            (caller, "projected_family_min", (3000, 10**9), ("ingest of 1, the largest family",)),
        ):
            for call in calls:
                rows += vary(world, conn, name, values, call)
    print_table(f"Settings, {world.size:,} statements", ("setting", "value", "call", "CPU, ms", "recall@10"), rows)


def vary(world: World, caller: Connection, name: str, values: Sequence[float], what: str) -> Iterator[Sequence[object]]:
    call = world.calls[what]
    default = number(world.boss, "select value from graphium_private.settings where name = %s", name)
    cpu: dict[float, list[float]] = {value: [] for value in values}
    recall: dict[float, object] = dict.fromkeys(values, "")
    try:
        for turn in range(4):  # the first to warm up
            for value in values:
                world.boss.execute("update graphium_private.settings set value = %s where name = %s", [value, name])
                run = call.on(caller)
                run(0)  # the first may make or drop what the setting asks for
                before = cpu_of(caller)
                found = [run(i) for i in range(1, call.count + 1)]
                if turn:
                    cpu[value].append((cpu_of(caller) - before) / call.count)
                elif call.queries is not None:
                    truth, admitted = Truth(world.memory, call.queries), call.filter.admitted(world.memory)
                    ids = [column(result, "statement_id") for result in found]
                    found_of = [truth.recall(i % call.count, some, admitted) for i, some in enumerate(ids, 1)]
                    recall[value] = f"{np.mean(found_of):.3f}"
    finally:
        world.boss.execute("update graphium_private.settings set value = %s where name = %s", [default, name])
    for value in values:
        yield (
            name,
            f"{'**' * (value == default)}{value:,}{'**' * (value == default)}",
            what,
            statistics.median(cpu[value]),
            recall[value],
        )


def planner(world: World) -> None:
    """What a session's settings make of each call, against those of `graphium up`."""
    tried = (
        ("jit", "on"),
        ("random_page_cost", "4"),
        ("effective_cache_size", "128MB"),
        ("work_mem", "4MB"),
        ("work_mem", "64kB"),
    )
    rows = []
    for what, call in world.calls.items():
        ratios: list[object] = []
        for name, value in tried:
            with world.caller(**{name: value}) as ours, world.caller() as reference:
                cpu = world.compare(call, ours, reference).cpu
            ratios.append(f"{cpu[0] / cpu[1]:.2f}" if cpu else "?")
        rows.append((what, *ratios))
    print_table("CPU of a call, as a multiple", ("call", *(f"{name} = {value}" for name, value in tried)), rows)


def buffers(world: World) -> None:
    """The same calls with shared_buffers that hold everything, and that do not. Restarts the server."""
    if not world.server.kind.startswith("embedded"):
        return
    found: dict[str, list[float]] = {name: [] for name in world.calls}
    whole = number(world.boss, "select pg_database_size(current_database())")
    held = [f"{2 * int(whole / 2**20)}MB", f"{int(whole / 2**20) // 8}MB"]
    for size in held:
        world.boss.execute(f"alter system set shared_buffers = '{size}'".encode())
        folder = Path(str((world.boss.execute("show data_directory").fetchone() or ("",))[0])).parent
        world.boss.close()
        embedded.stop(folder)
        embedded.up(folder)
        world.boss = world.bench.database.connect()
        with world.caller() as caller:
            for name, call in world.calls.items():
                run = call.on(caller)
                for i in range(call.count):
                    run(i)
                before = cpu_of(caller)
                for i in range(call.count):
                    run(i)
                found[name] += [(cpu_of(caller) - before) / call.count, pages(caller, call)[1]]
    world.boss.execute("alter system reset shared_buffers")
    rows = [(name, missed, small / large) for name, (large, _, small, missed) in found.items()]
    print_table(f"shared_buffers of {held[1]} against {held[0]}, a database of {whole / 2**20:,.0f} MB, all of it in the system's cache",
                ("call", "pages that were not there", "CPU, ratio"), rows)  # fmt: skip


def commit(world: World) -> None:
    """What a commit that waits costs, and how much WAL an ingest writes."""
    calls = {"ingest of 1": world.calls["ingest of 1"], f"ingest of {BATCH}": world.batches}
    rows = []
    for what, call in calls.items():
        with world.caller(synchronous_commit="off") as ours, world.caller() as reference:
            taken = world.compare(call, ours, reference)
        rows.append((what, statistics.median(taken.ours) / statistics.median(taken.reference)))
    print_table("synchronous_commit = off: time of a call, as a multiple", ("call", "ratio"), rows)

    other = world.bench.generator.memory(world.bench.tenant("without an index"), 2000)
    load(world.boss, other)
    found = []
    for tenant, note in (("without an index", "no HNSW"), ("tuned", "HNSW")):
        for what, call in calls.items():
            with world.bench.database.connect_as(tenant) as caller:
                run, written = call.on(caller), [0.0]
                run(0)
                world.boss.execute("checkpoint")
                before = number(world.boss, WRITTEN)
                for _ in range(2):
                    for i in range(call.count):
                        run(i)
                    written.append((number(world.boss, WRITTEN) - before) / 1024 / call.count - sum(written))
            found.append((f"{what}, {note}", *written[1:]))
    head = ("call", f"kB, of the first {QUERIES} (batches: 4) after a checkpoint", "kB, of the next")
    print_table("WAL of a call", head, found)


HOT = ("dh_families", "family_counters", "family_sums", "kg_statements")


def hot(world: World) -> None:
    """Updates of the tables that every ingest touches: how many are HOT, and what the tables grow to without a vacuum."""
    bench = Bench(world.server.database(), FULL, Generator(5), world.server)
    families, rounds = 50, 20
    rows: list[Sequence[object]] = []
    with bench.superuser() as conn:
        for fillfactor in (100, 50, 20):
            for table in HOT[:3]:
                schema = "graphium" if table.startswith("dh_") else "graphium_private"
                conn.execute(
                    f"alter table {schema}.{table} set (fillfactor = {fillfactor}, autovacuum_enabled = off)".encode()
                )
                conn.execute(f"truncate {schema}.{table} cascade".encode() if table == "dh_families" else b"select")
            rows += _ingested(bench, conn, f"fillfactor {fillfactor}", families, rounds)
        for table in HOT[:3]:
            schema = "graphium" if table.startswith("dh_") else "graphium_private"
            conn.execute(f"alter table {schema}.{table} set (fillfactor = 50)".encode())
        conn.execute("truncate graphium.dh_families cascade")
        with bench.superuser() as reader:
            reader.execute("begin isolation level repeatable read")
            reader.execute("select")
            reader.execute("select count(*) from graphium.tenants")
            rows += _ingested(bench, conn, "fillfactor 50, beside a transaction that stays open", families, rounds)
    print_table(
        f"{families * rounds:,} ingests of one statement into {families} families, then the same again",
        ("", "table", "updates", "HOT", "kB a family"),
        rows,
    )


def _ingested(bench: Bench, conn: Connection, note: str, families: int, rounds: int) -> Iterator[Sequence[object]]:
    slug = f"hot {note}"
    bench.tenant(slug)
    centres = bench.generator.families(families)
    rows = bench.generator.rows(centres, np.tile(np.arange(families), rounds))
    conn.execute("select pg_stat_reset()")
    with bench.database.connect_as(slug) as caller:
        ingest = Statement(caller, INGEST)
        for _ in range(2):
            for i, family in enumerate(rows.family):
                ingest(f"family {family}", "genus", "specimen", as_json(rows, slice(i, i + 1)))
        caller.execute("select pg_stat_force_next_flush()")
    for table in HOT:
        row = conn.execute(
            "select n_tup_upd, n_tup_hot_upd, pg_relation_size(relid) / 1024 from pg_stat_user_tables where relname = %s",
            [table],
        ).fetchone()
        assert row is not None
        yield note, table, row[0], f"{row[1] / max(1, row[0]):.1%}", float(row[2]) / families


def vacuum(world: World) -> None:
    """After vectors were deleted: a vacuum of the tenant's partition, against a new index."""
    conn, tenant = world.boss, world.memory.tenant.id
    [(partition, definition)] = conn.execute(
        "select indrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index where indexrelid = %s::regclass",
        [world.index],
    )
    conn.execute("set max_parallel_maintenance_workers = 0")
    took = {}
    for share, last in ((1 / 256, "00"), (1 / 16, "1"), (1 / 4, "[4567]")):  # of random digits
        conn.execute(
            "delete from graphium.kg_embeddings where tenant_id = %s and statement_id::text ~ %s", [tenant, f"{last}$"]
        )
        before = cpu_of(conn)
        conn.execute(f"vacuum (parallel 0) {partition}".encode())
        took[share] = cpu_of(conn) - before
    conn.execute(f"drop index {world.index}".encode())
    before = cpu_of(conn)
    conn.execute(definition.encode())
    new = cpu_of(conn) - before
    rows = [(f"{share:.1%}", cpu / new) for share, cpu in took.items()]
    print_table("A vacuum after vectors were deleted", ("of the tenant's vectors", "CPU, of a new index's"), rows)


SECTIONS = (sizes, build, halfvec, thresholds, buffers, planner, commit, hot, vacuum)


def main() -> None:
    names = [section.__name__ for section in SECTIONS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="statements; default 20000")
    parser.add_argument("--only", nargs="+", choices=names, metavar="SECTION", help=f"of {', '.join(names)}")
    arguments = parser.parse_args()
    if arguments.rows < 10_000:
        parser.error("--rows: at least 10,000, from where a tenant has an index")
    with Server.running() as server:
        world = World(server, arguments.rows)
        for name, value in report.machine(world.boss, server, FULL).items():
            print(f"{name}: {value}")
        for section in SECTIONS:
            if not arguments.only or section.__name__ in arguments.only:
                section(world)


if __name__ == "__main__":
    main()
