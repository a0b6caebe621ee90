"""Around every request: which Host and Origin it may have, how much it may send, and what every answer says."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphium_db.console.config import Config

LONGEST_BODY = 2_000_000
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


class _TooLongError(Exception):
    pass


class Guard:
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

        received = 0

        async def receive_within_bounds() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > LONGEST_BODY:
                raise _TooLongError
            return message

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        try:
            await self.app(scope, receive_within_bounds, send_with_headers)
        except _TooLongError:
            answer = PlainTextResponse("Too long: at most 2 MB at a time.", 413)
            await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        host = headers.get("host", "")
        if _name(host) not in self.names:
            return PlainTextResponse("This console is not known by that name (graphium console --name).", 421)
        if scope["method"] in ("GET", "HEAD"):
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site not in (None, "same-origin", "none") or (origin is not None and urlsplit(origin).netloc != host):
            return PlainTextResponse("A change must come from a page of this console.", 403)
        return None


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
