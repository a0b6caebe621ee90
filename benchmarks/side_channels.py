"""What a caller can read off the clock: docs/side-channels.md quotes it.

    python benchmarks/side_channels.py [--visible 200] [--repeat 200] [--dimensions 384]

1. The same calls by a caller who sees `--visible` statements: alone, with 10 and 100 times as many hidden rows in his
   tenant, and with as many rows of another tenant (in the same partition). Exact first, then with HNSW indexes.
2. Guesses: a call about something that exists and is hidden against the same call about something that does not exist.

Everything that is compared runs interleaved, in one process, on one server (GRAPHIUM_TEST_DSN, else the embedded one). A
ratio is one of medians. "Told" is the chance that the slower of two single calls is the one that is called slower: 50 %
tells nothing, 100 % tells at once; many calls tell more than one.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import psycopg
from psycopg.types.json import Jsonb

from tests.search.corpus import Corpus, Row, vector_text
from tests.support.databases import Cluster, Connection, Database
from tests.support.server import running_server

PARTITION = "select tableoid::regclass::text from graphium.kg_embeddings where tenant_id = %s limit 1"
# asked as the superuser, who is no principal: what an application's searches take, such as are measured here
SCAN = "select (graphium_private._choose_scan(id, dimensions, null, null, null, null, null)).scan from graphium.tenants where slug = 'mine'"
Act = Callable[[Connection], Any]


class World:
    """A database with the caller's tenant `mine`, in which some rows are hidden from him, and perhaps another tenant."""

    def __init__(
        self, cluster: Cluster, name: str, args: argparse.Namespace, hidden: int = 0, foreign: int = 0
    ) -> None:
        self.db, self.name = Database(cluster, cluster.take()), name
        self.boss, self.admin, self.app = self.db.connect(), self.db.connect("admin"), self.db.connect("app")
        random = np.random.default_rng(3)

        def vectors(n: int) -> Any:
            return random.normal(size=(n, args.dimensions)).astype(np.float32)

        self.mine = self.tenant("mine", args.dimensions)
        self.mine.plant(*[self.row(n, v) for n, v in enumerate(vectors(args.visible))])
        self.point = vectors(1)[0]  # where the hidden rows lie

        def near(n: int) -> Any:
            return self.point + 0.3 * vectors(n)

        if hidden:
            rows = [self.row(n, v, ("board",), hidden) for n, v in enumerate(near(hidden))]
            self.mine.plant(*rows)
            self.secret = rows[hidden // 2]
        if foreign:
            partition = self.boss.execute(PARTITION, [self.mine.tenant_id]).fetchone()
            for n in range(200):
                other = self.tenant(f"other {n}", args.dimensions)
                other.plant(self.row(0, self.point))
                if self.boss.execute(PARTITION, [other.tenant_id]).fetchone() == partition:
                    break
                self.admin.execute("select graphium.drop_tenant(%s)", [other.slug])
            other.plant(*[self.row(n, v) for n, v in enumerate(near(foreign))])
        self.admin.execute("select graphium.create_tenant('there')")
        self.app.execute("select graphium.set_caller('mine', is_local => false)")
        # for good: the first ingest into a large family makes its projections, and those that are measured are rolled back
        ingest("The first that is ingested.", vectors(1)[0])(self.app)
        self.boss.execute("vacuum analyze")

    def tenant(self, slug: str, dimensions: int) -> Corpus:
        self.admin.execute("select graphium.create_tenant(slug => %s, dimensions => %s)", [slug, dimensions])
        return Corpus(self.boss, slug)

    @staticmethod
    def row(n: int, vector: Any, scopes: tuple[str, ...] = (), hidden: int = 0) -> Row:
        """A word in common, one for ten, and of the hidden rows one that all have and one that a single one has."""
        text = f"statement {n} about topic{n % 10}" + (
            " everywhere" + " singular" * (n == hidden // 2) if hidden else ""
        )
        return Row("work", f"genus {n % 3}", f"specimen {n % 20}", text, vector, required_scopes=scopes,
                   layer_kind="preloaded" if n % 20 == 0 else "on_demand")  # fmt: skip

    def make_indexes(self) -> str:
        self.boss.execute("update graphium_private.settings set value = 1000 where name = 'hnsw_min_embeddings'")
        self.boss.execute("update graphium_private.settings set value = 500 where name = 'hnsw_drop_below'")
        self.boss.execute("set maintenance_work_mem = '512MB'")
        self.boss.execute("select graphium.set_caller('mine', is_local => false)")
        for (statement,) in self.admin.execute("select statement from graphium.maintenance_plan()").fetchall():
            self.boss.execute(statement.encode())
        return str((self.boss.execute(SCAN).fetchone() or ("?",))[0])


def timed(conn: Connection, act: Act) -> float:
    """Milliseconds of one call in a transaction that leaves nothing."""
    conn.execute("begin")
    try:
        start = time.perf_counter()
        with contextlib.suppress(psycopg.Error):  # a refusal takes time too
            act(conn)
        return 1000 * (time.perf_counter() - start)
    finally:
        conn.execute("rollback")


def interleaved(repeat: int, acts: Sequence[tuple[Connection, Act]]) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in acts]
    for n in range(repeat + 3):
        order = range(len(acts)) if n % 2 else reversed(range(len(acts)))
        for i in order:
            took = timed(*acts[i])
            if n >= 3:  # plans and caches are warm
                times[i].append(took)
    return times


def told(slow: Sequence[float], fast: Sequence[float]) -> float:
    return sum((a > b) + 0.5 * (a == b) for a in slow for b in fast) / len(slow) / len(fast)


def call(query: str, *arguments: Any) -> Act:
    return lambda conn: conn.execute(query.encode(), list(arguments)).fetchall()


def ingest(content: str, vector: Any, **more: Any) -> Act:
    query = "select * from graphium.ingest_context('work', 'genus 1', 'specimen 1', %s)"
    return call(query, Jsonb([{"content": content, "embedding": vector_text(vector), **more}]))


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n{title}\n")
    for line in [list(head), ["---"] * len(head), *map(list, rows)]:
        print("| " + " | ".join(line) + " |", flush=True)


def same_calls(worlds: Sequence[World], repeat: int, dimensions: int, title: str) -> None:
    random = np.random.default_rng(9)
    far = random.normal(size=dimensions).astype(np.float32)
    point = worlds[0].point
    calls: dict[str, Act] = {
        "search, by vector, far from what is hidden": call(
            "select * from graphium.search_context(%s)", vector_text(far)
        ),
        "search, by vector, where it lies": call("select * from graphium.search_context(%s)", vector_text(point)),
        "search, by words": call("select * from graphium.search_context(query_text => 'statement about topic3')"),
        "search, by both": call("select * from graphium.search_context(%s, 'topic3')", vector_text(far)),
        "recall, a page": call("select * from graphium.recall_context()"),
        "recall, one specimen": call("select * from graphium.recall_context(specimen => 'specimen 3')"),
        "wake-up": call("select * from graphium.wake_up_context()"),
        "context tree": call("select * from graphium.context_tree()"),
        "ingest, new": ingest("Something new.", far),
        "ingest, known": ingest("statement 1 about topic1", far),
    }
    rows = []
    for name, act in calls.items():
        times = [statistics.median(t) for t in interleaved(repeat, [(w.app, act) for w in worlds])]
        rows.append([name, f"{times[0]:.2f} ms", *[f"{t / times[0]:.2f}" for t in times[1:]]])
    print_table(title, ["call", worlds[0].name, *[w.name for w in worlds[1:]]], rows)


def guesses(world: World, repeat: int, dimensions: int) -> None:
    random = np.random.default_rng(9)
    far = random.normal(size=dimensions).astype(np.float32)
    id, missing = world.secret.id, world.boss.execute("select graphium_private.new_id()").fetchone() or ("",)
    number = world.secret.content.split()[1]
    lone = f"statement {number} about topic{int(number) % 10} everywhere singular"
    assert world.secret.content == lone
    login = world.db.login()
    world.admin.execute("select graphium.add_principal(%s, 'mine', '{}')", [world.db.cluster.role(login)])
    principal = world.db.connect(login)
    app = world.app

    def pair(query: str, there: Any, not_there: Any, conn: Connection = app) -> tuple[Connection, Act, Act]:
        return conn, call(query, there), call(query, not_there)

    words = "select * from graphium.search_context(query_text => %s)"
    pairs: dict[str, tuple[Connection, Act, Act]] = {
        "ingest a sentence that is there, hidden": (app, ingest(lone, far), ingest(lone.replace("singular", "plural00"), far)),
        "ingest a vector that is there, hidden": (app, ingest("X.", world.secret.embedding), ingest("X.", far)),
        "forget an id": pair("select graphium.forget_context(array[%s::uuid])", id, missing[0]),
        "edit the audience of an id": pair("select graphium.set_required_scopes('statement', %s, '{}')", id, missing[0]),
        "recall an id": pair("select * from graphium.recall_context(statement_ids => array[%s::uuid])", id, missing[0]),
        "name a tenant, as an application": pair("select graphium.set_caller(%s)", "there", "where"),
        "name a tenant, as a principal": pair("select graphium.set_caller(%s)", "there", "where", principal),
        "search a word of one hidden row": pair(words, "singular", "nowhere"),
        "search a word of all hidden rows": pair(words, "everywhere", "nowhere"),
        "search a vector where hidden rows lie": pair("select * from graphium.search_context(%s)", vector_text(world.point), vector_text(far)),
    }  # fmt: skip
    rows = []
    for name, (conn, there, not_there) in pairs.items():
        a, b = interleaved(2 * repeat, [(conn, there), (conn, not_there)])
        rows.append(
            [
                name,
                f"{statistics.median(b):.3f} ms",
                f"{statistics.median(a) / statistics.median(b):.2f}",
                f"{100 * told(a, b):.0f} %",
            ]
        )
    scan = (world.boss.execute(SCAN).fetchone() or ("?",))[0]
    print_table(
        f"Guesses, among {world.name} ({scan})", ["call", "about nothing", "about what is hidden", "told"], rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in (("visible", 200), ("repeat", 200), ("dimensions", 384)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    with running_server() as server:
        cluster = Cluster(server)
        try:
            cluster.set_up()
            ten, hundred = 10 * args.visible, 100 * args.visible
            worlds = [
                World(cluster, f"alone with {args.visible}", args),
                World(cluster, f"{ten} hidden", args, hidden=ten),
                World(cluster, f"{hundred} hidden", args, hidden=hundred),
                World(cluster, f"another tenant's {ten}", args, foreign=ten),
                World(cluster, f"another tenant's {hundred}", args, foreign=hundred),
            ]
            versions = (
                worlds[0]
                .boss.execute(
                    "select 'PostgreSQL ' || current_setting('server_version') || string_agg(', ' || extname || ' ' || extversion, '' order by extname)"
                    " from pg_extension where extname in ('age', 'vector')"
                )
                .fetchone()
            )
            print(*(versions or ()))
            same_calls(worlds, args.repeat, args.dimensions, "Exact: time of the caller alone, and as a multiple of it")
            guesses(worlds[2], args.repeat, args.dimensions)
            print("\nindexes made:", ", ".join(f"{w.name}: {w.make_indexes()}" for w in worlds))
            same_calls(worlds, args.repeat, args.dimensions, "HNSW (where a tenant has 1,000 rows)")
            guesses(worlds[2], args.repeat, args.dimensions)
        finally:
            for world in locals().get("worlds", []):
                world.db.close()
            cluster.tear_down()


if __name__ == "__main__":
    main()
