"""uvicorn as it is used here: it sleeps when nothing happens, and no client that is slow or silent keeps others out."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cleared.workspace.loopback_listener import Listener

MAX_CONNECTIONS: Final = 512
MAX_SILENT: Final = 256
"""Connections that may be open without a request on them; of more, the oldest is closed."""
HEAD_SECONDS: Final = 10.0
"""How long a client may take to send the head of a request."""
_GRACE_SECONDS: Final = 2


class TlsFiles(NamedTuple):
    """Certificate and key, PEM."""

    certificate: Path
    key: Path


class HttpServer:
    """Serves an application where somebody listens. ``end`` may be called from any thread and any signal's handler."""

    def __init__(self) -> None:
        self.is_ending = False
        self._server: _SleepingServer | None = None

    def serve(self, app: Any, listener: Listener, on_ready: Callable[[], None], tls: TlsFiles | None = None) -> None:
        """Serve until ``end`` is called; ``on_ready`` is called once it answers."""
        for name in ("uvicorn", "python_multipart"):  # they warn of what clients send, who are answered
            logging.getLogger(name).setLevel(logging.ERROR)
        config = uvicorn.Config(
            app,
            http=_make_protocol(lambda: self.is_ending),
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=15,
            h11_max_incomplete_event_size=32 << 10,
            ws="none",
            lifespan="off",
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        self._server = _SleepingServer(config, on_ready)
        if self.is_ending:
            return
        self._server.run(sockets=list(listener.sockets))

    def end(self) -> None:
        """Answer what is being answered, and end; called again, do not wait for that."""
        server, again = self._server, self.is_ending
        self.is_ending = True
        if server is not None:
            server.force_exit = server.force_exit or again
            server.wake_up()


class _SleepingServer(uvicorn.Server):
    """uvicorn looks ten times a second whether it should end; this one is woken up."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken: asyncio.Event | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)
        await self.on_tick(0)
        self._on_ready()

    async def main_loop(self) -> None:
        """Sleep until ``wake_up``."""
        assert self._woken is not None
        if not self.should_exit:
            await self._woken.wait()

    def wake_up(self) -> None:
        self.should_exit = True
        if self._loop is not None and self._woken is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are ours."""
        yield


def _make_protocol(is_ending: Callable[[], bool]) -> type[H11Protocol]:
    """A class of its own for each server: it knows which of the server's connections are silent, and whether the server
    ends."""
    silent: dict[PatientProtocol, None] = {}

    class PatientProtocol(H11Protocol):
        """One connection. It is closed where the head of a request does not come in time."""

        _head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if is_ending():  # it came after uvicorn had closed the others, and would be waited for
                transport.close()
                return
            self._await_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget_head()
            elif self._head_timer is None and not self.transport.is_closing():
                self._await_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_head()
            super().connection_lost(exc)

        def _await_head(self) -> None:
            silent[self] = None
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close_silent)
            if len(silent) > MAX_SILENT:
                next(iter(silent))._close_silent()

        def _forget_head(self) -> None:
            silent.pop(self, None)
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _close_silent(self) -> None:
            self._forget_head()
            self.transport.close()

    return PatientProtocol
