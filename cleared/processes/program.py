"""One program from its start to its end: the one way to start it, to take what it writes, and to end it.

It is ended by SIGTERM to its process group, and some seconds later by SIGKILL. However it ends, its group is killed
before it is reaped, as long as the group's number is its own. What has left the group is ended by whoever has become
its parent (``leftovers``), in a process between (``keeper``), or by the kernel (``fenced_start``).
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from cleared.base.clock import SystemClock
from cleared.processes.fenced_start import start_fenced
from cleared.processes.fences import Fence

KILL_GRACE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_POLL_SECONDS: Final = 0.1
_BLIND_POLL_SECONDS: Final = 0.02
"""Where the system has no descriptor that tells of the end of a process."""
_CHUNK: Final = 65_536
_MOST_CHUNKS: Final = 32
"""Of what a pipe still holds when a program has ended; somebody else may go on writing to it."""

Take = Callable[[bytes], object]
_monotonic = SystemClock().monotonic


class Program(Struct, frozen=True):
    """What is started, and what holds it. ``input``: what it reads. ``log``: a new file for all that it writes."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    fence: Fence | None = None
    input: bytes | IO[bytes] = b""
    log: Path | None = None
    executable: str | None = None
    may_leave: bool = False
    """Whether what it has started may stay, where it ends by itself."""


class Ending(Struct, frozen=True):
    """How a program ended: ``code`` is negative for a signal; ``reason``: why it was ended, empty where it was not."""

    code: int
    reason: str


class RunningProgram:
    """A program that was started. Call ``step`` until it has ended, then ``settle``, whatever happens."""

    def __init__(self, program: Program, take: Take, take_errors: Take | None = None) -> None:
        """Start it. ``take`` gets what it writes; without ``take_errors`` its standard error, too.

        Raises ``ConfinementUnavailable`` where the kernel refuses a wall, ``OSError`` where it cannot be started.
        """
        self.program, self.reason, self._kill_at = program, "", float("inf")
        self._takers: list[tuple[IO[bytes], Take]] = []
        with _open_input(program.input) as source, _open_log(program.log) as log:
            self._process = start_fenced(
                program.fence,
                program.argv,
                executable=program.executable,
                cwd=program.folder,
                env=dict(program.environment),
                stdin=source,
                stdout=log,
                stderr=subprocess.PIPE if take_errors is not None else subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._selector = selectors.DefaultSelector()
        for pipe, taker in ((self._process.stdout, take), (self._process.stderr, take_errors)):
            if pipe is not None and taker is not None:
                os.set_blocking(pipe.fileno(), False)
                self._takers.append((pipe, taker))
                self._selector.register(pipe, selectors.EVENT_READ, taker)
        self._exited = _open_pidfd(self.pid)
        if self._exited is not None:
            self._selector.register(self._exited, selectors.EVENT_READ)

    def fileno(self) -> int:
        """A descriptor that is readable when there is something for ``step`` to do."""
        return self._selector.fileno()

    def step(self, seconds: float = _POLL_SECONDS, *, takes: bool = True) -> bool:
        """Take some of what it writes, waiting for so long at most; False once it has ended. ``takes``: with False
        nothing is taken, and nothing waited for."""
        left = self._kill_at - _monotonic()
        if left <= 0:
            self.send_signal(signal.SIGKILL)
        else:
            seconds = min(seconds, left)
        if self._exited is None:
            seconds = min(seconds, _BLIND_POLL_SECONDS)
        for key, _ in self._selector.select(seconds) if takes else ():
            if key.data is not None and not _take_chunk(key.fd, key.data):
                self._selector.unregister(key.fileobj)
        return not _has_ended(self._process)

    def end(self, reason: str, grace: float = KILL_GRACE) -> None:
        """Ask it to end, for this reason, unless that was done; after ``grace`` seconds it is killed."""
        if self.reason:
            return
        self.reason, self._kill_at = reason, _monotonic() + grace
        if grace:
            self.send_signal(signal.SIGTERM)

    def send_signal(self, number: int) -> None:
        """Send it to its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def settle(self, end_left: Callable[[], object] = bool) -> Ending:
        """Kill what is left of its group, have ``end_left`` end what has left that, and take the rest of the output."""
        if self.reason or not self.program.may_leave or not _has_ended(self._process):
            self.send_signal(signal.SIGKILL)
        code = self._process.wait()
        end_left()
        for pipe, taker in self._takers:
            with suppress(BlockingIOError):
                for _ in range(_MOST_CHUNKS):
                    if not _take_chunk(pipe.fileno(), taker):
                        break
            pipe.close()
        self._selector.close()
        if self._exited is not None:
            os.close(self._exited)
        return Ending(code, self.reason)


def run_program(
    program: Program, take: Take, find_reason: Callable[[], str], take_errors: Take | None = None
) -> Ending:
    """Run it until it ends, or until there is a reason to end it; nothing of its process group is left then.

    Raises what ``RunningProgram`` does.
    """
    running = RunningProgram(program, take, take_errors)
    ending = None
    try:
        while running.step():
            if not running.reason and (reason := find_reason()):
                running.end(reason)
    finally:
        ending = running.settle()
    return ending


def end_at(seconds: float, monotonic: Callable[[], float] = _monotonic) -> Callable[[], str]:
    """For ``run_program``: the reason to end what has run for so many seconds from now."""
    until = monotonic() + seconds
    return lambda: f"stopped at its limit of {seconds:g} s" if monotonic() >= until else ""


@contextmanager
def _open_input(data: bytes | IO[bytes]) -> Iterator[IO[bytes] | int]:
    """A file, so that nobody waits for a program that does not read."""
    if not data:
        yield subprocess.DEVNULL
        return
    if not isinstance(data, bytes):
        yield data
        return
    with tempfile.TemporaryFile() as source:
        source.write(data)
        source.seek(0)
        yield source


@contextmanager
def _open_log(path: Path | None) -> Iterator[int]:
    if path is None:
        yield subprocess.PIPE
        return
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        yield log
    finally:
        os.close(log)


def _take_chunk(descriptor: int, take: Take) -> bool:
    """Take some of what is there; False at the end."""
    data = os.read(descriptor, _CHUNK)
    if data:
        take(data)
    return bool(data)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended. On Linux it is not reaped, so that its number stays its own."""
    if sys.platform != "linux":
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is no such thing."""
    if sys.platform != "linux":
        return None
    with suppress(OSError):
        return os.pidfd_open(pid)
    return None
