"""Starts a program in its fence: whatever it starts is confined as it is, and ends with it.

Between whoever starts it and the program there is a guard, and where the kernel gives a process namespace its first
process, too. When the guard's parent is killed, the guard ends all of it; in a process namespace the kernel does, also
when somebody kills the guard. The guard cannot be reached from inside.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISCHR
from types import FrameType
from typing import Any, Final

from msgspec.structs import replace

from cleared.base.process_identity import PARENT, read_stat
from cleared.base.programs import INTERRUPTS, blocked_signals
from cleared.processes import leftovers
from cleared.processes.attribute_requests import answer_requests
from cleared.processes.confinement import (
    ConfinementUnavailable,
    core_limit,
    drop_capabilities,
    install_filter,
    restrict_thread,
)
from cleared.processes.fences import Fence
from cleared.processes.namespaces import (
    NEW_NETWORK,
    NEW_PIDS,
    become,
    die_with_parent,
    enter_namespaces,
    hide_memory,
    mount_own_processes,
    unshare,
)
from cleared.processes.seccomp import Attributes

_PASSED_ON: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_ORPHANED: Final = signal.SIGIO
"""What the guard gets when its parent ends, where there is no process namespace that the kernel ends."""
_UNCONFINED: Final = 125
_MOST_ABOVE: Final = 32
_KEPT: Final = 3
"""The descriptor that guard and first process keep."""
_ending: Final = threading.Event()
"""In a guard: whether what is left of its program is being ended."""


def start_fenced(fence: Fence | None, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program in its fence; with None nothing holds it. ``options``: as for ``subprocess.Popen``; a session or
    process group of its own is among them. The calling thread must live as long as the program: it ends with that
    thread. Signals to the process that is returned reach the program's process group; SIGKILL ends all of it.

    Raises ``ConfinementUnavailable`` where the kernel refuses a wall, ``OSError`` where it cannot be started.
    """
    if fence is None:
        return subprocess.Popen(argv, **options)
    reading, report = os.pipe()
    above = _list_processes_above()
    try:
        with blocked_signals(*INTERRUPTS) as blocked:  # as ``fork_process`` does
            process = subprocess.Popen(argv, preexec_fn=lambda: _enter_fence(fence, report, above, blocked), **options)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(report)
    with os.fdopen(reading, "rb") as said:
        problem = said.read().decode("utf-8", "replace")
    if problem:
        process.wait()
        raise ConfinementUnavailable(
            f"the program cannot be confined: {problem}",
            remedy="See that the folder of your key (CLEARED_HOME) lies in none that programs are in.",
        )
    return process


def _list_processes_above() -> tuple[int, ...]:
    """This process, its parent and so on: a program that could stop one of these could switch off its own end."""
    pid, found = os.getpid(), list[int]()
    while pid > 0 and len(found) < _MOST_ABOVE:
        found.append(pid)
        fields = read_stat(pid)
        pid = int(fields[PARENT]) if fields is not None else 0
    return tuple(found)


def _enter_fence(fence: Fence, report: int, above: tuple[int, ...], blocked: Collection[int]) -> None:
    """In the process that was just forked: returns in the one that becomes the program, behind all walls. ``blocked``:
    the signals that it is to hold back."""
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (core_limit(), core_limit()))
        if fence.own_processes:
            _enter_process_namespace(fence, above[0])
        else:
            _enter_guarded(fence, above)
    except (OSError, ConfinementUnavailable) as error:
        with suppress(OSError):
            os.write(report, (str(error) or type(error).__name__).encode("utf-8", "replace"))
        os._exit(_UNCONFINED)


def _enter_process_namespace(fence: Fence, parent: int) -> None:
    """Guard, first process, program. The kernel ends the first when the guard dies, and all others with the first."""
    _follow_parent(signal.SIGKILL, parent)
    enter_namespaces(fence.writable, NEW_PIDS, memory=fence.memory)
    _leave_network(fence)
    reading, writing = os.pipe()
    inner = os.fork()
    if inner:
        become(lambda: _guard(inner, reading))
    os.close(reading)
    die_with_parent(signal.SIGKILL)
    os.write(writing, b"0")  # fails where the guard is gone already
    mount_own_processes()
    os.setsid()
    hide_memory()  # its environment is that of whoever started it
    drop_capabilities()
    restrict_thread(fence.restrictions)
    command = os.fork()
    if command:
        become(lambda: _reap_all(command, writing))
    _become_program()


def _enter_guarded(fence: Fence, above: tuple[int, ...]) -> None:
    """Guard and program. The guard becomes the parent of what the program leaves behind, and ends it."""
    signal.signal(_ORPHANED, _end_everything)
    _follow_parent(_ORPHANED, above[0])
    leftovers.adopt_orphans()
    if fence.mounts:
        enter_namespaces(fence.writable, memory=fence.memory)
        _leave_network(fence)
    drop_capabilities()  # of the guard, too: it changes modes for the program, as far as that itself might
    guarded, (receiving, sending) = (os.getpid(), *above), socket.socketpair()
    command = os.fork()
    if command:
        sending.close()
        become(lambda: _guard(command, None, receiving, fence.writable))
    restrict_thread(replace(fence.restrictions, filter=None))
    _install_guarded_filter(fence, guarded, sending)
    _become_program()


def _leave_network(fence: Fence) -> None:
    """What has no network needs not see who is connected to whom either, and which sockets there are."""
    if not fence.has_network:
        with suppress(OSError):  # some kernels give no more of these; there are no sockets all the same
            unshare(NEW_NETWORK)


def _install_guarded_filter(fence: Fence, guarded: tuple[int, ...], sending: socket.socket) -> None:
    """With whom to ask before there are more processes, and about attributes of files, where there are no mounts;
    nobody is where somebody is asked already, as inside another fence. A job of this package that has mounts asks
    nobody, so that what it starts can ask its own guard."""
    whose: tuple[Attributes, Attributes] = ("own", "own") if fence.mounts else ("asked", "none")
    asking = fence.make_filter(guarded=guarded, attributes=whose[0], forks="asked")
    if asking is not None and not (fence.is_own and fence.mounts):
        with suppress(ConfinementUnavailable):
            socket.send_fds(sending, [b"x"], [install_filter(asking, listens=True)])
            return
    program = fence.make_filter(guarded=guarded, attributes=whose[1])
    if program is not None:
        install_filter(program)


def _follow_parent(number: int, parent: int) -> None:
    die_with_parent(number)
    if os.getppid() != parent:
        os._exit(_UNCONFINED)


def _guard(
    inner: int, statuses: int | None, receiving: socket.socket | None = None, writable: Sequence[Path] = ()
) -> int:
    """Pass signals on, wait, and end as the program did. ``statuses``: where the first process of a namespace says how
    that was, which cannot itself end by a signal; None without one. ``receiving``: there comes what is asked about
    attributes of files, if anything is; those of ``writable`` are changed."""
    hide_memory()
    listener = _receive_listener(receiving) if receiving is not None else None
    _leave_files(statuses if listener is None else listener)
    if listener is not None:
        asked = (_KEPT, writable, _ending.is_set)
        threading.Thread(target=answer_requests, args=asked, daemon=True).start()
    _pass_signals_on(lambda number: os.kill(inner, number) if statuses is not None else os.killpg(inner, number))
    status = os.waitpid(inner, 0)[1]
    if statuses is None:
        _ending.set()
        leftovers.end_children()
    else:
        with os.fdopen(_KEPT, "rb") as said:
            status = int(said.read() or b"0") or status
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


def _receive_listener(receiving: socket.socket) -> int | None:
    """None where nobody asks, or nothing was started."""
    descriptors = socket.recv_fds(receiving, 1, 1)[1]
    return descriptors[0] if descriptors else None


def _reap_all(command: int, statuses: int) -> int:
    """The first process of a namespace: the orphans end up here. When it ends, the kernel ends all others."""
    _leave_files(statuses)
    _pass_signals_on(lambda number: os.killpg(command, number))
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == command:
            os.write(_KEPT, str(status).encode("ascii"))
            return 0


def _become_program() -> None:
    """The last steps in the process that becomes the program. Of a session of its own, it can join no process group of
    those that watch over it, and signal them with it."""
    os.setsid()
    for number in (*_PASSED_ON, _ORPHANED):
        signal.signal(number, signal.SIG_DFL)
    for descriptor in range(3):  # a device that was opened outside could be changed through its descriptor
        if S_ISCHR(os.fstat(descriptor).st_mode):
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, descriptor)
            os.close(null)


def _pass_signals_on(send: Callable[[int], object]) -> None:
    def pass_on(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            send(number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)


def _end_everything(number: int, frame: FrameType | None) -> None:
    _ending.set()
    leftovers.end_children()
    os._exit(_UNCONFINED)


def _leave_files(keep: int | None) -> None:
    """Have no file open but ``keep``, as ``_KEPT``: whoever started this waits for their ends."""
    null = os.open(os.devnull, os.O_RDWR) if keep is None else keep
    os.dup2(null, _KEPT)
    for descriptor in range(_KEPT):
        with suppress(OSError):
            os.close(descriptor)
    os.closerange(_KEPT + 1, 1 << 16)
