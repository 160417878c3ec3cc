"""Who listens on a port of this machine, and other programs that do."""

from __future__ import annotations

import contextlib
import http.server
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_NAMES = {"0100007F": "127.0.0.1", "00000000000000000000000001000000": "::1"}


def list_loopback() -> list[str]:
    """The addresses of ``localhost`` that this machine has."""
    with socket.socket(socket.AF_INET6) as asked:
        try:
            asked.bind(("::1", 0))
        except OSError:
            return ["127.0.0.1"]
    return ["127.0.0.1", "::1"]


def find_free_port() -> int:
    """A port that is free at both addresses, and that no system gives to a connection of another test by itself."""
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for address in list_loopback():
                asked = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
                held.enter_context(asked).bind((address, port))
            return port


def take_port(address: str, port: int | None = None) -> socket.socket:
    """Listen there, as any program may; ``None``: at a free port. Raises ``OSError`` where somebody else does."""
    taken = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        taken.bind((address, find_free_port() if port is None else port))
        taken.listen()
    except OSError:
        taken.close()
        raise
    return taken


def hold_port(address: str, option: int, port: int | None = None, *, user: int | None = None) -> socket.socket:
    """Bind there without listening, with an option by which a port may be shared. ``user``: whose socket it is."""
    before = os.geteuid()
    if user is not None:
        os.seteuid(user)
    try:
        held = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    finally:
        os.seteuid(before)
    held.setsockopt(socket.SOL_SOCKET, option, 1)
    held.bind((address, find_free_port() if port is None else port))
    return held


def list_listening(port: int) -> list[str]:
    """The addresses at which somebody listens on it, as the kernel says."""
    tables = [path.read_text() for path in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if path.exists()]
    if not tables:
        pytest.skip("the system does not say who listens")
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    found = [row[1].split(":") for row in rows if row[3] == "0A"]
    return sorted(_NAMES.get(address, address) for address, number in found if int(number, 16) == port)


class Listening:
    """A program that serves pages, and what browsers have told it. ``page``: path → what it answers.

    ``asked``: path, cookies and referrer of each request; ``sent``: bodies of those that send one.
    """

    def __init__(self, address: str, port: int, page: Callable[[str], str]) -> None:
        asked: list[tuple[str, str, str]] = []
        sent: list[str] = []
        self.asked, self.sent = asked, sent

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append((self.path, self.headers.get("Cookie", ""), self.headers.get("Referer", "")))
                self.answer(page(self.path))

            def do_POST(self) -> None:
                sent.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.answer("")

            def answer(self, text: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(f"<!doctype html><title>{self.path}</title>{text}".encode())

            def log_message(self, format: str, *args: object) -> None: ...

        class Program(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

        self.server = Program((address, port), Handler)
        self.port = int(self.server.server_address[1])


@contextlib.contextmanager
def listening(address: str, page: Callable[[str], str], port: int = 0) -> Iterator[Listening]:
    """Such a program, in a thread. Raises ``OSError`` where the port is taken."""
    program = Listening(address, port, page)
    thread = threading.Thread(target=program.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield program
    finally:
        program.server.shutdown()
        program.server.server_close()
        thread.join()
