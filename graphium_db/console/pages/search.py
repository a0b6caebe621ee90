"""Search by meaning and by words, and why each hit is there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.classification import LAYER_KINDS, MEMORY_TYPES
from graphium_db.console.cards import cards
from graphium_db.console.page import not_empty, render, signed_in, unless_of_filters, whole
from graphium_db.console.sessions import Session
from graphium_db.models import SearchHit

MODES = ("both", "meaning", "words")
ADDED = {
    "named_specimen": "about whom the query names",
    "named_family": "in the family of whom the query names",
    "named_time": "when the query says",
    "question": "itself a question",
    "source": "from a source with other hits",
}
"""What an explanation says was added to a score, and how the page words it."""


async def search(request: Request, session: Session) -> Response:
    query = request.query_params
    text = query.get("q", "").strip()[:2000]
    mode = query.get("by") if query.get("by") in MODES else "both"
    if session.embedder is None:
        mode = "words"
    families = not_empty(query.getlist("family"))
    types, layers = not_empty(query.getlist("type")), not_empty(query.getlist("layer"))
    since, until = query.get("since") or None, query.get("until") or None
    count = whole(query.get("count"), 1, 100, 10)
    filters: dict[str, Any] = {
        "families": families,
        "memory_types": types,
        "layer_kinds": layers,
        "since": since,
        "until": until,
    }
    found = _search(session, text, str(mode), count, filters) if text else _nothing()
    (hits, error), tree = await asyncio.gather(unless_of_filters(found, since, until), session.memory.context_tree())
    made = await cards(session.memory, hits)
    by_id = {hit.statement_id: hit for hit in hits}
    return await render(
        request,
        "search.html",
        session,
        status=error.status if error else 200,
        error=error,
        q=text,
        mode=mode,
        count=count,
        primary=[made_card for made_card in made if not by_id[made_card.id].is_symbiosis],
        linked=[made_card for made_card in made if by_id[made_card.id].is_symbiosis],
        families=sorted({row.family for row in tree if row.family is not None} | set(families or [])),
        chosen={"family": families or [], "type": types or [], "layer": layers or [], "since": since, "until": until},
        types=MEMORY_TYPES,
        layers=LAYER_KINDS,
        added=ADDED,
        asked=_asked(text),
        words_only=session.embedder is None,
    )


async def _nothing() -> list[SearchHit]:
    return []


async def _search(session: Session, text: str, mode: str, count: int, filters: dict[str, Any]) -> list[SearchHit]:
    filters = filters | {"explain": True}
    if mode == "meaning" and session.embedder is not None:
        prepared = await session.memory.prepare_query(text)
        embedder = session.embedder
        (embedding,) = await asyncio.to_thread(embedder.embed, [prepared.dense_text or text])
        return await session.memory.search_context(
            None, count, query_embedding=embedding.vector, embedding_model=embedder.name, **filters
        )
    if mode == "words":
        return await session.memory.search_context(text, count, query_embedding=None, **filters)
    return await session.memory.search_context(text, count, **filters)


def _asked(text: str) -> Callable[[str], str]:
    """The word of the query that a stem is of: explanations tell stems, `meet` for meetings. Each is
    looked for once, however many hits have it."""
    words = re.findall(r"\w+", text.lower())
    return cache(lambda stem: next((word for word in words if word.startswith(stem)), stem))


routes = [Route("/search", signed_in(search), methods=["GET"])]
