"""Seccomp filters: a worker may make only the system calls that it needs, others all but those that are refused.

The lists are in ``syscalls``, their numbers in ``syscall_numbers``.
"""

from __future__ import annotations

import errno
import struct
from functools import cache
from typing import Literal

from cleared.processes.syscall_numbers import NUMBERS
from cleared.processes.syscalls import (
    CHANGING_EXTENDED,
    CHANGING_MODES,
    CHANGING_OWNERS,
    CHANGING_TIMES,
    CHANGING_TIMES_BEFORE,
    CONFINED_MAY_NOT,
    MAKING_FILES,
    MAKING_PROCESSES,
    NEWEST_FOR_CONFINED,
    READING_EXTENDED,
    WORKER_MAY,
)

# machine → (AUDIT_ARCH, column of NUMBERS)
_ARCHES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
PR_SET_NAME = 15

_LD, _AND, _JEQ, _JGE, _JSET, _RET = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ASK = 0x7FC00000
_NR, _ARCH, _ARGS = 0, 4, 16

_WRITE_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000  # O_WRONLY O_RDWR O_CREAT O_TRUNC __O_TMPFILE
_PROT_EXEC, _MAP_ANONYMOUS = 0x4, 0x20
_CLONE_VFORK, _CLONE_THREAD = 0x4000, 0x10000
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET
_PRIO_USER, _IOPRIO_USER = 2, 3
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _FIOSETOWN, _SIOCSPGRP = 8, 10, 15, 0x8901, 0x8902
_F_SETLEASE, _F_NOTIFY = 1024, 1026
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_SET_FLAGS = (0x40086602, 0x40046602, 0x40087602, 0x401C5820, 0x40806685)
"""``FS_IOC_SETFLAGS`` and its like, which change attributes of open files."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _NETLINK_ROUTE = 1, 2, 10, 16, 0
_TCP, _UDP = 6, 17
_TCP_REPAIR, _TCP_FASTOPEN, _TCP_FASTOPEN_CONNECT, _TCP_FASTOPEN_NO_COOKIE = 19, 23, 30, 34
_IP_OPTIONS, _IP_LOCAL_PORT_RANGE = 4, 51
_MSG_FASTOPEN = 0x20000000
_SOCKET_TYPES, _SOCK_STREAM, _SOCK_SEQPACKET = 0xF, 1, 5
_PER_LINUX = 0
_SET_ID = 0o6000
_MAKES_FILE = 0o100 | 0o20000000  # O_CREAT __O_TMPFILE
_ACCESS, _TRUNCATES = 0o3, 0o1000  # O_ACCMODE O_TRUNC
_MINUS_ONE = 0xFFFFFFFF
# Newer calls are refused as not existing, so that the C library falls back to an older one.
_NEWEST = 434

Network = Literal["none", "own", "machine"]
"""``own``: Internet sockets, in a network namespace with nothing else in it. ``machine``: those of the machine, and its
list of addresses; nothing listens on them."""
Attributes = Literal["own", "asked", "none"]
"""Whose modes, owners and times of files may be changed. ``own``: all that are not mounted read-only. ``asked``: who
listens is asked, and does it (``attribute_requests``). ``none``: nobody's."""
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
_ASKED = (_RET, 0, 0, _ASK)
_PRETENDED = _refuse_with(0)


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
def confined_program(
    machine: str,
    *,
    own: bool = False,
    scoped: bool = True,
    guarded: tuple[int, ...] = (),
    network: Network = "none",
    attributes: Attributes = "own",
    truncates: bool = False,
    forks: Literal["free", "asked"] = "free",
) -> bytes | None:
    """The filter for jobs, verification commands, commands of a session and engines, as an array of ``struct
    sock_filter``; ``None`` on a machine that it is not written for.

    It refuses access to other processes and to the machine, what processes share outside of files, and sockets.
    ``own``: a job of this package, which sets the limits of its workers and kills them. ``scoped``: Landlock, or a
    process namespace, confines signals; where neither does, the processes in ``guarded`` get none. ``truncates``:
    Landlock, before its third ABI, lets it truncate what it may read; so what truncates without writing is refused.
    ``forks``: whether who listens is asked before there is another process; where nobody is left, there is none.
    """
    if machine not in _ARCHES:
        return None
    rules = _FilterBuilder(machine)
    for name in CONFINED_MAY_NOT:
        rules.add_rule(name, _DENIED)
    _add_sockets(rules, network)
    _add_files(rules, truncates=truncates)
    _add_attributes(rules, attributes)
    rules.add_rule("openat2", _refuse_with(errno.ENOSYS))  # it hides the mode in memory
    rules.add_rule(
        "clone3", _refuse_with(errno.ENOSYS)
    )  # it hides its flags in memory; the C library falls back to clone
    made = _ASKED if forks == "asked" else _ALLOWED
    no_namespaces = (_JSET, 0, 1, _NEW_NAMESPACES), _DENIED
    rules.add_rule("clone", _load_argument(0), *no_namespaces, (_JSET, 0, 1, _CLONE_THREAD), _ALLOWED, made)
    for name in MAKING_PROCESSES:
        rules.add_rule(name, made)
    kept = (_JEQ, 2, 0, _PER_LINUX), (_JEQ, 1, 0, _MINUS_ONE)  # it asks, or sets what is
    rules.add_rule("personality", _load_argument(0), *kept, _DENIED, _ALLOWED)
    _add_priorities(rules)
    _add_owners_of_files(rules, own=own, attributes=attributes)
    if not own:
        rules.add_rule("prlimit64", _load_argument(0), (_JEQ, 0, 1, 0), _ALLOWED, _DENIED)
        if not scoped:
            rules.add_rule("pidfd_send_signal", _DENIED)
    numbers = [_MINUS_ONE] if scoped else [_MINUS_ONE, *(n & _MINUS_ONE for pid in guarded for n in (pid, -pid))]
    same = [(_JEQ, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        rules.add_rule(name, _load_argument(0), *same, _ALLOWED, _DENIED)
    return _pack_filter([*rules.code, (_JGE, 0, 1, NEWEST_FOR_CONFINED), _refuse_with(errno.ENOSYS), _ALLOWED])


def _add_sockets(rules: _FilterBuilder, network: Network) -> None:
    """No sockets but of the Internet where there is a network; never those of the file system: what listens there
    (tmux, docker, the system's services) is held by nothing. Of pairs only those that are connected for good. No server
    in the machine's network: on loopback it would get what others send to a port of this user's, links and cookies too.
    """
    if network != "own":
        rules.add_rule("listen", _DENIED)
    if network == "none":
        rules.add_rule("socket", _DENIED)
    else:
        routes = _AF_NETLINK if network == "machine" else _AF_INET
        rules.add_rule(
            "socket",
            _load_argument(0),
            (_JEQ, 2, 0, _AF_INET),
            (_JEQ, 1, 0, _AF_INET6),
            (_JEQ, 5, 4, routes),
            _load_argument(2),  # MPTCP, SCTP and the like pass by the walls for TCP
            (_JEQ, 6, 0, 0),
            (_JEQ, 5, 0, _TCP),
            (_JEQ, 4, 0, _UDP),
            _DENIED,
            _load_argument(2),
            (_JEQ, 1, 0, _NETLINK_ROUTE),
            _DENIED,
            _ALLOWED,
        )
        _add_waiting_sockets(rules)
    rules.add_rule(
        "socketpair",
        _load_argument(0),
        (_JEQ, 0, 5, _AF_UNIX),
        _load_argument(1),
        (_AND, 0, 0, _SOCKET_TYPES),
        (_JEQ, 1, 0, _SOCK_STREAM),
        (_JEQ, 0, 1, _SOCK_SEQPACKET),
        _ALLOWED,
        _DENIED,
    )


def _add_waiting_sockets(rules: _FilterBuilder) -> None:
    """No socket that waits for the other side of a connection that it has not begun: TCP lets two sides that call each
    other be joined without a listener, and so what somebody else's program sends to a port would come here."""
    denied = [_TCP_REPAIR, _TCP_FASTOPEN, _TCP_FASTOPEN_CONNECT, _TCP_FASTOPEN_NO_COOKIE]
    of_ip = [_IP_LOCAL_PORT_RANGE, _IP_OPTIONS]
    count = len(denied) + len(of_ip)
    rules.add_rule(
        "setsockopt",
        _load_argument(1),
        (_JEQ, 2, 0, _TCP),
        (_JEQ, 3 + len(denied), 0, 0),
        _ALLOWED,
        _load_argument(2),
        *((_JEQ, 2 + count - at, 0, option) for at, option in enumerate(denied)),
        _ALLOWED,
        _load_argument(2),
        *((_JEQ, len(of_ip) - at, 0, option) for at, option in enumerate(of_ip)),
        _ALLOWED,
        _DENIED,
    )
    for name, place in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        rules.add_rule(name, _load_argument(place), (_JSET, 0, 1, _MSG_FASTOPEN), _DENIED, _ALLOWED)


def _add_files(rules: _FilterBuilder, *, truncates: bool) -> None:
    """No new file that others would run with this user's rights."""
    for name, place in MAKING_FILES:
        rules.add_rule(name, *_unless_set_id(place, _ALLOWED))
    for name, place in (("open", 1), ("openat", 2)):
        flags, checked = _load_argument(place), _unless_set_id(place + 1, _ALLOWED)
        emptying = [flags, (_AND, 0, 0, _ACCESS | _TRUNCATES), (_JEQ, 0, 1, _TRUNCATES), _DENIED] if truncates else []
        # What makes no file has no mode.
        rules.add_rule(name, *emptying, flags, (_JSET, 0, len(checked), _MAKES_FILE), *checked, _ALLOWED)
    if truncates:
        rules.add_rule("truncate", _DENIED)


def _unless_set_id(place: int, action: tuple[int, int, int, int]) -> _Code:
    """The end of a rule for a call with a mode: refused where others would run the file as its owner or group."""
    return [_load_argument(place), (_JSET, 0, 1, _SET_ID), _DENIED, action]


def _add_attributes(rules: _FilterBuilder, attributes: Attributes) -> None:
    """A filter cannot see whose a file is. Where nobody is asked, modes, times and owners seem to be set, as programs
    (git, tar, cp) do not go on without; extended attributes are said not to be there."""
    action = {"own": _ALLOWED, "asked": _ASKED, "none": _PRETENDED}[attributes]
    for name, place in CHANGING_MODES:
        rules.add_rule(name, *_unless_set_id(place, action))
    for name in READING_EXTENDED:
        rules.add_rule(name, _refuse_with(errno.ENOTSUP))
    if attributes == "own":
        return
    for name in CHANGING_TIMES:
        rules.add_rule(name, action)
    for name in (*CHANGING_TIMES_BEFORE, *CHANGING_OWNERS):
        rules.add_rule(name, _PRETENDED)
    for name in CHANGING_EXTENDED:
        rules.add_rule(name, _refuse_with(errno.ENOTSUP))


def _add_priorities(rules: _FilterBuilder) -> None:
    """Only of the calling process itself, which is 0; its own number is not known here."""
    for name in ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"):
        rules.add_rule(name, _load_argument(0), (_JEQ, 0, 1, 0), _ALLOWED, _DENIED)
    for name, whole_user in (("setpriority", _PRIO_USER), ("ioprio_set", _IOPRIO_USER)):
        rules.add_rule(
            name, _load_argument(1), (_JEQ, 0, 3, 0), _load_argument(0), (_JGE, 1, 0, whole_user), _ALLOWED, _DENIED
        )


def _add_owners_of_files(rules: _FilterBuilder, *, own: bool, attributes: Attributes) -> None:
    """A file's owner gets signals with a number that the process chooses; whoever has a lease on a file, which reading
    it is enough for, makes others wait for it; a terminal takes input for typed."""
    commands = [_F_SETLEASE, _F_NOTIFY, *(() if own else (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX))]
    requests = [
        _TIOCSTI,
        _TIOCLINUX,
        *(() if own else (_FIOSETOWN, _SIOCSPGRP)),
        *(() if attributes == "own" else _SET_FLAGS),
    ]
    for name, refused in (("fcntl", commands), ("ioctl", requests)):
        same = [(_JEQ, len(refused) - at, 0, request) for at, request in enumerate(refused)]
        rules.add_rule(name, _load_argument(1), *same, _ALLOWED, _DENIED)


def worker_program(machine: str) -> bytes | None:
    """The filter for a worker, as ``confined_program`` gives one."""
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
