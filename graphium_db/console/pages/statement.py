"""One statement: all there is to say of it; forgetting it; giving it other labels, or another wording, which is
another statement."""

from __future__ import annotations

import asyncio

import psycopg
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.console.cards import Card, card
from graphium_db.console.page import (
    Told,
    bad,
    form_of,
    goto,
    prose_of,
    render,
    signed_in,
    tell,
    text_of,
    to_form,
    told,
)
from graphium_db.console.sessions import Session
from graphium_db.errors import GraphiumError, NotFoundError
from graphium_db.models import IngestedStatement, StatementInput


async def _card(request: Request, session: Session) -> Card:
    found = await card(session.memory, request.path_params["id"])
    if found is None:
        raise NotFoundError(
            "There is no such statement, or it is hidden from you.", "It may have been forgotten, or its scopes edited."
        )
    return found


def _require_place(found: Card) -> None:
    if not found.can_reword:
        raise bad("You do not see the place of this statement.", "Ask somebody who sees its family and specimen.")


async def show(request: Request, session: Session) -> Response:
    found, draft = await _card(request, session), session.take_draft(request)
    labels = {"type": text_of(draft, "type"), "layer": text_of(draft, "layer")} if draft is not None else None
    return await render(request, "statement.html", session, card=found, said=session.take_said(request), labels=labels)


async def ask_to_forget(request: Request, session: Session) -> Response:
    return await render(request, "forget.html", session, card=await _card(request, session))


async def forget(request: Request, session: Session) -> Response:
    found = await _card(request, session)
    deleted = await session.memory.forget_context([found.id])
    return await render(request, "forgotten.html", session, card=found, deleted=deleted)


async def ask_for_words(request: Request, session: Session) -> Response:
    try:
        found = await _card(request, session)
    except NotFoundError as error:
        return await _gone(request, session, session.take_draft(request), error)
    draft = session.take_draft(request)
    words = found.statement.content if draft is None else prose_of(draft, "content")
    return await _wording(request, session, found, words)


async def _gone(request: Request, session: Session, form: FormData | None, error: NotFoundError) -> Response:
    """The statement was forgotten meanwhile: what was typed is not, and waits in the form of ingest."""
    if form is not None:
        line = " ".join(prose_of(form, "content").split("\n"))
        place = [item for item in form.multi_items() if item[0] in ("family", "genus", "specimen", "scope")]
        session.draft = ("/ingest", FormData([*place, ("text", line), ("mode", "lines")]))
    return await tell(request, session, told(error), back="/ingest" if form is not None else None)


async def _wording(request: Request, session: Session, found: Card, words: str, error: Told | None = None) -> Response:
    status = error.status if error else 200
    return await render(request, "reword.html", session, status=status, card=found, words=words, error=error)


async def reword(request: Request, session: Session) -> Response:
    form = await form_of(request)
    words = prose_of(form, "content")
    try:
        found = await _card(request, session)
    except NotFoundError as error:
        return await _gone(request, session, form, error)
    try:
        if not words or words == found.statement.content:
            raise bad("The wording is the same, or empty.", "Write the sentence as it should be remembered.")
        row = await _reword(session, found, words)
    except GraphiumError as error:
        return await _wording(request, session, found, words, told(error))
    session.said = (f"/statement/{row.statement_id}", "matched" if row.deduplicated else "reworded")
    return goto(session.said[0])


async def _reword(session: Session, found: Card, words: str) -> IngestedStatement:
    """Forget the old and ingest the new, both or neither: the old one first, for the new may be its duplicate."""
    old = found.statement
    _require_place(found)
    assert old.family is not None
    assert old.genus is not None
    assert old.specimen is not None
    new: StatementInput = {"content": words, "required_scopes": list(old.required_scopes), "metadata": old.metadata}
    if old.occurred_at is not None:
        new["occurred_at"] = old.occurred_at
    if old.source is not None:
        new["source"] = old.source
        if old.position is not None:
            new["position"] = old.position
    embedder = session.embedder
    new["embedding"] = None
    if embedder is not None:  # before the transaction: nothing waits for a model
        (embedding,) = await asyncio.to_thread(embedder.embed, [words])
        new["embedding"], new["exact_only"] = embedding.vector, embedding.exact_only
    labels: StatementInput = {"content": words}
    if found.details.is_type_chosen:
        labels["memory_type"] = old.memory_type
    if found.details.is_layer_chosen:
        labels["layer_kind"] = old.layer_kind
    for item in (new | labels, new):
        async with session.transaction() as memory:
            await memory.forget_context([found.id])
            (row,) = await memory.ingest_context(
                old.family, old.genus, old.specimen, [item], embedding_model=embedder.name if embedder else None
            )
            if row.deduplicated and item != new:
                raise psycopg.Rollback  # what it matched has labels of its own: again without
            break
    return row


async def relabel(request: Request, session: Session) -> Response:
    """The same sentence ingested once more, with what is to be another label: a label that a caller chose wins."""
    found, form = await _card(request, session), await form_of(request)
    old = found.statement
    again: StatementInput = {"content": old.content, "required_scopes": list(old.required_scopes), "embedding": None}
    if text_of(form, "type") not in ("", old.memory_type):
        again["memory_type"] = text_of(form, "type")  # type: ignore[typeddict-item]  # the database knows which there are
    if text_of(form, "layer") not in ("", old.layer_kind):
        again["layer_kind"] = text_of(form, "layer")  # type: ignore[typeddict-item]
    if not again.keys() & {"memory_type", "layer_kind"}:
        raise bad("It has these labels already.", "Choose another type or layer.")
    _require_place(found)
    async with session.transaction() as memory:
        (row,) = await memory.ingest_context(str(old.family), str(old.genus), str(old.specimen), [again])
        if row.statement_id != found.id:  # forgotten meanwhile, or an older one has its words and audience
            raise bad(
                "These labels would go to another statement with the same words. Nothing was changed.",
                "Look for the sentence: if it is there twice, forget one of the two.",
            )
    session.said = (f"/statement/{found.id}", "labelled")
    return goto(session.said[0])


routes = [
    Route("/statement/{id:uuid}", signed_in(show), methods=["GET"]),
    Route("/statement/{id:uuid}/forget", signed_in(ask_to_forget), methods=["GET"]),
    Route("/statement/{id:uuid}/forget", signed_in(forget), methods=["POST"]),
    Route("/statement/{id:uuid}/labels", signed_in(to_form), methods=["GET"]),
    Route("/statement/{id:uuid}/labels", signed_in(relabel), methods=["POST"]),
    Route("/statement/{id:uuid}/reword", signed_in(ask_for_words), methods=["GET"]),
    Route("/statement/{id:uuid}/reword", signed_in(reword), methods=["POST"]),
]
