"""The asynchronous client. `client.py` is generated from this file by `scripts/make_sync_client.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import UUID

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool

from graphium_db import calls, errors, inputs, models, server
from graphium_db.calls import Call, Moment
from graphium_db.errors import BadArgumentError
from graphium_db.models import (
    FiledStatementInput,
    LayerKind,
    MemoryType,
    StatementInput,
    SymbiosisEnd,
    SymbiosisKind,
    TaxonKind,
    Vector,
)

if TYPE_CHECKING:
    from graphium_db.embedding import Embedder, Embedding

T = TypeVar("T")


class AsyncGraphium:
    """A caller's view of the memory: one tenant, some scopes.

        async with AsyncGraphium(tenant="acme", scopes=["hr"]) as memory:
            await memory.ingest_context("performance", "feedback", "Aisha", ["Aisha prefers written feedback."])
            for hit in await memory.search_context("How does Aisha like feedback?"):
                print(hit.score, hit.content)

    Each method is one call of the stored function of the same name, in one transaction; argument and result names are
    the function's own. Errors of class `MG` raise the exceptions of `graphium_db.errors`, all others stay `psycopg`'s.

    Args:
        dsn: where to connect. None: `GRAPHIUM_DSN`, else the embedded server that `graphium up` started. Connections
            come from a small pool, opened at the first call; they prepare no statements, so any pooler will do.
        tenant: the caller's tenant, named to the database in each transaction. None for a login role that is a
            principal (it is its tenant), and for an admin's calls that need none.
        scopes: the scopes that the caller holds. None: not named, and then an application holds none, a principal all
            of his own. An empty list: none at all, for a principal too, who can only narrow what he has.
        embedder: turns text into vectors; None loads the default one of `graphium_db.embedding` at its first use.
        connection: use the caller's own connection. Inside of an open transaction each call is a savepoint of it, and
            committing stays the caller's; the transaction then knows the caller until its end.
        pool: use the caller's own pool, opened. Connections with `autocommit=True` spare each call two round trips.

    No connection is held while the embedder runs.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        tenant: str | None = None,
        scopes: Sequence[str] | None = None,
        embedder: Embedder | None = None,
        connection: psycopg.AsyncConnection[Any] | None = None,
        pool: AsyncConnectionPool[Any] | None = None,
    ) -> None:
        if sum(given is not None for given in (dsn, connection, pool)) > 1:
            raise BadArgumentError("pass one of dsn, connection and pool", "A connection or a pool knows its database.")
        for name, given, kind in (
            ("connection", connection, psycopg.AsyncConnection),
            ("pool", pool, AsyncConnectionPool),
        ):
            if given is not None and not isinstance(given, kind):
                raise BadArgumentError(
                    f"{name} must be a {kind.__module__.partition('.')[0]}.{kind.__name__}, got {type(given).__name__}",
                    "The synchronous client and the asynchronous one each take connections of their own kind.",
                )
        self._set_caller = None if tenant is None and scopes is None else calls.set_caller(tenant, scopes)
        self._dsn = dsn
        self._embedder = embedder
        self._connection = connection
        self._pool = pool
        self._owns_pool = connection is None and pool is None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> AsyncGraphium:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that this object opened; the caller's own stay open."""
        if self._owns_pool and self._pool is not None:
            await self._pool.close()
            self._pool = None

    @property
    def embedder(self) -> Embedder:
        """The embedder in use; the default one is made at the first use."""
        if self._embedder is None:
            from graphium_db.embedding import default_embedder

            self._embedder = default_embedder()
        return self._embedder

    # --- memory ----------------------------------------------------------------------------------------------

    async def ingest_context(
        self,
        family: str,
        genus: str,
        specimen: str,
        statements: Sequence[str | StatementInput] | None = None,
        required_scopes: Sequence[str] | None = None,
        *,
        text: str | None = None,
        source: str | None = None,
        occurred_at: Moment | None = None,
        embedding_model: str | None = None,
    ) -> list[models.IngestedStatement]:
        """Store sentences about one specimen; all of them or, on an error, none.

        Args:
            family, genus, specimen: created when they are new.
            statements: sentences, or dicts (`StatementInput`) that say more about them.
            required_scopes: audience of the statements that name none of their own, and of what the call creates.
            text: instead of statements: a text, which is split into sentences.
            source, occurred_at: for the statements that name none of their own.
            embedding_model: the model of vectors that the statements bring along. Vectors made here name theirs.

        Returns one row per statement, in their order. A large ingest is one transaction: send some hundreds of
        statements a call. Sending a batch again is harmless, its statements are then deduplicated.
        """
        items = inputs.statement_inputs(statements, text, source, occurred_at)
        call = calls.ingest_context(
            family, genus, specimen, items, required_scopes, embedding_model
        )  # bad text fails first
        if missing := inputs.without_embedding(items):
            inputs.set_embeddings(missing, await self._embed([item["content"] for item in missing]))
            call = calls.ingest_context(family, genus, specimen, items, required_scopes, self.embedder.name)
        return await self._run(call)

    async def ingest_many(
        self,
        statements: Sequence[FiledStatementInput],
        required_scopes: Sequence[str] | None = None,
        *,
        embedding_model: str | None = None,
    ) -> list[models.IngestedStatement]:
        """Store sentences about any specimens, which each of them names; all of them or, on an error, none.

        Like one `ingest_context` after the other, at a fraction of the cost. Send some thousand a call.
        """
        items: list[FiledStatementInput] = inputs.copies(statements)
        call = calls.ingest_many(items, required_scopes, embedding_model)  # bad text fails first
        if missing := inputs.without_embedding(items):
            inputs.set_embeddings(missing, await self._embed([item["content"] for item in missing]))
            call = calls.ingest_many(items, required_scopes, self.embedder.name)
        return await self._run(call)

    async def prepare_query(self, query_text: str, now: Moment | None = None) -> models.PreparedQuery:
        """What a query says besides its topic: the text to embed, and who and when it names, relative to `now`."""
        return await self._run(calls.prepare_query(query_text, now))

    async def search_context(
        self,
        query_text: str | None = None,
        match_count: int = 10,
        *,
        query_embedding: Vector | Literal["auto"] | None = "auto",
        families: Sequence[str] | None = None,
        genera: Sequence[str] | None = None,
        specimens: Sequence[str] | None = None,
        memory_types: Sequence[MemoryType] | None = None,
        layer_kinds: Sequence[LayerKind] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        min_similarity: float | None = None,
        follow_symbiosis: bool = True,
        symbiosis_count: int = 5,
        embedding_model: str | None = None,
        now: Moment | None = None,
        explain: bool = False,
    ) -> list[models.SearchHit]:
        """The statements that answer a query, best first, then those that symbioses lead to from there.

        Args:
            query_text: searched by its words and, embedded, by its meaning.
            match_count: how many primary hits; symbiosis hits come on top of them.
            query_embedding: "auto" embeds the query here; a vector is used as it is; None searches by words alone.
            families, genera, specimens, memory_types, layer_kinds: None is no filter, an empty list matches nothing.
            since, until: bounds on when it happened.
            min_similarity: least cosine of a hit.
            follow_symbiosis, symbiosis_count: whether to follow cross-family edges, and how many such hits in all.
            embedding_model: the model of a vector that is passed; refused when it is not the tenant's.
            now: what "last week" in the text is relative to; None is the time of the call.
            explain: whether each hit's `explanation` says why it was found.
        """
        calls.checked_text("query_text", query_text)
        if isinstance(query_embedding, str) and query_embedding != "auto":
            raise BadArgumentError(
                'query_embedding must be "auto", a vector or None, got a text', "Pass a list of floats."
            )
        vector: Vector | None = None if isinstance(query_embedding, str) else query_embedding
        if isinstance(query_embedding, str) and query_text is not None and query_text.strip():
            prepared = await self.prepare_query(query_text, now)
            vector = (await self._embed([prepared.dense_text or query_text]))[0].vector
            embedding_model = self.embedder.name
        return await self._run(
            calls.search_context(
                query_embedding=vector,
                query_text=query_text,
                match_count=match_count,
                families=families,
                genera=genera,
                specimens=specimens,
                memory_types=memory_types,
                layer_kinds=layer_kinds,
                since=since,
                until=until,
                min_similarity=min_similarity,
                follow_symbiosis=follow_symbiosis,
                symbiosis_count=symbiosis_count,
                embedding_model=embedding_model,
                now=now,
                explain=explain,
            )
        )

    async def recall_context(
        self,
        family: str | None = None,
        genus: str | None = None,
        specimen: str | None = None,
        statement_ids: Sequence[UUID | str] | None = None,
        *,
        memory_types: Sequence[MemoryType] | None = None,
        layer_kinds: Sequence[LayerKind] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        page_size: int = 50,
        after: UUID | str | None = None,
        required_scopes: Sequence[str] | None = None,
    ) -> list[models.RecalledStatement]:
        """Statements by where they are and not by a query, newest id first.

        `required_scopes`: those with one of these scopes in their audience; `public` stands for all open ones.
        The next page: pass the last `statement_id` of this one as `after`. A page shorter than `page_size` is the last.
        """
        return await self._run(
            calls.recall_context(
                family=family,
                genus=genus,
                specimen=specimen,
                statement_ids=statement_ids,
                memory_types=memory_types,
                layer_kinds=layer_kinds,
                since=since,
                until=until,
                page_size=page_size,
                after=after,
                required_scopes=required_scopes,
            )
        )

    async def statement_details(
        self, statement_ids: Sequence[UUID | str], query_text: str | None = None
    ) -> list[models.StatementDetails]:
        """What `recall_context` leaves out: rule, last match, variants; which words of a query they have."""
        return await self._run(calls.statement_details(statement_ids, query_text))

    async def list_symbioses(
        self, statement_ids: Sequence[UUID | str] | None = None, max_count: int = 1000
    ) -> list[models.Symbiosis]:
        """The edges between families that the caller sees; with ids, those that touch one of these statements."""
        return await self._run(calls.list_symbioses(statement_ids, max_count))

    async def wake_up_context(
        self,
        token_budget: int = 800,
        families: Sequence[str] | None = None,
        specimens: Sequence[str] | None = None,
    ) -> list[models.WakeUpStatement]:
        """The preloaded statements for the start of a session, most useful first, within `token_budget`."""
        return await self._run(calls.wake_up_context(token_budget, families, specimens))

    async def search_families(
        self,
        query_text: str | None = None,
        match_count: int = 5,
        *,
        query_embedding: Vector | None = None,
    ) -> list[models.FamilyHit]:
        """Families whose summary is nearest to a query: a text, which is embedded, or a vector."""
        if query_embedding is None:
            if query_text is None:
                raise BadArgumentError("query_text and query_embedding are both None", "Pass one of them.")
            calls.checked_text("query_text", query_text)
            query_embedding = (await self._embed([query_text]))[0].vector
        return await self._run(calls.search_families(query_embedding, match_count))

    async def context_tree(self) -> list[models.ContextTreeRow]:
        """Families, genera and specimens that the caller may see, with counts of the statements they may see."""
        return await self._run(calls.context_tree())

    async def forget_context(self, statement_ids: Sequence[UUID | str]) -> int:
        """Delete statements. Returns how many."""
        return await self._run(calls.forget_context(statement_ids))

    async def scopes_in_use(self) -> list[models.ScopeInUse]:
        """The scopes in the audiences of what the caller sees."""
        return await self._run(calls.scopes_in_use())

    async def preview_required_scopes(
        self,
        kind: TaxonKind | Literal["statement"],
        ids: Sequence[UUID | str],
        required_scopes: Sequence[str],
        cascade: bool = False,
    ) -> list[models.ScopeEditPreview]:
        """What `set_many_required_scopes` would change, and who would lose sight of it. Changes nothing."""
        return await self._run(calls.preview_required_scopes(kind, ids, required_scopes, cascade))

    async def set_required_scopes(
        self,
        kind: TaxonKind | Literal["statement"],
        id: UUID | str,
        required_scopes: Sequence[str],
        cascade: bool = False,
    ) -> int:
        """Change the audience of a family, specimen or statement, with `cascade` of all below it. Returns how many."""
        return await self._run(calls.set_required_scopes(kind, id, required_scopes, cascade))

    async def set_many_required_scopes(
        self,
        kind: TaxonKind | Literal["statement"],
        ids: Sequence[UUID | str],
        required_scopes: Sequence[str],
        cascade: bool = False,
    ) -> int:
        """Like :meth:`set_required_scopes` for several at once: all of them or, when one is not found, none."""
        return await self._run(calls.set_many_required_scopes(kind, ids, required_scopes, cascade))

    async def plan_reclassification(self, sample_count: int = 3) -> list[models.Reclassification]:
        """What :meth:`reclassify` would change: by rule before and after, how many statements, and some of them."""
        return await self._run(calls.plan_reclassification(sample_count))

    async def reclassify(self, batch_size: int = 1000, after: UUID | str | None = None) -> models.Reclassified:
        """Label a batch of what an older rule set labelled by the one that is deployed; what a caller chose stays.

        The next batch: pass `last_id` as `after`, until `statements` is 0. Each batch is a transaction of its own.
        """
        return await self._run(calls.reclassify(batch_size, after))

    async def cypher(self, query: str, params: Mapping[str, Any] | None = None) -> list[Any]:
        """Read the tenant's graph: `MATCH (f:Family)-[:HAS_GENUS]->(g) WHERE f.name = $name RETURN g`.

        One returned column or one map; vertices and edges come as `{"id": …, "label": …, "properties": {…}}`.
        """
        return await self._run(calls.cypher(query, params))

    async def caller(self) -> models.Caller:
        """Who the database takes this caller for."""
        return await self._run(calls.caller())

    # --- administration (graphium_admin) -----------------------------------------------------------------------

    async def create_tenant(
        self,
        slug: str,
        embedding_model: str = "all-MiniLM-L6-v2",
        dimensions: int = 384,
        language: str = "english",
    ) -> UUID:
        """A new, empty tenant and its graph. Its vectors are those of one model, `dimensions` long.

        Its words are stemmed as those of one language that PostgreSQL has a stemmer for; "simple": as they are.
        """
        return await self._run(calls.create_tenant(slug, embedding_model, dimensions, language))

    async def drop_tenant(self, slug: str) -> None:
        """Erase a tenant with all that it remembers."""
        return await self._run(calls.drop_tenant(slug))

    async def list_tenants(self) -> list[models.Tenant]:
        """All tenants of the database."""
        return await self._run(calls.list_tenants())

    async def add_principal(
        self, role_name: str, tenant: str, scopes: Sequence[str] = (), read_only: bool = False
    ) -> None:
        """Bind a login role to a tenant and at most these scopes, whatever it sets."""
        return await self._run(calls.add_principal(role_name, tenant, scopes, read_only))

    async def remove_principal(self, role_name: str) -> None:
        """Undo `add_principal`: the role then is nobody."""
        return await self._run(calls.remove_principal(role_name))

    async def list_principals(self) -> list[models.Principal]:
        """All login roles that are bound to a tenant in this database, and whether each binding is in force."""
        return await self._run(calls.list_principals())

    async def rename_taxon(self, kind: TaxonKind, id: UUID | str, name: str) -> None:
        """Give a family, genus or specimen another name."""
        return await self._run(calls.rename_taxon(kind, id, name))

    async def move_specimen(self, id: UUID | str, genus_id: UUID | str) -> None:
        """Move a specimen to another genus of the same family."""
        return await self._run(calls.move_specimen(id, genus_id))

    async def forget_taxon(self, kind: TaxonKind, id: UUID | str) -> int:
        """Delete a family, genus or specimen with all below it. Returns how many statements went with it."""
        return await self._run(calls.forget_taxon(kind, id))

    async def link_symbiosis(
        self, kind: SymbiosisKind, source: SymbiosisEnd, target: SymbiosisEnd, note: str | None = None
    ) -> UUID:
        """Connect two families, each narrowed to a genus, specimen or statement where that is meant."""
        return await self._run(calls.link_symbiosis(kind, source, target, note))

    async def unlink_symbiosis(self, id: UUID | str) -> None:
        """Remove a symbiosis."""
        return await self._run(calls.unlink_symbiosis(id))

    async def check_graph(self, tenant: str | None = None) -> list[models.GraphFault]:
        """Where the graph differs from the rows; empty when healthy. None: the caller's tenant."""
        return await self._run(calls.check_graph(tenant))

    async def rebuild_graph(self, tenant: str | None = None) -> int:
        """Make the graph anew from the rows, as is due after `pg_restore`. Returns its vertices and edges."""
        return await self._run(calls.rebuild_graph(tenant))

    async def check_memory(self, tenant: str | None = None) -> list[models.MemoryFault]:
        """Where counts, sums, summaries differ from the statements; empty when healthy. None: the caller's tenant."""
        return await self._run(calls.check_memory(tenant))

    async def rebuild_memory(self, tenant: str | None = None) -> int:
        """Make counts, summaries, words and copies anew where they are wrong. Returns how many faults are gone."""
        return await self._run(calls.rebuild_memory(tenant))

    async def check_security(self) -> list[models.SecurityFinding]:
        """What weakens isolation in this database, the worst first, each with its remedy; empty when all is well."""
        return await self._run(calls.check_security())

    async def maintenance_plan(self) -> list[models.MaintenanceStep]:
        """The statements that `graphium maintain` runs, for all tenants; empty when there is nothing to do."""
        return await self._run(calls.maintenance_plan())

    # --- how a call runs -----------------------------------------------------------------------------------------

    async def _embed(self, texts: Sequence[str]) -> Sequence[Embedding]:
        return await asyncio.to_thread(self.embedder.embed, texts)

    async def _run(self, call: Call[T]) -> T:
        with errors.translated(call.parameters):
            rows = await self._rows(call)
        return call.decode(rows)

    async def _rows(self, call: Call[Any]) -> calls.Rows:
        """Name the caller and make the call, in one transaction; on an idle autocommit connection in one round trip.

        There the pipeline is the transaction: PostgreSQL commits at its end, and does both statements or neither.
        """
        async with self._checked_out() as connection:
            idle = connection.info.transaction_status == TransactionStatus.IDLE
            transaction = nullcontext() if connection.autocommit and idle else connection.transaction()
            cursor = psycopg.AsyncCursor(connection, row_factory=tuple_row)
            async with connection.pipeline(), transaction:
                if self._set_caller is not None:
                    await psycopg.AsyncCursor(connection).execute(self._set_caller.sql, self._set_caller.parameters)
                await cursor.execute(call.sql, call.parameters)
            return await cursor.fetchall()

    @asynccontextmanager
    async def _checked_out(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        if self._connection is not None:
            async with self._lock:  # one call at a time: two would mix their transactions
                yield self._connection
        else:
            pool = self._pool or await self._open_pool()
            async with pool.connection() as connection:
                yield connection

    async def _open_pool(self) -> AsyncConnectionPool[Any]:
        async with self._lock:
            if self._pool is None:
                dsn = self._dsn or server.default_dsn()
                # A pool retries in silence for half a minute; a wrong address or password should say so at once.
                await (await psycopg.AsyncConnection.connect(dsn)).close()
                pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
                    dsn,
                    min_size=0,
                    max_size=8,
                    max_idle=60,
                    kwargs={"autocommit": True, "prepare_threshold": None, "application_name": "graphium"},
                    open=False,
                    name="graphium",
                )
                await pool.open()
                self._pool = pool
            return self._pool
