"""What may take longer than somebody waits for a page: runs and large files. It is worked on in a thread, and its page
says how far it is; who leaves that finds it again."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from cleared.base.errors import BusyError, UsageError

if TYPE_CHECKING:
    from starlette.responses import Response

Finish = Callable[[Any], "Response"]
"""Makes the page of what came of it, for the ``PageRequest`` of whoever asks."""

MAX_ACTIVE: Final = 8
"""Of one workspace at a time."""
_KNOWN: Final = 50
"""Of those that ended, the newest can be looked at."""


class Work(Struct):
    """One piece of it. ``title`` says what it is."""

    id: str
    title: str
    began: float
    calls: int = 0
    """Primitives that the script has called."""
    entries: int = 0
    """Of them, those that post an entry."""
    finish: Finish | None = None
    error: BaseException | None = None
    has_ended: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds(self) -> int:
        """How long it goes on."""
        return int(time.monotonic() - self.began)

    def count_call(self, name: str) -> None:
        """Take note of a primitive that was called."""
        self.calls += 1
        self.entries += name.startswith("journal_add")

    def answer(self, page: Any) -> Response:
        """The page of what came of it. Raises what it failed with."""
        if self.error is not None:
            raise self.error
        assert self.finish is not None
        return self.finish(page)


class LongWork:
    """What is worked on for one workspace. Thread-safe. Nothing of it is on the disk: a run stands in the list of runs,
    as any other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works: dict[str, Work] = {}

    def begin(self, title: str, act: Callable[[Work], Finish]) -> Work:
        """Work in the background. Raises ``BusyError`` where much is worked on already."""
        with self._lock:
            active = self.list_active()
            if len(active) >= MAX_ACTIVE:
                raise BusyError(f"{len(active)} other things are at work", remedy="Wait until one has ended.")
            for each in [work for work in self._works.values() if work.has_ended.is_set()][:-_KNOWN]:
                del self._works[each.id]
            work = Work(secrets.token_urlsafe(9), title, time.monotonic())
            self._works = {**self._works, work.id: work}
        threading.Thread(target=_run, args=(work, act), name="long-work", daemon=True).start()
        return work

    def list_active(self) -> list[Work]:
        """What goes on, oldest first."""
        return [work for work in self._works.values() if not work.has_ended.is_set()]

    def find(self, work_id: str) -> Work:
        """One of them. Raises ``UsageError`` where it is not known."""
        work = self._works.get(work_id)
        if work is None:
            raise UsageError("nothing is known of that any more", remedy="Runs lists what has run.")
        return work

    def read_stamp(self) -> str:
        """Another text where something is further than before."""
        return " ".join(f"{work.id}-{work.seconds}" for work in self.list_active())


def _run(work: Work, act: Callable[[Work], Finish]) -> None:
    try:
        work.finish = act(work)
    except BaseException as error:  # noqa: BLE001  (raised to whoever asks what came of it)
        work.error = error
    finally:
        work.has_ended.set()
