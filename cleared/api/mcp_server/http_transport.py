"""MCP over streamable HTTP, on this machine's loopback address only, for clients that show the token."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from cleared.api.mcp_server.stdio_transport import MAX_MESSAGE_BYTES
from cleared.workspace.loopback_listener import ADDRESS, Listener

PATH: Final = "/mcp"
MAX_CONNECTIONS: Final = 64
_MAX_SESSIONS: Final = 1_000
_GRACE_SECONDS: Final = 2

Scope = MutableMapping[str, Any]


def serve_http(server: Server[Any], listener: Listener, token: str, on_ready: Callable[[], None]) -> None:
    """Answer on ``listener`` until SIGTERM or Ctrl-C. ``on_ready`` is called once it does."""
    port = listener.port
    hosts = [f"{ADDRESS}:{port}", f"localhost:{port}"]
    origins = [f"http://{host}" for host in hosts]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_MESSAGE_BYTES,
        max_sessions=_MAX_SESSIONS,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    config = uvicorn.Config(
        RequestGuard(app, token, hosts, origins),
        http="h11",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ws="none",
        lifespan="on",
    )
    _HttpServer(config, on_ready).run(sockets=list(listener.sockets))


class _HttpServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are the caller's."""
        yield


class RequestGuard:
    """Lets in what comes from this machine and shows the token. The rest is refused before its body is read.

    A page in a browser of this machine is kept out twice: by its ``Origin``, and as it does not know the token. A name
    of elsewhere that leads to this machine is kept out by the ``Host``.
    """

    def __init__(self, app: Any, token: str, hosts: list[str], origins: list[str]) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode("ascii")
        self._hosts = {host.encode("ascii") for host in hosts}
        self._origins = {origin.encode("ascii") for origin in origins}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """An ASGI application."""
        problem = self._find_problem(scope) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
            return
        status, text = problem
        body = f"{text}\n".encode("ascii")
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
        headers += [(b"connection", b"close")] + ([(b"www-authenticate", b"Bearer")] if status == 401 else [])
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _find_problem(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason of a refusal."""
        hosts, origins, shown = (
            [value for name, value in scope["headers"] if name == wanted]
            for wanted in (b"host", b"origin", b"authorization")
        )
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "This server answers to 127.0.0.1 and localhost only."
        if any(origin.lower() not in self._origins for origin in origins):
            return 403, "Pages of other origins are not answered."
        if len(shown) != 1 or not hmac.compare_digest(_with_plain_scheme(shown[0]), self._expected):
            return 401, "Show the token: Authorization: Bearer TOKEN. Its file is named where cleared mcp was started."
        return None


def _with_plain_scheme(value: bytes) -> bytes:
    scheme, _, rest = value.partition(b" ")
    return b"Bearer " + rest.strip() if scheme.lower() == b"bearer" else value
