"""Who may ask the page something: whoever has the token, from this page and no other. Pure, but for the ASGI around it.

The files of the page itself hold nothing that is worth hiding, and are given to anybody on this host. Everything that
tells or changes something wants the token, in a header that only the page's own scripts set: there is no cookie that a
browser would send by itself. The token stands in the part of the address that browsers do not send (after #).
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from hmac import compare_digest
from typing import Any, TypeAlias
from urllib.parse import urlsplit

Headers: TypeAlias = Mapping[str, str]
Message: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
GUARDED = "/api/"
_TOLD = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


def make_token() -> str:
    """A new one."""
    return secrets.token_urlsafe(24)


def refusal(path: str, headers: Headers, token: str) -> tuple[int, str] | None:
    """Why a request is refused, with the status; None if it is not.

    >>> refusal("/", {"host": "127.0.0.1:80"}, "t"), refusal("/", {"host": "evil.example"}, "t")[0]
    (None, 403)
    >>> refusal("/api/look", {"host": "localhost:80"}, "t")[0]
    401
    >>> refusal("/api/look", {"host": "localhost:80", "authorization": "Bearer t"}, "t")
    >>> refusal("/api/look", {"host": "localhost:80", "authorization": "Bearer t", "origin": "http://a.b"}, "t")[0]
    403
    """
    host = headers.get("host", "")
    if _name(host) not in LOOPBACK:
        return 403, "this page is served on loopback: ask for it by 127.0.0.1 or localhost"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return 403, "another page may not ask this one"
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return 403, "another site may not ask this one"
    if path.startswith(GUARDED):
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not compare_digest(given.encode(), token.encode()):
            return 401, "the token is missing or wrong: open the page by the whole address that was printed"
    return None


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class Guard:
    """Stands before an ASGI application."""

    def __init__(self, inner: Application, token: str) -> None:
        self._inner = inner
        self._token = token

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Lets a request pass, or refuses it; says to browsers what they may do with what they get."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._inner(scope, receive, send)
            elif scope["type"] == "websocket":  # there are none here; closed before it is accepted, it is a 403
                await send({"type": "websocket.close"})
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                given: Iterable[tuple[bytes, bytes]] = message.get("headers", ())
                message["headers"] = [*given, *((name.encode(), value.encode()) for name, value in _TOLD.items())]
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = refusal(scope["path"], headers, self._token)
        if refused is None:
            await self._inner(scope, receive, told)
            return
        status, why = refused
        plain = [(b"content-type", b"text/plain; charset=utf-8")]
        await told({"type": "http.response.start", "status": status, "headers": plain})
        await send({"type": "http.response.body", "body": f"{why}\n".encode()})
