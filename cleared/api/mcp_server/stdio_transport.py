"""MCP on the standard streams: one client, one message a line. Nothing but the protocol reaches stdout."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, BinaryIO, Final

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from cleared.sandbox.bridge import stdio
from cleared.sandbox.bridge.jsonrpc import INVALID_REQUEST, PARSE_ERROR, RpcError, encode_frame, error_frame

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""Of a message from a client, on any transport."""


def serve_stdio(server: Server[Any]) -> None:
    """Answer until the client closes its end. Calls that are under way then are finished."""
    with stdio.protected_streams(sys.stdin.buffer, sys.stdout.buffer) as (source, sink):
        anyio.run(functools.partial(_serve_streams, server, source, sink), backend="asyncio")


async def _serve_streams(server: Server[Any], source: BinaryIO, sink: BinaryIO) -> None:
    output = _LineWriter(sink)
    lines: Any = _LineReader(source, output)
    writer: Any = output
    async with stdio_server(lines, writer) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _LineReader:
    """The client's messages. What is no message is answered here: the SDK would drop it.

    A thread reads, so that one that blocks keeps nothing from ending.
    """

    def __init__(self, source: BinaryIO, output: _LineWriter) -> None:
        self._source, self._output = source, output
        self._queue: asyncio.Queue[bytes | RpcError | None] = asyncio.Queue(16)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read_lines, name="stdin", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._queue.get()) is not None:
            problem = line if isinstance(line, RpcError) else _find_problem(line)
            if problem is not None:
                await self._output.write(encode_frame(error_frame(None, problem)).decode("ascii"))
            else:
                assert isinstance(line, bytes)
                yield line.decode("utf-8")

    def _read_lines(self) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            while True:
                line = self._read_line()
                if line == b"\n":
                    continue
                asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop).result()
                if line is None:
                    return

    def _read_line(self) -> bytes | RpcError | None:
        try:
            line = self._source.readline(MAX_MESSAGE_BYTES + 1)
            if len(line) <= MAX_MESSAGE_BYTES:
                return (line.strip() or b"\n") if line else None
            while line and not line.endswith(b"\n"):
                line = self._source.readline(1 << 20)
        except (OSError, ValueError):
            return None
        return RpcError(PARSE_ERROR, data=f"the message has more than {MAX_MESSAGE_BYTES} bytes")


def _find_problem(line: bytes) -> RpcError | None:
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return RpcError(PARSE_ERROR, data="the line is not a JSON-RPC 2.0 message")
    if isinstance(message, types.JSONRPCNotification) and b'"id"' in line and "id" in json.loads(line):
        # For the SDK an id of another type is none, so that nobody would ever answer.
        return RpcError(INVALID_REQUEST, data="an id is a text or a whole number")
    return None


class _LineWriter:
    """Writes whole lines, one after the other, whoever has them."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._lock = anyio.Lock()

    async def write(self, text: str) -> None:
        """Raises ``ClosedResourceError`` where the client is gone."""
        async with self._lock:
            try:
                await anyio.to_thread.run_sync(self._write_all, text.encode("utf-8"), abandon_on_cancel=True)
            except (OSError, ValueError):
                raise anyio.ClosedResourceError from None

    async def flush(self) -> None:
        """Lines are written through."""

    def _write_all(self, data: bytes) -> None:
        self._sink.write(data)
        self._sink.flush()
