"""Seccomp filters: a worker may make only the system calls that it needs, others all but those that are refused.

The lists are in ``syscalls``, their numbers in ``syscall_numbers``.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
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
"""FS_IOC_SETFLAGS and its like, which change attributes of open files."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _NETLINK_ROUTE = 1, 2, 10, 16, 0
_TCP, _UDP = 6, 17
_TCP_REPAIR, _TCP_FASTOPEN, _TCP_FASTOPEN_CONNECT, _TCP_FASTOPEN_NO_COOKIE = 19, 23, 30, 34
_IP_OPTIONS, _IP_LOCAL_PORT_RANGE = 4, 51
_MSG_FASTOPEN = 0x20000000
_NETLINK_ADDRESS = 12
"""The length of an address of netlink; those of the Internet are longer, or refused as too short."""
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
_Instruction = tuple[int, int | str, int | str, int]
"""Operation, where to go on if its test holds and if not, value. A label stands for a place; 0 is the next one."""
_Body = list[_Instruction | str]
"""Instructions, and labels, each before the one that it names. Each rule ends with ``allowed`` and ``denied``."""
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
_ENDS: _Body = ["allowed", _ALLOWED, "denied", _DENIED]


def _go_if_any(values: Iterable[int], label: str) -> _Body:
    """Go on at ``label`` where what was loaded is one of these."""
    return [(_JEQ, label, 0, value) for value in values]


def _go_if_set(bits: int, label: str) -> _Body:
    """Go on at ``label`` where what was loaded has one of these bits."""
    return [(_JSET, label, 0, bits)]


def _assemble(body: Iterable[_Instruction | str]) -> _Code:
    """Replace labels by the distances to them."""
    instructions = list[_Instruction]()
    places = dict[int | str, int]()
    for part in body:
        if isinstance(part, str):
            places[part] = len(instructions)
        else:
            instructions.append(part)
    return [
        (operation, places[true] - at if true else 0, places[false] - at if false else 0, value)
        for at, (operation, true, false, value) in enumerate(instructions, 1)
    ]


class _FilterBuilder:
    """Builds the code of a filter for one machine, rule by rule."""

    def __init__(self, machine: str) -> None:
        arch, self._column = _ARCHES[machine]
        self.code = _filter_prologue(arch, self._column)

    def add_rule(self, name: str, *body: _Instruction | str) -> None:
        """Add the code for one system call: what is returned, or instructions, at whose end the call is allowed."""
        number = NUMBERS[name][self._column]
        if number >= 0:
            code = _assemble([*body, *(_ENDS if len(body) > 1 else ())])
            self.code += [(_JEQ, 0, len(code), number), *code]


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
    binds: bool = True,
    forks: Literal["free", "asked"] = "free",
) -> bytes | None:
    """The filter for jobs, verification commands, commands of a session and engines, as an array of ``struct
    sock_filter``; ``None`` on a machine that it is not written for.

    It refuses access to other processes and to the machine, what processes share outside of files, and sockets.
    ``own``: a job of this package, which sets the limits of its workers and kills them. ``scoped``: Landlock, or a
    process namespace, confines signals; where neither does, the processes in ``guarded`` get none. ``truncates``:
    Landlock, before its third ABI, lets it truncate what it may read; so what truncates without writing is refused.
    ``binds``: whether it may bind sockets in the machine's network; Landlock confines that from its fourth ABI on.
    ``forks``: whether who listens is asked before there is another process; where nobody is left, there is none.
    """
    if machine not in _ARCHES:
        return None
    rules = _FilterBuilder(machine)
    for name in CONFINED_MAY_NOT:
        rules.add_rule(name, _DENIED)
    _add_sockets(rules, network, binds)
    _add_files(rules, truncates=truncates)
    _add_attributes(rules, attributes)
    rules.add_rule("openat2", _refuse_with(errno.ENOSYS))  # it hides the mode in memory
    rules.add_rule(
        "clone3", _refuse_with(errno.ENOSYS)
    )  # it hides its flags in memory; the C library falls back to clone
    made = _ASKED if forks == "asked" else _ALLOWED
    threads = _go_if_set(_CLONE_THREAD, "allowed")
    rules.add_rule("clone", _load_argument(0), *_go_if_set(_NEW_NAMESPACES, "denied"), *threads, made)
    for name in MAKING_PROCESSES:
        rules.add_rule(name, made)
    kept = (_PER_LINUX, _MINUS_ONE)  # it sets what is, or asks
    rules.add_rule("personality", _load_argument(0), *_go_if_any(kept, "allowed"), _DENIED)
    _add_priorities(rules)
    _add_owners_of_files(rules, own=own, attributes=attributes)
    if not own:
        rules.add_rule("prlimit64", _load_argument(0), *_go_if_any([0], "allowed"), _DENIED)
        if not scoped:
            rules.add_rule("pidfd_send_signal", _DENIED)
    numbers = [_MINUS_ONE] if scoped else [_MINUS_ONE, *(n & _MINUS_ONE for pid in guarded for n in (pid, -pid))]
    for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        rules.add_rule(name, _load_argument(0), *_go_if_any(numbers, "denied"))
    return _pack_filter([*rules.code, (_JGE, 0, 1, NEWEST_FOR_CONFINED), _refuse_with(errno.ENOSYS), _ALLOWED])


def _add_sockets(rules: _FilterBuilder, network: Network, binds: bool) -> None:
    """No sockets but of the Internet where there is a network; never those of the file system: what listens there
    (tmux, docker, the system's services) is held by nothing. Of pairs only those that are connected for good. No server
    in the machine's network: on loopback it would get what others send to a port of this user's, links and cookies too.
    """
    if network != "own":
        rules.add_rule("listen", _DENIED)
    if network == "none":
        rules.add_rule("socket", _DENIED)
    else:
        rules.add_rule(
            "socket",
            _load_argument(0),
            *_go_if_any([_AF_INET, _AF_INET6], "internet"),
            *_go_if_any([_AF_NETLINK] if network == "machine" else [], "netlink"),
            _DENIED,
            "internet",
            _load_argument(2),
            *_go_if_any([0, _TCP, _UDP], "allowed"),  # MPTCP, SCTP and the like pass by the walls for TCP
            _DENIED,
            "netlink",
            _load_argument(2),
            *_go_if_any([_NETLINK_ROUTE], "allowed"),
            _DENIED,
        )
        _add_waiting_sockets(rules)
    if network == "machine" and not binds:
        rules.add_rule("bind", _load_argument(2), *_go_if_any([_NETLINK_ADDRESS], "allowed"), _DENIED)
    rules.add_rule(
        "socketpair",
        _load_argument(0),
        *_go_if_any([_AF_UNIX], "unix"),
        _DENIED,
        "unix",
        _load_argument(1),
        (_AND, 0, 0, _SOCKET_TYPES),
        *_go_if_any([_SOCK_STREAM, _SOCK_SEQPACKET], "allowed"),
        _DENIED,
    )


def _add_waiting_sockets(rules: _FilterBuilder) -> None:
    """No socket that waits for the other side of a connection that it has not begun: TCP lets two sides that call each
    other be joined without a listener, and so what somebody else's program sends to a port would come here."""
    of_tcp = [_TCP_REPAIR, _TCP_FASTOPEN, _TCP_FASTOPEN_CONNECT, _TCP_FASTOPEN_NO_COOKIE]
    rules.add_rule(
        "setsockopt",
        _load_argument(1),
        *_go_if_any([_TCP], "tcp"),
        *_go_if_any([0], "ip"),
        _ALLOWED,
        "tcp",
        _load_argument(2),
        *_go_if_any(of_tcp, "denied"),
        _ALLOWED,
        "ip",
        _load_argument(2),
        *_go_if_any([_IP_LOCAL_PORT_RANGE, _IP_OPTIONS], "denied"),
    )
    for name, place in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        rules.add_rule(name, _load_argument(place), *_go_if_set(_MSG_FASTOPEN, "denied"))


def _add_files(rules: _FilterBuilder, *, truncates: bool) -> None:
    """No new file that others would run with this user's rights."""
    for name, place in MAKING_FILES:
        rules.add_rule(name, *_unless_set_id(place))
    for name, place in (("open", 1), ("openat", 2)):
        flags, truncating = _load_argument(place), (_AND, 0, 0, _ACCESS | _TRUNCATES)
        emptying: _Body = [flags, truncating, *_go_if_any([_TRUNCATES], "denied")] if truncates else []
        made = _go_if_set(_MAKES_FILE, "made")  # what makes no file has no mode
        rules.add_rule(name, *emptying, flags, *made, _ALLOWED, "made", *_unless_set_id(place + 1))
    if truncates:
        rules.add_rule("truncate", _DENIED)


def _unless_set_id(place: int) -> _Body:
    """A call with a mode is refused where others would run the file as its owner or group."""
    return [_load_argument(place), *_go_if_set(_SET_ID, "denied")]


def _add_attributes(rules: _FilterBuilder, attributes: Attributes) -> None:
    """A filter cannot see whose a file is. Where nobody is asked, modes, times and owners seem to be set, as programs
    (git, tar, cp) do not go on without; extended attributes are said not to be there."""
    action = {"own": _ALLOWED, "asked": _ASKED, "none": _PRETENDED}[attributes]
    for name, place in CHANGING_MODES:
        rules.add_rule(name, *_unless_set_id(place), action)
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
        rules.add_rule(name, _load_argument(0), *_go_if_any([0], "allowed"), _DENIED)
    for name, whole_user in (("setpriority", _PRIO_USER), ("ioprio_set", _IOPRIO_USER)):
        kinds = _load_argument(0), (_JGE, "denied", 0, whole_user)
        rules.add_rule(name, _load_argument(1), *_go_if_any([0], "itself"), _DENIED, "itself", *kinds)


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
        rules.add_rule(name, _load_argument(1), *_go_if_any(refused, "denied"))


@cache
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
        *_go_if_set(_PROT_EXEC, "executable"),
        _ALLOWED,
        "executable",
        _load_argument(3),
        *_go_if_set(_MAP_ANONYMOUS, "denied"),
    )
    rules.add_rule("mprotect", _load_argument(2), *_go_if_set(_PROT_EXEC, "denied"))
    rules.add_rule("openat", _load_argument(2), *_go_if_set(_WRITE_FLAGS, "denied"))  # only to read
    rules.add_rule("open", _load_argument(1), *_go_if_set(_WRITE_FLAGS, "denied"))
    # Threads, and the vfork that starts a worker; no plain fork.
    rules.add_rule("clone", _load_argument(0), *_go_if_set(_CLONE_VFORK | _CLONE_THREAD, "allowed"), _DENIED)
    rules.add_rule("clone3", _refuse_with(errno.ENOSYS))  # it hides its flags in memory
    # Limits may be read, not set.
    low, high = _load_argument(2), _load_argument(2, True)
    rules.add_rule(
        "prlimit64", low, *_go_if_any([0], "low"), _DENIED, "low", high, *_go_if_any([0], "allowed"), _DENIED
    )
    rules.add_rule("prctl", _load_argument(0), *_go_if_any([PR_SET_NAME], "allowed"), _DENIED)
    return _pack_filter([*rules.code, (_JGE, 0, 1, _NEWEST), _refuse_with(errno.ENOSYS), _DENIED])
