"""The client against the database: round trips, connections, pools, errors."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from graphium_db import AsyncGraphium, Graphium, errors
from graphium_db.errors import BadArgumentError
from graphium_db.models import ContextTreeRow, IngestedStatement, RecalledStatement
from tests.client.embedders import WordEmbedder
from tests.support.databases import Connection, Database

HARBOUR = ("projects", "harbour", "Ferry app")


def contents(rows: list[Any]) -> list[str]:
    return [row.content for row in rows]


# --- round trips -------------------------------------------------------------------------------------------------


def test_what_is_ingested_comes_back_as_it_went_in(memory: Graphium) -> None:
    spoken = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    metadata = {"null": None, "list": [1, [True, "é"]], "big": 2**80, "nested": {"a'b": '"'}}
    (stored,) = memory.ingest_context(
        *HARBOUR,
        [
            {
                "content": "We decided to ship the ferry app in May.",
                "required_scopes": [],
                "memory_type": "advice",
                "layer_kind": "preloaded",
                "occurred_at": spoken,
                "source": "kick-off",
                "position": 7,
                "metadata": metadata,
            }
        ],
    )
    assert stored == IngestedStatement(1, stored.statement_id, False, None, "advice", "preloaded", ())
    (recalled,) = memory.recall_context(statement_ids=[stored.statement_id])
    assert recalled == RecalledStatement(
        statement_id=stored.statement_id,
        content="We decided to ship the ferry app in May.",
        family="projects",
        genus="harbour",
        specimen="Ferry app",
        memory_type="advice",
        layer_kind="preloaded",
        is_superseded=False,
        access_count=0,
        required_scopes=(),
        occurred_at=spoken,
        created_at=recalled.created_at,
        source="kick-off",
        position=7,
        metadata=metadata,
    )
    (hit,) = memory.search_context("When do we ship the ferry app?")
    assert (hit.rank, hit.statement_id, hit.metadata, hit.is_symbiosis) == (1, stored.statement_id, metadata, False)
    (woken,) = memory.wake_up_context(token_budget=50)
    assert (woken.position, woken.content, woken.tokens) == (1, recalled.content, 10)  # 40 characters
    (row,) = memory.context_tree()
    assert row == ContextTreeRow(
        row.family_id, "projects", row.genus_id, "harbour", row.specimen_id, "Ferry app", 1, (), ()
    )
    assert memory.forget_context([stored.statement_id]) == 1
    assert memory.recall_context() == []


def test_texts_are_embedded_here_and_deduplicated_there(memory: Graphium, embedder: WordEmbedder) -> None:
    first = memory.ingest_context(*HARBOUR, ["Ferries leave on time.", "The pier is closed."])
    again = memory.ingest_context(*HARBOUR, ["The pier is closed", {"content": "Ferries leave on time!"}])
    assert [row.deduplicated for row in first + again] == [False, False, True, True]
    assert [row.statement_id for row in again] == [first[1].statement_id, first[0].statement_id]
    assert [row.similarity for row in again] == pytest.approx([1, 1])
    assert embedder.texts == [
        "Ferries leave on time.", "The pier is closed.", "The pier is closed", "Ferries leave on time!"
    ]  # fmt: skip


def test_exact_only_of_the_embedder_reaches_the_database(memory: Graphium) -> None:
    # the same words in another order: the same vector, and a digit makes the embedder say exact_only
    rows = memory.ingest_context(*HARBOUR, ["Line 7 before line nine.", "Line nine before line 7."])
    assert [row.deduplicated for row in rows] == [False, False]
    # without a digit the vector is trusted
    rows = memory.ingest_context(*HARBOUR, ["Alice paid Bob.", "Bob paid Alice."])
    assert [row.deduplicated for row in rows] == [False, True]


def test_a_text_is_split_into_sentences(memory: Graphium) -> None:
    rows = memory.ingest_context(
        *HARBOUR, text="The app is small. Dr. Ruiz wrote it.", source="notes", occurred_at="2026-03-01T00:00:00Z"
    )
    assert len(rows) == 2
    recalled = memory.recall_context()
    assert contents(recalled) == ["Dr. Ruiz wrote it.", "The app is small."]
    assert [(row.source, row.position) for row in recalled] == [("notes", 2), ("notes", 1)]
    assert {row.occurred_at for row in recalled} == {datetime(2026, 3, 1, tzinfo=timezone.utc)}


def test_a_vector_of_the_callers_own_needs_no_embedder(db: Database, tenant: str) -> None:
    class Refusing:
        name = "all-MiniLM-L6-v2"
        dimensions = 384

        def embed(self, texts: object) -> list[Any]:
            raise AssertionError("nothing to embed")

    unit = [1.0] + [0.0] * 383
    with Graphium(db.dsn("app"), tenant=tenant, embedder=Refusing()) as memory:
        memory.ingest_context(*HARBOUR, [{"content": "By vector.", "embedding": unit}], embedding_model=Refusing.name)
        memory.ingest_context(*HARBOUR, [{"content": "By words.", "embedding": None}])
        assert contents(memory.search_context(query_embedding=unit)) == ["By vector."]
        assert contents(memory.search_context("words", query_embedding=None)) == ["By words."]
        assert [hit.similarity for hit in memory.search_families(query_embedding=unit)] == pytest.approx([1])
        with pytest.raises(errors.BadEmbeddingError, match="other-model"):
            memory.search_context(query_embedding=unit, embedding_model="other-model")


def test_filters_none_is_no_filter_and_empty_matches_nothing(memory: Graphium) -> None:
    memory.ingest_context(*HARBOUR, ["Ferries leave on time."])
    assert len(memory.search_context("ferries", families=None)) == 1
    assert memory.search_context("ferries", families=[]) == []
    assert memory.recall_context(memory_types=[]) == []
    assert memory.wake_up_context(families=[]) == []


def test_a_blank_query_is_not_embedded(memory: Graphium, embedder: WordEmbedder) -> None:
    memory.ingest_context(*HARBOUR, ["Ferries leave on time."])
    embedder.texts.clear()
    assert memory.search_context("  ") == []
    assert embedder.texts == []


def test_a_name_in_the_query_is_not_embedded_unless_it_is_all_there_is(
    memory: Graphium, embedder: WordEmbedder
) -> None:
    memory.ingest_context("people", "team", "Tomasz", ["He likes radio data."])
    embedder.texts.clear()
    memory.search_context("What does Tomasz like?")
    memory.search_context("Tomasz")
    assert "Tomasz" not in embedder.texts[0]
    assert embedder.texts[1] == "Tomasz"
    assert memory.prepare_query("What does Tomasz like?").specimens == ("Tomasz",)


def test_administration(admin: Graphium, tenant: str) -> None:
    assert (tenant, 384, "english") in [(each.slug, each.dimensions, each.language) for each in admin.list_tenants()]
    assert admin.caller().scopes is None
    assert admin.caller().role == "admin"
    assert admin.list_principals() == []
    admin.create_tenant("other", "bge-m3", 1024)
    admin.drop_tenant("other")
    (first,) = admin.ingest_context(*HARBOUR, ["Ferries leave on time."])
    admin.ingest_context("goals", "2026", "Launch", ["Launch in June."])
    edge = admin.link_symbiosis(
        "related_to", {"family": "goals"}, {"statement_id": first.statement_id}, "the launch needs the app"
    )
    hits = admin.search_context("launch", match_count=1)
    assert [(hit.content, hit.symbiosis_id) for hit in hits] == [
        ("Launch in June.", None), ("Ferries leave on time.", edge)
    ]  # fmt: skip
    assert hits[1].symbiosis_kind == "related_to"
    admin.unlink_symbiosis(edge)
    _, projects = admin.context_tree()
    assert projects.family_id is not None
    assert projects.specimen_id is not None
    admin.rename_taxon("family", projects.family_id, "work")
    assert admin.set_required_scopes("specimen", projects.specimen_id, ["hr"]) == 1
    assert [row.family for row in admin.context_tree()] == ["goals", "work"]
    assert admin.forget_taxon("family", projects.family_id) == 1
    assert admin.cypher("MATCH (f:Family) RETURN f.name") == ["goals"]
    assert admin.cypher("MATCH (f:Family) WHERE f.name = $name RETURN f", {"name": "work"}) == []
    assert admin.check_graph() == []
    assert admin.check_memory() == []


def test_principals(db: Database, tenant: str, admin: Graphium, embedder: WordEmbedder) -> None:
    admin.ingest_context(*HARBOUR, ["Ferries leave on time."])
    admin.ingest_context(*HARBOUR, ["The raise is six percent."], required_scopes=["hr"])
    login = db.login()
    admin.add_principal(db.cluster.role(login), tenant, ["hr"])
    with Graphium(db.dsn(login), embedder=embedder) as memory:
        assert memory.caller().scopes == ("hr",)
        assert len(memory.recall_context()) == 2
    with Graphium(db.dsn(login), tenant=tenant, embedder=embedder) as memory:  # the tenant named, no scopes: all of his
        assert memory.caller().scopes == ("hr",)
        assert len(memory.recall_context()) == 2
    for named, scopes in itertools.product((tenant, None), ([], ["finance"])):  # narrowed to none
        with Graphium(db.dsn(login), tenant=named, scopes=scopes, embedder=embedder) as memory:
            assert (memory.caller().tenant, memory.caller().scopes) == (tenant, ())
            assert contents(memory.recall_context()) == ["Ferries leave on time."]
    with Graphium(db.dsn(login), scopes=["hr", "finance"], embedder=embedder) as memory:
        assert memory.caller().scopes == ("hr",)
    with Graphium(db.dsn("app"), scopes=["hr"], embedder=embedder) as memory, pytest.raises(BadArgumentError):
        memory.recall_context()  # nobody's own tenant is an application's
    admin.remove_principal(db.cluster.role(login))
    with Graphium(db.dsn(login), embedder=embedder) as memory, pytest.raises(errors.NoTenantError):
        memory.recall_context()


def test_two_callers_of_one_tenant_see_what_is_theirs(db: Database, tenant: str, embedder: WordEmbedder) -> None:
    with (
        Graphium(db.dsn("app"), tenant=tenant, scopes=["hr"], embedder=embedder) as hr,
        Graphium(db.dsn("app"), tenant=tenant, embedder=embedder) as all_others,
    ):
        hr.ingest_context(*HARBOUR, ["The raise is six percent."], required_scopes=["hr"])
        assert contents(hr.search_context("raise")) == ["The raise is six percent."]
        assert all_others.search_context("raise") == []
        assert all_others.context_tree() == []


# --- connections ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("autocommit", [True, False])
def test_an_own_connection_is_used_committed_and_left_open(
    db: Database, tenant: str, embedder: WordEmbedder, autocommit: bool
) -> None:
    with psycopg.connect(db.dsn("app"), autocommit=autocommit, row_factory=psycopg.rows.dict_row) as connection:
        with Graphium(connection=connection, tenant=tenant, embedder=embedder) as memory:
            memory.ingest_context(*HARBOUR, ["Ferries leave on time."])
        assert connection.info.transaction_status == TransactionStatus.IDLE
        with Graphium(db.dsn("app"), tenant=tenant, embedder=embedder) as another:
            assert len(another.recall_context()) == 1
        # the next transaction on the connection is nobody
        assert connection.execute("select current_setting('graphium.tenant', true) as tenant").fetchone() == {
            "tenant": ""
        }


def test_in_an_open_transaction_a_call_is_a_savepoint(
    app_conn: Connection, tenant: str, embedder: WordEmbedder
) -> None:
    memory = Graphium(connection=app_conn, tenant=tenant, embedder=embedder)
    with app_conn.transaction(force_rollback=True):
        memory.ingest_context(*HARBOUR, ["Ferries leave on time."])
        with pytest.raises(errors.BadArgumentError):
            memory.search_context("ferries", match_count=0)
        assert len(memory.recall_context()) == 1  # the failed call did not end the transaction
    assert memory.recall_context() == []


@pytest.mark.parametrize("autocommit", [True, False])
def test_an_own_pool_is_used_and_left_open(db: Database, tenant: str, embedder: WordEmbedder, autocommit: bool) -> None:
    with ConnectionPool(db.dsn("app"), min_size=1, max_size=1, kwargs={"autocommit": autocommit}) as pool:
        with Graphium(pool=pool, tenant=tenant, embedder=embedder) as memory:
            memory.ingest_context(*HARBOUR, ["Ferries leave on time."])
        with Graphium(pool=pool, tenant=tenant, embedder=embedder) as memory:
            assert len(memory.recall_context()) == 1
        with pool.connection() as connection:  # nobody, after somebody gave it back
            assert connection.execute("select count(*) from graphium.kg_statements").fetchone() == (0,)


def test_no_connection_is_held_while_embedding(db: Database, tenant: str) -> None:
    with ConnectionPool(db.dsn("app"), min_size=1, max_size=1) as pool:
        pool.wait()
        seen: list[dict[str, int]] = []

        def while_embedding() -> None:
            seen.append(pool.get_stats())
            with pool.connection(timeout=1):  # the only one there is
                pass

        memory = Graphium(pool=pool, tenant=tenant, embedder=WordEmbedder(while_embedding))
        memory.ingest_context(*HARBOUR, ["Ferries leave on time."])
        memory.search_context("ferries")
        memory.search_families("ferries")
        assert [stats["pool_available"] for stats in seen] == [1, 1, 1]


def test_a_call_is_one_round_trip(db: Database, tenant: str, embedder: WordEmbedder, tmp_path: Any) -> None:
    with psycopg.connect(db.dsn("app"), autocommit=True) as connection:
        memory = Graphium(connection=connection, tenant=tenant, embedder=embedder)
        trace = (tmp_path / "trace").open("w")
        connection.pgconn.trace(trace.fileno())
        memory.recall_context()
        connection.pgconn.untrace()
    lines = (tmp_path / "trace").read_text().splitlines()
    assert sum("\tSync" in line for line in lines) == 1
    assert sum("ReadyForQuery" in line for line in lines) == 1


def test_threads_share_a_client(memory: Graphium) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: memory.ingest_context(*HARBOUR, ["Ferries leave on time."])[0], range(20)))
    assert len({row.statement_id for row in rows}) == 1
    assert sum(not row.deduplicated for row in rows) == 1
    assert memory.recall_context()[0].access_count == 19


def test_threads_share_a_connection(app_conn: Connection, tenant: str, embedder: WordEmbedder) -> None:
    from concurrent.futures import ThreadPoolExecutor

    memory = Graphium(connection=app_conn, tenant=tenant, embedder=embedder)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: memory.ingest_context(*HARBOUR, ["Ferries leave on time."]), range(20)))
    assert memory.recall_context()[0].access_count == 19


def test_a_wrong_address_is_told_at_once() -> None:
    with pytest.raises(psycopg.OperationalError, match="refused"):
        Graphium("host=127.0.0.1 port=1", tenant="acme").recall_context()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dsn": "", "connection": object()}, "pass one of dsn, connection and pool"),
        ({"connection": object()}, r"connection must be a psycopg\.Connection, got object"),
        ({"pool": object()}, r"pool must be a psycopg_pool\.ConnectionPool, got object"),
        ({"tenant": "acme", "scopes": "hr"}, "scopes must be a list of texts"),
        ({"tenant": "\x00"}, r"tenant contains U\+0000"),
    ],
)
def test_a_client_that_cannot_work_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadArgumentError, match=message):
        Graphium(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "pass either statements or text"),
        ({"statements": [], "text": ""}, "pass either statements or text"),
        ({"statements": "one text"}, "statements must be a list"),
    ],
)
def test_an_ingest_of_nothing_or_of_two_things_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadArgumentError, match=message):
        Graphium(tenant="acme").ingest_context(*HARBOUR, **arguments)


def test_content_that_is_no_text_is_refused_before_embedding(embedder: WordEmbedder) -> None:
    memory = Graphium(tenant="acme", embedder=embedder)
    for statement in ({}, {"content": None}, {"content": 7}):
        with pytest.raises(errors.BadStatementError, match="statement 1: content must be text"):
            memory.ingest_context(*HARBOUR, [statement])  # type: ignore[list-item]
    with pytest.raises(errors.BadStatementError, match="U\\+0000"):
        memory.ingest_context(*HARBOUR, ["\x00"])
    with pytest.raises(BadArgumentError, match=r"query_text contains half of a surrogate pair \(U\+D800\)"):
        memory.search_families("\ud800")
    assert embedder.texts == []


# --- errors ----------------------------------------------------------------------------------------------------------


def provoke(memory: Graphium, admin: Graphium, db: Database) -> Iterator[tuple[str, Any]]:
    """One call per SQLSTATE."""
    stranger = Graphium(db.dsn("app"), embedder=WordEmbedder())
    yield "MG001", lambda: stranger.recall_context()
    yield "MG002", lambda: Graphium(db.dsn("app"), tenant="nobody").recall_context()
    unknown: Any = {"content": "c", "colour": "red"}
    yield "MG004", lambda: memory.ingest_context(*HARBOUR, [unknown])
    yield "MG005", lambda: memory.search_context(query_embedding=[1.0])
    yield "MG006", lambda: memory.ingest_context(*HARBOUR, ["Secret."], required_scopes=["hr"])
    yield "MG007", lambda: admin.rename_taxon("family", uuid.uuid4(), "other")
    yield "MG008", lambda: memory.search_context("ferries", match_count=0)
    yield "MG010", lambda: memory.cypher("CREATE (f:Family {name: 'x'}) RETURN f")


def test_errors_of_the_database_are_exceptions_of_ours(memory: Graphium, admin: Graphium, db: Database) -> None:
    for sqlstate, call in provoke(memory, admin, db):
        with pytest.raises(errors.BY_SQLSTATE[sqlstate]) as raised:
            call()
        assert raised.value.sqlstate == sqlstate
        assert raised.value.message
        assert raised.value.hint
        assert isinstance(raised.value.__cause__, psycopg.Error)


@pytest.mark.parametrize("sqlstate", ["MG003", "MG009"])
def test_errors_that_no_function_of_the_client_meets(db: Database, sqlstate: str) -> None:
    with pytest.raises(errors.BY_SQLSTATE[sqlstate]) as raised, errors.translated(), db.connect() as connection:
        connection.execute("select graphium_private._raise_error(%s, 'message', 'hint')", [sqlstate])
    assert (raised.value.message, raised.value.hint) == ("message", "hint")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"since": "soon"}, "since"),
        ({"since": "2026-03-01", "until": "2026-13-01"}, "until"),
        ({"until": "2026-03-01 12:00 Mars/Olympus"}, "until"),
        ({"since": "2026-03-01", "until": "2026-03-01 12:00+15:59:60"}, "until"),
    ],
)
def test_text_that_is_no_time_is_refused_by_name(memory: Graphium, arguments: dict[str, str], name: str) -> None:
    for call in (memory.recall_context, memory.search_context):
        with pytest.raises(BadArgumentError, match=f"^{name} must be a point in time"):
            call(**arguments)  # type: ignore[operator]


def test_other_database_errors_stay_what_they_are(memory: Graphium) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        memory.create_tenant("another")


def test_nothing_of_a_failed_ingest_is_stored(memory: Graphium) -> None:
    with pytest.raises(errors.BadStatementError, match="statement 2"):
        memory.ingest_context(*HARBOUR, ["Fine.", {"content": "  "}])
    assert memory.context_tree() == []


# --- asynchronous ---------------------------------------------------------------------------------------------------


def test_the_async_client_takes_no_synchronous_connection(app_conn: Connection) -> None:
    wrong: Any = app_conn
    with pytest.raises(BadArgumentError, match=r"connection must be a psycopg\.AsyncConnection, got Connection"):
        AsyncGraphium(connection=wrong, tenant="acme")


def test_the_async_client_gives_the_same(db: Database, memory: Graphium, tenant: str) -> None:
    memory.ingest_context(*HARBOUR, ["Ferries leave on time.", "The pier is closed."])

    async def ask() -> list[Any]:
        async with AsyncGraphium(db.dsn("app"), tenant=tenant, embedder=WordEmbedder()) as same:
            return await asyncio.gather(
                same.search_context("ferries"), same.recall_context(), same.context_tree(), same.wake_up_context()
            )

    assert asyncio.run(ask()) == [
        memory.search_context("ferries"), memory.recall_context(), memory.context_tree(), memory.wake_up_context()
    ]  # fmt: skip


def test_async_calls_on_one_connection_wait_for_each_other(db: Database, tenant: str) -> None:
    async def run() -> int:
        async with await psycopg.AsyncConnection.connect(db.dsn("app"), autocommit=True) as connection:
            memory = AsyncGraphium(connection=connection, tenant=tenant, embedder=WordEmbedder())
            await asyncio.gather(*(memory.ingest_context(*HARBOUR, ["Ferries leave on time."]) for _ in range(10)))
            return (await memory.recall_context())[0].access_count

    assert asyncio.run(run()) == 9


def test_async_embedding_holds_neither_a_connection_nor_the_loop(db: Database, tenant: str) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        async with AsyncConnectionPool(db.dsn("app"), min_size=1, max_size=1, open=False) as pool:
            await pool.wait()
            plain = AsyncGraphium(pool=pool, tenant=tenant)

            def while_embedding() -> None:
                # from the embedder's thread: the loop turns, and the only connection is free
                future = asyncio.run_coroutine_threadsafe(plain.recall_context(), loop)
                assert future.result(timeout=10) == []

            memory = AsyncGraphium(pool=pool, tenant=tenant, embedder=WordEmbedder(while_embedding))
            await memory.ingest_context(*HARBOUR, ["Ferries leave on time."])

    asyncio.run(run())
