"""Runners: processes of which one at a time works for a workspace. They are found, held and ended in one way."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import Clock, SystemClock
from cleared.base.errors import BusyError
from cleared.base.process_identity import is_alive, process_start
from cleared.base.safe_files import write_atomic
from cleared.workspace.lock import LockHolder, read_holder, writer_lock

_POLL_SECONDS: Final = 0.02
_SECOND_SIGNAL_SECONDS: Final = 0.1


class Ending(Struct, frozen=True):
    """A runner's process that was asked to end. ``since``: when it was started, None where it has ended already."""

    holder: LockHolder
    since: str | None


class Runner(Struct, frozen=True):
    """A process of which one at a time holds a lock, as long as it runs."""

    name: str
    """In words, such as ``the loop``."""
    folder: Path
    """Where its lock is."""
    lock: str
    command: str
    """What the lock file says; other commands may hold the same lock for a moment."""
    show: str
    """The command that says what it does."""
    stop: str
    """The command that ends it."""
    stop_file: Path | None = None
    """Has it end after what is on; a SIGTERM then ends that, too. A runner without one is asked by a first SIGTERM, and
    a second one ends what is on."""

    def find(self) -> LockHolder | None:
        """The process, if one runs."""
        holder = read_holder(self.folder, self.lock)
        return holder if holder is not None and holder.what == self.command else None

    def is_asked_to_end(self) -> bool:
        """Whether the stop file is there."""
        return self.stop_file is not None and self.stop_file.exists()

    def forget_request(self) -> None:
        """It begins: what was asked of one that has ended asks nothing of it."""
        if self.stop_file is not None:
            self.stop_file.unlink(missing_ok=True)

    def refuse_second(self, holder: LockHolder) -> BusyError:
        """The error that one runs already."""
        return BusyError(
            f"{self.name} runs already: process {holder.pid}, since {holder.since}; nothing was started",
            remedy=f"See: {self.show}. Stop it with: {self.stop}.",
        )

    @contextmanager
    def hold(self, clock: Clock, activity: str = "", wait: float = 0.0) -> Iterator[None]:
        """Be the one. ``activity``: of another command that does something in its place for a moment.

        Raises ``BusyError`` where one runs already.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(
                    writer_lock(self.folder, wait, activity or self.command, clock=clock, name=self.lock)
                )
            except BusyError:
                holder = self.find()
                if holder is None:
                    raise
                raise self.refuse_second(holder) from None
            yield

    def ask_to_end(self, *, now: bool) -> Ending | None:
        """Ask the process to end after what is on, or ``now`` with that; None where none runs."""
        holder, since = self.find(), None
        while holder is not None:
            since = process_start(holder.pid)
            if (holder_now := self.find()) == holder:  # it held its lock before and after: ``since`` is its own start
                break
            holder = holder_now
        if holder is None:
            return None
        if self.stop_file is not None:
            write_atomic(self.stop_file, b"", fsync=False)
            if now:
                _send_sigterm(holder.pid)
            return Ending(holder, since)
        _send_sigterm(holder.pid)
        until = time.monotonic() + _SECOND_SIGNAL_SECONDS
        while now and self.find() == holder:
            if time.monotonic() > until:
                _send_sigterm(holder.pid)
                break
            time.sleep(_POLL_SECONDS)
        return Ending(holder, since)

    def wait_ended(self, ending: Ending, wait: float, clock: Clock | None = None) -> None:
        """Wait until it is gone. Raises ``BusyError`` where it still runs after ``wait`` seconds."""
        clock = clock or SystemClock()
        until = clock.monotonic() + wait
        # It releases its lock a moment before it exits, so wait for the exit too: another one may be started next.
        while self.find() == ending.holder or (ending.since is not None and is_alive(ending.holder.pid, ending.since)):
            if clock.monotonic() >= until:
                raise BusyError(
                    f"{self.name} (process {ending.holder.pid}) has not ended within {wait:g} seconds: what is on goes "
                    "on, and nothing further begins",
                    remedy=f"Wait, or end that too: {self.stop} --now.",
                )
            time.sleep(_POLL_SECONDS)

    def end(self, *, now: bool, wait: float, clock: Clock | None = None) -> LockHolder | None:
        """``ask_to_end`` and ``wait_ended``; which process it was, None where none ran."""
        ending = self.ask_to_end(now=now)
        if ending is None:
            return None
        self.wait_ended(ending, wait, clock)
        return ending.holder


def _send_sigterm(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
