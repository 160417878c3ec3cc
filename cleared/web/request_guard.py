"""What is refused before a page is asked: other hosts, other origins, bodies that are too large; and the headers that
every answer has."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from time import monotonic
from typing import Any, Final

from cleared.base.short_text import parse_count

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY: Final = 64 << 20
"""Bytes of a request: the largest bank file that is taken, and its form."""
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'; worker-src 'self'"
)
_HEADERS: Final = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),  # to no other port; with no-referrer, forms would come from Origin: null
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
_SAFE_METHODS: Final = ("GET", "HEAD")


BODY_SECONDS: Final = 30.0
"""How long a client may take to send its body; one of many megabytes may take longer, at ``_LEAST_RATE``."""
_LEAST_RATE: Final = 32 << 10


class BodyRefused(Exception):
    """A request went on after ``MAX_BODY``, or its body did not come in time."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class RequestGuard:
    """An ASGI application around another. ``hosts``: the values of ``Host`` that are answered, in lower case.
    ``programs``: paths to which something may be sent without an ``Origin``."""

    def __init__(self, app: Any, hosts: list[str], programs: re.Pattern[str], scheme: str = "http") -> None:
        self._app, self._programs = app, programs
        self._hosts = {host.encode("ascii") for host in hosts}
        self._origins = {f"{scheme}://{host}".encode("ascii") for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = self._find_problem(scope)
        if problem is not None:
            await _refuse(send, *problem)
            return
        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                present = {name for name, _ in message["headers"]}
                caching = [] if b"cache-control" in present else [(b"cache-control", b"no-store")]
                message["headers"] = [*message["headers"], *caching, *_HEADERS]
            await send(message)

        try:
            await self._app(scope, _bound_body(receive), send_guarded)
        except BodyRefused as refused:
            if not begun:
                await _refuse(send, refused.status, refused.text)

    def _find_problem(self, scope: Scope) -> tuple[int, str] | None:
        """Status and text of a refusal."""
        hosts, origins, lengths = _header_values(scope, b"host", b"origin", b"content-length")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 400, "This server is not called that. Use the address that cleared server prints."
        if any(origin.lower() not in self._origins for origin in origins):
            return 403, "Pages of other origins are not answered."
        is_program = self._programs.fullmatch(scope["path"]) is not None
        if scope["method"] not in _SAFE_METHODS and not origins and not is_program:
            return 403, "The request does not say which page sent it (no Origin)."
        if any((length := parse_count(text.decode("latin-1"))) is None or length > MAX_BODY for text in lengths):
            return 413, f"At most {MAX_BODY >> 20} MB are taken at once."
        return None


def _bound_body(receive: Receive) -> Receive:
    """As ``receive``; raises ``BodyRefused`` where the body is too large or too slow."""
    taken, is_whole, began = 0, False, monotonic()

    async def receive_bounded() -> Message:
        nonlocal taken, is_whole
        if is_whole:  # what comes now is that the client goes away
            return await receive()
        left = began + BODY_SECONDS + taken / _LEAST_RATE - monotonic()
        try:
            async with asyncio.timeout(left):
                message = await receive()
        except TimeoutError:
            raise BodyRefused(408, "The body did not come in time.") from None
        taken += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if taken > MAX_BODY:
            raise BodyRefused(413, f"At most {MAX_BODY >> 20} MB are taken at once.")
        return message

    return receive_bounded


def _header_values(scope: Scope, *wanted: bytes) -> list[list[bytes]]:
    return [[value for name, value in scope["headers"] if name == each] for each in wanted]


async def _refuse(send: Send, status: int, text: str) -> None:
    body = f"{text}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
        *_HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
