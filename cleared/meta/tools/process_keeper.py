"""Runs inside a process of its own: starts the commands of a session, confined, and ends all of them with itself.

Where the kernel gives them, the keeper has a user and a network namespace of its own (with nothing in it but loopback),
and each command a process namespace, so that whatever it starts ends with it. Between the keeper and a command there
are two processes more: one that watches over the namespace from outside, and its first process, which is confined.

It is asked by lines of JSON on its standard input, and answers each by one. When the input ends, it ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from cleared.processes import leftovers, namespaces
from cleared.processes.confinement import (
    ConfinementUnavailable,
    Restrictions,
    core_limit,
    drop_capabilities,
    restrict_thread,
)
from cleared.processes.fences import Fence, make_fence
from cleared.processes.namespaces import OfferedNamespaces
from cleared.work.loop.job_confinement import list_closed

BOOTSTRAP: Final = (
    "import json, sys; spec = json.loads(sys.argv[1]); sys.path[:] = spec['path']; "
    "from cleared.meta.tools.process_keeper import run_keeper; run_keeper(spec)"
)
"""The program text that the keeper's interpreter runs."""
UNCONFINED: Final = 125
"""Exit code of a command that could not be confined, and was not started."""
KILL_GRACE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_POLL: Final = 0.01
_LIMITS: Final = (("RLIMIT_FSIZE", 64 << 20), ("RLIMIT_NOFILE", 1_024))
_MAX_PROCESSES: Final = 256


@dataclass(slots=True)
class _Started:
    """A command. ``code``: its exit code, once it has ended; negative for a signal."""

    scratch: Path
    code: int | None = None


def run_keeper(spec: Mapping[str, Any]) -> NoReturn:
    """Answer requests until the input ends. ``spec``: root (the workspace), tree, run (folders), own (whether to take
    namespaces), confine, outside (a file that commands cannot read)."""
    try:
        fence = _make_fence(spec)
        if spec["own"]:
            _enter_namespaces([spec["tree"], spec["run"]], memory=fence is not None and fence.memory)
        leftovers.adopt_orphans()
    except (OSError, ConfinementUnavailable) as error:
        _answer({"ready": False, "problem": str(error)})
        os._exit(1)
    restrictions = fence.restrictions if fence is not None else None
    keeper = _Keeper(Path(spec["tree"]), Path(spec["run"]), restrictions, own=spec["own"])
    _answer({"ready": True})
    for line in _read_lines():
        _answer(keeper.handle_request(json.loads(line)))
    keeper.end_all()
    os._exit(0)


def _make_fence(spec: Mapping[str, Any]) -> Fence | None:
    if spec["confine"] == "off":
        return None
    tree, run = Path(spec["tree"]), Path(spec["run"])
    made = make_fence(
        list_closed(Path(spec["root"])),
        [],
        [tree, run / "home", run / "tmp"],
        outside=Path(spec["outside"]),
        network="own" if spec["own"] else "none",
        namespaces=OfferedNamespaces(mounts=bool(spec["own"])),
    )
    if made is None:
        raise ConfinementUnavailable("this kernel has no Landlock")
    return made


class _Keeper:
    """The commands of one session, by the number of the process that watches over each."""

    def __init__(self, tree: Path, run: Path, restrictions: Restrictions | None, *, own: bool) -> None:
        self._tree, self._run, self._restrictions, self._own = tree, run, restrictions, own
        self._started: dict[int, _Started] = {}

    def handle_request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if request["do"] == "start":
                return {"pid": self._start_command(request)}
            if request["do"] == "wait":
                return {"code": self._wait_for(request["pid"], request["seconds"])}
            if request["do"] == "signal":
                return {"state": self._send_signal(request["pid"], request["signal"])}
            if request["do"] == "port":
                return {"open": _is_port_open(request["host"], request["port"])}
            if request["do"] == "list":
                self._reap()
                return {"processes": {str(pid): started.code for pid, started in self._started.items()}}
        except OSError as error:
            return {"error": error.strerror or str(error)}
        return {"error": "unknown request"}

    def end_all(self) -> None:
        """End every command, and whatever is left of them."""
        for pid, started in self._started.items():
            if started.code is None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        leftovers.end_children()

    def _start_command(self, request: Mapping[str, Any]) -> int:
        scratch = Path(request["scratch"])
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            pid = os.fork()
            if pid == 0:
                namespaces.become(lambda: self._watch_namespace(request, log))
        finally:
            os.close(log)
        self._started[pid] = _Started(scratch)
        return pid

    def _watch_namespace(self, request: Mapping[str, Any], log: int) -> int:
        """In the process that watches over a command from outside: passes signals on, and ends as the command does."""
        namespaces.die_with_parent(signal.SIGKILL)
        _close_all_but(log)
        if self._own:
            namespaces.unshare(namespaces.NEW_PIDS)
        inner = os.fork()
        if inner == 0:
            namespaces.become(lambda: self._run_first_process(request, log))
        _forward_signals(lambda number: os.kill(inner, number))
        return _exit_status(os.waitpid(inner, 0)[1])

    def _run_first_process(self, request: Mapping[str, Any], log: int) -> int:
        """In the first process of the namespace: confines itself, starts the command, and waits for it."""
        namespaces.die_with_parent(signal.SIGKILL)
        os.setsid()
        os.chdir(self._tree)
        _limit_resources(processes=self._own)
        drop_capabilities()
        if self._restrictions is not None:
            try:
                restrict_thread(self._restrictions)
            except ConfinementUnavailable as error:
                os.write(log, f"the command was not started, as it cannot be confined: {error}\n".encode())
                return UNCONFINED
        command = os.fork()
        if command == 0:
            namespaces.become(lambda: _execute_command(request, log))
        with suppress(OSError):
            os.setpgid(command, command)
        _forward_signals(lambda number: os.killpg(command, number))
        while True:  # the orphans of the namespace end up here, too
            pid, status = os.waitpid(-1, 0)
            if pid == command:
                return _exit_status(status)

    def _wait_for(self, pid: int, seconds: float) -> int | None:
        """The exit code, or None where the command still runs after so many seconds."""
        end = time.monotonic() + seconds
        while True:
            self._reap()
            code = self._started[pid].code
            if code is not None or time.monotonic() >= end:
                return code
            if select.select([0], [], [], _POLL)[0] and not _has_input():
                self.end_all()
                os._exit(0)

    def _send_signal(self, pid: int, number: int) -> str:
        """``unknown`` for a process that was not started here; its number may be anybody's."""
        self._reap()
        started = self._started.get(pid)
        if started is None:
            return "unknown"
        if started.code is not None:
            return "ended"
        os.kill(pid, number)  # it is not reaped yet, so the number is still its own
        return "sent"

    def _reap(self) -> None:
        for pid, started in self._started.items():
            if started.code is None:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    started.code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                    if not self._own:
                        leftovers.end_job_processes(started.scratch, -1)


def _execute_command(request: Mapping[str, Any], log: int) -> int:
    os.setpgid(0, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.closerange(3, 1_024)
    for number in (*_FORWARDED, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(request["cwd"])
        os.execve(request["argv"][0], request["argv"], request["env"])
    except OSError as error:
        os.write(2, f"{request['cwd']}: {error.strerror}\n".encode())
    return 126


def _enter_namespaces(writable: list[str], *, memory: bool) -> None:
    """Be alone in namespaces with nothing to write to but these folders (``memory``: and shared memory), and with a
    network of loopback alone. Raises ``OSError``."""
    import fcntl

    namespaces.enter_namespaces(writable, namespaces.NEW_NETWORK, memory=memory)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(plain, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(plain, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _limit_resources(*, processes: bool) -> None:
    """Limits for a command and all it starts."""
    import resource

    for name, value in (("RLIMIT_CORE", core_limit()), *_LIMITS):
        resource.setrlimit(getattr(resource, name), (value, value))
    if processes:  # elsewhere the user's other processes would count
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NPROC, (_MAX_PROCESSES, _MAX_PROCESSES))


def _close_all_but(log: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for descriptor in range(3, 1_024):
        if descriptor != log:
            with suppress(OSError):
                os.close(descriptor)


def _forward_signals(send: Callable[[int], object]) -> None:
    def pass_on(number: int, _frame: object) -> None:
        with suppress(OSError):
            send(number)

    for number in _FORWARDED:
        signal.signal(number, pass_on)


def _exit_status(status: int) -> int:
    """What a process in between ends with: as a shell says it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _is_port_open(host: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((host, port), timeout=0.5):
        return True
    return False


_input = bytearray()


def _read_lines() -> Any:
    while True:
        while b"\n" not in _input:
            if not _has_input():
                return
        line, _, rest = bytes(_input).partition(b"\n")
        _input[:] = rest
        yield line


def _has_input() -> bool:
    """Take what is there to read; False at the end of the input."""
    data = os.read(0, 1 << 20)
    _input.extend(data)
    return bool(data)


def _answer(data: Mapping[str, Any]) -> None:
    line = (json.dumps(data) + "\n").encode()
    with suppress(BrokenPipeError):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
