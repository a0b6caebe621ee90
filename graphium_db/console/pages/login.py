"""Who am I: a principal's own credentials, or, on a trusted server, a tenant and scopes of what it allows."""

from __future__ import annotations

import asyncio
import hmac
import re
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg_pool import PoolTimeout
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.console.page import (
    NOT_YOURS,
    Told,
    config,
    form_of,
    goto,
    has_csrf,
    login_page,
    read_draft,
    sessions,
    state,
    tell,
    text_of,
    told,
)
from graphium_db.console.sessions import Choice, Session, open_session
from graphium_db.errors import GraphiumError

WRONG = Told("Name or password is wrong.", "It is a login of the database that was bound by graphium principal add.")
BUSY = Told("Too many log in at this moment.", "Try again in a few seconds.", status=503)
LONGEST_NAME = 63  # bytes: PostgreSQL cuts longer ones
PATIENCE = 10.0
_PRINTABLE = "".join(map(chr, range(33, 127)))


async def show(request: Request) -> Response:
    if await sessions(request).find(request) is not None:
        return goto("/browse")
    return await login_page(request, key=request.query_params.get("key", ""), next=request.query_params.get("next", ""))


async def log_in(request: Request) -> Response:
    form = await form_of(request)
    page: dict[str, Any] = {name: text_of(form, name) for name in ("next", "key", "draft")}
    if not await has_csrf(request):
        error = Told("This page was open for too long.", "Log in again.")
        return await login_page(request, **page, error=error, status=403)
    try:
        session = await _session(request)
    except _RefusedError as refused:
        status = 503 if refused.told.status == 503 else 403
        if status == 403:
            await asyncio.sleep(0.5)  # guessing is slow
        page |= {"user": text_of(form, "user"), "chosen": _choice(request, form)}
        response = await login_page(request, **page, error=refused.told, status=status)
        if status == 503:
            response.headers["retry-after"] = "5"
        return response
    await sessions(request).end(request)
    id = await sessions(request).start(session, _choice(request, form))
    response, back = goto("/browse"), _here(page["next"])
    response.headers["location"] = back
    if page["draft"]:
        session.draft = (back.partition("?")[0], read_draft(page["draft"]))
    sessions(request).set_cookie(request, response, id)
    return response


async def log_out(request: Request) -> Response:
    if not await has_csrf(request):
        return await tell(request, await sessions(request).find(request), NOT_YOURS)
    await sessions(request).end(request)
    response = goto("/login")
    sessions(request).set_cookie(request, response, sessions(request).new_id())
    return response


def _here(next: str) -> str:
    """A page of this console: what will be sent is checked, and not what came."""
    encoded = quote(next, safe=_PRINTABLE, errors="replace")
    return encoded if re.fullmatch(r"/(?!/)[!-\[\]-~]*", encoded) else "/browse"


class _RefusedError(Exception):
    def __init__(self, told: Told) -> None:
        self.told = told


def _choice(request: Request, form: FormData) -> Choice | None:
    """What a form chose of that which is allowed; None where it is a principal's."""
    places = {str(i): i for i in range(len(config(request).allowed))}
    if text_of(form, "as") != "tenant" or text_of(form, "tenant") not in places:
        return None
    tenant = places[text_of(form, "tenant")]
    ticked = form.getlist(f"scope-{tenant}")
    return Choice(tenant, tuple(scope for scope in config(request).allowed[tenant].scopes if scope in ticked))


async def _session(request: Request) -> Session:
    form = await form_of(request)
    try:
        if text_of(form, "as") == "tenant":
            key = config(request).access_key.encode()
            if not hmac.compare_digest(key, text_of(form, "key").encode("utf-8", "replace")):
                raise _RefusedError(Told("The access key is wrong.", "It was printed when this console was started."))
            chosen = _choice(request, form)
            if chosen is None:
                raise _RefusedError(Told("Choose a tenant.", None))
            return await _open(request, tenant=config(request).allowed[chosen.tenant].tenant, scopes=chosen.scopes)
        user, password = text_of(form, "user"), form.get("password", "")
        if not 0 < len(user.encode("utf-8", "replace")) <= LONGEST_NAME or "\x00" in user + str(password):
            raise _RefusedError(WRONG)
        tenant = text_of(form, "tenant") or None
        return await _open(request, user=user, password=str(password), tenant=tenant)
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


async def _open(request: Request, **caller: Any) -> Session:
    """A few at a time: each asks the database for a connection, and anybody may ask for a login."""
    door = sessions(request).door
    try:
        await asyncio.wait_for(door.acquire(), PATIENCE)
    except asyncio.TimeoutError:
        raise _RefusedError(BUSY) from None
    try:
        return await open_session(config(request), state(request).embedder, **caller)
    finally:
        door.release()


routes = [
    Route("/login", show, methods=["GET"]),
    Route("/login", log_in, methods=["POST"]),
    Route("/logout", log_out, methods=["POST"]),
]
