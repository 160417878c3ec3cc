"""Finds and ends the processes of a job. Linux; elsewhere only process groups can be ended.

A process number alone may belong to a stranger by the time it is used. So a process is ended only while its number and
its start time are those that were looked at.
"""

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

from cleared.base.process_identity import PARENT, SESSION, START, has_ended, read_environment, read_stat

FOLDER_VARIABLE: Final = "CLEARED_JOB_FOLDER"
"""Set in the environment of every job to its scratch folder, which no other job of any loop has."""
_PR_SET_CHILD_SUBREAPER: Final = 36
_PAUSE: Final = 0.005

Process = tuple[int, str]
"""Number and start time, which together identify one process for ever."""


def adopt_orphans() -> None:
    """Become the parent of every process that is orphaned below this one, so that it can be found and ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def list_job_processes(scratch: Path, session: int) -> list[Process]:
    """The live processes of a job: those in its session, and those that have its folder in their environment.

    Without the process that leads the session, and without this one.
    """
    marker = os.fsencode(f"{FOLDER_VARIABLE}={scratch}")
    return [
        (pid, fields[START])
        for pid, fields in _live_processes()
        if pid not in (os.getpid(), session) and (int(fields[SESSION]) == session or marker in read_environment(pid))
    ]


def list_orphans() -> list[Process]:
    """The live children of this process."""
    parent = str(os.getpid())
    return [(pid, fields[START]) for pid, fields in _live_processes() if fields[PARENT] == parent]


def end_children() -> None:
    """End every child of this process, and the orphans that become its children; takes ten seconds at most."""
    for _ in range(2000):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for process in list_orphans():
            _kill_process(process)
        time.sleep(_PAUSE)


def end_job_processes(scratch: Path, session: int) -> None:
    """End every process of a job but the one that leads its session, and those that they start meanwhile."""
    for _ in range(20):
        processes = list_job_processes(scratch, session)
        if not processes:
            return
        for process in processes:
            _kill_process(process)
        time.sleep(_PAUSE)


def _kill_process(process: Process) -> None:
    """Kill one process, unless it has ended and its number is a stranger's by now."""
    pid, start = process
    if sys.platform != "linux":
        return
    with suppress(OSError):  # it has ended, or is another user's
        descriptor = os.pidfd_open(pid)
        try:
            fields = read_stat(pid)  # of the process that the descriptor holds, as long as that lives
            if fields is not None and fields[START] == start:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _live_processes() -> Iterator[tuple[int, list[str]]]:
    """Number and ``stat`` fields of each process that is not dead."""
    if sys.platform == "linux":
        with os.scandir("/proc") as entries:
            numbers = [int(entry.name) for entry in entries if entry.name.isdigit()]
        for pid in numbers:
            fields = read_stat(pid)
            if fields is not None and not has_ended(fields):
                yield pid, fields
