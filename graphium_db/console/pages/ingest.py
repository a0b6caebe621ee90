"""Text in: split, classified, looked over, saved; then what became of each line."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass
from typing import Any

import psycopg
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.classification import LAYER_KINDS, MEMORY_TYPES, Classification, classify
from graphium_db.console.cards import is_open
from graphium_db.console.page import (
    Told,
    bad,
    form_of,
    goto,
    prose_of,
    render,
    scopes_of,
    signed_in,
    text_of,
    to_form,
    told,
)
from graphium_db.console.sessions import Session
from graphium_db.errors import GraphiumError, MissingExtraError
from graphium_db.inputs import clean_name
from graphium_db.models import StatementInput
from graphium_db.splitting import split_sentences

MOST = 500


@dataclass(frozen=True, slots=True)
class Line:
    content: str
    memory_type: str
    layer_kind: str
    by_rule: Classification
    is_chosen: bool
    n: str = ""  # of the field that it came from

    @property
    def rule(self) -> str | None:
        return self.by_rule.rule


Kept = dict[str, tuple[str, str, bool]]


async def show(request: Request, session: Session) -> Response:
    query = request.query_params
    draft = None if query else session.take_draft(request)  # who asks for a place gets that
    if draft is not None:
        try:
            typed = await asyncio.to_thread(lambda: _as_typed(draft, _lines(draft)))
        except GraphiumError as error:
            return await _form(request, session, _filled(draft), text_of(draft, "kept"), told(error))
        return await _form(request, session, *typed)
    return await _form(request, session, {name: query.get(name, "") for name in ("family", "genus", "specimen")})


async def preview(request: Request, session: Session) -> Response:
    """What would be saved: nothing is yet."""
    form = await form_of(request)
    filled = _filled(form)
    try:
        lines = await asyncio.to_thread(_first_lines, filled, _read_kept(form))
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
        await _try(session, filled, lines[0])
    except GraphiumError as error:
        return await _form(request, session, filled, text_of(form, "kept"), told(error))
    return await _preview(request, session, filled, lines)


async def _try(session: Session, filled: dict[str, Any], line: Line) -> None:
    """What saving would be refused for is told before somebody looks through all lines. Nothing stays of it.

    Who else writes there is not waited for long: then only saving tells.
    """
    inputs = [item | {"embedding": None} for item in _inputs(filled, [line])]
    try:
        async with session.transaction("set local lock_timeout = '500ms'") as memory:
            await memory.ingest_context(
                filled["family"], filled["genus"], filled["specimen"], inputs, filled["scopes"] or None
            )
            raise psycopg.Rollback
    except psycopg.errors.LockNotAvailable:
        pass


async def _preview(
    request: Request, session: Session, filled: dict[str, Any], lines: list[Line], error: Told | None = None
) -> Response:
    return await render(
        request,
        "ingest_preview.html",
        session,
        status=error.status if error else 200,
        error=error,
        filled=filled,
        lines=lines,
        types=MEMORY_TYPES,
        layers=LAYER_KINDS,
        is_open=is_open(filled["scopes"]),
    )


async def save(request: Request, session: Session) -> Response:
    form = await form_of(request)
    filled, lines = _filled(form), await asyncio.to_thread(_lines, form)
    if text_of(form, "back"):
        return await _form(request, session, *await asyncio.to_thread(_as_typed, form, lines))
    if len(lines) > MOST:
        error = Told(f"These are more than {MOST} lines.", "Save them in parts, or use graphium ingest.")
        return await _form(request, session, *await asyncio.to_thread(_as_typed, form, lines), error)
    if text_of(form, "again") or text_of(form, "join"):
        return await _preview(request, session, filled, lines)
    inputs = _inputs(filled, [line for line in lines if line.is_chosen])
    if not inputs:
        error = Told("No line is chosen.", "Mark those to save.")
        return await _preview(request, session, filled, lines, error)
    if session.embedder is None:
        for item in inputs:
            item["embedding"] = None
    try:
        rows = await session.memory.ingest_context(
            filled["family"], filled["genus"], filled["specimen"], inputs, filled["scopes"] or None
        )
    except GraphiumError as refusal:
        return await _form(request, session, *await asyncio.to_thread(_as_typed, form, lines), told(refusal))
    session.saved = {
        "filled": filled,
        "results": list(zip(inputs, rows, strict=True)),
        "saved": sum(not row.deduplicated for row in rows),
        "matched": sum(row.deduplicated for row in rows),
        "words_only": session.embedder is None,
    }
    return goto("/ingest/saved")


async def saved(request: Request, session: Session) -> Response:
    """What became of the last ingest: at an address of its own, so that loading it again ingests nothing again."""
    if session.saved is None:
        return goto("/ingest")
    return await render(request, "ingested.html", session, **session.saved)


async def _form(
    request: Request,
    session: Session,
    filled: dict[str, Any],
    kept: str = "",
    error: Told | None = None,
) -> Response:
    rows, scopes, caller = await asyncio.gather(
        session.memory.context_tree(), session.memory.scopes_in_use(), session.memory.caller()
    )
    empty = {"family": "", "genus": "", "specimen": "", "text": "", "mode": "text", "source": "", "occurred_at": ""}
    return await render(
        request,
        "ingest.html",
        session,
        status=error.status if error else 200,
        filled=empty | {"scopes": []} | filled,
        kept=kept,
        error=error,
        families=sorted({row.family for row in rows if row.family}),
        genera=sorted({row.genus for row in rows if row.genus})[:500],
        specimens=sorted({row.specimen for row in rows if row.specimen})[:500],
        scopes=sorted({scope.scope for scope in scopes} | set(caller.scopes or ()) | set(filled.get("scopes", ()))),
    )


def _filled(form: FormData) -> dict[str, Any]:
    filled: dict[str, Any] = {name: clean_name(text_of(form, name)) for name in ("family", "genus", "specimen")}
    filled |= {name: text_of(form, name) for name in ("mode", "source", "occurred_at")}
    return filled | {"text": prose_of(form, "text"), "scopes": scopes_of(form)}


def _split(text: str, mode: str) -> list[str]:
    if mode == "lines":
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        return split_sentences(text)
    except MissingExtraError as error:
        raise bad(
            "This console cannot split text into sentences.", f"Choose one sentence a line, or: {error.hint}"
        ) from None


def _first_lines(filled: dict[str, Any], kept: Kept) -> list[Line]:
    """The text, split and labelled; what was changed by hand before one went back stays as it was."""
    lines = []
    for content in _split(filled["text"], filled["mode"]):
        found = classify(content)
        was_type, was_layer, is_chosen = kept.get(content, (found.memory_type, found.layer_kind, True))
        lines.append(Line(content, was_type, was_layer, found, is_chosen))
    return lines


def _lines(form: FormData) -> list[Line]:
    """As the preview had them, each number once, and as its reader mended them.

    An empty line parts a statement (not where the text itself has one in a sentence); `join` puts one to that above.
    """
    marked, joined = set(form.getlist("line")), text_of(form, "join")
    whole = set(_split(prose_of(form, "text"), text_of(form, "mode")))
    lines: list[Line] = []
    for n in map(str, itertools.takewhile(lambda n: f"content-{n}" in form, range(1, MOST + 2))):
        content = prose_of(form, f"content-{n}")
        parts = [content] if content in whole else _paragraphs(content)
        if n == joined and parts and lines:
            above = lines[-1]
            lines[-1] = _line(form, above.n, f"{above.content} {parts.pop(0)}", above.is_chosen or n in marked)
        lines += [_line(form, n, part, n in marked) for part in parts]
    return lines


def _paragraphs(text: str) -> list[str]:
    groups = itertools.groupby(text.split("\n"), key=lambda line: bool(line.strip()))
    return ["\n".join(lines).strip() for has_text, lines in groups if has_text]


def _line(form: FormData, n: str, content: str, is_chosen: bool) -> Line:
    """Labels that are as a rule gave them (`ruled`) follow the words when these are mended."""
    found, ruled = classify(content), text_of(form, f"ruled-{n}").split()
    memory_type, layer_kind = text_of(form, f"type-{n}"), text_of(form, f"layer-{n}")
    if not memory_type or memory_type in ruled:
        memory_type = found.memory_type
    if not layer_kind or layer_kind in ruled:
        layer_kind = found.layer_kind
    return Line(content, memory_type, layer_kind, found, is_chosen, n)


def _as_typed(form: FormData, lines: list[Line]) -> tuple[dict[str, Any], str]:
    """For the first form again, of itself or of the preview: a text that was mended there is one statement a line."""
    filled = _filled(form)
    if lines and [line.content for line in lines] != _split(filled["text"], filled["mode"]):
        filled |= {"text": "\n".join(" ".join(line.content.split("\n")) for line in lines), "mode": "lines"}
    return filled, _kept(lines) or text_of(form, "kept")


def _inputs(filled: dict[str, Any], lines: list[Line]) -> list[StatementInput]:
    """A label goes along only where it was changed: else the rule decides, and is kept."""
    inputs: list[StatementInput] = []
    for line in lines:
        item: StatementInput = {"content": line.content}
        if line.memory_type != line.by_rule.memory_type:
            item["memory_type"] = line.memory_type  # type: ignore[typeddict-item]  # the database refuses others
        if line.layer_kind != line.by_rule.layer_kind:
            item["layer_kind"] = line.layer_kind  # type: ignore[typeddict-item]
        if filled["source"]:
            item["source"] = filled["source"]
        if filled["occurred_at"]:
            item["occurred_at"] = filled["occurred_at"]
        inputs.append(item)
    return inputs


def _kept(lines: list[Line]) -> str:
    """What was done by hand, by content, for a field of the form."""
    changed = {
        line.content: (line.memory_type, line.layer_kind, line.is_chosen)
        for line in lines
        if not line.is_chosen
        or (line.memory_type, line.layer_kind) != (line.by_rule.memory_type, line.by_rule.layer_kind)
    }
    return json.dumps(changed) if changed else ""


def _read_kept(form: FormData) -> Kept:
    try:
        return {
            str(content): (str(t), str(layer), bool(c))
            for content, (t, layer, c) in json.loads(text_of(form, "kept") or "{}").items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


routes = [
    Route("/ingest", signed_in(show), methods=["GET"]),
    Route("/ingest/preview", signed_in(to_form), methods=["GET"]),
    Route("/ingest/preview", signed_in(preview), methods=["POST"]),
    Route("/ingest", signed_in(save), methods=["POST"]),
    Route("/ingest/saved", signed_in(saved), methods=["GET"]),
]
