"""Confinement of worker processes by the kernel, for the case that the interpreter itself is broken.

Landlock, seccomp and ``no_new_privs`` belong to a thread, and processes that it starts inherit them. So a worker is
started from a thread that restricts itself and then ends; the host's other threads stay free, and no wrapper program
delays the start. Resource limits are set on the worker from outside. The level that was reached is read back from the
worker, never assumed. Elsewhere than on Linux there is no such confinement.

A worker dies with its host, even while it computes and reads no pipe: it inherits the reading end of a pipe that nobody
writes to. When the host dies, the kernel closes the other end and sends the owner of the reading end a signal, which is
set to SIGKILL. (The usual PR_SET_PDEATHSIG has to be called by the child itself, and the child is the
interpreter's.) Elsewhere than on Linux a worker lives until its time limit.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import math
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from cleared.base.errors import WorkspaceError
from cleared.processes import landlock, seccomp

_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24
_SECCOMP: dict[str, int] = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 1 << 3, 1 << 5
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ABI_QUERY, _PATH_BENEATH = 1, 1
_OPEN_FILES = 32
_CAPABILITY_VERSION_3 = 0x20080522


class ConfinementLevel(Struct, frozen=True):
    """The confinement in force for a worker. ``str()`` is e.g. ``landlock+seccomp+rlimits``, or ``none``."""

    landlock: int = 0
    """The ABI of the kernel's Landlock in force; 0 = not in force."""
    seccomp: bool = False
    rlimits: bool = False

    @property
    def is_full(self) -> bool:
        return bool(self.landlock and self.seccomp and self.rlimits)

    def __str__(self) -> str:
        parts = [
            "landlock" if self.landlock else "",
            "seccomp" if self.seccomp else "",
            "rlimits" if self.rlimits else "",
        ]
        return "+".join(part for part in parts if part) or "none"


class ConfinementUnavailable(WorkspaceError):
    """The kernel refused a restriction, or has none."""


class Restrictions(Struct, frozen=True):
    """Restrictions that a thread can put on itself. They are prepared before, as it can open no files afterwards."""

    abi: int
    ruleset: tuple[bytes, tuple[tuple[Path, int], ...]] | None
    filter: bytes | None
    outside: str = "/proc/self/status"
    """An existing file that no rule allows to open; the restricted thread tests on it that the rules are in force."""


@lru_cache(maxsize=8)
def worker_restrictions(binary: Path, *, wide: bool = False, files: bool = True) -> Restrictions:
    """The restrictions that this kernel offers for a worker that runs ``binary``.

    ``wide``: allow whole library folders. ``files``: restrict files at all.
    """
    if sys.platform != "linux":
        return Restrictions(0, None, None)
    abi = landlock_abi() if files else 0
    ruleset = None
    if abi:
        try:
            ruleset = landlock.ruleset_attributes(abi), tuple(landlock.worker_rules(binary, wide=wide))
        except (OSError, ValueError):
            abi = 0
    return Restrictions(abi, ruleset, seccomp.worker_program(platform.machine()))


def landlock_abi() -> int:
    """The version of this kernel's Landlock; 0: none."""
    if sys.platform != "linux":
        return 0
    return max(int(_load_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ABI_QUERY)), 0)


def restrict_thread(wanted: Restrictions) -> None:
    """Put ``wanted`` on the calling thread, which must end soon: the restrictions cannot be lifted.

    Raises ``ConfinementUnavailable`` where the kernel refuses one.
    """
    libc = _load_libc()
    _check_result(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if wanted.ruleset is not None:
        attributes, paths = wanted.ruleset
        size = ctypes.c_size_t(len(attributes))
        ruleset = _check_result(libc.syscall(_CREATE_RULESET, attributes, size, 0), "landlock")
        try:
            for path, rights in paths:
                fd, rule = landlock.open_rule(path, rights)
                try:
                    _check_result(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), f"landlock {path}")
                finally:
                    os.close(fd)
            _check_result(libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock")
        finally:
            os.close(ruleset)
        # Whether a worker has inherited Landlock cannot be read from outside, so the thread tests it on itself.
        if _can_open(wanted.outside):
            raise ConfinementUnavailable(f"landlock: a file outside could be opened ({wanted.outside})")
    if wanted.filter is not None:
        install_filter(wanted.filter)


def install_filter(program: bytes, *, listens: bool = False) -> int:
    """Have the calling thread, and what it starts, make only the system calls that a filter allows. ``listens``: a
    descriptor is given that is asked about the calls for which the filter says so; else 0.

    Raises ``ConfinementUnavailable`` where the kernel refuses it, as where somebody listens already.
    """
    buffer = ctypes.create_string_buffer(program, len(program))
    given = _FilterProgram(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    number, flags = _SECCOMP[platform.machine()], _NEW_LISTENER if listens else 0
    if listens:  # a call that is being asked about is not cut off by a signal; kernels before 5.19 do not know that
        with suppress(ConfinementUnavailable):
            wanted = flags | _WAIT_KILLABLE
            return _check_result(_load_libc().syscall(number, _SET_MODE_FILTER, wanted, ctypes.byref(given)), "seccomp")
    return _check_result(_load_libc().syscall(number, _SET_MODE_FILTER, flags, ctypes.byref(given)), "seccomp")


def drop_capabilities() -> None:
    """Have the calling thread, and what it starts, be without root's special rights: with them a program of root's
    could read the environment of any process, Landlock or not."""
    libc = _load_libc()
    number = 0
    while libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    head, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    libc.capset(head, none)


def run_restricted(wanted: Restrictions, action: Callable[[], object]) -> None:
    """Call ``action`` on a new thread under ``wanted``; what it raises is raised here."""
    failure: list[BaseException] = []

    def run_body() -> None:
        try:
            restrict_thread(wanted)
            action()
        except BaseException as error:  # noqa: BLE001  (carried to the caller's thread)
            failure.append(error)

    thread = threading.Thread(target=run_body, name="cleared-worker-start", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


def core_limit() -> int:
    """The limit of core files with which the kernel dumps no memory, to be set as the soft and the hard one.

    It is not 0: that only has no file written. A program that the machine's core_pattern names is started for every
    dump, whatever the limit is but for exactly 1 (core(5), and the kernel's fs/coredump.c). Where 0 is the hard limit
    already, nobody may raise it; then it stays.
    """
    import resource

    return 1 if resource.getrlimit(resource.RLIMIT_CORE)[1] else 0


def limit_resources(pid: int) -> bool:
    """Forbid the worker ``pid`` core files and file growth, and limit its descriptors; whether that is in force."""
    if sys.platform != "linux":
        return False
    import resource

    limits = ((resource.RLIMIT_CORE, core_limit()), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, _OPEN_FILES))
    try:
        for what, value in limits:
            resource.prlimit(pid, what, (value, value))
        return all(resource.prlimit(pid, what) == (value, value) for what, value in limits)
    except (OSError, ValueError):
        return False


def limit_data(pid: int, limit: int) -> None:
    """Limit the worker's private data, in bytes, in case the interpreter's own count of memory fails."""
    if sys.platform == "linux":
        import resource

        try:
            resource.prlimit(pid, resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))
        except (OSError, ValueError):
            pass


def limit_processor_time(pid: int, seconds: float) -> None:
    """Let the worker use ``seconds`` more of processor time; the kernel ends it when they are used up."""
    if sys.platform == "linux":
        import resource

        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            resource.prlimit(pid, resource.RLIMIT_CPU, (math.ceil(used + seconds), resource.RLIM_INFINITY))
        except (OSError, ValueError):
            pass


def observe_level(pid: int, wanted: Restrictions) -> ConfinementLevel:
    """Set the resource limits of the worker ``pid``; the confinement that is in force for it, as the kernel says."""
    rlimits = limit_resources(pid)
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ConfinementLevel(rlimits=rlimits)
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    inherited = facts.get("NoNewPrivs", "").strip() == "1"
    filtered = inherited and facts.get("Seccomp", "").strip() == "2"
    return ConfinementLevel(
        # A child cannot lose the Landlock rules of the thread that started it. That the restricted thread started it
        # shows in the other restrictions, which it has inherited from the same thread.
        landlock=wanted.abi if wanted.ruleset is not None and inherited else 0,
        seccomp=filtered and wanted.filter is not None,
        rlimits=rlimits,
    )


class _FilterProgram(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _check_result(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        if number in (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE):
            raise OSError(number, f"{what}: {os.strerror(number)}")  # the machine is short of something for a moment
        raise ConfinementUnavailable(f"{what}: {os.strerror(number)}")
    return result


@lru_cache(maxsize=1)
def _load_libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _can_open(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno != errno.EACCES
    return True


class ParentDeathSignal:
    """The pipe of one worker. Make it before the worker is started, which inherits it."""

    def __init__(self) -> None:
        self._descriptors: tuple[int, ...] = ()
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # no descriptors left: go without
                self._descriptors = os.pipe()
                os.set_inheritable(self._descriptors[0], True)

    def bind_worker(self, pid: int) -> None:
        """Have the kernel kill the worker ``pid`` when this process ends, or calls ``release_worker``."""
        if sys.platform != "linux" or not self._descriptors:
            return
        import fcntl

        reading, writing = self._descriptors
        with contextlib.suppress(OSError):
            fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
            fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
        self._descriptors = (writing,)
        os.close(reading)

    def release_worker(self) -> None:
        """Close the pipe, which kills a worker that is bound to it."""
        descriptors, self._descriptors = self._descriptors, ()
        for descriptor in descriptors:
            os.close(descriptor)
