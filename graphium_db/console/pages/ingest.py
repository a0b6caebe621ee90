"""Text in: split, classified, looked over, saved; then what became of each line."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.classification import LAYER_KINDS, MEMORY_TYPES, classify
from graphium_db.console.cards import is_open
from graphium_db.console.page import Told, bad, form_of, render, signed_in, text_of, told
from graphium_db.console.sessions import Session
from graphium_db.errors import GraphiumError, MissingExtraError
from graphium_db.models import StatementInput
from graphium_db.splitting import split_sentences

MOST = 500


@dataclass(frozen=True, slots=True)
class Line:
    content: str
    memory_type: str
    layer_kind: str
    rule: str | None


async def show(request: Request, session: Session) -> Response:
    query = request.query_params
    return await _form(request, session, {name: query.get(name, "") for name in ("family", "genus", "specimen")})


async def preview(request: Request, session: Session) -> Response:
    """What would be saved: nothing is yet."""
    form = await form_of(request)
    filled = _filled(form)
    try:
        lines = [Line(text, *_labels(text)) for text in _split(filled["text"], filled["mode"])]
        if not lines:
            raise bad("There is no sentence in it.", "Write or paste some text.")
        if len(lines) > MOST:
            raise bad(
                f"These are {len(lines)} sentences, more than {MOST}.", "Save them in parts, or use graphium ingest."
            )
        missing = [name for name in ("family", "genus", "specimen") if not filled[name]]
        if missing:
            raise bad(
                f"Say where it belongs: {', '.join(missing)} is missing.", "All three are made when they are new."
            )
    except GraphiumError as error:
        return await _form(request, session, filled, error=told(error), status=400)
    return await render(
        request,
        "ingest_preview.html",
        session,
        filled=filled,
        lines=lines,
        types=MEMORY_TYPES,
        layers=LAYER_KINDS,
        is_open=is_open(filled["scopes"]),
    )


async def save(request: Request, session: Session) -> Response:
    form = await form_of(request)
    filled = _filled(form)
    if text_of(form, "back"):
        return await _form(request, session, filled)
    inputs = _chosen(form)
    if not inputs:
        raise bad("No line is chosen.", "Go back, and leave the mark at those to save.")
    for item in inputs:
        if filled["source"]:
            item["source"] = filled["source"]
        if filled["occurred_at"]:
            item["occurred_at"] = filled["occurred_at"]
        if session.embedder is None:
            item["embedding"] = None
    try:
        rows = await session.memory.ingest_context(
            filled["family"], filled["genus"], filled["specimen"], inputs, filled["scopes"] or None
        )
    except GraphiumError as error:
        return await _form(request, session, filled, error=told(error), status=told(error).status)
    return await render(
        request,
        "ingested.html",
        session,
        filled=filled,
        results=list(zip(inputs, rows, strict=True)),
        saved=sum(not row.deduplicated for row in rows),
        matched=sum(row.deduplicated for row in rows),
        words_only=session.embedder is None,
    )


async def _form(
    request: Request, session: Session, filled: dict[str, Any], error: Told | None = None, status: int = 200
) -> Response:
    rows, scopes, caller = await asyncio.gather(
        session.memory.context_tree(), session.memory.scopes_in_use(), session.memory.caller()
    )
    empty = {"family": "", "genus": "", "specimen": "", "text": "", "mode": "text", "source": "", "occurred_at": ""}
    return await render(
        request,
        "ingest.html",
        session,
        status=status,
        filled=empty | {"scopes": []} | filled,
        error=error,
        families=sorted({row.family for row in rows if row.family}),
        genera=sorted({row.genus for row in rows if row.genus})[:500],
        specimens=sorted({row.specimen for row in rows if row.specimen})[:500],
        scopes=sorted({scope.scope for scope in scopes} | set(caller.scopes or ())),
    )


def _filled(form: FormData) -> dict[str, Any]:
    names = ("family", "genus", "specimen", "text", "mode", "source", "occurred_at")
    chosen = [value.strip() for value in form.getlist("scope") if isinstance(value, str) and value.strip()]
    return {name: text_of(form, name) for name in names} | {"scopes": list(dict.fromkeys(chosen))}


def _split(text: str, mode: str) -> list[str]:
    if mode == "lines":
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        return split_sentences(text)
    except MissingExtraError as error:
        raise bad(
            "This console cannot split text into sentences.", f"Choose one sentence a line, or: {error.hint}"
        ) from None


def _labels(text: str) -> tuple[str, str, str | None]:
    found = classify(text)
    return found.memory_type, found.layer_kind, found.rule


def _chosen(form: FormData) -> list[StatementInput]:
    """The lines that are marked. A label goes along only where it was changed: else the rule decides, and is kept."""
    inputs: list[StatementInput] = []
    for n in form.getlist("line"):
        content = text_of(form, f"content-{n}")
        item: StatementInput = {"content": content}
        memory_type, layer_kind, _ = _labels(content)
        if text_of(form, f"type-{n}") not in ("", memory_type):
            item["memory_type"] = text_of(form, f"type-{n}")  # type: ignore[typeddict-item]  # the database refuses others
        if text_of(form, f"layer-{n}") not in ("", layer_kind):
            item["layer_kind"] = text_of(form, f"layer-{n}")  # type: ignore[typeddict-item]
        inputs.append(item)
    return inputs


routes = [
    Route("/ingest", signed_in(show), methods=["GET"]),
    Route("/ingest/preview", signed_in(preview), methods=["POST"]),
    Route("/ingest", signed_in(save), methods=["POST"]),
]
