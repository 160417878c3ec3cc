"""The process that watches over jobs: a fork of the loop, alone in a session of its own, with one job at a time.

It stays from job to job, and outlives a loop that is killed by the job that is on: that one's result is found when the
loop is started again. A job is begun by what is written to its pipe; when the pipe is closed it ends. Its parent, the
keeper, does nothing but end what a watcher that was killed has left behind: whoever it was, it becomes its child.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from cleared.errors import WorkspaceError
from cleared.loop import job_processes
from cleared.loop.supervisor import JobAssignment, Supervisor
from cleared.workspace.processes import is_alive, process_start

_LENGTH: Final = struct.Struct("<I")
_FAILED: Final = 70
"""Exit code of a fault of the program (``EX_SOFTWARE`` of sysexits.h)."""


class WatcherProcess:
    """Such a process, for the loop."""

    def __init__(self) -> None:
        """Fork it. This process must have no other threads. Raises ``WorkspaceError`` where it cannot be had."""
        self._busy = False
        waits, self._go = os.pipe()
        self._ended, says = os.pipe()
        self._keeper = os.fork()
        if self._keeper == 0:
            _run_keeper(waits, says)
        os.close(waits)
        os.close(says)
        told = _read_exactly(self._ended, _LENGTH.size)
        if not told:
            raise WorkspaceError("the process that watches over jobs ended at once", remedy="See: cleared doctor.")
        self.pid = _LENGTH.unpack(told)[0]
        self.since = process_start(self.pid) or ""

    def fileno(self) -> int:
        """Readable when the job has ended, or the process has."""
        return self._ended

    @property
    def is_alive(self) -> bool:
        return is_alive(self.pid, self.since)

    def assign_job(self, work: JobAssignment) -> None:
        """Have it do a job. Where it is gone, nothing happens; that is seen when one waits for the job."""
        self._busy = True
        data = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
        with suppress(BrokenPipeError):
            left = memoryview(_LENGTH.pack(len(data)) + data)
            while left:
                left = left[os.write(self._go, left) :]

    def has_ended_within(self, seconds: float) -> bool:
        """Wait so long for the job to end, and leave it to ``ended`` to be told of it."""
        return bool(select.select([self._ended], [], [], seconds)[0])

    def wait_ended(self) -> None:
        """Wait until the job has ended, or the process has."""
        if not os.read(self._ended, 1):
            with suppress(ChildProcessError):
                os.waitpid(self._keeper, 0)
        self._busy = False

    def close(self) -> None:
        """Have it end, and wait until it has; where a job is on, have it end after that, and do not wait."""
        os.close(self._go)
        os.close(self._ended)
        with suppress(ChildProcessError):
            os.waitpid(self._keeper, os.WNOHANG if self._busy else 0)


def _run_keeper(waits: int, says: int) -> NoReturn:
    """In the new process, the keeper: nothing above may go on, it would be the loop twice."""
    try:
        waits, says = _detach_process(waits, says)
        watcher = os.fork()
        if watcher == 0:
            _run_watcher(waits, says)
        os.close(waits)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(says, _LENGTH.pack(watcher))
        while os.waitpid(-1, 0)[0] != watcher:
            pass
        job_processes.end_children()  # before its pipe is closed: for the loop, the job is on until then
    except BaseException:  # noqa: BLE001
        os._exit(_FAILED)
    os._exit(0)


def _run_watcher(waits: int, says: int) -> NoReturn:
    """In its child, the process that watches."""
    try:
        os.setsid()
        job_processes.adopt_orphans()
        watch = Supervisor()

        def on_term(number: int, frame: FrameType | None) -> None:
            watch.told = True

        signal.signal(signal.SIGTERM, on_term)
        while (work := _receive_job(waits)) is not None:
            watch.run_job(work)
            watch.told = False
            os.write(says, b".")
    except BaseException:  # noqa: BLE001
        os._exit(_FAILED)
    os._exit(0)


def _receive_job(waits: int) -> JobAssignment | None:
    """The next job; None where there is none to come. The other end is this program itself."""
    head = _read_exactly(waits, _LENGTH.size)
    data = _read_exactly(waits, _LENGTH.unpack(head)[0]) if head else b""
    found: JobAssignment | None = pickle.loads(data) if data else None
    return found


def _read_exactly(descriptor: int, count: int) -> bytes:
    """So many bytes; none at the end, or where it is cut short."""
    data = b""
    while len(data) < count:
        more = os.read(descriptor, count - len(data))
        if not more:
            return b""
        data += more
    return data


def _detach_process(*keep: int) -> tuple[int, ...]:
    """Alone: another session, no terminal, no files of the loop. Gives the new numbers of those that are kept."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    top = max(keep) + 1
    copies = [os.dup2(descriptor, top + n, inheritable=False) for n, descriptor in enumerate(keep)]
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    # The loop's lock is one of them: it must be free when the loop is gone.
    os.closerange(3, top)
    os.closerange(top + len(copies), 1 << 16)
    job_processes.adopt_orphans()
    return tuple(copies)
