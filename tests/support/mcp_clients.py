"""The official MCP client, for tests: in this process, over stdio and over HTTP; and raw lines and requests."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from harness import CLOCK, Workspace
from patience import PATIENCE

T = TypeVar("T")
Talk = Callable[[Any], Awaitable[T]]


def program(ws: Workspace, *options: str) -> list[str]:
    return [sys.executable, "-m", "cleared", "mcp", "-C", str(ws.root), *options]


def talk_here(ws: Workspace, talk: Talk[T], *, name: str = "test-client", mode: str = "auto") -> T:
    """What ``talk`` gives, which gets a client that is connected to a server in this process."""
    from mcp import Client
    from mcp_types import Implementation

    from cleared.api.mcp_server.client_calls import WorkspaceTools
    from cleared.api.mcp_server.protocol_server import make_server
    from cleared.base.clock import clock_from
    from cleared.changes.workspace_opening import open_workspace
    from cleared.cli.machine_errors import as_refusal
    from cleared.service.operations.current_host import CurrentHost

    tools = WorkspaceTools(CurrentHost(lambda: open_workspace(ws.root, clock=clock_from(CLOCK))), as_refusal)

    async def connect() -> T:
        about = Implementation(name=name, version="1")
        async with Client(make_server(tools), client_info=about, mode=mode) as client:  # type: ignore[arg-type]
            return await talk(client)

    return asyncio.run(connect())


def talk_stdio(ws: Workspace, *talks: Talk[Any]) -> list[Any]:
    """The same over stdio, each with a server process of its own, all at once."""
    from mcp import Client, StdioServerParameters

    command, *arguments = program(ws)
    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))

    async def connect(talk: Talk[Any]) -> Any:
        async with Client(server) as client:
            return await talk(client)

    async def connect_all() -> list[Any]:
        return await asyncio.gather(*map(connect, talks))

    return asyncio.run(connect_all())


def call(name: str, /, **arguments: Any) -> Talk[Any]:
    """A talk that is one call of a tool."""
    return lambda client: client.call_tool(name, arguments)


def text_of(result: Any) -> str:
    return str(result.content[0].text)


class HttpServer:
    """``cleared mcp --http`` in a process of its own."""

    def __init__(self, ws: Workspace) -> None:
        self.process = subprocess.Popen(
            program(ws, "--http", "--port", "0", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdout is not None
        place = json.loads(self.process.stdout.readline())
        self.url, self.token_file = str(place["url"]), Path(place["token_file"])
        self.port = int(self.url.split(":")[2].split("/")[0])
        self.token = self.token_file.read_text().strip()

    def talk(self, *talks: Talk[Any]) -> list[Any]:
        """What each ``talk`` gives, with a client of its own, all at once."""
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        async def connect(talk: Talk[Any]) -> Any:
            shown = {"Authorization": f"Bearer {self.token}"}
            async with (
                httpx2.AsyncClient(headers=shown, timeout=PATIENCE) as http_client,
                Client(streamable_http_client(self.url, http_client=http_client)) as client,
            ):
                return await talk(client)

        async def connect_all() -> list[Any]:
            return await asyncio.gather(*map(connect, talks))

        return asyncio.run(connect_all())

    def post(self, body: bytes, headers: Mapping[str, str] | None = None, **changed: str | None) -> tuple[int, str]:
        """Status and text of a raw request; ``changed``: headers that are other than a good client's, or left out."""
        good: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(wire):
            wire.putrequest("POST", "/mcp", skip_host=True, skip_accept_encoding=True)
            for name, value in {**good, **changed, **(headers or {})}.items():
                if value is not None:
                    wire.putheader(name, value)
            wire.putheader("Content-Length", str(len(body)))
            wire.endheaders()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
                wire.send(body)
            reply = wire.getresponse()
            said = b""
            with contextlib.suppress(ConnectionResetError):  # nor was all of it read: the answer's end is lost
                said = reply.read()
            return reply.status, said.decode()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors.decode()


@contextlib.contextmanager
def http_server(ws: Workspace) -> Iterator[HttpServer]:
    server = HttpServer(ws)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()
