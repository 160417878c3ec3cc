"""``cleared server``: its listener, the link that signs a person in, how it ends; in a process of its own or as a
thread of ``cleared up``."""

from __future__ import annotations

import secrets
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from cleared.base.errors import ClearedError, UsageError
from cleared.base.terminal import print_message
from cleared.changes.host import Host
from cleared.web.access import Access
from cleared.web.exposure import Exposure, refuse_exposure
from cleared.web.fleet_pages import FleetPages
from cleared.web.passkey_invitations import InvitationCodes
from cleared.web.quiet_times import QuietTimes
from cleared.web.running_servers import noted_server, take_link
from cleared.web.site import Site
from cleared.workspace.loopback_listener import ADDRESS, open_listener

INSTALL: Final = "pip install '.[web]'"
_PACKAGES: Final = ("starlette", "uvicorn", "jinja2", "python_multipart", "standardwebhooks", "webauthn")
_MAX_WAITING: Final = 1_024
_START_SECONDS: Final = 60.0

OpenWorkspace = Callable[[Path], Host]
ExplainFault = Callable[[BaseException], ClearedError | None]
OnReady = Callable[[dict[str, Any]], None]


def require_packages(command: str = "cleared server", instead: str = "") -> None:
    """Raises ``UsageError`` where the packages of the page are not installed. ``instead``: what does without them."""
    if any(find_spec(name) is None for name in _PACKAGES):
        remedy = f"In the checkout: {INSTALL}."
        raise UsageError(f"{command} needs more packages", remedy=f"{remedy} {instead}" if instead else remedy)


class PageServer:
    """The server of these workspaces. It listens once this is made; ``serve`` answers.

    Raises ``BusyError`` where the port is taken, ``UsageError`` for two workspaces of one name, ``PolicyError`` where
    it may not be reached from elsewhere as asked, ``ClearedError`` where a workspace cannot be opened. ``has_link``:
    whether it prints a link, or a code, when it starts. ``fleet``: where they are the workspaces of one. ``tidy_up``
    is called when nobody waits for an answer, once somebody has.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        open_workspace: OpenWorkspace,
        explain_fault: ExplainFault,
        port: int,
        exposure: Exposure = Exposure(),
        *,
        type_code: bool = False,
        has_link: bool = True,
        fleet: FleetPages | None = None,
        tidy_up: Callable[[], None] | None = None,
    ) -> None:
        from cleared.web.application import make_application
        from cleared.web.http_server import HttpServer

        names = _name_workspaces(roots)
        self._exposure, self._fleet, self._open_workspace = exposure, fleet, open_workspace
        # In a fleet it stays where it is when a second workspace comes.
        self._is_alone = len(names) == 1 and fleet is None
        self._sites: Mapping[str, Site] = {name: self._make_site(name, root) for name, root in names.items()}
        hosts = [site.open_host() for site in self._sites.values()]
        refuse_exposure(exposure, hosts)
        self._type_code, self._has_link = type_code, has_link
        self._server, self._quiet_times, self._tidy_up = HttpServer(), QuietTimes(), tidy_up
        self._listener = open_listener(port, _MAX_WAITING, exposure.address)
        bound = self._listener.port
        # Nobody is invited at an address of this machine that is not this server's.
        self._start = secrets.token_hex(16) if exposure.address == ADDRESS else ""
        self._access = Access(take_link=partial(take_link, start=self._start))
        self.url = exposure.make_url(bound, hosts)
        self._app = make_application(
            lambda: self._sites,
            self._access,
            exposure.list_hosts(bound),
            lambda: self._server.is_ending,
            explain_fault,
            InvitationCodes(self._start),
            self._quiet_times,
            scheme=exposure.scheme,
            fleet=fleet,
        )

    def _make_site(self, name: str, root: Path) -> Site:
        prefix, calls = "" if self._is_alone else f"/w/{name}", self._fleet.keep_calls(name) if self._fleet else None
        return Site(name, prefix, partial(self._open_workspace, root), calls)

    def add_workspace(self, name: str, root: Path) -> None:
        """Serve this one, too, from now on; from any thread. Raises ``PolicyError`` where it may not be reached from
        elsewhere, ``ClearedError`` where it cannot be opened."""
        site = self._make_site(name, root)
        refuse_exposure(self._exposure, [site.open_host()])
        self._sites = {**self._sites, name: site}

    def remove_workspace(self, name: str) -> None:
        """Serve this one no more."""
        left = dict(self._sites)
        gone = left.pop(name, None)
        self._sites = left
        if gone is not None:
            gone.chat.end()

    def serve(self, on_ready: OnReady) -> None:
        """Answer until ``end`` is called; ``on_ready`` gets address, link and code once it does."""
        inviting = noted_server(self._listener.port, self._start, self.url) if self._start else nullcontext()
        try:
            with self._listener, inviting:
                self._server.serve(self._app, self._listener, partial(self._begin, on_ready), self._exposure.tls)
        finally:
            for site in self._sites.values():
                site.chat.end()

    def _begin(self, on_ready: OnReady) -> None:
        """Say that it answers, and use meanwhile that nobody asks."""
        on_ready(self._report_ready())
        threading.Thread(target=self._use_quiet_times, name="quiet-times", daemon=True).start()

    def _use_quiet_times(self) -> None:
        """Get ready for the first pages, then tidy up after others."""
        from cleared.web.page_rendering import compile_templates

        for site in [*self._sites.values()]:
            site.read_ahead(self._quiet_times.wait_until_quiet)
        compile_templates()
        while self._tidy_up is not None:
            self._tidy_up()
            self._quiet_times.wait_for_use()
            self._quiet_times.wait_until_quiet()

    def end(self) -> None:
        """Answer what is being answered, and end; called again, do not wait for that. From any thread."""
        self._server.end()

    def _report_ready(self) -> dict[str, Any]:
        """Print where it answers, and the first link or code."""
        if self._exposure.is_reachable or not self._has_link:
            more = "" if self._exposure.is_reachable else ". A link that signs in: cleared server --link"
            print_message(f"cleared server answers. Open: {self.url}{more}")
            return {"url": self.url, "link": self.url, "code": None}
        code = self._access.make_typed_code() if self._type_code else self._access.make_link_code()
        link = f"{self.url}/login" if self._type_code else f"{self.url}/login#{code}"
        print_message(f"cleared server answers on this machine. Open: {link}")
        print_message(f"Code: {code}" if self._type_code else "The link counts once, for ten minutes.")
        if sys.stdin is not None and sys.stdin.isatty():
            print_message("Enter prints a new one, Ctrl-C ends the server.")
            arguments = (self._access, self.url, self._type_code)
            threading.Thread(target=_print_more, args=arguments, daemon=True).start()
        return {"url": self.url, "link": link, "code": code}


def serve_pages(server: PageServer, on_ready: OnReady) -> None:
    """Serve until SIGTERM or Ctrl-C; a second one does not wait for open requests."""
    with ended_by_signals(server.end):
        server.serve(on_ready)


@contextmanager
def serve_in_background(server: PageServer) -> Iterator[dict[str, Any]]:
    """Serve in a thread for the length of the block; gives address, link and code. Raises what it cannot start for."""
    ready, place, failures = threading.Event(), dict[str, Any](), list[BaseException]()

    def report_ready(found: dict[str, Any]) -> None:
        place.update(found)
        ready.set()

    def serve() -> None:
        try:
            server.serve(report_ready)
        except BaseException as error:  # noqa: BLE001  (told to whoever waits for it)
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=serve, name="page-server", daemon=True)
    thread.start()
    try:
        ready.wait(_START_SECONDS)
        if failures:
            raise failures[0]
        yield place
    finally:
        server.end()
        thread.join(_START_SECONDS)


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


@contextmanager
def ended_by_signals(end: Callable[[], None]) -> Iterator[None]:
    """Have SIGTERM and Ctrl-C call ``end``."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: end()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
