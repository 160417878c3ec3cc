"""The service as a process: at most one for a workspace, found by a lock that a kill lets go of."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from cleared.clock import Clock, SystemClock, format_iso
from cleared.errors import BusyError, WorkspaceError
from cleared.workspace.lock import LockHolder, ensure_state_dir, read_holder, writer_lock
from cleared.workspace.processes import is_alive, process_start
from cleared.workspace.programs import own_command
from cleared.workspace.safe_files import write_atomic

LOCK: Final = "service.lock"
STATE: Final = "service.json"
START_SECONDS: Final = 30.0

_T = TypeVar("_T")


@contextmanager
def serving(state_dir: Path, clock: Clock) -> Iterator[None]:
    """Be the one service of this workspace. Raises ``BusyError`` where there is one."""
    try:
        with writer_lock(state_dir, 0.0, "up", clock=clock, name=LOCK):
            try:
                yield
            finally:
                (state_dir / STATE).unlink(missing_ok=True)
    except BusyError:
        other = running(state_dir)
        if other is None:
            raise
        raise _up_already(state_dir, other) from None


def _up_already(state_dir: Path, other: LockHolder) -> BusyError:
    return BusyError(
        f"the service of {state_dir.parent} is up already: process {other.pid}, since {other.since}",
        remedy="See: cleared status. Stop it with: cleared down.",
    )


def running(state_dir: Path) -> LockHolder | None:
    """The service of this workspace, if one is up."""
    return read_holder(state_dir, LOCK)


class Board:
    """What a service says of itself to whoever asks: ``service.json``, written when something changes."""

    def __init__(self, state_dir: Path, clock: Clock) -> None:
        self._path, self._clock = state_dir / STATE, clock
        self._data: dict[str, Any] = {"pid": os.getpid(), "since": format_iso(clock.now()), "ready": False}

    def field(self, name: str) -> Any:
        """What it says now."""
        return self._data.get(name)

    @property
    def lost(self) -> bool:
        """Whether what it said was deleted."""
        return not self._path.exists()

    def say(self, **fields: Any) -> None:
        """Set these fields."""
        if all(self._data.get(key) == value for key, value in fields.items()) and not self.lost:
            return
        self._data |= fields
        with suppress(WorkspaceError):  # a full disk: the service goes on, only its status is older
            write_atomic(self._path, json.dumps(self._data, default=str).encode(), fsync=False)


def board(state_dir: Path) -> Mapping[str, Any]:
    """What the running service says of itself; empty where none is up, or it has said nothing yet."""
    other = running(state_dir)
    if other is None:
        return {}
    try:
        data = json.loads((state_dir / STATE).read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) and data.get("pid") == other.pid else {}


def stop(state_dir: Path, *, now: bool, wait: float, clock: Clock | None = None) -> LockHolder | None:
    """Have the service end after the run that is on (``now``: break that off), and wait until it has; who it was.

    None where none was up. Raises ``BusyError`` where it still runs after ``wait`` seconds.
    """

    def late(found: LockHolder) -> BusyError:
        return BusyError(
            f"the service (process {found.pid}) has not ended within {wait:g} seconds: its run goes on",
            remedy="Wait, or break the run off, with nothing of it done: cleared down --now.",
        )

    return end(lambda: running(state_dir), late, now=now, wait=wait, clock=clock)


def end(
    find: Callable[[], LockHolder | None], late: Callable[[LockHolder], BusyError], *, now: bool, wait: float,
    clock: Clock | None = None,
) -> LockHolder | None:  # fmt: skip
    """Tell the process that ``find`` finds to end, with ``now`` twice, and wait until it is gone; who it was."""
    clock = clock or SystemClock()
    found, since = find(), None
    while found is not None:
        since = process_start(found.pid)
        if (again := find()) == found:  # it held its lock before and after: that time of beginning is its own
            break
        found = again
    if found is None:
        return None
    until = clock.monotonic() + wait
    _tell(found.pid)
    told_again = not now
    # It lets go of its lock before its last acts: whoever starts another one, or looks for it, must not meet it still.
    while (holds := find() == found) or (since is not None and is_alive(found.pid, since)):
        if holds and not told_again and clock.monotonic() > until - wait + 0.1:
            told_again = True
            _tell(found.pid)
        if clock.monotonic() >= until:
            raise late(found)
        time.sleep(0.02)
    return found


def _tell(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def detach(root: Path, state_dir: Path, clock: Clock | None = None) -> LockHolder:
    """Start the service of this workspace in the background, and wait until it is ready.

    Raises ``BusyError`` where one is up, ``WorkspaceError`` where it does not come up, with what it said.
    """
    if (other := running(state_dir)) is not None:
        raise _up_already(state_dir, other)
    ensure_state_dir(state_dir)

    def ready(process: subprocess.Popen[bytes]) -> LockHolder | None:
        found = running(state_dir)
        return found if found is not None and found.pid == process.pid and board(state_dir).get("ready") else None

    return launch(root, ["up"], state_dir / "service.out", ready, "the service", clock)


def launch(
    root: Path, arguments: Sequence[str], said: Path, ready: Callable[[subprocess.Popen[bytes]], _T | None], what: str,
    clock: Clock | None = None,
) -> _T:  # fmt: skip
    """Start a command of this program in the background, and wait until ``ready`` has something to say of it.

    ``said``: where its output goes. Raises ``WorkspaceError`` where it does not come up, with what it said.
    """
    clock = clock or SystemClock()
    with said.open("wb") as out:
        process = subprocess.Popen(
            own_command("-C", str(root), *arguments), stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True, cwd=root,
        )  # fmt: skip
    until = clock.monotonic() + START_SECONDS
    while clock.monotonic() < until:
        gone = process.poll()
        found = ready(process)
        if found is not None:
            return found
        if gone is not None:
            text = said.read_text("utf-8", "replace").strip().removeprefix("cleared: ")
            raise WorkspaceError(f"{what} did not come up: {text or f'it ended with {gone}'}")
        time.sleep(0.02)
    process.terminate()
    raise WorkspaceError(f"{what} did not come up in time", remedy=f"See what it said: {said}.")
