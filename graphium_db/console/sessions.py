"""Who is logged in. The cookie holds a signed random id and nothing else; credentials stay in this process."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from itsdangerous import BadSignature, URLSafeSerializer
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from graphium_db.aio import AsyncGraphium
from graphium_db.console.config import Config

if TYPE_CHECKING:
    from typing_extensions import LiteralString

    from graphium_db.embedding import Embedder

T = TypeVar("T")
IDLE = 60 * 60.0
LONGEST = 12 * 60 * 60.0
# At most MOST * CONNECTIONS of the database are held, and by one principal PER_NAME * CONNECTIONS.
MOST = 40
PER_NAME = 5
REMEMBERED = 1000
CONNECTIONS = 2
AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the allowed tenants somebody looks at, by its place among them, and with which of its scopes."""

    tenant: int
    scopes: tuple[str, ...]


@dataclass(slots=True)
class Session:
    """One login: a client with that caller's own credentials. `login` is None for the server's own."""

    login: str | None
    pool: AsyncConnectionPool[Any]
    tenant: str | None
    scopes: Sequence[str] | None
    embedder: Embedder | None
    memory: AsyncGraphium
    may_write: bool = False
    draft: tuple[str, FormData] | None = None
    said: tuple[str, str] | None = None
    saved: dict[str, Any] | None = None
    began: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.monotonic)

    @asynccontextmanager
    async def transaction(self, first: LiteralString | None = None) -> AsyncIterator[AsyncGraphium]:
        """Calls that hold together or not at all. `first`: how the transaction is to be."""
        async with self.pool.connection() as connection, connection.transaction():
            if first is not None:
                await connection.execute(first)
            yield AsyncGraphium(connection=connection, tenant=self.tenant, scopes=self.scopes, embedder=self.embedder)

    def take_draft(self, request: Request) -> FormData | None:
        """What was typed into that page's form and refused, or sent when an earlier session had ended; once."""
        waits, self.draft = _taken(self.draft, request)
        return waits

    def take_said(self, request: Request) -> str | None:
        """What became of a form that led to this page; once, and not from the address, where anybody could put it."""
        waits, self.said = _taken(self.said, request)
        return waits

    async def close(self) -> None:
        await self.pool.close()


def _taken(waits: tuple[str, T] | None, request: Request) -> tuple[T | None, tuple[str, T] | None]:
    """What waits for the page of a request, and what then is left to wait. A HEAD shows nothing, so takes nothing."""
    if waits is None or waits[0] != request.url.path or request.method != "GET":
        return None, waits
    return waits[1], None


async def open_session(
    config: Config,
    embedder: Embedder | None,
    *,
    user: str | None = None,
    password: str | None = None,
    tenant: str | None = None,
    scopes: Sequence[str] | None = None,
) -> Session:
    """Log in: as a principal by his name and password, else by the server's own login as a tenant with scopes.

    Raises:
        psycopg.OperationalError: the database does not let him in.
        GraphiumError: it does, and takes him for nobody.
    """
    dsn = make_conninfo(config.dsn, application_name="graphium console", client_encoding="utf8")
    if user is not None:
        # An empty password would be looked for in PGPASSWORD and ~/.pgpass, which are the server's own.
        dsn = make_conninfo(dsn, user=user, password=password or "\x20")
    settings: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}
    # Without a pool, which would retry for long.
    async with await psycopg.AsyncConnection.connect(dsn, connect_timeout=5, **settings) as connection:
        if user is not None and not connection.pgconn.used_password:
            # By a socket (peer) or a certificate it may have let in what the console runs as, whoever asks it to.
            (known_by,) = await (await connection.execute("select system_user")).fetchone() or (None,)
            if known_by is not None:
                raise psycopg.OperationalError("password authentication failed: none was asked for")
        await _set_dates(connection)
        asking = AsyncGraphium(connection=connection, tenant=tenant, scopes=scopes)
        caller = await asking.caller()
        may_write = await _may_write(asking)
    if embedder is not None and (embedder.name, embedder.dimensions) != (caller.embedding_model, caller.dimensions):
        embedder = None  # its vectors would be refused: by words alone
    pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
        dsn,
        min_size=0,
        max_size=CONNECTIONS,
        max_idle=10,
        max_lifetime=5 * 60,  # after which the login's password is asked for again
        timeout=10,
        kwargs=settings,
        configure=_set_dates,
        open=False,
        name="graphium console",
    )
    await pool.open()
    memory = AsyncGraphium(pool=pool, tenant=tenant, scopes=scopes, embedder=embedder)
    return Session(user, pool, tenant, scopes, embedder, memory, may_write)


async def _set_dates(connection: psycopg.AsyncConnection[Any]) -> None:
    """A login may have a DateStyle of its own, which psycopg does not read."""
    if not (connection.info.parameter_status("DateStyle") or "").startswith("ISO"):
        await connection.execute("set datestyle to ISO")


async def _may_write(memory: AsyncGraphium) -> bool:
    """Whether buttons that write make sense. The database decides with each call; forgetting nothing asks it."""
    try:
        await memory.forget_context([])
    except psycopg.errors.InsufficientPrivilege:
        return False
    except psycopg.errors.ReadOnlySqlTransaction:  # a replica
        return False
    return True


class Sessions:
    """All logins of this process, by id."""

    def __init__(self, config: Config) -> None:
        self._serializer = URLSafeSerializer(config.secret, salt="graphium session")
        self._key = config.secret.encode()
        self._open: dict[str, Session] = {}
        self._chosen: dict[str, Choice] = {}
        self.door = asyncio.Semaphore(AT_ONCE)
        self.cookie = f"graphium_{config.port}"  # cookies know hosts and not ports: two consoles on one machine

    def id_of(self, request: Request) -> str | None:
        """The id in a request's cookie, when we signed it."""
        try:
            value = self._serializer.loads(request.cookies.get(self.cookie, ""))
        except BadSignature:
            return None
        return value if isinstance(value, str) else None

    async def find(self, request: Request) -> Session | None:
        await self._sweep()
        session = self._open.get(self.id_of(request) or "")
        if session is not None:
            session.used = time.monotonic()
        return session

    def chosen(self, request: Request) -> Choice | None:
        """What the session of a request's cookie was begun with, though it may have ended; not where one logged out."""
        return self._chosen.get(self.id_of(request) or "")

    async def start(self, session: Session, chosen: Choice | None = None) -> str:
        """A new id for a new login, so that nobody can have planted it."""
        await self._sweep()
        own = [id for id, other in self._open.items() if session.login is not None and other.login == session.login]
        ended = own[: max(0, len(own) - PER_NAME + 1)]
        if len(self._open) - len(ended) >= MOST:
            ended.append(min(self._open, key=lambda id: self._open[id].used))
        closing = [self._open.pop(id) for id in ended]
        id = self.new_id()
        self._open[id] = session
        if chosen is not None:
            self._chosen[id] = chosen
            if len(self._chosen) > REMEMBERED:
                del self._chosen[next(iter(self._chosen))]
        for other in closing:
            await other.close()
        return id

    async def end(self, request: Request) -> None:
        id = self.id_of(request) or ""
        self._chosen.pop(id, None)
        session = self._open.pop(id, None)
        if session is not None:
            await session.close()

    async def end_all(self) -> None:
        for id in list(self._open):
            await self._open.pop(id).close()

    async def _sweep(self) -> None:
        now = time.monotonic()
        for id, session in list(self._open.items()):
            if now - session.used > IDLE or now - session.began > LONGEST:
                self._open.pop(id, None)
                await session.close()

    @staticmethod
    def new_id() -> str:
        return secrets.token_urlsafe(32)

    def set_cookie(self, request: Request, response: Response, id: str) -> None:
        response.set_cookie(
            self.cookie,
            self._serializer.dumps(id),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            path="/",
        )

    def csrf_token(self, id: str) -> str:
        """What a form of that session's must bring along. Before a login too: else somebody could log others in."""
        return hmac.new(self._key, b"csrf:" + id.encode(), hashlib.sha256).hexdigest()

    def is_csrf_token(self, id: str | None, token: object) -> bool:
        return (
            id is not None
            and isinstance(token, str)
            and hmac.compare_digest(self.csrf_token(id).encode(), token.encode("utf-8", "replace"))
        )
