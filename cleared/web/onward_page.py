"""The page that a form leads to, given as the form's answer: one way to the server and back less, on a slow line.

A script of the page asks for it by a field, and takes over its address, so that loading it anew sends no form again.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from cleared.web.request_guard import Message, Receive, Scope, Send

FIELD: Final = "at-once"
FRAGMENT: Final = "cleared.fragment"
"""What of the scope of such a request is the part of its address behind the #, if any."""
_KEPT: Final = ("type", "asgi", "http_version", "scheme", "server", "client", "extensions", "state")
_OF_A_FORM: Final = (b"content-type", b"content-length", b"transfer-encoding", b"accept-encoding")
"""Headers that say how a form came, and how the whole answer goes."""


class OnwardPage(Response):
    """What ``address``, a page of the same server, answers now."""

    def __init__(self, request: Request, address: str, *, is_refusal: bool) -> None:
        """``is_refusal``: whether the page says that the form was not carried out."""
        super().__init__()
        self._is_refusal = is_refusal
        self._app: Any = request.app
        parts = urlsplit(address)
        self._scope = {name: request.scope[name] for name in _KEPT if name in request.scope} | {
            "method": "GET",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode("ascii"),
            "query_string": parts.query.encode("ascii"),
            "root_path": "",
            "headers": [each for each in request.scope["headers"] if each[0].lower() not in _OF_A_FORM],
            FRAGMENT: parts.fragment,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An ASGI application."""

        async def receive_nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send_on(message: Message) -> None:
            if self._is_refusal and message.get("status") == HTTPStatus.OK:
                message["status"] = HTTPStatus.CONFLICT
            await send(message)

        await self._app(self._scope, receive_nothing, send_on)
