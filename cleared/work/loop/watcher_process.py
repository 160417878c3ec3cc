"""The watcher process: forked off the loop, in a session of its own, it runs one job at a time.

It stays from job to job. When the loop is killed it finishes the job that runs, and the next loop collects the result.
The loop writes each job to the watcher's pipe; when that pipe is closed the watcher ends. Its parent, the keeper, only
ends what a killed watcher has left behind: as a subreaper it becomes the parent of all of it.
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

from cleared.base.clock import Clock
from cleared.base.errors import WorkspaceError
from cleared.base.process_identity import is_alive, process_start
from cleared.jobs.records import JobRequest
from cleared.processes import leftovers
from cleared.work.loop.supervisor import JobAssignment, Supervisor, Surroundings

_LENGTH: Final = struct.Struct("<I")
_EXIT_FAULT: Final = 70
"""Exit code of a fault of the program (``EX_SOFTWARE`` of sysexits.h)."""


_Message = tuple[JobRequest, Clock, Surroundings | None]
"""A job as it is sent to the watcher; without its surroundings where they are those of the job before."""


class WatcherProcess:
    """The loop's end of the two pipes to a watcher."""

    def __init__(self) -> None:
        """Fork keeper and watcher. This process must have no other threads. Raises ``WorkspaceError``."""
        self._is_busy = False
        self._surroundings: Surroundings | None = None
        """What the watcher has been sent, besides the request of each job."""
        job_reader, self._job_writer = os.pipe()
        self._end_reader, end_writer = os.pipe()
        self._keeper = os.fork()
        if self._keeper == 0:
            _run_keeper(job_reader, end_writer)
        os.close(job_reader)
        os.close(end_writer)
        number = _read_exactly(self._end_reader, _LENGTH.size)
        if not number:
            raise WorkspaceError("the process that watches over jobs ended at once", remedy="See: cleared doctor.")
        self.pid = _LENGTH.unpack(number)[0]
        self.since = process_start(self.pid) or ""

    def fileno(self) -> int:
        """A descriptor that is readable when the job has ended, or the watcher has."""
        return self._end_reader

    @property
    def is_alive(self) -> bool:
        return is_alive(self.pid, self.since)

    def assign_job(self, assignment: JobAssignment) -> None:
        """Have the watcher run a job. Where it is dead nothing happens; ``wait_ended`` returns then."""
        self._is_busy = True
        surroundings, before = assignment.surroundings, self._surroundings
        is_known = before is not None and all(one is other for one, other in zip(surroundings, before, strict=True))
        self._surroundings = surroundings
        data = pickle.dumps(
            (assignment.request, assignment.clock, None if is_known else surroundings), pickle.HIGHEST_PROTOCOL
        )
        with suppress(BrokenPipeError):
            unsent = memoryview(_LENGTH.pack(len(data)) + data)
            while unsent:
                unsent = unsent[os.write(self._job_writer, unsent) :]

    def has_ended_within(self, seconds: float) -> bool:
        """Wait so long for the end of the job; ``wait_ended`` is still to be called."""
        return bool(select.select([self._end_reader], [], [], seconds)[0])

    def wait_ended(self) -> None:
        """Wait until the job has ended, or the watcher has with all of the job."""
        if not os.read(self._end_reader, 1):
            with suppress(ChildProcessError):
                os.waitpid(self._keeper, 0)
        self._is_busy = False

    def close(self) -> None:
        """Have the watcher end, and wait for it; while it runs a job, have it end afterwards, and do not wait."""
        os.close(self._job_writer)
        os.close(self._end_reader)
        with suppress(ChildProcessError):
            os.waitpid(self._keeper, os.WNOHANG if self._is_busy else 0)


def _run_keeper(job_reader: int, end_writer: int) -> NoReturn:
    """The keeper, in the forked process. It never returns, as the caller's code would then run twice."""
    try:
        job_reader, end_writer = leftovers.detach_process(job_reader, end_writer)
        watcher = os.fork()
        if watcher == 0:
            _run_watcher(job_reader, end_writer)
        os.close(job_reader)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(end_writer, _LENGTH.pack(watcher))
        while os.waitpid(-1, 0)[0] != watcher:
            pass
        leftovers.end_children()  # before this process ends and closes its pipe, which tells the loop
    except BaseException:  # noqa: BLE001
        os._exit(_EXIT_FAULT)
    os._exit(0)


def _run_watcher(job_reader: int, end_writer: int) -> NoReturn:
    """The watcher, in the keeper's child: run job after job until the pipe is closed."""
    try:
        os.setsid()
        leftovers.adopt_orphans()
        # While a job runs the loop writes nothing: what can be read is the end of the pipe.
        supervisor = Supervisor(lambda: bool(select.select([job_reader], [], [], 0)[0]))

        def on_term(number: int, frame: FrameType | None) -> None:
            supervisor.end_requested = True

        signal.signal(signal.SIGTERM, on_term)
        surroundings: Surroundings | None = None
        while (received := _receive_job(job_reader)) is not None:
            request, clock, surroundings = received[0], received[1], received[2] or surroundings
            assert surroundings is not None
            supervisor.run_job(JobAssignment(request, clock, *surroundings))
            supervisor.end_requested = False
            os.write(end_writer, b".")
    except BaseException:  # noqa: BLE001
        os._exit(_EXIT_FAULT)
    os._exit(0)


def _receive_job(job_reader: int) -> _Message | None:
    """The next job, with all that it needs where that is not as it was for the last one; None when the pipe is closed.
    Only this program itself holds the other end."""
    head = _read_exactly(job_reader, _LENGTH.size)
    data = _read_exactly(job_reader, _LENGTH.unpack(head)[0]) if head else b""
    received: _Message | None = pickle.loads(data) if data else None
    return received


def _read_exactly(descriptor: int, count: int) -> bytes:
    """So many bytes; none where the pipe ends before."""
    data = b""
    while len(data) < count:
        more = os.read(descriptor, count - len(data))
        if not more:
            return b""
        data += more
    return data
