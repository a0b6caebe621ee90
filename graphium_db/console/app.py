"""The application: routes by page, around them the guard."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from graphium_db.console.config import Config
from graphium_db.console.guard import Guard
from graphium_db.console.page import Told, sessions, tell
from graphium_db.console.pages import browse, graph, ingest, login, scopes, search, statement, wake_up
from graphium_db.console.sessions import Sessions
from graphium_db.console.templating import STATIC, environment
from graphium_db.errors import MissingExtraError

if TYPE_CHECKING:
    from graphium_db.embedding import Embedder

PAGES = (login, browse, statement, search, ingest, scopes, wake_up, graph)


def create_app(config: Config) -> ASGIApp:
    """The console as an ASGI application. Sessions are in its memory: run it in one process."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await app.state.sessions.end_all()

    app = Starlette(
        routes=[*(route for page in PAGES for route in page.routes), Mount("/static", StaticFiles(directory=STATIC))],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )
    app.state.config = config
    app.state.sessions = Sessions(config)
    app.state.templates = environment()
    app.state.embedder = config.embedder or _embedder()
    return Guard(app, config)


def _embedder() -> Embedder | None:
    """The default one; None where the extra is missing, and then search is by words and what is saved has no vector."""
    from graphium_db.embedding import default_embedder

    try:
        embedder = default_embedder()
        embedder.embed(["Good morning."])
    except MissingExtraError:
        return None
    return embedder


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    session: Any = await sessions(request).find(request)
    message = {404: "There is no such page.", 405: "This address takes no such request."}.get(error.status_code)
    what = Told(message or error.detail, status=error.status_code)
    response = await tell(request, session, what)
    response.headers.update(error.headers or {})
    return response
