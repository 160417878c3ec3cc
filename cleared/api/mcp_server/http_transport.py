"""MCP over streamable HTTP, on this machine's loopback address only, for clients that show the token.

The token lies in ``.cleared/``, readable by its owner alone.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import socket
import stat
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from cleared.api.mcp_server.stdio_transport import MAX_MESSAGE_BYTES
from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import describe_os_error, is_open_to_others, write_new
from cleared.changes.host import Host
from cleared.workspace.lock import ensure_state_dir
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


FILE: Final = "mcp-token.secret"
"""A name that no job may read (``jobs.forbidden_files``)."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{40,100}")


def load_token(host: Host) -> tuple[str, Path, bool]:
    """The token, its file, and whether it was made now. One that others could read, or that is committed, is replaced.

    Raises ``WorkspaceError`` where it cannot be written.
    """
    ensure_state_dir(host.layout.state_dir)
    path = host.layout.state_dir / FILE
    token = None if _is_committed(host, path) else _read_own_file(path)
    if token is not None:
        return token, path, False
    try:
        with suppress(FileNotFoundError):
            path.unlink()
        token = secrets.token_urlsafe(32)
        if write_new(path, f"{token}\n".encode("ascii"), mode=0o600):
            return token, path, True
        token = _read_own_file(path)  # two servers made it at once
    except OSError as error:
        raise WorkspaceError(
            f"the token could not be written to {path}: {describe_os_error(error)}", remedy="See what lies there."
        ) from None
    if token is None:
        raise WorkspaceError(f"the token in {path} cannot be read", remedy="Delete the file, and start again.")
    return token, path, False


def _read_own_file(path: Path) -> str | None:
    """The token in a file of this user's that nobody else can read; None where it is none."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            about = os.fstat(file.fileno())
            text = file.read(200).decode("ascii").strip()
    except (OSError, ValueError):
        return None
    is_plain = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
    return text if not is_open_to_others(about) and is_plain and _TOKEN.fullmatch(text) else None


def _is_committed(host: Host, path: Path) -> bool:
    """Whether the repository holds such a file: then whoever pushed it knows the token."""
    with host.open_last_commit() as snapshot:
        return snapshot.read_file(path.relative_to(host.root).as_posix()) is not None
