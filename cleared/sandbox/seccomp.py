"""System calls as seccomp filters: those that an interpreter's worker needs and nothing else; those a job must not.

Source of the numbers: the kernel's ``syscall_64.tbl`` and ``asm-generic/unistd.h``.
"""

from __future__ import annotations

import errno
import struct

# machine → (AUDIT_ARCH, column in the tables below)
_ARCHES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
PR_SET_NAME = 15

# What always may happen: its own memory, its open pipes, its threads, its end, the clock.
_PLAIN: dict[str, tuple[int, int]] = {
    "read": (0, 63),
    "write": (1, 64),
    "futex": (202, 98),
    "poll": (7, -1),
    "ppoll": (271, 73),
    "madvise": (28, 233),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mremap": (25, 216),
    "readv": (19, 65),
    "writev": (20, 66),
    "close": (3, 57),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "lseek": (8, 62),
    "pread64": (17, 67),
    "getdents64": (217, 61),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "dup": (32, 23),
    "dup2": (33, -1),
    "dup3": (292, 24),
    "fcntl": (72, 25),
    "pipe2": (293, 59),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "membarrier": (324, 283),
    "getrandom": (318, 278),
    "gettid": (186, 178),
    "getpid": (39, 172),
    "set_tid_address": (218, 96),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "arch_prctl": (158, -1),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "getrlimit": (97, 163),
    "uname": (63, 160),
    "getcwd": (79, 17),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # for the host's thread, which starts the worker under the same filter
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "eventfd2": (290, 19),
    "pidfd_open": (434, 434),
    "wait4": (61, 260),
    "waitid": (247, 95),
    "execve": (59, 221),  # only of the worker's own program: Landlock
}

_LD, _AND, _JEQ, _JGE, _JSET, _RET = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_NR, _ARCH, _ARGS = 0, 4, 16

_WRITE_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000  # O_WRONLY O_RDWR O_CREAT O_TRUNC __O_TMPFILE
_PROT_EXEC, _MAP_ANONYMOUS = 0x4, 0x20
_CLONE_VFORK, _CLONE_THREAD = 0x4000, 0x10000
# A call newer than this filter does not exist, so that the C library falls back to an older one.
_NEWEST = 434


_Code = list[tuple[int, int, int, int]]


def _prologue(arch: int, column: int) -> _Code:
    """Refuse what is of another machine, and leave the call's number to be looked at."""
    code: _Code = [(_LD, 0, 0, _ARCH), (_JEQ, 1, 0, arch), (_RET, 0, 0, _KILL), (_LD, 0, 0, _NR)]
    if column == 0:
        code += [(_JGE, 0, 1, 0x40000000), (_RET, 0, 0, _KILL)]  # the x32 numbers
    return code


def _refuse(code: int) -> tuple[int, int, int, int]:
    return _RET, 0, 0, 0x00050000 | code


def _packed(code: _Code) -> bytes:
    """As an array of ``struct sock_filter``."""
    return b"".join(struct.pack("<HBBI", op, true, false, k) for op, true, false, k in code)


_JOB_REFUSED: dict[str, tuple[int, int]] = {
    "socket": (41, 198),  # those of files too: what listens there (tmux, docker) is not held by anything
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "mount": (165, 40),
    "unshare": (272, 97),
    "setns": (308, 268),
    "io_uring_setup": (425, 425),
}


def job_program(machine: str) -> bytes | None:
    """A filter for whole programs: no sockets, and no reaching into other processes; all else may happen."""
    if machine not in _ARCHES:
        return None
    arch, column = _ARCHES[machine]
    code = _prologue(arch, column)
    for numbers in _JOB_REFUSED.values():
        code += [(_JEQ, 0, 1, numbers[column]), _refuse(errno.EPERM)]
    return _packed([*code, (_RET, 0, 0, _ALLOW)])


def program(machine: str) -> bytes | None:
    """The filter as an array of ``struct sock_filter``; ``None`` on a machine it is not written for."""
    if machine not in _ARCHES:
        return None
    arch, column = _ARCHES[machine]

    def arg(index: int, high: bool = False) -> tuple[int, int, int, int]:
        return _LD, 0, 0, _ARGS + 8 * index + (4 if high else 0)

    allow, no = (_RET, 0, 0, _ALLOW), _refuse(errno.EPERM)
    code = _prologue(arch, column)
    for number in (numbers[column] for numbers in _PLAIN.values()):
        if number >= 0:
            code += [(_JEQ, 0, 1, number), allow]

    def rule(numbers: tuple[int, int], body: list[tuple[int, int, int, int]]) -> None:
        if numbers[column] >= 0:
            code.extend([(_JEQ, 0, len(body), numbers[column]), *body])

    # No new executable memory but from a file, and Landlock says which files.
    rule((9, 222), [arg(2), (_JSET, 0, 2, _PROT_EXEC), arg(3), (_JSET, 1, 0, _MAP_ANONYMOUS), allow, no])
    rule((10, 226), [arg(2), (_JSET, 1, 0, _PROT_EXEC), allow, no])
    rule((257, 56), [arg(2), (_JSET, 1, 0, _WRITE_FLAGS), allow, no])  # openat: only to read
    rule((2, -1), [arg(1), (_JSET, 1, 0, _WRITE_FLAGS), allow, no])
    # Threads, and the vfork that starts a worker; no plain fork.
    rule((56, 220), [arg(0), (_JSET, 0, 1, _CLONE_VFORK | _CLONE_THREAD), allow, no])
    rule((435, 435), [_refuse(errno.ENOSYS)])  # clone3 hides its flags in memory
    # Limits may be read, not set.
    rule((302, 261), [arg(2), (_JEQ, 0, 3, 0), arg(2, True), (_JEQ, 0, 1, 0), allow, no])
    rule((157, 167), [arg(0), (_JEQ, 0, 1, PR_SET_NAME), allow, no])
    code += [(_JGE, 0, 1, _NEWEST), _refuse(errno.ENOSYS), no]
    return _packed(code)
