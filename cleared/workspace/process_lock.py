"""The one service process of a workspace: its lock, which a kill releases, its status file, its start and end."""

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

from cleared.base.clock import Clock, SystemClock, format_iso
from cleared.base.errors import BusyError, WorkspaceError
from cleared.base.process_identity import is_alive, process_start
from cleared.base.programs import own_command
from cleared.base.safe_files import write_atomic
from cleared.workspace.lock import LockHolder, ensure_state_dir, read_holder, writer_lock

LOCK_FILE: Final = "service.lock"
STATUS_FILE: Final = "service.json"
START_SECONDS: Final = 30.0

_T = TypeVar("_T")


@contextmanager
def hold_service_lock(state_dir: Path, clock: Clock) -> Iterator[None]:
    """Hold the lock of the one service of this workspace. Raises ``BusyError`` where another process holds it."""
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
    """The status of a running service in ``service.json``, written when something changes."""

    def __init__(self, state_dir: Path, clock: Clock) -> None:
        self._path, self._clock = state_dir / STATUS_FILE, clock
        self._data: dict[str, Any] = {"pid": os.getpid(), "since": format_iso(clock.now()), "ready": False}

    def current_value(self, name: str) -> Any:
        """The present value of a field; None where it was not set."""
        return self._data.get(name)

    @property
    def file_missing(self) -> bool:
        """Whether the file was deleted."""
        return not self._path.exists()

    def update_fields(self, **fields: Any) -> None:
        """Set these fields, and write the file if that changes anything."""
        if all(self._data.get(key) == value for key, value in fields.items()) and not self.file_missing:
            return
        self._data |= fields
        with suppress(WorkspaceError):  # a full disk: the service goes on, only its status is older
            write_atomic(self._path, json.dumps(self._data, default=str).encode(), fsync=False)


def read_service_status(state_dir: Path) -> Mapping[str, Any]:
    """The status fields of the running service; empty where none is up, or it has written none yet."""
    other = find_running_service(state_dir)
    if other is None:
        return {}
    try:
        data = json.loads((state_dir / STATUS_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) and data.get("pid") == other.pid else {}


def stop_service(state_dir: Path, *, now: bool, wait: float, clock: Clock | None = None) -> LockHolder | None:
    """End the service after the current run (``now``: break it off), and wait until it has ended.

    Returns which process it was; None where none was up. Raises ``BusyError`` where it still runs after ``wait``
    seconds.
    """

    def still_running_error(holder: LockHolder) -> BusyError:
        return BusyError(
            f"the service (process {holder.pid}) has not ended within {wait:g} seconds: its run goes on",
            remedy="Wait, or break the run off, with nothing of it done: cleared down --now.",
        )

    return end_process(lambda: find_running_service(state_dir), still_running_error, now=now, wait=wait, clock=clock)


def end_process(
    find: Callable[[], LockHolder | None],
    late: Callable[[LockHolder], BusyError],
    *,
    now: bool,
    wait: float,
    clock: Clock | None = None,
) -> LockHolder | None:
    """Signal the process that ``find`` returns to end (``now``: twice), and wait until it is gone.

    Returns which process it was; None where ``find`` returned none. Raises ``late`` where it still runs after ``wait``
    seconds.
    """
    clock = clock or SystemClock()
    holder, since = find(), None
    while holder is not None:
        since = process_start(holder.pid)
        if (holder_now := find()) == holder:  # it held its lock before and after, so ``since`` is its own start
            break
        holder = holder_now
    if holder is None:
        return None
    until = clock.monotonic() + wait
    _send_sigterm(holder.pid)
    all_signals_sent = not now
    # It releases its lock a moment before it exits, so wait for the exit too: another one may be started next.
    while (holds := find() == holder) or (since is not None and is_alive(holder.pid, since)):
        if holds and not all_signals_sent and clock.monotonic() > until - wait + 0.1:
            all_signals_sent = True
            _send_sigterm(holder.pid)
        if clock.monotonic() >= until:
            raise late(holder)
        time.sleep(0.02)
    return holder


def _send_sigterm(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def start_in_background(
    root: Path, state_dir: Path, arguments: Sequence[str] = ("up",), clock: Clock | None = None
) -> LockHolder:
    """Start the service of this workspace in the background, and wait until it is ready. ``arguments``: its command.

    Raises ``BusyError`` where one is up, ``WorkspaceError`` with its output where it does not come up.
    """
    if (other := find_running_service(state_dir)) is not None:
        raise _already_running_error(state_dir, other)
    ensure_state_dir(state_dir)

    def find_ready_service(process: subprocess.Popen[bytes]) -> LockHolder | None:
        service = find_running_service(state_dir)
        if service is None or service.pid != process.pid or not read_service_status(state_dir).get("ready"):
            return None
        return service

    return launch_command(root, arguments, state_dir / "service.out", find_ready_service, "the service", clock)


def launch_command(
    root: Path,
    arguments: Sequence[str],
    output: Path,
    find_ready: Callable[[subprocess.Popen[bytes]], _T | None],
    name: str,
    clock: Clock | None = None,
) -> _T:
    """Start a command of this program in the background, and wait until it is ready.

    ``output``: the file for its output. ``find_ready`` returns None until the process is ready, then the result of this
    function. ``name``: of the process, for errors. Raises ``WorkspaceError`` with the output where it does not come up.
    """
    clock = clock or SystemClock()
    with output.open("wb") as out:
        process = subprocess.Popen(
            own_command("-C", str(root), *arguments),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=root,
        )
    until = clock.monotonic() + START_SECONDS
    while clock.monotonic() < until:
        exit_code = process.poll()
        result = find_ready(process)
        if result is not None:
            return result
        if exit_code is not None:
            text = output.read_text("utf-8", "replace").strip().removeprefix("cleared: ")
            raise WorkspaceError(f"{name} did not come up: {text or f'it ended with {exit_code}'}")
        time.sleep(0.02)
    process.terminate()
    raise WorkspaceError(f"{name} did not come up in time", remedy=f"See what it said: {output}.")
