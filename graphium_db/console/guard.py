"""Around every request: which Host and Origin it may have, how much it may send, and what every answer says."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphium_db.console.config import Config

LONGEST_BODY = 2_000_000
LONGEST_LOGIN = 400_000  # of whom nobody knows yet
BODY_SECONDS = 30.0
HEADERS = {
    # Everything from here, nothing inline: text of others cannot become script or style, whatever a page does wrong.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "referrer-policy": "same-origin",  # with none at all, browsers say Origin: null
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Around the whole application: what it says when it fails has the headers too."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        self.app = app
        self.names = config.host_names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer[name] = value
            await send(message)

        longest = LONGEST_LOGIN if scope["path"] in ("/login", "/logout") else LONGEST_BODY
        received, is_whole, deadline = 0, False, time.monotonic() + BODY_SECONDS

        async def receive_within_bounds() -> Message:
            nonlocal received, is_whole
            try:
                message = await asyncio.wait_for(receive(), None if is_whole else deadline - time.monotonic())
            except asyncio.TimeoutError:
                raise HTTPException(408, "That took too long to arrive.", {"connection": "close"}) from None
            received += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if received > longest:
                raise HTTPException(413, f"Too long: at most {longest // 1000} kB at a time.", {"connection": "close"})
            return message

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        await self.app(scope, receive_within_bounds, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        host = headers.get("host", "")
        if _name(host) not in self.names:
            return PlainTextResponse("This console is not known by that name (graphium console --name).", 421)
        if scope["method"] in ("GET", "HEAD"):
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site not in (None, "same-origin", "none") or (origin is not None and _netloc(origin) != host):
            return PlainTextResponse("A change must come from a page of this console.", 403)
        return None


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
