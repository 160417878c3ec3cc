"""``cleared server`` in a process of its own, and a person at it without a browser: cookies, forms, redirects."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

from harness import Workspace
from patience import PATIENCE

OUTSIDE = ("/login", "/passkeys/", "/static/", "/healthz")
"""Addresses that are the same for everybody, signed in or not."""
Fields = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Page:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def text(self) -> str:
        """What is to be read on it."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.body)).split())

    def fields(self, name: str) -> list[str]:
        """The values of hidden fields of that name."""
        return [unescape(value) for value in re.findall(rf'name="{name}" value="([^"]*)"', self.body)]


class Server:
    """The process, signed in."""

    def __init__(self, ws: Workspace, *argv: str, sign_in: bool = True) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "CLEARED_CLOCK"}
        self.process: subprocess.Popen[bytes] = ws.start(
            "server", *argv, "--json", "--port", "0", env=environment, cwd=str(ws.root)
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        place = json.loads(line)
        self._begin(place["url"], place["code"])
        if sign_in:
            self.sign_in(self.code)

    @classmethod
    def at(cls, url: str, code: str) -> Server:
        """One that runs in this process; not signed in."""
        server = cls.__new__(cls)
        server._begin(url, code)
        return server

    def _begin(self, url: str, code: str) -> None:
        """``url``: by the name that passkeys need, whichever of the two was printed. ``home``: what the addresses of
        the session begin with."""
        self.code, self.url = code, url.replace("127.0.0.1", "localhost")
        self.port = int(self.url.rsplit(":", 1)[1])
        self.cookie = self.home = ""

    def sign_in(self, code: str) -> Page:
        return self.keep(self.send("POST", "/login", [("code", code)]))

    def keep(self, page: Page) -> Page:
        """Take the cookie of an answer that signs in, for the addresses that it is for."""
        if "set-cookie" in page.headers:
            self.cookie, self.home = page.headers["set-cookie"].split(";")[0], page.headers["location"].rstrip("/")
        return page

    def forget(self) -> None:
        """Be a browser that has not signed in."""
        self.cookie = self.home = ""

    def send(
        self,
        method: str,
        path: str,
        fields: Fields = (),
        headers: Mapping[str, str | None] | None = None,
        body: bytes | None = None,
    ) -> Page:
        """One request as a browser sends it; ``headers`` change or leave out its own. ``path``: below the session's
        home, where its own cookie is sent."""
        if "Cookie" not in (headers or {}) and not path.startswith((*OUTSIDE, self.home or "/")):
            path = self.home + path
        data = body if body is not None else urlencode(fields).encode()
        own: dict[str, str | None] = {"Host": f"localhost:{self.port}", "Cookie": self.cookie or None}
        if method == "POST":
            own |= {"Origin": self.url, "Content-Type": "application/x-www-form-urlencoded"}
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(wire):
            wire.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in (own | dict(headers or {})).items():
                if value is not None:
                    wire.putheader(name, value)
            if method == "POST" and "Content-Length" not in (headers or {}):
                wire.putheader("Content-Length", str(len(data)))
            wire.endheaders()
            if method == "POST":
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
                    wire.send(data)
            reply = wire.getresponse()
            return Page(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read().decode())

    def get(self, path: str) -> Page:
        return self.send("GET", path)

    def submit(self, page: Page, path: str, *fields: tuple[str, str]) -> Page:
        """Send a form of the page, with its hidden fields; the page that comes after it."""
        hidden = [("token", page.fields("token")[0])]
        hidden += [(name, page.fields(name)[0]) for name in ("proposal", "proposal_digest", "act") if page.fields(name)]
        if page.fields("card"):
            hidden += [("card", page.fields("card")[0]), ("digest", page.fields("digest")[0])]
        return self.follow(self.send("POST", path, [*hidden, *fields]))

    def follow(self, page: Page) -> Page:
        """Where it leads; what is worked on meanwhile is waited for."""
        until = time.monotonic() + PATIENCE
        while page.status == 303:
            address = page.headers["location"].partition("#")[0]  # which no browser sends
            page = self.get(address)
            while 'data-steps="work"' in page.body:
                assert time.monotonic() < until, page.text
                time.sleep(0.05)
                page = self.get(address)
        return page

    def upload(self, page: Page, files: Mapping[str, bytes], *fields: tuple[str, str]) -> Page:
        """Hand bank files in."""
        edge = "----edge"
        parts = [
            f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in (("token", page.fields("token")[0]), *fields)
        ]
        for name, data in files.items():
            head = f'--{edge}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
            parts.append(head.encode() + data + b"\r\n")
        body = b"".join(parts) + f"--{edge}--\r\n".encode()
        kind = {"Content-Type": f"multipart/form-data; boundary={edge}"}
        return self.follow(self.send("POST", "/files", headers=kind, body=body))

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors.decode()


@contextlib.contextmanager
def inner_server(*roots: Path) -> Iterator[Server]:
    """A server in a thread of this process: a start of Python costs more than most tests do."""
    from cleared.changes.workspace_opening import open_workspace
    from cleared.cli.machine_errors import as_refusal
    from cleared.web.page_server import PageServer, serve_in_background

    with serve_in_background(PageServer(roots, open_workspace, as_refusal, 0)) as place:
        yield Server.at(place["url"], place["code"])


@contextlib.contextmanager
def page_server(ws: Workspace, *argv: str | Path, sign_in: bool = True) -> Iterator[Server]:
    server = Server(ws, *map(str, argv), sign_in=sign_in)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()
