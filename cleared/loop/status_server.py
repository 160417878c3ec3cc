"""Serves a loop's status tree over HTTP, to this machine only: a status page, and JSON for programs.

It accepts no input, so it needs no token. Each connection has a deadline, and where there are too many the oldest is
closed, so that no client can block others.
"""

from __future__ import annotations

import errno
import hashlib
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from socketserver import TCPServer
from typing import Any, Final

from cleared.clock import Clock
from cleared.errors import BusyError, ClearedError, PolicyError, WorkspaceError
from cleared.jobs import file_schemas, loop_reader
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.loop import status_page
from cleared.safe_files import describe_os_error

ADDRESS: Final = "127.0.0.1"
ALLOWED_METHODS: Final = ("GET", "HEAD")
MAX_HEAD: Final = 8 * 1024
"""Bytes of request line and headers."""
REQUEST_SECONDS: Final = 5.0
"""Seconds that a client has to send its request, and again to take the answer."""
MAX_CONNECTIONS: Final = 128
_HOST_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_MAX_SHOWN: Final = 25
_HEADERS: Final = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", status_page.CONTENT_POLICY),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Connection", "close"),
)


def serve_status(runtime: RuntimeDirectory, port: int, clock: Clock, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM. Port 0 takes a free one; ``say`` gets the address.

    Raises ``BusyError`` where the port is taken, ``PolicyError`` where this user may not have it.
    """
    with _ended_by_signals():
        try:
            server = _Server(runtime, port, clock, say)
        except OSError as error:
            raise _port_error(port, error) from None
        try:
            with server:
                say(f"http://{ADDRESS}:{server.server_port}/ (Ctrl-C ends it)")
                server.serve_forever()
        except KeyboardInterrupt:
            return


def _port_error(port: int, error: OSError) -> ClearedError:
    if error.errno == errno.EADDRINUSE:
        return BusyError(
            f"port {port} of {ADDRESS} is taken by another program",
            remedy="Name another one with --port; 0 takes one that is free.",
        )
    if error.errno == errno.EACCES:
        return PolicyError(f"port {port} is not for this user", remedy="Name one above 1023 with --port.")
    return WorkspaceError(f"port {port} of {ADDRESS} cannot be had: {describe_os_error(error)}")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` at SIGTERM and Ctrl-C, also where a shell has this process ignore them."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: HTTPStatus
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, runtime: RuntimeDirectory, port: int, clock: Clock, say: Callable[[str], None]) -> None:
        self.runtime, self.clock, self._say = runtime, clock, say
        self._guard = threading.Lock()
        self._open: dict[socket.socket, None] = {}  # the oldest first
        self._cached_tree: tuple[tuple[int, int, int], _Answer] | None = None
        super().__init__((ADDRESS, port), _Handler)

    def server_bind(self) -> None:
        """As the base class, without its look-up of this machine's name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open[request] = None
            if len(self._open) > MAX_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, OSError):  # an OSError is a client that went away
            self._say(f"a request could not be answered: {type(error).__name__}: {error}")

    def answer_path(self, path: str) -> _Answer:
        """The answer for a path; 503 with the reason where the loop's files cannot be read."""
        if path == "/healthz":
            return _plain_answer(HTTPStatus.OK, "ok")
        if path not in ("/", "/tree.json"):
            return _plain_answer(HTTPStatus.NOT_FOUND, "there is only /, /tree.json and /healthz here")
        try:
            return self._answer_tree() if path == "/tree.json" else self._answer_page()
        except (ClearedError, OSError) as error:
            why = describe_os_error(error) if isinstance(error, OSError) else str(error)
            retry = (("Retry-After", str(status_page.REFRESH_SECONDS)),)
            if path == "/":
                return _Answer(
                    HTTPStatus.SERVICE_UNAVAILABLE, _HTML, status_page.render_unavailable(why).encode("utf-8"), retry
                )
            data = json.dumps({"error": {"type": type(error).__name__, "message": why}})
            return _Answer(HTTPStatus.SERVICE_UNAVAILABLE, _JSON, f"{data}\n".encode("ascii"), retry)

    def _answer_page(self) -> _Answer:
        knowledge = loop_reader.read_tree(self.runtime)["knowledge"]
        text = status_page.render_status(
            loop_reader.read_status(self.runtime), loop_reader.list_jobs(self.runtime, _MAX_SHOWN), knowledge
        )
        return _Answer(HTTPStatus.OK, _HTML, text.encode("utf-8"))

    def _answer_tree(self) -> _Answer:
        mark = self._file_mark()
        cached = self._cached_tree
        if cached is not None and mark == cached[0]:
            return cached[1]
        body = file_schemas.encode_record(loop_reader.read_tree(self.runtime))
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        answer = _Answer(HTTPStatus.OK, _JSON, body, (("ETag", tag),))
        if mark is not None and mark == self._file_mark():  # else it was written while it was read
            self._cached_tree = mark, answer
        return answer

    def _file_mark(self) -> tuple[int, int, int] | None:
        try:
            status = self.runtime.tree_path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


_HTML, _JSON = "text/html; charset=utf-8", "application/json"


def _plain_answer(status: HTTPStatus, text: str, *headers: tuple[str, str]) -> _Answer:
    return _Answer(status, "text/plain; charset=utf-8", f"{text}\n".encode(), headers)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = default_request_version = "HTTP/1.1"

    def handle(self) -> None:
        """Take one request, answer it and close the connection."""
        head = self._read_head()
        if head is None:
            return
        self.connection.settimeout(REQUEST_SECONDS)
        self.command, self.request_version = "", self.protocol_version
        self.rfile = BytesIO(head)
        self.raw_requestline = self.rfile.readline()
        if self.parse_request():
            self._send_answer(self._find_answer())
        self._drain_input()

    def _read_head(self) -> bytes | None:
        """The head of the request; None where none comes, or it was refused already."""
        clock, data = self.server.clock, b""
        end = clock.monotonic() + REQUEST_SECONDS
        while b"\r\n\r\n" not in data and b"\n\n" not in data:
            left = end - clock.monotonic()
            try:
                if left <= 0:
                    raise TimeoutError
                self.connection.settimeout(left)
                part = self.connection.recv(MAX_HEAD)
            except TimeoutError:
                if data:
                    self._refuse_request(
                        HTTPStatus.REQUEST_TIMEOUT, f"the request did not come within {REQUEST_SECONDS:g} seconds"
                    )
                return None
            if not part:
                return None
            data += part
            if len(data) > MAX_HEAD:
                self._refuse_request(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a request has at most {MAX_HEAD} bytes"
                )
                return None
        return data

    def _find_answer(self) -> _Answer:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or _host_name(hosts[0]) not in _HOST_NAMES:
            return _plain_answer(
                HTTPStatus.MISDIRECTED_REQUEST, "this page is for this machine: ask for it at 127.0.0.1"
            )
        if self.command not in ALLOWED_METHODS:
            text = "there is nothing to write here: use the command line"
            return _plain_answer(HTTPStatus.METHOD_NOT_ALLOWED, text, ("Allow", ", ".join(ALLOWED_METHODS)))
        answer = self.server.answer_path(self.path.partition("?")[0])
        tag = dict(answer.headers).get("ETag")
        if tag is not None and _matches_tag(self.headers.get_all("If-None-Match", []), tag):
            return _Answer(HTTPStatus.NOT_MODIFIED, answer.content_type, b"", answer.headers)
        return answer

    def _send_answer(self, answer: _Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in (*answer.headers, *_HEADERS):
            self.send_header(name, value)
        if answer.status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _refuse_request(self, status: HTTPStatus, text: str) -> None:
        """Refuse a request whose head could not be read."""
        self.connection.settimeout(REQUEST_SECONDS)
        self.command, self.request_version = "", self.protocol_version
        self._send_answer(_plain_answer(status, text))
        self._drain_input()

    def _drain_input(self) -> None:
        """Read what the client still sends, within bounds: closing at once could discard the answer on its way."""
        if self.command in ALLOWED_METHODS:
            return
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(0.5)
            for _ in range(16):
                if not self.connection.recv(MAX_HEAD):
                    return

    def handle_expect_100(self) -> bool:
        """A request with a body is answered at once, without asking for the body."""
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that the base class cannot parse."""
        self._send_answer(_plain_answer(HTTPStatus(code), HTTPStatus(code).phrase.lower()))

    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests."""


def _host_name(host: str) -> str:
    """A ``Host`` header without its port."""
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdigit() else host.strip().lower()


def _matches_tag(header_lines: list[str], tag: str) -> bool:
    tags = [part.strip().removeprefix("W/") for line in header_lines for part in line.split(",")]
    return "*" in tags or tag in tags
