"""The one service process of a workspace: its lock, which a kill releases, its status file, its start and end."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from cleared.base.clock import Clock, SystemClock, format_iso
from cleared.base.errors import WorkspaceError
from cleared.base.programs import own_command
from cleared.base.safe_files import write_atomic
from cleared.workspace.lock import LockHolder, ensure_state_dir
from cleared.workspace.runners import Runner

LOCK_FILE: Final = "service.lock"
STATUS_FILE: Final = "service.json"
START_SECONDS: Final = 30.0

_T = TypeVar("_T")


def service_of(state_dir: Path) -> Runner:
    """The service of the workspace with this state folder."""
    name = f"the service of {state_dir.parent}"
    return Runner(name, state_dir, LOCK_FILE, "up", "cleared status", "cleared down")


@contextmanager
def hold_service_lock(state_dir: Path, clock: Clock) -> Iterator[None]:
    """Be the one service of this workspace. Raises ``BusyError`` where one is up."""
    with service_of(state_dir).hold(clock):
        try:
            yield
        finally:
            (state_dir / STATUS_FILE).unlink(missing_ok=True)


def find_running_service(state_dir: Path) -> LockHolder | None:
    """The service of this workspace, if one is up."""
    return service_of(state_dir).find()


class ServiceStatus:
    """The status of a running service in ``service.json``, written when something changes."""

    def __init__(self, state_dir: Path, clock: Clock) -> None:
        self._path = state_dir / STATUS_FILE
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


def start_in_background(root: Path, state_dir: Path, arguments: Sequence[str]) -> LockHolder:
    """Start the service of this workspace in the background, and wait until it is ready. ``arguments``: its command.

    Raises ``BusyError`` where one is up, ``WorkspaceError`` with its output where it does not come up.
    """
    if (other := find_running_service(state_dir)) is not None:
        raise service_of(state_dir).refuse_second(other)
    ensure_state_dir(state_dir)

    def find_ready_service(process: subprocess.Popen[bytes]) -> LockHolder | None:
        service = find_running_service(state_dir)
        if service is None or service.pid != process.pid or not read_service_status(state_dir).get("ready"):
            return None
        return service

    return launch_command(root, arguments, state_dir / "service.out", find_ready_service, "the service")


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
