"""What pages have in common: a session, a CSRF token, a rendered template, and an answer for every error."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, quote_plus, urlencode

import psycopg
from psycopg_pool import PoolTimeout
from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from graphium_db.console.config import Config
from graphium_db.console.guard import LONGEST_BODY, LONGEST_LOGIN
from graphium_db.console.sessions import Choice, Session, Sessions
from graphium_db.console.templating import cut, link
from graphium_db.errors import (
    BadArgumentError,
    GraphiumError,
    MissingExtraError,
    NoTenantError,
    NotFoundError,
    ScopeNotHeldError,
    UnknownTenantError,
)

Row = TypeVar("Row")
Handler = Callable[[Request, Session], Awaitable[Response]]
URLENCODED = "application/x-www-form-urlencoded"
LONGEST_DRAFT = LONGEST_LOGIN // 3  # encoded once more, with the login
ROOM_OF_LOGIN = 10_000
_log = logging.getLogger("graphium.console")


def state(request: Request) -> Any:
    return cast("Starlette", request.app).state


def config(request: Request) -> Config:
    return cast("Config", state(request).config)


def sessions(request: Request) -> Sessions:
    return cast("Sessions", state(request).sessions)


def is_partial(request: Request) -> bool:
    """Whether htmx asks for a part of the page; for a page of the history it wants all of it."""
    return request.headers.get("hx-request") == "true" and "hx-history-restore-request" not in request.headers


async def render(
    request: Request, template: str, session: Session | None = None, *, status: int = 200, **values: Any
) -> Response:
    """A page. The header's caller is asked of the database each time: it says who one is at this very moment."""
    caller = None
    if session is not None and not is_partial(request):
        caller = await session.memory.caller()
    id = sessions(request).id_of(request)
    new_id = id or sessions(request).new_id()
    html = (
        state(request)
        .templates.get_template(template)
        .render(
            caller=caller,
            session=session,
            may_write=session is not None and session.may_write,
            csrf=sessions(request).csrf_token(new_id),
            here=request.url.path,
            partial=is_partial(request),
            **values,
        )
    )
    response = HTMLResponse(html, status)
    if id is None:
        sessions(request).set_cookie(request, response, new_id)
    return response


async def form_of(request: Request) -> FormData:
    """As our pages send them. Others may name an encoding, of which some take minutes to decode."""
    if request.headers.get("content-type", URLENCODED).partition(";")[0].strip().lower() != URLENCODED:
        raise HTTPException(400, f"The form is not {URLENCODED}.")
    try:
        return await request.form(max_files=0, max_fields=5000, max_part_size=LONGEST_BODY)
    except (UnicodeError, LookupError):
        raise HTTPException(400, "The form is not in UTF-8.") from None


def goto(path: str, **query: Any) -> RedirectResponse:
    return RedirectResponse(link(path, **query), 303)


async def has_csrf(request: Request) -> bool:
    token = request.headers.get("x-csrf-token") or (await form_of(request)).get("csrf")
    return sessions(request).is_csrf_token(sessions(request).id_of(request), token)


def signed_in(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """For whoever is logged in; others are sent to the login, and back from there."""

    async def endpoint(request: Request) -> Response:
        session = await sessions(request).find(request)
        if session is None:
            return await _to_login(request)
        if request.method == "POST" and not await has_csrf(request):
            return await _refuse(request, session, NOT_YOURS)
        draft = session.draft
        try:
            return await handler(request, session)
        except (GraphiumError, psycopg.Error, PoolTimeout) as error:
            what = told(error)
            if what.status >= 500:
                _log.error("%s", error)
                session.draft = session.draft or draft  # of a page that took it and was not shown
            return await _refuse(request, session, what)

    return endpoint


def form_page(path: str) -> str:
    """The page with the form that is sent to an address."""
    return path.removesuffix("/preview").removesuffix("/labels")


async def to_form(request: Request, _session: Session) -> Response:
    """For an address that only takes forms, when somebody opens it."""
    return goto(form_page(request.url.path))


async def _refuse(request: Request, session: Session, what: Told) -> Response:
    """An error; what was typed into the form that is refused waits in the session for the form's page."""
    back = None
    if request.method == "POST" and not is_partial(request) and what.status != 404:  # then its page is gone too
        back = form_page(request.url.path)
        session.draft = (back, await form_of(request))
    return await tell(request, session, what, back)


async def _to_login(request: Request) -> Response:
    back = form_page(request.url.path)
    if request.method == "GET" and request.url.query:
        back += f"?{request.url.query}"
    login = link("/login", next=back if back != "/" else None)
    if is_partial(request):
        return Response(status_code=401, headers={"hx-redirect": login})
    if request.method == "GET":
        return RedirectResponse(login, 303)
    # Its token is of a session that is gone. That it came from a page of ours the guard has seen.
    draft = await _draft_of(request)
    error = ENDED if draft is not None else ENDED_AND_LOST
    return await login_page(request, next=back, draft=draft or "", error=error, status=403)


async def _draft_of(request: Request) -> str | None:
    """What a form has, for the login page; None where it is too long for that."""
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > LONGEST_DRAFT or "transfer-encoding" in request.headers:
        return None
    form = await form_of(request)
    draft = urlencode(
        [(name, value) for name, value in form.multi_items() if isinstance(value, str) and name != "csrf"]
    )
    return draft if len(quote_plus(draft)) < LONGEST_LOGIN - ROOM_OF_LOGIN else None


async def login_page(
    request: Request,
    *,
    next: str,
    key: str = "",
    user: str = "",
    draft: str = "",
    chosen: Choice | None = None,
    error: Told | None = None,
    status: int = 200,
) -> Response:
    """
    Args:
        draft: what a form had that came after its session's end; it waits in the page, and not here, for who logs in.
        chosen: what a login that was refused had ticked; else it is what the session that ended was begun with.
    """
    return await render(
        request,
        "login.html",
        status=status,
        allowed=config(request).allowed,
        next=next,
        key=key,
        user=user,
        draft=draft,
        chosen=chosen or sessions(request).chosen(request),
        error=error,
    )


def read_draft(draft: str) -> FormData:
    return FormData([(name, value) for name, value in parse_qsl(draft, keep_blank_values=True)])


class Told:
    """An error as a person reads it."""

    def __init__(self, message: str, hint: str | None = None, code: str | None = None, status: int = 400) -> None:
        self.message, self.hint, self.code, self.status = message, hint, code, status


ENDED = Told("Your session has ended. Nothing was saved.", "Log in, and you come back to the form as you left it.")
ENDED_AND_LOST = Told("Your session has ended. Nothing was saved.", "Log in, and send it again.")
NOT_YOURS = Told("This form is not of your session.", "Nothing was changed.", status=403)


def told(error: Exception) -> Told:
    if isinstance(error, MissingExtraError):
        return Told(error.message, error.hint, None, 501)
    if isinstance(error, GraphiumError):
        status = {NotFoundError: 404, ScopeNotHeldError: 403, NoTenantError: 403, UnknownTenantError: 403}.get(
            type(error), 400
        )
        return Told(error.message, error.hint, error.sqlstate, status)
    if isinstance(error, psycopg.Error) and error.sqlstate == "42501":
        hint = (
            "This login only reads. An administrator binds it for writing: graphium principal add, without --read-only."
        )
        return Told("Not allowed: " + (error.diag.message_primary or "permission denied"), hint, "42501", 403)
    if isinstance(error, psycopg.Error) and error.sqlstate is not None:
        return Told(error.diag.message_primary or "The database refused that.", error.diag.message_hint, error.sqlstate)
    return Told(
        "The database does not answer.", "Try again in a moment; whoever runs this console sees why.", None, 503
    )


async def tell(request: Request, session: Session | None, what: Told, back: str | None = None) -> Response:
    try:
        return await render(request, "error.html", session, status=what.status, error=what, back=back)
    except (GraphiumError, psycopg.Error, PoolTimeout):  # not even who is asking
        return await render(request, "error.html", None, status=what.status, error=what, back=back)


def not_empty(values: list[Any]) -> list[str] | None:
    """Filters of a form: none chosen is no filter."""
    chosen = [value for value in values if isinstance(value, str) and value]
    return chosen or None


def text_of(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def prose_of(form: FormData, name: str) -> str:
    """A text of some lines: browsers send each line break as two characters."""
    return text_of(form, name).replace("\r\n", "\n")


def scopes_of(form: FormData) -> list[str]:
    """Those that a form names, each once."""
    values = [value.strip().replace("\r\n", "\n") for value in form.getlist("scope") if isinstance(value, str)]
    chosen = filter(None, values)
    return list(dict.fromkeys(chosen))


FILTERS = {"since": "Since", "until": "Before", "memory_types": "Type", "layer_kinds": "Layer"}
"""What a refusal calls a filter, and what the form does: until is exclusive."""


async def unless_of_filters(
    listed: Awaitable[list[Row]], since: str | None, until: str | None
) -> tuple[list[Row], Told | None]:
    """A list under filters of an address; or none, and a note for the page itself, which says it as its form does."""
    try:
        return await listed, None
    except BadArgumentError as error:
        name, _, rest = error.message.partition(" ")
        label = FILTERS.get(name.rstrip(":"))
        if label is None:
            raise
        message, hint = f"{label}: {rest}.", error.hint
        if rest == "must be before until":
            message = f"No time is since {since} and before {until}."
            hint = "Choose an earlier Since or a later Before; what happened on the day of Before is left out."
        elif rest.startswith("must be a point in time"):  # the rest is PostgreSQL's
            message = f"{label}: “{cut(str(since if name == 'since' else until), 100)}” is no time."
        return [], Told(message, hint, error.sqlstate, 422)


def whole(value: str | None, least: int, most: int, default: int) -> int:
    """A number in a URL, kept in its range; what is none is the default."""
    try:
        return max(least, min(most, int(value or default)))
    except ValueError:
        return default


def bad(message: str, hint: str) -> BadArgumentError:
    return BadArgumentError(message, hint)
