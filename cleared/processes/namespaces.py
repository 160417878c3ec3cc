"""Namespaces of the kernel (Linux): what lies outside is mounted read-only, and what is started ends with its first.

A user namespace gives the right to make the others, to root and to anybody else. Some systems refuse that (a container,
a setting of the distribution); ``offered_namespaces`` tries it out.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from stat import S_IROTH
from typing import Final, NoReturn

from msgspec import Struct

from cleared.base.programs import fork_process

NEW_PIDS: Final = 0x20000000
NEW_NETWORK: Final = 0x40000000
_NEW_USER, _NEW_IPC, _NEW_MOUNTS = 0x10000000, 0x08000000, 0x00020000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 4_096, 16_384, 1 << 18
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1
_HIDDEN: Final = ("keys", "key-users", "kallsyms")
"""Files of a new ``/proc`` that tell of the kernel, or of its keyrings; what only root may read is hidden, too."""
_TERMINALS, _OPENED = "/dev/pts", "/dev/ptmx"
SHARED_MEMORY: Final = Path("/dev/shm")


class OfferedNamespaces(Struct, frozen=True):
    """What this kernel gives this user. ``problem``: why something is missing, empty where nothing is."""

    mounts: bool = False
    """What is outside can be mounted read-only, so that nobody inside changes its modes, owners or times."""
    processes: bool = False
    """What is started sees no other process, and ends with the first of it."""
    problem: str = ""


@cache
def offered_namespaces() -> OfferedNamespaces:
    """Tried out once, in processes that end at once."""
    if sys.platform != "linux":
        return OfferedNamespaces(problem="only Linux has namespaces")
    problem = _try_in_child(lambda: enter_namespaces([]))
    if problem:
        return OfferedNamespaces(problem=f"no read-only mounts: {problem}")
    problem = _try_in_child(_try_processes)
    return OfferedNamespaces(True, not problem, f"no process namespace: {problem}" if problem else "")


def _try_processes() -> None:
    enter_namespaces([], NEW_PIDS)
    problem = _try_in_child(mount_own_processes)
    if problem:
        raise OSError(0, problem)


def enter_namespaces(writable: Iterable[str | Path], more: int = 0, *, memory: bool = False) -> None:
    """Be alone in a user, IPC and mount namespace (``more``: and in those), in which only what lies at or below
    ``writable`` can be changed, with terminals of its own (``memory``: and shared memory). Processes that are started
    from now on are in a new process namespace, with ``NEW_PIDS``. Raises ``OSError``."""
    _enter_as_oneself(_NEW_IPC | _NEW_MOUNTS | more)
    _mount(None, "/", _MS_REC | _MS_PRIVATE)
    places = _outermost(writable)
    for place in places:
        _mount(place, place, _MS_BIND | _MS_REC)
    _set_read_only("/", recursive=True)
    for place in places:
        _set_read_only(place, lift=True)
    _mount_own_devices(memory=memory)
    with suppress(OSError):  # of a folder that is gone, or of another user
        os.chdir(Path.cwd())  # the same, through the new mounts


def enter_own_network() -> None:
    """Be alone in a user and network namespace, with nothing in it but loopback. Raises ``OSError``."""
    import fcntl
    import socket

    _enter_as_oneself(NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(plain, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(plain, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _enter_as_oneself(kinds: int) -> None:
    """Enter namespaces of these kinds in a new user namespace, which knows this user and nobody else."""
    user, group = os.getuid(), os.getgid()
    unshare(_NEW_USER | kinds)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def mount_own_processes() -> None:
    """Have ``/proc`` show the processes of this namespace and no others. Raises ``OSError``."""
    _mount("proc", "/proc", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "proc")
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and (entry.name in _HIDDEN or not entry.stat().st_mode & S_IROTH):
                _mount(os.devnull, entry.path, _MS_BIND)


def list_own_terminals() -> tuple[Path, ...]:
    """Where ``enter_namespaces`` puts terminals that are nobody else's, so that a program may use them."""
    return (Path(_TERMINALS), Path(_OPENED)) if Path(_TERMINALS).is_dir() and Path(_OPENED).exists() else ()


def _mount_own_devices(*, memory: bool) -> None:
    if list_own_terminals():
        _mount("devpts", _TERMINALS, _MS_NOSUID | _MS_NOEXEC, "devpts", "newinstance,ptmxmode=0666,mode=0620")
        _mount(f"{_TERMINALS}/ptmx", _OPENED, _MS_BIND)
    if memory:
        _mount("tmpfs", str(SHARED_MEMORY), _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "tmpfs", "mode=1777")


def unshare(flags: int) -> None:
    """Leave the namespaces of these kinds for new ones. Raises ``OSError``."""
    _check(_libc().unshare(flags))


def die_with_parent(number: int) -> None:
    """Get this signal when the thread that started this process ends."""
    _libc().prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def hide_memory() -> None:
    """Have nobody else read the memory of this process, nor the environment that it was started with."""
    _libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def become(body: Callable[[], int]) -> NoReturn:
    """Do this in a process that was just forked, and end it; nothing of what forked it goes on in it."""
    code = 124
    try:
        code = body()
    except BaseException as error:  # noqa: BLE001  (there is nobody above it)
        with suppress(OSError):
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _try_in_child(action: Callable[[], object]) -> str:
    """Do this in a process of its own; what failed, empty where nothing did."""
    reading, writing = os.pipe()
    pid = fork_process()
    if pid == 0:
        os.dup2(writing, 2)

        def attempt() -> int:
            try:
                action()
            except OSError as error:
                os.write(2, (error.strerror or "it failed").encode())
            return 0

        become(attempt)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        problem = said.read().decode("utf-8", "replace")
    os.waitpid(pid, 0)
    return problem


def _outermost(places: Iterable[str | Path]) -> list[str]:
    """Without those that lie in another: nothing can be renamed from one mount to another."""
    found: list[str] = []
    for place in sorted({os.path.realpath(place) for place in places}):
        if not any(os.path.commonpath((place, outer)) == outer for outer in found):
            found.append(place)
    return found


def _mount(source: str | None, target: str, flags: int, kind: str | None = None, options: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _check(_libc().mount(*texts[:3], ctypes.c_ulong(flags), texts[3]))


def _set_read_only(target: str, *, recursive: bool = False, lift: bool = False) -> None:
    attributes = struct.pack("<QQQQ", 0 if lift else _READ_ONLY, _READ_ONLY if lift else 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    size = ctypes.c_size_t(len(attributes))
    _check(_libc().syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, attributes, size))


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
