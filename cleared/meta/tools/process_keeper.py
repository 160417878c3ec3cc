"""Runs inside a process of its own: starts the commands of a session, confined, and ends all of them with itself.

Where the kernel gives them, the keeper has a user and a network namespace of its own (with nothing in it but loopback),
and each command a process namespace, so that whatever it starts ends with it. Between the keeper and a command there
are two processes more: one that watches over the namespace from outside, and its first process, which is confined.

It is asked by lines of JSON on its standard input, and answers each by one. When the input ends, it ends.
"""

from __future__ import annotations

import ctypes
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
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.light_dataclass import dataclass
from cleared.loop import job_processes
from cleared.loop.job_confinement import job_restrictions
from cleared.sandbox.confinement import ConfinementUnavailable, Restrictions, restrict_thread

BOOTSTRAP: Final = (
    "import json, sys; spec = json.loads(sys.argv[1]); sys.path[:] = spec['path']; "
    "from cleared.meta.tools.process_keeper import run_keeper; run_keeper(spec)"
)
"""The program text that the keeper's interpreter runs."""
UNCONFINED: Final = 125
"""Exit code of a command that could not be confined, and was not started."""
KILL_GRACE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_NEW_PID, _NEW_USER, _NEW_NET, _NEW_IPC, _NEW_MOUNTS = 0x20000000, 0x10000000, 0x40000000, 0x08000000, 0x00020000
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP = 1, 24
_MS_BIND, _MS_REC, _MS_PRIVATE = 4_096, 16_384, 1 << 18
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_POLL: Final = 0.01
_LIMITS: Final = (("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", 64 << 20), ("RLIMIT_NOFILE", 1_024))
_MAX_PROCESSES: Final = 256


@dataclass(slots=True)
class _Started:
    """A command. ``code``: its exit code, once it has ended; negative for a signal."""

    scratch: Path
    code: int | None = None


def run_keeper(spec: Mapping[str, Any]) -> NoReturn:
    """Answer requests until the input ends. ``spec``: tree, run (folders), own (whether to take namespaces), confine,
    outside (a file that commands cannot read)."""
    try:
        if spec["own"]:
            _enter_namespaces([spec["tree"], spec["run"]])
        job_processes.adopt_orphans()
        restrictions = _make_restrictions(spec)
    except (OSError, ConfinementUnavailable) as error:
        _answer({"ready": False, "problem": str(error)})
        os._exit(1)
    keeper = _Keeper(Path(spec["tree"]), Path(spec["run"]), restrictions, own=spec["own"])
    _answer({"ready": True})
    for line in _read_lines():
        _answer(keeper.handle_request(json.loads(line)))
    keeper.end_all()
    os._exit(0)


def _make_restrictions(spec: Mapping[str, Any]) -> Restrictions | None:
    if spec["confine"] == "off":
        return None
    tree, run = Path(spec["tree"]), Path(spec["run"])
    made = job_restrictions(
        ForbiddenFiles(tree), [], [tree, run / "home", run / "tmp"], [], trust=False,
        network=bool(spec["own"]), attributes=bool(spec["own"]),
    )  # fmt: skip
    if made is None:
        raise ConfinementUnavailable("this kernel has no Landlock")
    return replace(made, outside=spec["outside"])


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
        job_processes.end_children()

    def _start_command(self, request: Mapping[str, Any]) -> int:
        scratch = Path(request["scratch"])
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            pid = os.fork()
            if pid == 0:
                _become(lambda: self._watch_namespace(request, log))
        finally:
            os.close(log)
        self._started[pid] = _Started(scratch)
        return pid

    def _watch_namespace(self, request: Mapping[str, Any], log: int) -> int:
        """In the process that watches over a command from outside: passes signals on, and ends as the command does."""
        _die_with_parent()
        _close_all_but(log)
        if self._own:
            _unshare(_NEW_PID)
        inner = os.fork()
        if inner == 0:
            _become(lambda: self._run_first_process(request, log))
        _forward_signals(lambda number: os.kill(inner, number))
        return _exit_status(os.waitpid(inner, 0)[1])

    def _run_first_process(self, request: Mapping[str, Any], log: int) -> int:
        """In the first process of the namespace: confines itself, starts the command, and waits for it."""
        _die_with_parent()
        os.setsid()
        os.chdir(self._tree)
        _limit_resources(processes=self._own)
        if self._restrictions is not None:
            try:
                restrict_thread(self._restrictions)
            except ConfinementUnavailable as error:
                os.write(log, f"the command was not started, as it cannot be confined: {error}\n".encode())
                return UNCONFINED
        command = os.fork()
        if command == 0:
            _become(lambda: _execute_command(request, log))
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
                        job_processes.end_job_processes(started.scratch, -1)


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


def _become(body: Callable[[], int]) -> NoReturn:
    """Do this in a process that was just forked, and end it; nothing of the keeper goes on in it."""
    code = 124
    try:
        code = body()
    except BaseException as error:  # noqa: BLE001  (there is nobody above it)
        with suppress(OSError):
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _enter_namespaces(writable: list[str]) -> None:
    """Be alone in a user, network, IPC and mount namespace, with loopback up, and nothing to write to but these
    folders: Landlock has no rule for modes, owners and times of files. Raises ``OSError``."""
    user, group = os.getuid(), os.getgid()
    _unshare(_NEW_USER | _NEW_NET | _NEW_IPC | _NEW_MOUNTS)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    _mount(None, "/", _MS_REC | _MS_PRIVATE)
    for folder in writable:
        _mount(folder, folder, _MS_BIND)
    _set_read_only("/", recursive=True)
    for folder in writable:
        _set_read_only(folder, lift=True)
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(plain, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(plain, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _unshare(flags: int) -> None:
    _check(_libc().unshare(flags))


def _mount(source: str | None, target: str, flags: int) -> None:
    name = None if source is None else os.fsencode(source)
    _check(_libc().mount(name, os.fsencode(target), None, ctypes.c_ulong(flags), None))


def _set_read_only(target: str, *, recursive: bool = False, lift: bool = False) -> None:
    attributes = struct.pack("<QQQQ", 0 if lift else _READ_ONLY, _READ_ONLY if lift else 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    size = ctypes.c_size_t(len(attributes))
    _check(_libc().syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, attributes, size))


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _die_with_parent() -> None:
    _libc().prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _limit_resources(*, processes: bool) -> None:
    """Limits for a command and all it starts; and none of the rights that a namespace gives its owner."""
    import resource

    for name, value in _LIMITS:
        resource.setrlimit(getattr(resource, name), (value, value))
    if processes:  # elsewhere the user's other processes would count
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NPROC, (_MAX_PROCESSES, _MAX_PROCESSES))
    for capability in range(64):
        if _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break


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


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
