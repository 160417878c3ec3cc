"""Seccomp filters: a worker may make only the system calls that it needs, a job all but those that are refused.

The lists are in ``syscalls``.
"""

from __future__ import annotations

import errno
import struct
from functools import cache

from cleared.sandbox.syscalls import CHANGING_ATTRIBUTES, JOB_MAY_NOT, NEWEST_FOR_JOBS, NUMBERS, WORKER_MAY

# machine → (AUDIT_ARCH, column of NUMBERS)
_ARCHES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
PR_SET_NAME = 15

_LD, _AND, _JEQ, _JGE, _JSET, _RET = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_NR, _ARCH, _ARGS = 0, 4, 16

_WRITE_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000  # O_WRONLY O_RDWR O_CREAT O_TRUNC __O_TMPFILE
_PROT_EXEC, _MAP_ANONYMOUS = 0x4, 0x20
_CLONE_VFORK, _CLONE_THREAD = 0x4000, 0x10000
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET
_PRIO_USER, _IOPRIO_USER = 2, 3
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _FIOSETOWN, _SIOCSPGRP = 8, 10, 15, 0x8901, 0x8902
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_MINUS_ONE = 0xFFFFFFFF
# Newer calls are refused as not existing, so that the C library falls back to an older one.
_NEWEST = 434


_Code = list[tuple[int, int, int, int]]


def _filter_prologue(arch: int, column: int) -> _Code:
    """Kill on a call of another architecture, then load the call's number."""
    code: _Code = [(_LD, 0, 0, _ARCH), (_JEQ, 1, 0, arch), (_RET, 0, 0, _KILL), (_LD, 0, 0, _NR)]
    if column == 0:
        code += [(_JGE, 0, 1, 0x40000000), (_RET, 0, 0, _KILL)]  # the x32 numbers
    return code


def _refuse_with(code: int) -> tuple[int, int, int, int]:
    return _RET, 0, 0, 0x00050000 | code


def _pack_filter(code: _Code) -> bytes:
    """As an array of ``struct sock_filter``."""
    return b"".join(struct.pack("<HBBI", op, true, false, k) for op, true, false, k in code)


def _load_argument(index: int, high: bool = False) -> tuple[int, int, int, int]:
    return _LD, 0, 0, _ARGS + 8 * index + (4 if high else 0)


_ALLOWED = (_RET, 0, 0, _ALLOW)
_DENIED = _refuse_with(errno.EPERM)


class _FilterBuilder:
    """Builds the code of a filter for one machine, rule by rule."""

    def __init__(self, machine: str) -> None:
        arch, self._column = _ARCHES[machine]
        self.code = _filter_prologue(arch, self._column)

    def add_rule(self, name: str, *body: tuple[int, int, int, int]) -> None:
        """Add the code for one system call; ``body`` must end in a return."""
        number = NUMBERS[name][self._column]
        if number >= 0:
            self.code += [(_JEQ, 0, len(body), number), *body]


@cache
def job_program(
    machine: str, *, own: bool, scoped: bool, guarded: tuple[int, ...] = (), network: bool = False,
    attributes: bool = True,
) -> bytes | None:  # fmt: skip
    """The filter for a job as an array of ``struct sock_filter``; ``None`` on a machine that it is not written for.

    It refuses sockets, access to other processes and to the machine, and what processes share outside of files.
    ``own``: a job of this package, which sets the limits of its workers and kills them. ``scoped``: Landlock confines
    signals; where it does not, the processes in ``guarded`` get none. ``network``: sockets of the Internet protocols
    are allowed, for a job in a network namespace of its own. ``attributes``: it may change modes and owners of files,
    wherever they lie.
    """
    if machine not in _ARCHES:
        return None
    rules = _FilterBuilder(machine)
    for name in JOB_MAY_NOT:
        if name == "socket" and network:
            rules.add_rule(name, _load_argument(0), (_JEQ, 1, 0, _AF_INET), (_JEQ, 0, 1, _AF_INET6), _ALLOWED, _DENIED)
        else:
            rules.add_rule(name, _DENIED)
    for name in () if attributes else CHANGING_ATTRIBUTES:
        rules.add_rule(name, _DENIED)
    rules.add_rule(
        "clone3", _refuse_with(errno.ENOSYS)
    )  # it hides its flags in memory; the C library falls back to clone
    rules.add_rule("clone", _load_argument(0), (_JSET, 0, 1, _NEW_NAMESPACES), _DENIED, _ALLOWED)
    # Only of the calling process itself, which is 0; its own number is not known here.
    for name in ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"):
        rules.add_rule(name, _load_argument(0), (_JEQ, 0, 1, 0), _ALLOWED, _DENIED)
    rules.add_rule(
        "setpriority",
        _load_argument(1),
        (_JEQ, 0, 3, 0),
        _load_argument(0),
        (_JGE, 1, 0, _PRIO_USER),
        _ALLOWED,
        _DENIED,
    )
    rules.add_rule(
        "ioprio_set",
        _load_argument(1),
        (_JEQ, 0, 3, 0),
        _load_argument(0),
        (_JGE, 1, 0, _IOPRIO_USER),
        _ALLOWED,
        _DENIED,
    )
    if not own:
        rules.add_rule("prlimit64", _load_argument(0), (_JEQ, 0, 1, 0), _ALLOWED, _DENIED)
        # A file's owner gets signals with a number that the process chooses.
        owner = (_JEQ, 3, 0, _F_SETOWN), (_JEQ, 2, 0, _F_SETSIG), (_JEQ, 1, 0, _F_SETOWN_EX)
        rules.add_rule("fcntl", _load_argument(1), *owner, _ALLOWED, _DENIED)
        rules.add_rule(
            "ioctl", _load_argument(1), (_JEQ, 2, 0, _FIOSETOWN), (_JEQ, 1, 0, _SIOCSPGRP), _ALLOWED, _DENIED
        )
        if not scoped:
            rules.add_rule("pidfd_send_signal", _DENIED)
    numbers = [_MINUS_ONE] if scoped else [_MINUS_ONE, *(n & _MINUS_ONE for pid in guarded for n in (pid, -pid))]
    same = [(_JEQ, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        rules.add_rule(name, _load_argument(0), *same, _ALLOWED, _DENIED)
    return _pack_filter([*rules.code, (_JGE, 0, 1, NEWEST_FOR_JOBS), _refuse_with(errno.ENOSYS), _ALLOWED])


def engine_program(machine: str) -> bytes | None:
    """The filter for a coding engine, as ``job_program`` gives one for a job.

    It has the network, and programs of all kinds. It only gets no Unix sockets, which Landlock does not confine: by
    them the system's services start programs for whoever asks.
    """
    if machine not in _ARCHES:
        return None
    rules = _FilterBuilder(machine)
    rules.add_rule("socket", _load_argument(0), (_JEQ, 0, 1, _AF_UNIX), _DENIED, _ALLOWED)
    rules.add_rule("io_uring_setup", _refuse_with(errno.ENOSYS))  # it makes sockets, too
    return _pack_filter([*rules.code, _ALLOWED])


def worker_program(machine: str) -> bytes | None:
    """The filter for a worker, as ``job_program`` gives one for a job."""
    if machine not in _ARCHES:
        return None
    rules = _FilterBuilder(machine)
    for name in WORKER_MAY:
        rules.add_rule(name, _ALLOWED)
    # Executable memory only from a file, and Landlock restricts the files.
    rules.add_rule(
        "mmap",
        _load_argument(2),
        (_JSET, 0, 2, _PROT_EXEC),
        _load_argument(3),
        (_JSET, 1, 0, _MAP_ANONYMOUS),
        _ALLOWED,
        _DENIED,
    )
    rules.add_rule("mprotect", _load_argument(2), (_JSET, 1, 0, _PROT_EXEC), _ALLOWED, _DENIED)
    rules.add_rule("openat", _load_argument(2), (_JSET, 1, 0, _WRITE_FLAGS), _ALLOWED, _DENIED)  # only to read
    rules.add_rule("open", _load_argument(1), (_JSET, 1, 0, _WRITE_FLAGS), _ALLOWED, _DENIED)
    # Threads, and the vfork that starts a worker; no plain fork.
    rules.add_rule("clone", _load_argument(0), (_JSET, 0, 1, _CLONE_VFORK | _CLONE_THREAD), _ALLOWED, _DENIED)
    rules.add_rule("clone3", _refuse_with(errno.ENOSYS))  # it hides its flags in memory
    # Limits may be read, not set.
    rules.add_rule(
        "prlimit64", _load_argument(2), (_JEQ, 0, 3, 0), _load_argument(2, True), (_JEQ, 0, 1, 0), _ALLOWED, _DENIED
    )
    rules.add_rule("prctl", _load_argument(0), (_JEQ, 0, 1, PR_SET_NAME), _ALLOWED, _DENIED)
    return _pack_filter([*rules.code, (_JGE, 0, 1, _NEWEST), _refuse_with(errno.ENOSYS), _DENIED])
