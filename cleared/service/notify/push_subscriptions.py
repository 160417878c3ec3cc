"""The phones that have asked for messages about the books of one clone, and when each person was told last.

One file a clone, beside the user's keys and outside of every repository, readable by its owner alone: what a push
service takes in is a secret of the phone, and nobody who can commit adds a phone of theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from cleared.base.clock import Clock
from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import describe_os_error, write_atomic
from cleared.base.short_text import quote_text
from cleared.changes.host import Host
from cleared.service.notify.notifier_state import check_time
from cleared.service.notify.push_key import read_private_file
from cleared.service.notify.push_sending import find_push_obstacle
from cleared.trust.keys import cleared_home, refuse_inside
from cleared.trust.workspace_pin import find_clone_mark
from cleared.workspace.lock import writer_lock

FOLDER: Final = "push"
_MAX_BYTES: Final = 1 << 20
_WAIT_SECONDS: Final = 10.0
_MAX_QUOTED: Final = 400


class Subscription(Struct):
    """One phone. Times are UTC, ISO 8601."""

    endpoint: str
    """The address at its push service."""
    p256dh: str
    auth: str
    """The key and the secret that messages for it are encrypted with; base64url."""
    person: str
    passkey: str
    """The key of the passkey that had signed in; empty after a link of the terminal."""
    place: str
    """What the addresses of the workspace's pages begin with after those of the session."""
    origin: str
    """The page's address."""
    made: str
    due: str = ""
    """When the message that it has not got is sent; empty where it is told next time."""
    attempts: int = 0

    @property
    def id(self) -> str:
        """Twelve hex digits."""
        return hashlib.sha256(self.endpoint.encode()).hexdigest()[:12]


class PushState(Struct):
    """All phones of one clone."""

    phones: list[Subscription] = []
    told: dict[str, str] = {}
    """Person → when a message to them was due last. It is written before one is sent: none is sent twice."""
    last_sent_at: str | None = None
    last_error: str | None = None

    def drop_phones(self, is_dropped: Callable[[Subscription], bool]) -> None:
        """Forget phones, and what was wrong where each that is left was told."""
        left = [phone for phone in self.phones if not is_dropped(phone)]
        if len(left) < len(self.phones) and not any(phone.attempts for phone in left):
            self.last_error = None
        self.phones = left


class PushFile:
    """The file of one clone."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read_state(self) -> PushState:
        """Who asked for messages. Raises ``WorkspaceError`` where the file cannot be read, or is open to others."""
        path = self._path(find_clone_mark(self._root))
        if not path.exists():
            return PushState()
        data = read_private_file(path, _MAX_BYTES, "the addresses of your phones")
        try:
            state = msgspec.json.decode(data, type=PushState)
            times = [time for phone in state.phones for time in (phone.made, phone.due) if time]
            for time in (*times, *state.told.values()):
                check_time(time)
        except (msgspec.MsgspecError, ValueError):
            raise WorkspaceError(
                "the file of the phones that get messages is damaged",
                place=Place(str(path)),
                remedy="Delete it, and have each phone ask for messages again.",
            ) from None
        return state

    @contextmanager
    def changing(self, clock: Clock, wait_seconds: float = _WAIT_SECONDS) -> Iterator[PushState]:
        """Change what is in the file: it is on the disk when the block ends without an error.

        Raises ``BusyError`` where others change it for so long, ``WorkspaceError`` where it cannot be read or written.
        """
        refuse_inside(self._root, FOLDER)
        mark = find_clone_mark(self._root, make=True)
        path = self._path(mark)
        try:
            cleared_home().mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise WorkspaceError(f"{cleared_home()} cannot be made: {describe_os_error(error)}") from None
        with writer_lock(path.parent, wait_seconds, "messages to phones", clock=clock, name=f"{mark}.lock"):
            state = self.read_state()
            before = msgspec.json.encode(state)
            yield state
            if (data := msgspec.json.encode(state)) != before:
                write_atomic(path, data + b"\n", mode=0o600)

    def status_data(self) -> dict[str, Any]:
        """For ``cleared status``: how many phones, when one was told last, the last error."""
        try:
            state = self.read_state()
        except WorkspaceError as error:
            return {"phones": 0, "last_sent_at": None, "last_error": " ".join(str(error).split())}
        return {
            "phones": len(state.phones),
            "last_sent_at": state.last_sent_at,
            "last_error": state.last_error,
        }

    def _path(self, mark: str) -> Path:
        return cleared_home() / FOLDER / f"{mark or '-'}.json"


def phones_trouble(host: Host, state: Mapping[str, Any]) -> list[str]:
    """What a person should look at, of ``PushFile.status_data``; empty is healthy."""
    settings = host.config.notifications
    if not settings.push:
        return []
    error = state["last_error"]
    cause = find_push_obstacle(settings) or (error and quote_text(error, _MAX_QUOTED))
    return [f"phones are not told what waits: {cause}"] if cause else []
