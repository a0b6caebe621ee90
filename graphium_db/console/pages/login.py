"""Who am I: a principal's own credentials, or, on a trusted server, a tenant and scopes of what it allows."""

from __future__ import annotations

import asyncio
import hmac

import psycopg
from psycopg_pool import PoolTimeout
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.console.page import Told, config, form_of, goto, has_csrf, render, sessions, state, text_of, told
from graphium_db.console.sessions import Session, open_session
from graphium_db.errors import GraphiumError

WRONG = Told("Name or password is wrong.", "It is a login of the database that was bound by graphium principal add.")


async def show(request: Request) -> Response:
    if await sessions(request).find(request) is not None:
        return goto("/browse")
    return await _page(request, key=request.query_params.get("key", ""), next=request.query_params.get("next", ""))


async def log_in(request: Request) -> Response:
    form = await form_of(request)
    next, key = text_of(form, "next"), text_of(form, "key")
    if not await has_csrf(request):
        error = Told("This page was open for too long.", "Log in again.")
        return await _page(request, next=next, key=key, error=error, status=403)
    try:
        session = await _session(request)
    except _RefusedError as refused:
        await asyncio.sleep(0.5)  # guessing is slow
        return await _page(request, next=next, key=key, error=refused.told, user=text_of(form, "user"), status=403)
    await sessions(request).end(request)
    id = await sessions(request).start(session)
    response = goto("/browse")
    if next.startswith("/") and not next.startswith(("//", "/\\")):
        response.headers["location"] = next.encode("ascii", "ignore").decode()
    sessions(request).set_cookie(request, response, id)
    return response


async def log_out(request: Request) -> Response:
    if await has_csrf(request):
        await sessions(request).end(request)
    response = goto("/login")
    sessions(request).set_cookie(request, response, sessions(request).new_id())
    return response


class _RefusedError(Exception):
    def __init__(self, told: Told) -> None:
        self.told = told


async def _session(request: Request) -> Session:
    form = await form_of(request)
    embedder = state(request).embedder
    try:
        if text_of(form, "as") == "tenant":
            key = config(request).access_key.encode()
            if not hmac.compare_digest(key, text_of(form, "key").encode("utf-8", "replace")):
                raise _RefusedError(Told("The access key is wrong.", "It was printed when this console was started."))
            allowed = {str(i): allowed for i, allowed in enumerate(config(request).allowed)}.get(
                text_of(form, "tenant")
            )
            if allowed is None:
                raise _RefusedError(Told("Choose a tenant.", None))
            chosen = {value for value in form.getlist(f"scope-{text_of(form, 'tenant')}") if isinstance(value, str)}
            scopes = [scope for scope in allowed.scopes if scope in chosen]
            return await open_session(config(request), embedder, tenant=allowed.tenant, scopes=scopes)
        user, password = text_of(form, "user"), form.get("password", "")
        if not user or "\x00" in user + str(password):
            raise _RefusedError(WRONG)
        tenant = text_of(form, "tenant") or None
        return await open_session(config(request), embedder, user=user, password=str(password), tenant=tenant)
    except GraphiumError as error:
        raise _RefusedError(told(error)) from None
    except psycopg.OperationalError as error:
        text = str(error)
        is_refusal = "authentication failed" in text or "does not exist" in text or "not permitted" in text
        raise _RefusedError(WRONG if is_refusal or "no password" in text else told(error)) from None
    except (psycopg.Error, PoolTimeout) as error:
        if isinstance(error, psycopg.errors.InsufficientPrivilege):  # a login that has nothing to do with Graphium
            raise _RefusedError(WRONG) from None
        raise _RefusedError(told(error)) from None


async def _page(
    request: Request, *, key: str, next: str, error: Told | None = None, user: str = "", status: int = 200
) -> Response:
    return await render(
        request,
        "login.html",
        status=status,
        allowed=config(request).allowed,
        key=key,
        next=next,
        error=error,
        user=user,
    )


routes = [
    Route("/login", show, methods=["GET"]),
    Route("/login", log_in, methods=["POST"]),
    Route("/logout", log_out, methods=["POST"]),
]
