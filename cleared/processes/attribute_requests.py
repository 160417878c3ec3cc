"""Changes modes and times of files for a confined program, where nothing can be mounted read-only; lets it make
processes, where the kernel does not end them all, until it is to end.

Landlock has no rule for them, and a filter cannot see whose a file is. So the filter has the kernel ask: the call
waits, and the guard of the program (``fenced_start``) looks which file is meant, and changes it itself where the
program may write it. What the program does to its memory meanwhile changes nothing: the guard acts on the file that it
has looked at, and never lets that call itself go on.

Source: ``seccomp_unotify(2)``, and the kernel's ``include/uapi/linux/seccomp.h``.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import select
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.processes.syscall_numbers import NUMBERS
from cleared.processes.syscalls import CHANGING_MODES, CHANGING_TIMES, MAKING_PROCESSES

_RECEIVE, _SEND, _IS_WAITING = 0xC0502100, 0xC0182101, 0x40082102
_REQUEST: Final = struct.Struct("<QIIiIQ6Q")
"""Id, thread, flags, then the call: number, machine, place in the program, arguments."""
_ANSWER: Final = struct.Struct("<QqiI")
_GO_ON: Final = 1
"""The filter itself has looked at the flags, which are no pointer: nobody changes them meanwhile."""
_MAKING: Final = ("clone", *MAKING_PROCESSES)
_AT_FDCWD, _AT_SYMLINK_NOFOLLOW, _AT_EMPTY_PATH = -100, 0x100, 0x1000
_MAX_PATH: Final = 4_096
_TIMES: Final = 32
"""Bytes of two ``struct timespec``."""
_OWN_NAMES: Final = (b"/proc/self/", b"/proc/thread-self/", b"/dev/fd/")
"""What means another file for whoever looks it up: that of the program is meant."""


class _Call(Struct, frozen=True):
    """``folder``: a descriptor, or that of the working directory; ``path``: its address, 0 where the descriptor itself
    is meant; ``value``: a mode, or the address of times."""

    folder: int
    path: int
    value: int
    flags: int = 0


def answer_requests(listener: int, writable: Sequence[Path], is_ending: Callable[[], bool]) -> None:
    """Answer until nothing is left that could ask. ``writable``: real paths. ``is_ending``: whether there are to be no
    more processes: those that are there can then be ended one by one, and none is made meanwhile."""
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    while True:
        if any(events & (select.POLLHUP | select.POLLERR) for _, events in waiting.poll()):
            return
        request = bytearray(_REQUEST.size)
        with suppress(OSError):  # who asked has ended meanwhile
            fcntl.ioctl(listener, _RECEIVE, request)
            identity, _, _, number, *_ = _REQUEST.unpack(request)
            goes_on = _names().get(number) in _MAKING and not is_ending()
            if _names().get(number) in _MAKING:
                problem = 0 if goes_on else errno.EAGAIN
            else:
                problem = _do_request(listener, bytes(request), writable)
            fcntl.ioctl(listener, _SEND, _ANSWER.pack(identity, 0, -problem, _GO_ON if goes_on else 0))


def _do_request(listener: int, request: bytes, writable: Sequence[Path]) -> int:
    """Change what is asked for; the number of the error, 0 where there is none."""
    identity, thread, _, number, _, _, *arguments = _REQUEST.unpack(request)
    name = _names().get(number, "")
    try:
        call = _read_call(name, arguments)
        with _open_memory(thread) as read, _open_meant(thread, call, read) as meant:
            times = read(call.value, _TIMES) if name in CHANGING_TIMES and call.value else None
            if times is not None and len(times) < _TIMES:
                return errno.EFAULT
            fcntl.ioctl(listener, _IS_WAITING, struct.pack("<Q", identity))  # so the thread was no other's meanwhile
            itself = Path(f"/proc/self/fd/{meant}")
            if not any(itself.readlink().is_relative_to(folder) for folder in writable):
                return errno.EPERM
            if name in CHANGING_TIMES:
                return _set_times(meant, times)
            itself.chmod(call.value & 0o1777)
    except OSError as error:
        return error.errno or errno.EPERM
    except Exception:  # noqa: BLE001  (who asks waits for an answer)
        return errno.EPERM
    return 0


def _read_call(name: str, arguments: Sequence[int]) -> _Call:
    if name == "chmod":
        return _Call(_AT_FDCWD, arguments[0], arguments[1])
    descriptor = ctypes.c_int(arguments[0] & 0xFFFFFFFF).value
    if name == "fchmod":
        return _Call(descriptor, 0, arguments[1])
    return _Call(descriptor, arguments[1], arguments[2], 0 if name == "fchmodat" else arguments[3])


@contextmanager
def _open_memory(thread: int) -> Iterator[Callable[[int, int], bytes]]:
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def read(address: int, size: int) -> bytes:
        try:
            return os.pread(memory, size, address)
        except (OSError, OverflowError):  # nothing is there, or nothing can be
            raise OSError(errno.EFAULT, "no such address") from None

    try:
        yield read
    finally:
        os.close(memory)


@contextmanager
def _open_meant(thread: int, call: _Call, read: Callable[[int, int], bytes]) -> Iterator[int]:
    """The file that a call means, opened for nothing but to be told from others. Raises ``OSError``."""
    path, end, _ = read(call.path, _MAX_PATH).partition(b"\0") if call.path else (b"", b"\0", b"")
    if not end:
        raise OSError(errno.ENAMETOOLONG if len(path) == _MAX_PATH else errno.EFAULT, "no path")
    if call.path and not path and not call.flags & _AT_EMPTY_PATH:
        raise OSError(errno.ENOENT, "no path")
    where = f"/proc/{thread}/" + ("cwd" if call.folder == _AT_FDCWD else f"fd/{call.folder}")
    opened = []
    try:
        if not path.startswith(b"/"):
            opened.append(os.open(where, os.O_PATH | os.O_CLOEXEC))
        if path:
            own = next((name for name in _OWN_NAMES if path.startswith(name)), b"")
            if own:
                path = f"/proc/{thread}/{'fd/' if own.startswith(b'/dev') else ''}".encode() + path.removeprefix(own)
            flags = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if call.flags & _AT_SYMLINK_NOFOLLOW else 0)
            opened.append(os.open(path, flags, dir_fd=opened[0] if opened else None))
        yield opened[-1]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _set_times(meant: int, times: bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return ctypes.get_errno() if libc.utimensat(meant, b"", times, _AT_EMPTY_PATH) else 0


@cache
def _names() -> dict[int, str]:
    column = 0 if platform.machine() == "x86_64" else 1
    return {NUMBERS[name][column]: name for name in (*dict(CHANGING_MODES), *CHANGING_TIMES, *_MAKING)}
