"""A process between whoever wants programs and these: it starts them, and ends all of them with itself.

It becomes the parent of whatever a program leaves behind, and ends that with the program. When its owner closes the
pipe between them, or is killed, it ends everything. What a program writes waits until its owner has taken what came
before; a request never waits for that. ``kept_programs`` is the owner's side; this is the other, run by an interpreter
of its own, as a process with threads cannot be forked.
"""

from __future__ import annotations

import resource
import select
import signal
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.processes import leftovers
from cleared.processes.confinement import ConfinementUnavailable, core_limit
from cleared.processes.message_pipe import MessagePipe
from cleared.processes.namespaces import enter_own_network
from cleared.processes.program import Program, RunningProgram

_POLL_SECONDS: Final = 0.1
_PORT_SECONDS: Final = 0.5


class Surroundings(Struct, frozen=True):
    """What all programs of a keeper share. ``own_network``: loopback and nothing else, instead of the machine's."""

    own_network: bool = False
    largest_file: int = 0
    most_files: int = 0
    most_processes: int = 0
    """These three: 0 for no limit. Processes are counted in a network of its own only: elsewhere others would count."""


class Start(Struct, frozen=True):
    """Answered by the program's number, or by why it was not started. ``apart``: tell errors from output."""

    program: Program
    apart: bool = False


class Signal(Struct, frozen=True):
    pid: int
    number: int


class End(Struct, frozen=True):
    pid: int
    reason: str


class Port(Struct, frozen=True):
    """Answered by whether it is open."""

    host: str
    number: int


class Written(Struct, frozen=True):
    """Told of a program that has written something."""

    pid: int
    data: bytes
    is_error: bool


class Taken(Struct, frozen=True):
    """Answers ``Written``: its owner is ready for more of this program."""

    pid: int


class Ended(Struct, frozen=True):
    """Told of a program, once nothing of it is left."""

    pid: int
    code: int
    reason: str


def run_keeper(descriptor: int) -> None:
    """Do what comes through this end of the pipe, until the other is closed."""
    pipe = MessagePipe(descriptor)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # not ignored: programs would inherit that
    try:
        _prepare_process(pipe.receive())
    except OSError as error:
        pipe.send(error.strerror or str(error))
        return
    pipe.send("")
    _Keeper(pipe).serve()


def _prepare_process(surroundings: Surroundings) -> None:
    leftovers.adopt_orphans()
    if surroundings.own_network:
        enter_own_network()
    limits = [
        (resource.RLIMIT_CORE, core_limit()),
        (resource.RLIMIT_FSIZE, surroundings.largest_file),
        (resource.RLIMIT_NOFILE, surroundings.most_files),
        (resource.RLIMIT_NPROC, surroundings.most_processes if surroundings.own_network else 0),
    ]
    for what, value in limits:
        if value:
            with suppress(ValueError):  # it is less already
                resource.setrlimit(what, (value, value))


class _Keeper:
    def __init__(self, pipe: MessagePipe) -> None:
        self._pipe = pipe
        self._programs: dict[int, RunningProgram] = {}
        self._untaken: Counter[int] = Counter()
        """Of each program what was sent and is not taken yet: no more is read of it meanwhile."""

    def serve(self) -> None:
        try:
            with suppress(EOFError):
                while True:
                    if self._has_message():
                        self._handle(self._pipe.receive())
                    self._step_all()
            for program in self._programs.values():
                program.end("whoever started it is gone")
            while self._programs:
                self._untaken.clear()  # nobody takes anything, and nobody is sent anything
                select.select([*self._programs.values()], [], [], _POLL_SECONDS)
                self._step_all()
        finally:
            for pid in [*self._programs]:
                self._settle(pid)
            leftovers.end_children()

    def _has_message(self) -> bool:
        seconds = _POLL_SECONDS if self._programs else None
        read = [program for pid, program in self._programs.items() if not self._untaken[pid]]
        waited: list[MessagePipe | RunningProgram] = [self._pipe, *read]
        return self._pipe in select.select(waited, [], [], seconds)[0]

    def _handle(self, request: object) -> None:
        if isinstance(request, Start):
            self._pipe.send(self._start(request))
        elif isinstance(request, Port):
            self._pipe.send(_is_port_open(request))
        elif isinstance(request, Taken):
            self._untaken[request.pid] -= 1
        elif isinstance(request, Signal | End) and request.pid in self._programs:
            program = self._programs[request.pid]
            if isinstance(request, Signal):
                program.send_signal(request.number)
            else:
                program.end(request.reason)

    def _start(self, request: Start) -> int | ConfinementUnavailable | OSError:
        def take(is_error: bool) -> Callable[[bytes], None]:
            return lambda data: self._tell(Written(program.pid, data, is_error))

        try:
            program = RunningProgram(request.program, take(False), take(True) if request.apart else None)
        except ConfinementUnavailable as error:
            return error
        except OSError as error:
            return OSError(error.errno, error.strerror)
        self._programs[program.pid] = program
        self._untaken[program.pid] = 0
        return program.pid

    def _tell(self, written: Written) -> None:
        self._untaken[written.pid] += 1
        self._pipe.send(written)

    def _step_all(self) -> None:
        for pid, program in [*self._programs.items()]:
            if not program.step(0.0, takes=not self._untaken[pid]):
                self._settle(pid)

    def _settle(self, pid: int) -> None:
        program = self._programs.pop(pid)
        folder = program.program.environment.get(leftovers.FOLDER_VARIABLE, "")

        def end_left() -> None:
            """Of several programs without guards nobody can tell whose orphans there are, but by their folders."""
            if not self._programs:
                leftovers.end_children()
            elif folder:
                leftovers.end_job_processes(Path(folder), -1)

        ending = program.settle(end_left)
        self._pipe.send(Ended(pid, ending.code, ending.reason))


def _is_port_open(port: Port) -> bool:
    with suppress(OSError), socket.create_connection((port.host, port.number), timeout=_PORT_SECONDS):
        return True
    return False
