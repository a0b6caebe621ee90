"""The taxonomy and its symbioses as a picture."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.console.cards import KINDS
from graphium_db.console.page import not_empty, render, signed_in
from graphium_db.console.picture import draw
from graphium_db.console.sessions import Session
from graphium_db.console.taxonomy import tree
from graphium_db.inputs import clean_name


async def graph(request: Request, session: Session) -> Response:
    families = not_empty([clean_name(name) for name in request.query_params.getlist("family")])
    rows, edges = await asyncio.gather(session.memory.context_tree(), session.memory.list_symbioses())
    root = tree(rows)
    picture = draw(root, edges, families)
    if families:
        edges = [edge for edge in edges if {edge.source_family, edge.target_family} & set(families)]
    return await render(
        request,
        "graph.html",
        session,
        status=404 if families and not picture.boxes else 200,
        picture=picture,
        edges=edges,
        families=[family.name for family in root.shown],
        chosen=families or [],
        reads={kind: words[0] for kind, words in KINDS.items()},
    )


routes = [Route("/graph", signed_in(graph), methods=["GET"])]
