"""Who may see a statement, a specimen or a family: chips, and what an edit would do before it does."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Literal, cast
from uuid import UUID

import psycopg
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.aio import AsyncGraphium
from graphium_db.console.cards import is_open, place
from graphium_db.console.page import Told, form_of, render, scopes_of, signed_in, text_of, to_form, told
from graphium_db.console.sessions import Session
from graphium_db.console.taxonomy import find, tree
from graphium_db.errors import GraphiumError, NotFoundError, ScopeNotHeldError
from graphium_db.models import ScopeEditPreview, ScopeInUse

Kind = Literal["family", "specimen", "statement"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is edited."""

    kind: Kind
    id: UUID
    name: str
    path: list[str]
    scopes: tuple[str, ...]
    statements: int
    url: str


@dataclass(frozen=True, slots=True)
class Edit:
    scopes: list[str]
    cascade: bool


@dataclass(frozen=True, slots=True)
class Preview:
    rows: list[ScopeEditPreview]
    refusal: Told | None
    digest: str = ""
    """Of what is asked for and shown: an edit is carried out when it would still do just that."""

    @property
    def total(self) -> int:
        return sum(row.row_count for row in self.rows)

    @property
    def losing_everyone(self) -> bool:
        return any(row.losing_everyone for row in self.rows)

    @property
    def losing_scopes(self) -> list[str]:
        return sorted({scope for row in self.rows for scope in row.losing_scopes})

    @property
    def losing_principals(self) -> list[str]:
        return sorted({name for row in self.rows for name in row.losing_principals})


async def show(request: Request, session: Session) -> Response:
    (subject, in_use), draft = await _subject_and_scopes(request, session), session.take_draft(request)
    if draft is not None:
        edit = _edit(draft)
        return await _page(request, session, subject, in_use, edit, await _preview(session.memory, subject, edit))
    return await _page(request, session, subject, in_use, Edit(list(subject.scopes), False), None)


async def preview(request: Request, session: Session) -> Response:
    edit = _edit(await form_of(request))
    subject, in_use = await _subject_and_scopes(request, session)
    return await _page(request, session, subject, in_use, edit, await _preview(session.memory, subject, edit))


async def apply(request: Request, session: Session) -> Response:
    form = await form_of(request)
    edit, subject = _edit(form), await _subject(request, session)
    changed = await _carry_out(session, subject, edit, text_of(form, "seen"))
    if changed:
        return await render(
            request,
            "scopes_set.html",
            session,
            subject=subject,
            edit=edit,
            changed=changed,
            is_open=is_open(edit.scopes),
        )
    subject, in_use = await _subject_and_scopes(request, session)  # as it is by now
    now = await _preview(session.memory, subject, edit)
    return await _page(request, session, subject, in_use, edit, now, is_other=True)


async def _carry_out(session: Session, subject: Subject, edit: Edit, seen: str) -> int:
    """How many rows were changed; none, when that would not be what was seen before.

    In one snapshot: what others change between the look and the change ends it.
    """
    changed = 0
    try:
        async with session.transaction("set transaction isolation level repeatable read") as memory:
            would = await _preview(memory, subject, edit)
            if would.refusal is not None or would.digest != seen:
                raise psycopg.Rollback
            changed = await memory.set_required_scopes(subject.kind, subject.id, edit.scopes, edit.cascade)
    except psycopg.errors.SerializationFailure:
        return 0
    return changed


async def _subject_and_scopes(request: Request, session: Session) -> tuple[Subject, list[ScopeInUse]]:
    """Both count all that the caller sees: at the same time."""
    return await asyncio.gather(_subject(request, session), session.memory.scopes_in_use())


async def _preview(memory: AsyncGraphium, subject: Subject, edit: Edit) -> Preview:
    try:
        rows = await memory.preview_required_scopes(subject.kind, [subject.id], edit.scopes, edit.cascade)
        shown = (subject.kind, subject.id, sorted(edit.scopes), edit.cascade, rows)
        return Preview(rows, None, hashlib.sha256(repr(shown).encode()).hexdigest())
    except ScopeNotHeldError as error:
        return Preview([], _refusal(error))
    except GraphiumError as error:
        return Preview([], told(error))


def _refusal(error: ScopeNotHeldError) -> Told:
    return Told(
        "Refused: after this edit you could not see it yourself.",
        "You hold none of these scopes. Add one that you hold, or leave it open.",
        error.sqlstate,
        status=403,
    )


async def _subject(request: Request, session: Session) -> Subject:
    kind, id = cast("Kind", request.path_params["kind"]), request.path_params["id"]
    if kind == "statement":
        rows = await session.memory.recall_context(statement_ids=[id], page_size=1)
        if rows:
            path = [name for name in (rows[0].family, rows[0].genus, rows[0].specimen) if name]
            return Subject(kind, id, rows[0].content, path, rows[0].required_scopes, 1, f"/statement/{id}")
    elif kind in ("family", "specimen"):
        found = find(tree(await session.memory.context_tree()), kind, id)
        if found is not None:
            taxon, path = found
            url = place(*path) if kind == "family" or len(path) == 3 else "/browse"
            return Subject(kind, id, str(taxon.name), path, taxon.scopes or (), taxon.statements, url)
    raise NotFoundError("There is no such thing, or it is hidden from you.", "Its scopes may have been edited.")


def _edit(form: FormData) -> Edit:
    return Edit(scopes_of(form), bool(text_of(form, "cascade")))


async def _page(
    request: Request,
    session: Session,
    subject: Subject,
    in_use: list[ScopeInUse],
    edit: Edit,
    preview: Preview | None,
    is_other: bool = False,
) -> Response:
    caller = await session.memory.caller()
    held = set(caller.scopes or ())
    counts = {row.scope: row.families + row.specimens + row.statements for row in in_use}
    own = list(dict.fromkeys([*subject.scopes, *edit.scopes]))  # all of them, or the form would take some away
    offered = list(dict.fromkeys([*own, *sorted(held), *counts]))[: max(60, len(own))]
    return await render(
        request,
        "scopes.html",
        session,
        status=200 if not is_other else preview.refusal.status if preview and preview.refusal else 409,
        subject=subject,
        edit=edit,
        preview=preview,
        is_other=is_other,
        offered=offered,
        counts=counts,
        held=held,
        holds_all=caller.scopes is None,
        is_open=is_open(edit.scopes),
        changed=sorted(edit.scopes) != sorted(subject.scopes) or edit.cascade,
    )


routes = [
    Route("/scopes/{kind}/{id:uuid}", signed_in(show), methods=["GET"]),
    Route("/scopes/{kind}/{id:uuid}/preview", signed_in(to_form), methods=["GET"]),
    Route("/scopes/{kind}/{id:uuid}/preview", signed_in(preview), methods=["POST"]),
    Route("/scopes/{kind}/{id:uuid}", signed_in(apply), methods=["POST"]),
]
