"""One workspace that is served: what pages read, and the one place through which they decide."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from cleared.approvals import passphrase
from cleared.changes.host import Host
from cleared.changes.host_cache import HostCache
from cleared.decisions.shown_cards import expecting
from cleared.operations.current_host import CurrentHost, HostFactory
from cleared.review.card_actions import ActionExecutor, ActionRequest, ActionResult
from cleared.review.queue_snapshot import QueueSnapshot, read_queue
from cleared.triggers.webhook_calls import WebhookCalls
from cleared.web.call_rates import CallRates
from cleared.web.client_file import ClientFile
from cleared.web.webhook_secrets import CheckedAgents

_deciding = threading.Lock()
"""One decision at a time in this process: how a passphrase is asked for is the process's."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of a request. ``needs_passphrase``: nothing was done; it is to be sent again with the passphrase."""

    result: ActionResult
    needs_passphrase: bool = False


class Site:
    """A workspace behind the page. Thread-safe. ``prefix``: what its addresses begin with, empty or ``/w/NAME``."""

    def __init__(self, name: str, prefix: str, open_workspace: HostFactory) -> None:
        self.name = name
        self.prefix = prefix
        self._current = CurrentHost(open_workspace)
        root = self._current.open_host().root
        self.clients = ClientFile(root)
        """The programs that may call."""
        self.calls = WebhookCalls(root)
        self.rates = CallRates()
        self.webhook_agents = CheckedAgents()
        self._executor = ActionExecutor(HostCache(open_workspace))
        self._reading = threading.Lock()
        self._queue: tuple[tuple[str, object], QueueSnapshot] | None = None

    def open_host(self) -> Host:
        """The workspace for one request. Raises ``ClearedError`` where it cannot be opened."""
        return self._current.open_host()

    def read_stamp(self) -> str:
        """Another text for each state of the books and of the runs. Raises ``ClearedError``, ``OSError``."""
        host = self.open_host()
        with host.open_for_reading() as repo:
            head = repo.read_head()
        times = []
        for name in ("runs.db", "runs.db-wal"):
            with suppress(FileNotFoundError):
                times.append(str((host.layout.state_dir / name).stat().st_mtime_ns))
        return "-".join([head, *times])

    def read_queue(self) -> QueueSnapshot:
        """The queue of the last commit; read again only when there is another, or other settings are in force."""
        host = self.open_host()
        with host.open_for_reading() as repo:
            key = (repo.read_head(), host.policy_stamp)
        with self._reading:
            if self._queue is None or self._queue[0] != key:
                self._queue = (key, read_queue(host))
            return self._queue[1]

    def decide(
        self, request: ActionRequest, shown: Mapping[str, str] | None, typed: str | None = None, *, again: bool = False
    ) -> Decided:
        """Carry out what a person chose; a refusal is a result. ``shown``: digests of what they saw; None for an undo,
        which is about nothing that is shown.

        ``typed``: the passphrase of the approval key, where it was asked for. ``again``: ask for it even where it was
        typed a moment ago, as for what changes scripts.
        """
        return self.act_as_person(lambda: self._executor.execute_request(request), shown, typed, again=again)

    def act_as_person(
        self, action: Callable[[], ActionResult], shown: Mapping[str, str] | None, typed: str | None = None,
        *, again: bool = False,
    ) -> Decided:  # fmt: skip
        """As ``decide``, for any action that a person asks for."""
        asked: list[str] = []

        def answer(prompt: str) -> str | None:
            asked.append(prompt)
            return typed

        with _deciding, ExitStack() as stack:
            if again:
                passphrase.forget_secrets()
            if shown is not None:
                stack.enter_context(expecting(shown))
            stack.enter_context(passphrase.asking_with(answer))
            result = action()
            return Decided(result, needs_passphrase=bool(asked) and not typed and not result.ok)
