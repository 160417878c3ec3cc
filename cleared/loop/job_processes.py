"""Ending all processes of a job: by session, by what they were given. Linux; elsewhere what process groups can say."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from cleared.workspace.processes import PARENT, SESSION, STATE, read_environment, read_stat

FOLDER_VARIABLE: Final = "CLEARED_JOB_FOLDER"
"""Set in the environment of every job, to its own folder: which job it is, of whichever loop."""
_PR_SET_CHILD_SUBREAPER: Final = 36


def adopt_orphans() -> None:
    """Become the parent of whatever is left behind below this process, so that it can be found and ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def list_job_processes(scratch: Path, session: int) -> list[int]:
    """The live processes of a job: those of its session, and those that were given its folder, wherever they went.

    Ids are not enough: a loop in another directory may have a job of the same.
    """
    marker = os.fsencode(f"{FOLDER_VARIABLE}={scratch}")
    found = []
    for pid in _all_pids():
        fields = read_stat(pid)
        if fields is None or fields[STATE] in "ZX":
            continue
        if int(fields[SESSION]) == session or marker in read_environment(pid):
            found.append(pid)
    return [pid for pid in found if pid not in (os.getpid(), session)]


def end_children() -> None:
    """End every child of this process, and what becomes its child by that; ten seconds at the most."""
    for _ in range(2000):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in list_orphans():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def list_orphans() -> list[int]:
    """The live processes that have become children of this one."""
    mine = str(os.getpid())
    return [
        pid for pid in _all_pids() if (found := read_stat(pid)) and found[PARENT] == mine and found[STATE] not in "ZX"
    ]


def end_job_processes(scratch: Path, session: int, *, group: int | None = None) -> None:
    """End every process of a job but the one that watches over it; those that come meanwhile too."""
    if group is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for _ in range(20):
        left = list_job_processes(scratch, session)
        if session == os.getpid():
            left += [pid for pid in list_orphans() if pid not in left]
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _all_pids() -> Iterator[int]:
    if sys.platform == "linux":
        with os.scandir("/proc") as entries:
            yield from [int(entry.name) for entry in entries if entry.name.isdigit()]
