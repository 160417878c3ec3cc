"""Programs that end with whoever started them, with all that they have started: the owner's side of a ``keeper``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from cleared.base.clock import SystemClock
from cleared.base.errors import WorkspaceError
from cleared.processes import leftovers
from cleared.processes.confinement import ConfinementUnavailable
from cleared.processes.keeper import End, Ended, Port, Signal, Start, Surroundings, Taken, Written
from cleared.processes.message_pipe import MessagePipe
from cleared.processes.program import Ending, Program, Take

_BOOTSTRAP: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from cleared.processes.keeper import run_keeper; run_keeper(int(sys.argv[2]))"
)
"""The program text that a keeper's interpreter runs."""
_PASSED_VARIABLES: Final = ("PATH", "HOME", "TMPDIR", "CLEARED_JOB", leftovers.FOLDER_VARIABLE)
"""By the last two a keeper inside of a job is known as part of it."""
_ANSWER_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_LISTEN_SECONDS: Final = 0.1
"""Of taking what is there already, at a time: a program may write faster than it is taken."""
_monotonic = SystemClock().monotonic


class ProgramKeeper:
    """A keeper and its programs, by their numbers. A context manager: all of them end with it."""

    def __init__(self, surroundings: Surroundings = Surroundings()) -> None:
        """Start the keeper. Raises ``ConfinementUnavailable`` where the kernel refuses what programs are to share,
        ``WorkspaceError`` where it ends at once."""
        self._pipe, theirs = MessagePipe.make_pair()
        self._takers: dict[int, tuple[Take, Take]] = {}
        self._folders: dict[int, str] = {}
        self.endings: dict[int, Ending | None] = {}
        """Of each program how it ended; None where it runs, for all that is known (see ``listen``)."""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOTSTRAP, str(Path(__file__).parents[2]), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                env={name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ},
            )
        finally:
            theirs.close()
        self.pid = self._process.pid
        self._pipe.send(surroundings)
        if problem := self._await_answer():
            self.close()
            raise ConfinementUnavailable(problem)

    def __enter__(self) -> ProgramKeeper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, program: Program, take: Take = bool, take_errors: Take | None = None) -> int:
        """Start a program; its number. ``take`` gets what it writes; without ``take_errors`` its standard error, too.

        Raises ``ConfinementUnavailable`` where the kernel refuses a wall, ``OSError`` where it cannot be started,
        ``WorkspaceError`` where the keeper is gone.
        """
        self._pipe.send(Start(program, take_errors is not None))
        answer = self._await_answer()
        if isinstance(answer, Exception):
            raise answer
        pid: int = answer
        self._takers[pid] = take, take_errors or take
        self._folders[pid] = program.environment.get(leftovers.FOLDER_VARIABLE, "")
        self.endings[pid] = None
        return pid

    def listen(self, seconds: float = 0.0) -> None:
        """Take what the programs have written, and who has ended; wait for something for so long. It returns however
        much they go on writing, so that whoever calls can look after other things."""
        until = _monotonic() + seconds + _LISTEN_SECONDS
        while self._pipe.has_message(seconds):
            try:
                self._note(self._pipe.receive())
            except EOFError:
                self._end_forsaken()
                return
            if _monotonic() >= until:
                return
            seconds = 0.0

    def wait(self, pid: int, seconds: float) -> Ending | None:
        """How the program ended, or None where it still runs after so many seconds."""
        end = _monotonic() + seconds
        self.listen()
        while self.endings[pid] is None and (left := end - _monotonic()) > 0:
            self.listen(left)
        return self.endings[pid]

    def send_signal(self, pid: int, number: int) -> None:
        """Send a signal to a program, and to what it has started."""
        self._pipe.send(Signal(pid, number))

    def end(self, pid: int, reason: str) -> None:
        """Have a program ended, as ``program`` says; ``wait`` for it."""
        self._pipe.send(End(pid, reason))

    def is_port_open(self, host: str, port: int) -> bool:
        """Whether something listens there, in the network of the programs."""
        self._pipe.send(Port(host, port))
        return bool(self._await_answer())

    def close(self) -> None:
        """End every program, and the keeper."""
        self._pipe.close()
        try:
            self._process.wait(_ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _await_answer(self) -> Any:
        """What the keeper answers to a request. Raises ``WorkspaceError`` where it does not."""
        end = _monotonic() + _ANSWER_SECONDS
        while self._pipe.has_message(end - _monotonic()):
            try:
                message = self._pipe.receive()
            except EOFError:
                self._end_forsaken()
                break
            if not isinstance(message, Written | Ended):
                return message
            self._note(message)
        raise WorkspaceError("the process that starts programs has ended by itself", remedy="See: cleared doctor.")

    def _note(self, message: object) -> None:
        if isinstance(message, Written):
            self._takers[message.pid][message.is_error](message.data)
            self._pipe.send(Taken(message.pid))
        elif isinstance(message, Ended):
            self.endings[message.pid] = Ending(message.code, message.reason)

    def _end_forsaken(self) -> None:
        """Somebody has killed the keeper: end what can be known as its programs'."""
        for pid, ending in self.endings.items():
            if ending is None:
                self.endings[pid] = Ending(-9, "the process that watches over it was killed")
                if self._folders[pid]:
                    leftovers.end_job_processes(Path(self._folders[pid]), -1)


def run_kept(program: Program, take: Take, find_reason: Callable[[], str], take_errors: Take | None = None) -> Ending:
    """Run it until it ends, or until there is a reason to end it; nothing of it is left then, nor where this process is
    killed meanwhile.

    Raises what ``ProgramKeeper`` and its ``start`` do.
    """
    with ProgramKeeper() as keeper:
        pid = keeper.start(program, take, take_errors)
        while (ending := keeper.wait(pid, _POLL_SECONDS)) is None:
            if reason := find_reason():
                keeper.end(pid, reason)
                find_reason = str
        return ending
