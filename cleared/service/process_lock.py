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
from cleared.safe_files import write_atomic
from cleared.workspace.lock import LockHolder, ensure_state_dir, read_holder, writer_lock
from cleared.workspace.processes import is_alive, process_start
from cleared.workspace.programs import own_command

LOCK_FILE: Final = "service.lock"
STATUS_FILE: Final = "service.json"
START_SECONDS: Final = 30.0

_T = TypeVar("_T")


@contextmanager
def hold_service_lock(state_dir: Path, clock: Clock) -> Iterator[None]:
    """Be the one service of this workspace. Raises ``BusyError`` where there is one."""
    try:
        with writer_lock(state_dir, 0.0, "up", clock=clock, name=LOCK_FILE):
            try:
                yield
            finally:
                (state_dir / STATUS_FILE).unlink(missing_ok=True)
    except BusyError:
        other = find_running_service(state_dir)
        if other is None:
            raise
        raise _already_running_error(state_dir, other) from None


def _already_running_error(state_dir: Path, other: LockHolder) -> BusyError:
    return BusyError(
        f"the service of {state_dir.parent} is up already: process {other.pid}, since {other.since}",
        remedy="See: cleared status. Stop it with: cleared down.",
    )


def find_running_service(state_dir: Path) -> LockHolder | None:
    """The service of this workspace, if one is up."""
    return read_holder(state_dir, LOCK_FILE)


class ServiceStatus:
    """What a service says of itself to whoever asks: ``service.json``, written when something changes."""

    def __init__(self, state_dir: Path, clock: Clock) -> None:
        self._path, self._clock = state_dir / STATUS_FILE, clock
        self._data: dict[str, Any] = {"pid": os.getpid(), "since": format_iso(clock.now()), "ready": False}

    def current_value(self, name: str) -> Any:
        """What it says now."""
        return self._data.get(name)

    @property
    def file_missing(self) -> bool:
        """Whether what it said was deleted."""
        return not self._path.exists()

    def update_fields(self, **fields: Any) -> None:
        """Set these fields."""
        if all(self._data.get(key) == value for key, value in fields.items()) and not self.file_missing:
            return
        self._data |= fields
        with suppress(WorkspaceError):  # a full disk: the service goes on, only its status is older
            write_atomic(self._path, json.dumps(self._data, default=str).encode(), fsync=False)


def read_service_status(state_dir: Path) -> Mapping[str, Any]:
    """What the running service says of itself; empty where none is up, or it has said nothing yet."""
    other = find_running_service(state_dir)
    if other is None:
        return {}
    try:
        data = json.loads((state_dir / STATUS_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) and data.get("pid") == other.pid else {}


def stop_service(state_dir: Path, *, now: bool, wait: float, clock: Clock | None = None) -> LockHolder | None:
    """Have the service end after the run that is on (``now``: break that off), and wait until it has; who it was.

    None where none was up. Raises ``BusyError`` where it still runs after ``wait`` seconds.
    """

    def still_running_error(found: LockHolder) -> BusyError:
        return BusyError(
            f"the service (process {found.pid}) has not ended within {wait:g} seconds: its run goes on",
            remedy="Wait, or break the run off, with nothing of it done: cleared down --now.",
        )

    return end_process(lambda: find_running_service(state_dir), still_running_error, now=now, wait=wait, clock=clock)


def end_process(
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
    _send_sigterm(found.pid)
    told_again = not now
    # It lets go of its lock before its last acts: whoever starts another one, or looks for it, must not meet it still.
    while (holds := find() == found) or (since is not None and is_alive(found.pid, since)):
        if holds and not told_again and clock.monotonic() > until - wait + 0.1:
            told_again = True
            _send_sigterm(found.pid)
        if clock.monotonic() >= until:
            raise late(found)
        time.sleep(0.02)
    return found


def _send_sigterm(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def start_in_background(root: Path, state_dir: Path, clock: Clock | None = None) -> LockHolder:
    """Start the service of this workspace in the background, and wait until it is ready.

    Raises ``BusyError`` where one is up, ``WorkspaceError`` where it does not come up, with what it said.
    """
    if (other := find_running_service(state_dir)) is not None:
        raise _already_running_error(state_dir, other)
    ensure_state_dir(state_dir)

    def find_ready_service(process: subprocess.Popen[bytes]) -> LockHolder | None:
        found = find_running_service(state_dir)
        return (
            found
            if found is not None and found.pid == process.pid and read_service_status(state_dir).get("ready")
            else None
        )

    return launch_command(root, ["up"], state_dir / "service.out", find_ready_service, "the service", clock)


def launch_command(
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
