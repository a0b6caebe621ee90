"""What an agent would get at boot for a token budget."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphium_db.console.page import not_empty, render, signed_in, whole
from graphium_db.console.sessions import Session

LEAST, MOST, DEFAULT, STEP = 50, 4000, 800, 50


async def wake_up(request: Request, session: Session) -> Response:
    budget = whole(request.query_params.get("budget"), LEAST, MOST, DEFAULT)
    families = not_empty(request.query_params.getlist("family"))
    woken, rows = await asyncio.gather(session.memory.wake_up_context(budget, families), session.memory.context_tree())
    known = {row.family for row in rows if row.family}
    missing = None if woken or not families or known & set(families) else ", ".join(families)
    return await render(
        request,
        "wake_up.html",
        session,
        status=404 if missing else 200,
        missing=missing,
        budget=budget,
        bounds={"least": LEAST, "most": MOST, "step": STEP},
        woken=woken,
        used=woken[-1].running_tokens if woken else 0,
        families=sorted(known),
        chosen=families or [],
    )


routes = [Route("/wake-up", signed_in(wake_up), methods=["GET"])]
