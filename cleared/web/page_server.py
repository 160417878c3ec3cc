"""The process of ``cleared server``: its listener, the link that signs a person in, how it ends."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleared.changes.host import Host
from cleared.errors import ClearedError, UsageError
from cleared.terminal import print_message
from cleared.workspace.loopback_listener import ADDRESS, open_listener

if TYPE_CHECKING:
    from cleared.web.access import Access

INSTALL: Final = "pip install '.[web]'"
_PACKAGES: Final = ("starlette", "uvicorn", "jinja2", "python_multipart")
_MAX_CONNECTIONS: Final = 512
_MAX_WAITING: Final = 128
_GRACE_SECONDS: Final = 2


def require_packages() -> None:
    """Raises ``UsageError`` where the packages of the page are not installed."""
    if any(find_spec(name) is None for name in _PACKAGES):
        raise UsageError("cleared server needs more packages", remedy=f"In the checkout: {INSTALL}")


def serve_pages(
    roots: Sequence[Path], open_workspace: Callable[[Path], Host],
    explain_fault: Callable[[BaseException], ClearedError | None], port: int,
    on_ready: Callable[[dict[str, Any]], None], *, type_code: bool = False,
) -> None:  # fmt: skip
    """Serve the pages of these workspaces on loopback, until SIGTERM or Ctrl-C.

    ``port`` 0: a free one. ``on_ready`` gets address and code once it answers. ``type_code``: a code to type, not a
    link. Raises ``BusyError`` where the port is taken, ``UsageError`` for two workspaces of one name, ``ClearedError``
    where one cannot be opened.
    """
    from cleared.web.access import Access
    from cleared.web.application import make_application
    from cleared.web.site import Site

    names = _name_workspaces(roots)
    sites = {
        name: Site(name, "" if len(names) == 1 else f"/w/{name}", lambda root=root: open_workspace(root))  # type: ignore[misc]
        for name, root in names.items()
    }
    access = Access()
    with open_listener(port, _MAX_WAITING) as listener:
        bound = listener.getsockname()[1]
        address = f"http://localhost:{bound}"
        hosts = [f"localhost:{bound}", f"{ADDRESS}:{bound}"]
        server = PageServer()
        app = make_application(sites, access, bound, hosts, lambda: server.is_ending, explain_fault)
        logging.getLogger("uvicorn").setLevel(logging.ERROR)

        def report_ready() -> None:
            code = access.make_typed_code() if type_code else access.make_link_code()
            link = f"{address}/login" if type_code else f"{address}/login#{code}"
            print_message(f"cleared server answers on this machine. Open: {link}")
            print_message(f"Code: {code}" if type_code else "The link counts once, for ten minutes.")
            if sys.stdin is not None and sys.stdin.isatty():
                print_message("Enter prints a new one, Ctrl-C ends the server.")
                threading.Thread(target=_print_more, args=(access, address, type_code), daemon=True).start()
            on_ready({"url": address, "link": link, "code": code})

        server.serve(app, listener, report_ready)


def _name_workspaces(roots: Sequence[Path]) -> dict[str, Path]:
    names: dict[str, Path] = {}
    for root in roots:
        name = root.resolve().name
        if name in names:
            raise UsageError(f"two workspaces are called {name!r}", remedy="Rename the folder of one.")
        names[name] = root
    return names


def _print_more(access: Access, address: str, type_code: bool) -> None:
    """A new link, or code, for each line that is typed."""
    for _ in sys.stdin:
        code = access.make_typed_code() if type_code else access.make_link_code()
        print_message(f"Code: {code}" if type_code else f"{address}/login#{code}")


class PageServer:
    """uvicorn, ended by this process's signals."""

    def __init__(self) -> None:
        self.is_ending = False
        self._server: Any = None

    def serve(self, app: Any, listener: socket.socket, on_ready: Callable[[], None]) -> None:
        """Serve until a signal; ``on_ready`` is called once it answers."""
        import uvicorn

        config = uvicorn.Config(
            app, http="h11", loop="asyncio", log_config=None, access_log=False, server_header=False, date_header=False,
            proxy_headers=False, limit_concurrency=_MAX_CONNECTIONS, timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=15, h11_max_incomplete_event_size=32 << 10, ws="none", lifespan="off",
        )  # fmt: skip

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                on_ready()

            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield  # they are ours

        self._server = Server(config)
        before = {number: signal.signal(number, self._end) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            self._server.run(sockets=[listener])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, frame: object) -> None:
        """A second signal does not wait for open requests."""
        self._server.force_exit = self.is_ending
        self._server.should_exit = self.is_ending = True
