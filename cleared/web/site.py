"""One workspace that is served: what pages read, and the one place through which they decide."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, tzinfo
from itertools import islice
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

from msgspec import Struct

from cleared.base.errors import ClearedError
from cleared.base.money import find_separator
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.changes.host_cache import HostCache
from cleared.gate.proposals.passkey_registration import read_passkeys
from cleared.review.action_request import ActionRequest, ActionResult
from cleared.review.card_actions import ActionExecutor
from cleared.review.card_view import show_card
from cleared.review.last_act import LastAct, read_last_act
from cleared.review.queue_snapshot import QueueSnapshot, read_queue
from cleared.review.reviewer_list import Role, find_role
from cleared.service.operations.current_host import CurrentHost, HostFactory
from cleared.triggers.webhook_calls import CallKeeper, WebhookCalls
from cleared.trust import passphrase
from cleared.trust.device_signing import DeviceSigning, signing_with
from cleared.trust.keys import own_key
from cleared.trust.passkey_records import Passkey
from cleared.trust.policy_in_force import settings_stamp
from cleared.web.access import Session
from cleared.web.call_rates import CallRates
from cleared.web.chat_sessions import ChatSessions
from cleared.web.client_file import ClientFile
from cleared.web.long_work import LongWork
from cleared.web.unknown_files import UnknownFiles
from cleared.web.webhook_secrets import CheckedAgents

_deciding = threading.Lock()
"""One decision at a time in this process: how a passphrase is asked for is the process's."""

_T = TypeVar("_T")


class Decided(Struct, frozen=True):
    """What came of a request. ``needs_passphrase``: nothing was done; it is to be sent again with the passphrase."""

    result: ActionResult
    needs_passphrase: bool = False
    is_wrong: bool = False
    """Whether a passphrase was typed, and was not the key's."""
    wanted: bytes | None = None
    """What a passkey is to sign first; nothing was done then."""


class BookStyle(Struct, frozen=True):
    """How books are called and written on a page."""

    title: str
    """The name of the business."""
    timezone: tzinfo
    thousands: str
    """What stands between thousands."""


_MAX_TITLE: Final = 60
STAMP: Final = "stamp"
STEPS: Final = "steps"


class Site:
    """A workspace behind the page. Thread-safe. ``prefix``: what the addresses of its pages have after the session's:
    empty or ``/w/NAME``. ``calls``: where calls of its webhooks are kept; None: in the clone."""

    def __init__(self, name: str, prefix: str, open_workspace: HostFactory, calls: CallKeeper | None = None) -> None:
        self.name = name
        self.prefix = prefix
        self._current = CurrentHost(open_workspace)
        root = self._current.open_host().root
        self.clients = ClientFile(root)
        """The programs that may call."""
        self.calls: CallKeeper = calls or WebhookCalls(root)
        self.has_service = calls is None
        """Whether a service of this machine runs its agents, and not the workers of a fleet."""
        self.rates = CallRates()
        self.webhook_agents = CheckedAgents()
        self.chat = ChatSessions(self._current.open_host)
        self.work = LongWork()
        self.unknown_files = UnknownFiles()
        self._executor = ActionExecutor(HostCache(open_workspace))
        self._reading = threading.Lock()
        self._passkeys: tuple[tuple[str, object], list[Passkey]] | None = None
        self._queue: tuple[tuple[str, object], QueueSnapshot] | None = None
        self._recalled: dict[str, tuple[tuple[str, object], Any]] = {}
        self._last_act: tuple[str | None, LastAct | None] | None = None

    def open_host(self) -> Host:
        """The workspace for one request. Raises ``ClearedError`` where it cannot be opened."""
        return self._current.open_host()

    @property
    def style(self) -> BookStyle:
        """How the books are called and written; by their folder and plainly where their settings cannot be read."""
        try:
            business = self.open_host().config.business
        except ClearedError:
            return BookStyle(self.name, UTC, "")
        separators = {"none": "", "comma": ",", "space": "\u00a0", "apostrophe": "’"}
        return BookStyle(
            business.name[:_MAX_TITLE] or self.name,
            ZoneInfo(business.timezone),
            separators.get(business.thousands, find_separator(business.currency)),
        )

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

    def read_shown(self) -> dict[str, str]:
        """What a page that is made now shows, which it is told of no more. Nothing where it cannot be read."""
        with suppress(ClearedError, OSError):
            return {STAMP: self.read_stamp(), STEPS: self.read_steps()}
        return {}

    def read_steps(self) -> str:
        """Another text for each step of a session or of what is worked on."""
        return f"{self.chat.read_stamp()} {self.work.read_stamp()}"

    def read_queue(self) -> QueueSnapshot:
        """The queue of the last commit; read again only when there is another, or other settings are in force."""
        host = self.open_host()
        with host.open_for_reading() as repo:
            key = (repo.read_head(), host.policy_stamp)
        with self._reading:
            if self._queue is None or self._queue[0] != key:
                self._queue = (key, read_queue(host))
            return self._queue[1]

    def recall(self, name: str, read: Callable[[Host], _T]) -> _T:
        """What ``read`` finds in the last commit; read again only when there is another, or other settings are in
        force. ``name``: what it is."""
        host = self.open_host()
        with host.open_for_reading() as repo:
            key = (repo.read_head(), host.policy_stamp)
        kept = self._recalled.get(name)
        if kept is None or kept[0] != key:
            kept = self._recalled[name] = (key, read(host))
        value: _T = kept[1]
        return value

    def read_ahead(self, wait_until_quiet: Callable[[], None]) -> None:
        """Read what the first page of the queue takes, before anybody asks for it; and while nobody waits."""
        with suppress(Exception):  # whoever asks is told
            wait_until_quiet()
            queue = self.read_queue()
            for card in islice(queue.cards, 1):
                wait_until_quiet()
                show_card(queue, card)
            wait_until_quiet()
            self.read_last_act()

    def read_last_act(self) -> LastAct | None:
        """What undo would take back; looked for again only when there is another commit."""
        host = self.open_host()
        with host.open_for_reading() as repo:
            head = repo.read_head()
        with self._reading:
            if self._last_act is None or self._last_act[0] != head:
                self._last_act = (head, read_last_act(host))
            return self._last_act[1]

    def list_passkeys(self) -> list[Passkey]:
        """The passkeys that count here; looked at again only where something has changed."""
        host = self.open_host()
        with host.open_for_reading() as repo:
            key = (repo.read_head(), settings_stamp(host.root))
        with self._reading:
            if self._passkeys is None or self._passkeys[0] != key:
                self._passkeys = (key, read_passkeys(host))
            return self._passkeys[1]

    def find_passkey(self, key: str) -> Passkey | None:
        """The passkey with this key, where it counts here."""
        return next((each for each in self.list_passkeys() if each.key == key), None)

    def find_role(self, session: Session) -> Role:
        """What somebody who was admitted may do: with the passkey, or with the key of whoever serves the page."""
        own = None if session.passkey else own_key(self.open_host().root)
        key = session.passkey or (own.public if own is not None else "")
        return self.recall(f"role of {key}", lambda host: find_role(host, key))

    def admits(self, session: Session) -> bool:
        """Whether somebody who has signed in may see this workspace: with a code, or with a passkey of it."""
        return not session.passkey or self.find_passkey(session.passkey) is not None

    def execute_request(self, request: ActionRequest) -> ActionResult:
        """Carry out what a person chose about cards: for ``act_as_person``."""
        return self._executor.execute_request(request)

    def act_as_person(
        self,
        action: Callable[[], ActionResult],
        shown: Mapping[str, str] | None,
        typed: str | None = None,
        *,
        again: bool = False,
        device: DeviceSigning | None = None,
    ) -> Decided:
        """Carry out what a person asks for; a refusal is a result. ``shown``: digests of what they saw; None for what
        is about nothing that is shown, such as an undo.

        ``typed``: the passphrase of the approval key, where it was asked for. ``again``: ask for it even where it was
        typed a moment ago, as for what changes scripts. ``device``: the passkey that signs it.
        """
        asked: list[str] = []

        def answer(prompt: str) -> str | None:
            asked.append(prompt)
            return typed if len(asked) == 1 else None  # asked a second time, it was wrong

        with _deciding, ExitStack() as stack:
            if again:
                passphrase.forget_secrets()
            if shown is not None:
                stack.enter_context(expecting(shown))
            stack.enter_context(passphrase.asking_with(answer))
            if device is not None:
                stack.enter_context(signing_with(device))
            try:
                result = action()
            except ClearedError as error:
                result = ActionResult(" ".join(str(error).split()), False)
            if device is not None and device.key.wanted is not None and not result.ok:
                return Decided(result, wanted=device.key.wanted)
            is_wrong = len(asked) > 1
            return Decided(
                result,
                needs_passphrase=bool(asked) and (not typed or is_wrong) and not result.ok,
                is_wrong=is_wrong,
            )
