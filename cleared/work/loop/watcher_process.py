"""The watcher process: forked off the loop, in a session of its own, it runs one job at a time.

It stays from job to job. When the loop is killed it finishes the job that runs, and the next loop collects the result.
The loop sends each job through a pipe; when that is closed the watcher ends. Its parent, the keeper, only ends what a
killed watcher has left behind: as a subreaper it becomes the parent of all of it, and the loop's pipe ends with it.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from cleared.base.clock import Clock
from cleared.base.errors import WorkspaceError
from cleared.base.process_identity import is_alive, process_start
from cleared.base.programs import fork_process
from cleared.jobs.records import JobRequest
from cleared.processes import leftovers
from cleared.processes.message_pipe import MessagePipe
from cleared.work.loop.supervisor import JobAssignment, Supervisor, Surroundings

_KEPT: Final = 3
"""The descriptor that keeper and watcher keep."""
_EXIT_FAULT: Final = 70
"""Exit code of a fault of the program (EX_SOFTWARE of sysexits.h)."""


_Message = tuple[JobRequest, Clock, Surroundings | None]
"""A job as it is sent to the watcher; without its surroundings where they are those of the job before."""


class WatcherProcess:
    """The loop's end of the pipe to a watcher."""

    def __init__(self) -> None:
        """Fork keeper and watcher. This process must have no other threads. Raises ``WorkspaceError``."""
        self._is_busy = False
        self._surroundings: Surroundings | None = None
        """What the watcher has been sent, besides the request of each job."""
        self._pipe, theirs = MessagePipe.make_pair()
        self._keeper = fork_process()
        if self._keeper == 0:
            _run_keeper(theirs)
        theirs.close()
        try:
            self.pid: int = self._pipe.receive()
        except EOFError:
            raise WorkspaceError(
                "the process that watches over jobs ended at once", remedy="See: cleared doctor."
            ) from None
        self.since = process_start(self.pid) or ""

    def fileno(self) -> int:
        """A descriptor that is readable when the job has ended, or the watcher has."""
        return self._pipe.fileno()

    @property
    def is_alive(self) -> bool:
        return is_alive(self.pid, self.since)

    def assign_job(self, assignment: JobAssignment) -> None:
        """Have the watcher run a job. Where it is dead nothing happens; ``wait_ended`` returns then."""
        self._is_busy = True
        surroundings, before = assignment.surroundings, self._surroundings
        is_known = before is not None and all(one is other for one, other in zip(surroundings, before, strict=True))
        self._surroundings = surroundings
        message: _Message = (assignment.request, assignment.clock, None if is_known else surroundings)
        self._pipe.send(message)

    def has_ended_within(self, seconds: float) -> bool:
        """Wait so long for the end of the job; ``wait_ended`` is still to be called."""
        return self._pipe.has_message(seconds)

    def wait_ended(self) -> None:
        """Wait until the job has ended, or the watcher has with all of the job."""
        try:
            self._pipe.receive()
        except EOFError:
            with suppress(ChildProcessError):
                os.waitpid(self._keeper, 0)
        self._is_busy = False

    def close(self) -> None:
        """Have the watcher end, and wait for it; while it runs a job, have it end afterwards, and do not wait."""
        self._pipe.close()
        with suppress(ChildProcessError):
            os.waitpid(self._keeper, os.WNOHANG if self._is_busy else 0)


def _run_keeper(pipe: MessagePipe) -> NoReturn:
    """The keeper, in the forked process. It never returns, as the caller's code would then run twice."""
    try:
        own = MessagePipe(_detach_process(pipe.fileno()))
        watcher = fork_process()
        if watcher == 0:
            _run_watcher(own)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        own.send(watcher)
        while os.waitpid(-1, 0)[0] != watcher:
            pass
        leftovers.end_children()  # before this process ends and closes its pipe, which tells the loop
    except BaseException:  # noqa: BLE001
        os._exit(_EXIT_FAULT)
    os._exit(0)


def _detach_process(keep: int) -> int:
    """Leave the session, terminal and open files of the process that forked this one, and adopt orphans; the new number
    of the descriptor ``keep``."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(keep, _KEPT, inheritable=False)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.closerange(_KEPT + 1, 1 << 16)  # the locks of the other process, too: they must be free when it is gone
    leftovers.adopt_orphans()
    return _KEPT


def _run_watcher(pipe: MessagePipe) -> NoReturn:
    """The watcher, in the keeper's child: run job after job until the pipe is closed."""
    try:
        os.setsid()
        leftovers.adopt_orphans()
        # While a job runs the loop writes nothing: what can be read is the end of the pipe.
        supervisor = Supervisor(lambda: pipe.has_message(0.0))

        def on_term(number: int, frame: FrameType | None) -> None:
            supervisor.end_requested = True

        signal.signal(signal.SIGTERM, on_term)
        surroundings: Surroundings | None = None
        while True:
            message: _Message = pipe.receive()
            request, clock, surroundings = message[0], message[1], message[2] or surroundings
            assert surroundings is not None
            supervisor.run_job(JobAssignment(request, clock, *surroundings))
            supervisor.end_requested = False
            pipe.send("ended")
    except EOFError:
        os._exit(0)
    except BaseException:  # noqa: BLE001
        os._exit(_EXIT_FAULT)
