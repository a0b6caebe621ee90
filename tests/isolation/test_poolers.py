"""Transaction-mode poolers, connection pools, and whatever a last client left on a connection."""

# ruff: noqa: PT012  # what raises here is always the last statement of the block

from __future__ import annotations

import asyncio
import itertools
import random
import re
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from graphium_db import AsyncGraphium, Graphium
from tests.support.concurrency import all_at_once, wait_until
from tests.support.databases import Cluster, Connection, Database, as_caller
from tests.support.node import node_connection, run_node
from tests.support.pgbouncer import DOCS, HERE, IN_THE_ROOT, Pooler, installed, pgbouncer
from tests.support.psql import psql

Start = Callable[..., AbstractContextManager[Pooler]]
TENANTS = ("acme", "acme-corp")
AUDIENCES: tuple[tuple[str, ...], ...] = ((), ("hr",), ("legal",), ("hr", "legal"))
HELD: tuple[tuple[str, ...], ...] = ((), ("hr",), ("legal",), ("hr", "legal"))
CALLERS = tuple(itertools.product(TENANTS, HELD))


def told(tenant: str, scopes: Sequence[str]) -> set[str]:
    """What the caller sees, by the rule."""
    return {
        f"{tenant} notes {number} for {' or '.join(audience) or 'all'}"
        for audience in AUDIENCES
        if not audience or set(audience) & set(scopes)
        for number in range(3)
    }


@pytest.fixture(scope="module")
def db(cluster: Cluster) -> Iterator[Database]:
    """Two tenants with twelve statements each, three for each audience."""
    database = Database(cluster, cluster.take())
    try:
        for tenant in TENANTS:
            connection = database.connect("admin")
            Graphium(connection=connection).create_tenant(tenant, dimensions=3)
            admin = Graphium(connection=connection, tenant=tenant)
            for n, audience in enumerate(AUDIENCES):
                admin.ingest_context(
                    "notes", "all", f"specimen {n}", statements(tenant, audience), required_scopes=audience
                )
                if n == 0:  # so that everybody sees the taxa
                    (family,) = {row.family_id for row in admin.context_tree()}
                    admin.set_required_scopes("family", family, [])
        yield database
        assert database.ailments() == []
    finally:
        database.close()
        cluster.give_back(database.name)


def statements(tenant: str, audience: Sequence[str]) -> list[Any]:
    who = " or ".join(audience) or "all"
    return [
        {"content": f"{tenant} notes {n} for {who}", "embedding": [1.0, n, len(who)], "exact_only": True}
        for n in range(3)
    ]


@pytest.fixture(scope="module")
def plain(db: Database) -> str:
    """A login of an application without the guard."""
    return db.login("graphium_app")


@pytest.fixture(scope="module")
def pooled(db: Database) -> str:
    """A login of an application with the guard on."""
    login = db.login("graphium_app")
    db.connect().execute(
        sql.SQL("alter role {} set graphium.pooled = on").format(sql.Identifier(db.cluster.role(login)))
    )
    return login


@pytest.fixture(params=[HERE, IN_THE_ROOT])
def start(request: pytest.FixtureRequest) -> Start:
    """Starts PgBouncer: Debian's, and the newer one of the root that PostgreSQL 17 is in."""
    program = installed(request.param)
    if program is None:
        pytest.skip(f"there is no PgBouncer {request.param}")
    return partial(pgbouncer, program=program)


def contents(conn: Connection) -> set[str]:
    return {row[0] for row in conn.execute("select content from graphium.kg_statements")}


def scalar(conn: Connection, query: str, *values: Any) -> Any:
    row = conn.execute(query.encode(), values or None).fetchone()
    assert row is not None
    return row[0]


def is_nobody(conn: Connection) -> bool:
    """Sees nothing in any table, and functions say MG001."""
    with pytest.raises(psycopg.Error) as caught:
        conn.execute("select * from graphium.recall_context()")
    return (
        caught.value.sqlstate == "MG001"
        and contents(conn) == set()
        and not scalar(conn, "select count(*) from graphium.tenants")
    )


# ------------------------------------------------------------------------------------------------ through PgBouncer


@dataclass
class Task:
    """One call of a client and what must come of it."""

    caller: tuple[str, tuple[str, ...]]
    method: str
    arguments: dict[str, Any]

    @classmethod
    def any(cls, chance: random.Random) -> Task:
        tenant, _ = caller = chance.choice(CALLERS)
        method, arguments = chance.choice(
            [
                ("recall_context", {"page_size": 50}),
                ("search_context", {"query_embedding": [1.0, 2.0, 3.0], "match_count": 50}),
                ("search_context", {"query_text": "notes", "query_embedding": None, "match_count": 50}),
                ("context_tree", {}),
                (
                    "ingest_context",
                    dict(zip(("family", "genus", "specimen"), ("notes", "all", "specimen 0"), strict=True))
                    | {"statements": statements(tenant, ())},
                ),
            ]
        )
        return cls(caller, method, arguments)

    def check(self, result: list[Any]) -> None:
        tenant, scopes = self.caller
        mine = told(tenant, scopes)
        if self.method == "context_tree":
            assert sum(row.statements for row in result) == len(mine)
        elif self.method == "ingest_context":
            assert [row.deduplicated for row in result] == [True] * 3
        else:
            assert sorted(row.content for row in result) == sorted(mine)


def raw(conn: Connection, caller: tuple[str, tuple[str, ...]]) -> tuple[int, int]:
    """A transaction of several statements; the server process that ran it, and how many statements that has prepared."""
    tenant, scopes = caller
    with as_caller(conn, tenant, scopes):
        first = scalar(conn, "select pg_backend_pid()")
        assert contents(conn) == told(tenant, scopes)
        assert conn.execute("select tenant, scopes from graphium.caller()").fetchone() == (tenant, list(scopes))
        assert contents(conn) == told(tenant, scopes)
        assert scalar(conn, "select pg_backend_pid()") == first
        return first, scalar(conn, "select count(*) from pg_prepared_statements")


def test_hundreds_of_transactions_over_two_server_connections(start: Start, db: Database, pooled: str) -> None:
    """Four threads and four tasks, of eight callers: each sees all that is his and nothing else, and nothing fails."""
    served: dict[int, set[Any]] = defaultdict(set)
    prepared: dict[int, int] = {}
    done = itertools.count()

    with start(db, [pooled], server_connections=2) as pooler:
        options = {"autocommit": True, "prepare_threshold": 0 if pooler.prepares else None}

        def thread(number: int) -> Callable[[], None]:
            def work() -> None:
                chance = random.Random(number)
                for _ in range(75):
                    task = Task.any(chance)
                    tenant, scopes = task.caller
                    if chance.random() < 0.3:
                        with pool.connection() as conn:
                            backend, count = raw(conn, task.caller)
                        served[backend].add(task.caller)
                        prepared[backend] = count
                    else:
                        memory = Graphium(pool=pool, tenant=tenant, scopes=scopes)
                        task.check(getattr(memory, task.method)(**task.arguments))
                    next(done)

            return work

        async def task(number: int, pool: AsyncConnectionPool[Any]) -> None:
            chance = random.Random(100 + number)
            for _ in range(75):
                task = Task.any(chance)
                tenant, scopes = task.caller
                memory = AsyncGraphium(pool=pool, tenant=tenant, scopes=scopes)
                task.check(await getattr(memory, task.method)(**task.arguments))
                next(done)

        async def tasks() -> None:
            async with AsyncConnectionPool(pooler.dsn(pooled), min_size=4, kwargs=options) as pool:
                await asyncio.gather(*(task(number, pool) for number in range(4)))

        with ConnectionPool(pooler.dsn(pooled), min_size=4, kwargs=options, open=True) as pool:
            all_at_once([*map(thread, range(4)), lambda: asyncio.run(tasks())])

    assert next(done) == 600
    assert len(served) == 2
    assert min(map(len, served.values())) > 4  # both were shared by callers of all kinds
    assert all(prepared.values()) == pooler.prepares


def test_the_clients_own_pools(start: Start, db: Database, pooled: str) -> None:
    with start(db, [pooled], server_connections=1) as pooler:
        dsn = pooler.dsn(pooled)

        async def ask(tenant: str, scopes: Sequence[str]) -> set[str]:
            async with AsyncGraphium(dsn, tenant=tenant, scopes=scopes) as memory:
                return {row.content for row in await memory.recall_context()}

        for _ in range(2):
            for tenant, scopes in CALLERS:
                with Graphium(dsn, tenant=tenant, scopes=scopes) as memory:
                    assert {row.content for row in memory.recall_context()} == told(tenant, scopes)
                assert asyncio.run(ask(tenant, scopes)) == told(tenant, scopes)


def test_node_postgres_through_the_pooler(start: Start, db: Database, pooled: str) -> None:
    """Its own pool of four in front of PgBouncer's two: 200 transactions at once, statements prepared by name."""
    with start(db, [pooled], server_connections=2) as pooler:
        if not pooler.prepares:
            pytest.skip("PgBouncer before 1.21 knows no named statements")
        callers = [
            {"tenant": tenant, "scopes": scopes, "told": sorted(told(tenant, scopes))} for tenant, scopes in CALLERS
        ]
        story = {"connection": node_connection(pooler.dsn(pooled)), "callers": callers, "transactions": 200}
        assert run_node("pool.cjs", story) == {"right": 200, "backends": 2}


LEFT_BEHIND = (
    "select graphium.set_caller('acme', '{hr}', is_local => false)",
    "set graphium.tenant = 'acme'",
    "select set_config('graphium.tenant', 'acme', false), set_config('graphium.scopes', '{hr,legal}', false)",
)


@pytest.mark.parametrize("left", LEFT_BEHIND)
def test_a_caller_left_on_the_connection_is_nobody_where_the_guard_is_on(
    start: Start, db: Database, plain: str, pooled: str, left: str
) -> None:
    with start(db, [plain, pooled], server_connections=1) as pooler:

        def two(login: str) -> tuple[Connection, Connection]:
            return connect(pooler, login), connect(pooler, login)

        # Without it the next client of the server connection is the last one.
        one, next_one = two(plain)
        one.execute(left.encode())
        assert contents(next_one) & told("acme", [])

        one, next_one = two(pooled)
        if "is_local" in left:
            with pytest.raises(psycopg.Error) as caught:
                one.execute(left.encode())
            assert caught.value.sqlstate == "MG008"
            assert str(caught.value).startswith("is_local: false is refused")
            assert "set_caller()" in (caught.value.diag.message_hint or "")
        else:
            one.execute(left.encode())
            assert (
                scalar(next_one, "select current_setting('graphium.tenant')") == "acme"
            )  # it is there, and counts for nothing
        assert is_nobody(next_one)
        assert is_nobody(one)
        with as_caller(next_one, "acme-corp", ["legal"]):
            assert contents(next_one) == told("acme-corp", ["legal"])
        assert is_nobody(one)


def connect(pooler: Pooler, login: str) -> Connection:
    return psycopg.connect(pooler.dsn(login), autocommit=True, prepare_threshold=None)


@pytest.mark.parametrize("left", LEFT_BEHIND)
def test_the_poolers_own_guards(start: Start, db: Database, plain: str, left: str) -> None:
    """connect_query turns the guard on; the reset query takes away what is left, even after it was turned off."""
    with start(db, [plain], server_connections=1, guards=True) as pooler:
        one, next_one = connect(pooler, plain), connect(pooler, plain)
        assert scalar(one, "select current_setting('graphium.pooled')") == "on"
        if "is_local" in left:
            with pytest.raises(psycopg.Error) as caught:
                one.execute(left.encode())
            assert caught.value.sqlstate == "MG008"
        one.execute("reset all")
        assert scalar(one, "select current_setting('graphium.pooled', true)") in (None, "")
        one.execute(left.encode())
        assert scalar(next_one, "select current_setting('graphium.tenant', true)") in (None, "")
        assert is_nobody(next_one)
        if pooler.prepares:  # the reset query leaves prepared statements alone
            for caller in CALLERS * 2:
                one.prepare_threshold = next_one.prepare_threshold = 0
                raw(one, caller)
                raw(next_one, caller)


def test_a_server_connection_that_dies_takes_its_caller_along(start: Start, db: Database, pooled: str) -> None:
    with start(db, [pooled], server_connections=1) as pooler:
        one, next_one = connect(pooler, pooled), connect(pooler, pooled)
        with pytest.raises(psycopg.OperationalError), as_caller(one, "acme", ["hr"]):
            pid = scalar(one, "select pg_backend_pid()")
            db.connect().execute("select pg_terminate_backend(%s, 10000)", [pid])
            contents(one)
        assert scalar(next_one, "select pg_backend_pid()") != pid
        assert is_nobody(next_one)
        with as_caller(next_one, "acme", []):
            assert contents(next_one) == told("acme", [])


def test_a_client_that_vanishes_in_mid_transaction_leaves_nothing(start: Start, db: Database, pooled: str) -> None:
    with start(db, [pooled], server_connections=1) as pooler:
        one, next_one = connect(pooler, pooled), connect(pooler, pooled)
        one.execute("begin")
        one.execute("select graphium.set_caller('acme', '{hr}')")
        assert contents(one) == told("acme", ["hr"])
        one.close()
        assert is_nobody(next_one)


def test_a_principals_narrowing_that_is_left_behind_only_shows_less(start: Start, db: Database) -> None:
    short = db.login()
    db.connect("admin").execute(
        "select graphium.add_principal(role_name => %s, tenant => 'acme', scopes => '{hr}')", [db.cluster.role(short)]
    )
    db.connect().execute(
        sql.SQL("alter role {} set graphium.pooled = on").format(sql.Identifier(db.cluster.role(short)))
    )
    with start(db, [short], server_connections=1) as pooler:
        one, next_one = connect(pooler, short), connect(pooler, short)
        assert contents(one) == told("acme", ["hr"])
        one.execute("set graphium.scopes = '{}'")
        one.execute("set graphium.tenant = 'acme-corp'")
        assert contents(next_one) == told("acme", [])
        with pytest.raises(psycopg.Error) as caught:
            next_one.execute("select graphium.set_caller('acme', '{}', is_local => false)")
        assert caught.value.sqlstate == "MG008"
        with next_one.transaction():  # naming himself ends it
            next_one.execute("select graphium.set_caller('acme', null)")
            assert contents(next_one) == told("acme", ["hr"])


# ------------------------------------------------------------------------------------------------ the guard itself


@pytest.fixture
def guarded(db: Database, pooled: str) -> Iterator[Connection]:
    with psycopg.connect(db.dsn(pooled), autocommit=True) as conn:
        yield conn


@pytest.mark.parametrize("word", ["on", "ON", "true", "yes", "1", "of", "nonsense", " "])
def test_words_that_turn_the_guard_on(db: Database, plain: str, word: str) -> None:
    with psycopg.connect(db.dsn(plain), autocommit=True) as conn:
        conn.execute("select set_config('graphium.pooled', %s, false)", [word])
        conn.execute("set graphium.tenant = 'acme'")
        assert is_nobody(conn)


@pytest.mark.parametrize("word", [None, "", "off", "Off", "false", "no", "0"])
def test_words_that_leave_the_guard_off(db: Database, plain: str, word: str | None) -> None:
    with psycopg.connect(db.dsn(plain), autocommit=True) as conn:
        if word is not None:
            conn.execute("select set_config('graphium.pooled', %s, false)", [word])
        conn.execute("set graphium.tenant = 'acme'")
        assert contents(conn) == told("acme", [])


@pytest.mark.parametrize(
    "change",
    [
        "set local graphium.tenant = 'acme-corp'",
        "set graphium.tenant = 'acme-corp'",
        "set local graphium.scopes = '{hr,legal}'",
        "set local graphium.scopes = ''",
        "reset graphium.scopes",
        "set local graphium.named = ''",
    ],
)
def test_only_what_set_caller_named_counts(guarded: Connection, change: str) -> None:
    with pytest.raises(ZeroDivisionError), as_caller(guarded, "acme", ["hr"]):
        assert contents(guarded) == told("acme", ["hr"])
        guarded.execute(change.encode())
        assert contents(guarded) == set()
        with guarded.transaction():
            guarded.execute("select graphium.set_caller('acme', '{hr}')")
            assert contents(guarded) == told("acme", ["hr"])
        raise ZeroDivisionError  # so that nothing is left here
    assert is_nobody(guarded)


def test_a_callers_mark_is_good_for_one_transaction(guarded: Connection) -> None:
    settings = [f"graphium.{name}" for name in ("tenant", "scopes", "named")]
    with as_caller(guarded, "acme", ["hr"]):
        named = [scalar(guarded, "select current_setting(%s)", name) for name in settings]
        with pytest.raises(ZeroDivisionError), guarded.transaction():
            guarded.execute("select graphium.set_caller('acme-corp', '{legal}')")
            assert contents(guarded) == told("acme-corp", ["legal"])
            raise ZeroDivisionError
        assert contents(guarded) == told("acme", ["hr"])  # a savepoint that is rolled back takes its caller along
        guarded.execute("set local timezone = 'Asia/Tokyo'")
        guarded.execute("set local datestyle = 'German'")
        guarded.execute("set local extra_float_digits = 0")
        assert contents(guarded) == told("acme", ["hr"])
    assert all(named)
    for name, value in zip(settings, named, strict=True):
        guarded.execute("select set_config(%s, %s, false)", [name, value])
    assert is_nobody(guarded)
    guarded.execute("reset all")
    assert scalar(guarded, "select current_setting('graphium.pooled')") == "on"


def test_no_parallel_worker_is_asked_who_the_caller_is(guarded: Connection) -> None:
    """In one, an admin could not be told from code that maintenance runs in his session (db/functions/020_identity.sql)."""
    with as_caller(guarded, "acme", ["hr"]):
        guarded.execute("set local debug_parallel_query = on")
        assert "Gather" in str(guarded.execute("explain select count(*) from pg_class").fetchall())
        query = "select content, (graphium.caller()).tenant from graphium.kg_statements"
        assert "Gather" not in str(guarded.execute(f"explain {query}".encode()).fetchall())
        assert set(guarded.execute(query.encode())) == {(content, "acme") for content in told("acme", ["hr"])}


def test_an_admin_behind_a_pooler_names_his_tenant_too(db: Database) -> None:
    with psycopg.connect(db.dsn("admin"), autocommit=True) as conn:
        conn.execute("set graphium.pooled = on")
        conn.execute("set graphium.tenant = 'acme'")
        assert is_nobody(conn)
        with as_caller(conn, "acme"):
            assert contents(conn) == told("acme", ["hr", "legal"])


# ------------------------------------------------------------------------------------------------ psycopg_pool


@pytest.fixture(params=[None, 0], ids=["plain", "prepared"])
def pool(db: Database, plain: str, request: pytest.FixtureRequest) -> Iterator[ConnectionPool[Any]]:
    """One connection, so that the next user gets the last one's."""
    options = {"autocommit": True, "prepare_threshold": request.param}
    with ConnectionPool(db.dsn(plain), min_size=1, max_size=1, kwargs=options, open=True) as pool:
        yield pool


def next_user(pool: ConnectionPool[Any]) -> int:
    """Nobody until he names himself; the same rows on the first and on the second use. The server process he had."""
    for _ in range(2):
        with pool.connection() as conn:
            assert is_nobody(conn)
            with as_caller(conn, "acme-corp", ["legal"]):
                assert contents(conn) == told("acme-corp", ["legal"])
            pid = conn.info.backend_pid
    return pid


def test_a_connection_returned_in_mid_work(pool: ConnectionPool[Any]) -> None:
    for begin in ("begin", "begin isolation level serializable read only"):
        conn = pool.getconn()
        conn.execute(begin.encode())
        conn.execute("select graphium.set_caller('acme', '{hr}')")
        assert contents(conn) == told("acme", ["hr"])
        pid = conn.info.backend_pid
        pool.putconn(conn)
        assert next_user(pool) == pid  # rolled back, and the same connection


def test_an_exception_inside_of_a_block(pool: ConnectionPool[Any]) -> None:
    with pytest.raises(ZeroDivisionError), pool.connection() as conn, as_caller(conn, "acme", ["hr"]):
        assert contents(conn) == told("acme", ["hr"])
        raise ZeroDivisionError
    next_user(pool)
    with pytest.raises(psycopg.errors.DivisionByZero), pool.connection() as conn, as_caller(conn, "acme", ["hr"]):
        conn.execute("select 1/0")
    next_user(pool)
    with pytest.raises(psycopg.errors.DivisionByZero), pool.connection() as conn, conn.pipeline():
        conn.execute("select graphium.set_caller('acme', '{hr}')")
        conn.execute("select 1/0")
    next_user(pool)


def test_a_connection_that_was_killed(db: Database, pool: ConnectionPool[Any]) -> None:
    with pytest.raises(psycopg.OperationalError), pool.connection() as conn, as_caller(conn, "acme", ["hr"]):
        pid = conn.info.backend_pid
        db.connect().execute("select pg_terminate_backend(%s, 10000)", [pid])
        contents(conn)
    assert next_user(pool) != pid


@pytest.mark.parametrize("reset", ["reset all", "discard all"])
@pytest.mark.parametrize("threshold", [None, 0])
def test_reset_between_checkouts(db: Database, plain: str, reset: str, threshold: int | None) -> None:
    """A session's caller is taken away when the connection comes back, and results are the same at every use."""
    options = {"autocommit": True, "prepare_threshold": threshold}

    def clean(conn: Connection) -> None:
        conn.execute(reset.encode())

    for guard in (clean, None):
        with ConnectionPool(db.dsn(plain), min_size=1, max_size=1, kwargs=options, reset=guard, open=True) as pool:
            with pool.connection() as conn:
                conn.execute("select graphium.set_caller('acme', '{hr}', is_local => false)")
                assert contents(conn) == told("acme", ["hr"])
            if guard:
                next_user(pool)
                seen = []
                for tenant, scopes in CALLERS * 2:
                    memory = Graphium(pool=pool, tenant=tenant, scopes=scopes)
                    seen.append({row.content for row in memory.recall_context()})
                assert seen == [told(*caller) for caller in CALLERS] * 2
            else:  # without the reset he would be the next user
                with pool.connection() as conn:
                    assert contents(conn) == told("acme", ["hr"])


def test_a_caller_cancelled_in_mid_call_is_gone(db: Database, pool: ConnectionPool[Any]) -> None:
    boss = db.connect()
    started = threading.Event()
    pids: list[int] = []

    def slow() -> None:
        with pytest.raises(psycopg.errors.QueryCanceled), pool.connection() as conn, as_caller(conn, "acme", ["hr"]):
            pids.append(conn.info.backend_pid)
            started.set()
            conn.execute("select pg_sleep(60), graphium.caller()")

    def cancel() -> None:
        assert started.wait(20)
        wait_until(
            lambda: bool(
                scalar(boss, "select count(*) from pg_stat_activity where pid = %s and wait_event = 'PgSleep'", pids[0])
            ),
            "the call runs",
        )
        boss.execute("select pg_cancel_backend(%s)", pids)

    all_at_once([slow, cancel])
    assert next_user(pool) == pids[0]


# ------------------------------------------------------------------------------------------------ docs/poolers.md


def test_the_guard_counts_for_open_server_connections_after_reconnect(start: Start, db: Database) -> None:
    login = db.login("graphium_app")
    [command] = re.findall(r"```\n\s*(\w+;)\n\s*```", DOCS.read_text("utf-8"))
    with start(db, [login], server_connections=1) as pooler:
        conn, setting = connect(pooler, login), "select current_setting('graphium.pooled', true)"
        before = scalar(conn, "select pg_backend_pid()")
        db.connect().execute(f"alter role {db.cluster.role(login)} set graphium.pooled = on".encode())
        assert (scalar(conn, setting), scalar(conn, "select pg_backend_pid()")) == (None, before)
        done = subprocess.run(
            [psql(), "-X", "-c", command, pooler.console(login)], capture_output=True, text=True, check=True
        )
        assert done.stdout == "RECONNECT\n"
        wait_until(lambda: bool(scalar(conn, setting) == "on"), "the server connection is a new one")


def test_the_line_for_prepared_statements_is_for_newer_versions_only(start: Start, db: Database, pooled: str) -> None:
    """As the docs say: PgBouncer before 1.21 does not start with it. Those that know it have it in every test here."""
    with start(db, [pooled], server_connections=1) as pooler:
        prepares = pooler.prepares
    if prepares:
        with start(db, [pooled], server_connections=1, prepares=False) as pooler:
            assert is_nobody(connect(pooler, pooled))
    else:
        with pytest.raises(AssertionError, match="did not start"), start(db, [pooled], 1, prepares=True):
            pass


def test_the_sql_of_the_docs(db: Database) -> None:
    """The guard for a login, and PostgREST's way: one authenticator, SET ROLE, the caller named from the token."""
    guard, postgrest = re.findall(r"```sql\n(.*?)```", re.sub(r"(?m)^ {3}", "", DOCS.read_text("utf-8")), re.DOTALL)
    app, authenticator, web_user = db.login(), db.login(), db.login()
    full = {"my_app": app, "authenticator": authenticator, "web_user": web_user}
    boss = db.connect()
    for block in (guard, postgrest):
        for name, short in full.items():
            block = re.sub(rf"\b{name}\b", db.cluster.role(short), block)
        boss.execute(block.encode())
    boss.execute(f"grant {db.cluster.role(web_user)} to {db.cluster.role(authenticator)}".encode())
    boss.execute(f"grant graphium_app to {db.cluster.role(app)}".encode())
    assert scalar(db.connect(app), "select current_setting('graphium.pooled')") == "on"

    conn = db.connect(authenticator)
    for tenant, scopes in CALLERS:
        with conn.transaction():
            conn.execute(f"set local role {db.cluster.role(web_user)}".encode())
            claims = {"tenant": tenant, "scopes": list(scopes)}
            conn.execute("select set_config('request.jwt.claims', %s, true)", [psycopg.types.json.json.dumps(claims)])
            conn.execute("select public.name_caller()")
            assert contents(conn) == told(tenant, scopes)
        assert is_nobody(conn)
    with pytest.raises(psycopg.Error) as caught, conn.transaction():
        conn.execute("select set_config('request.jwt.claims', '{}', true)")
        conn.execute("select public.name_caller()")
    assert caught.value.sqlstate == "MG008"
