"""Standard streams as a transport: nothing but frames reaches the peer, and the process ends when the peer does."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from typing import BinaryIO


class Terminated(BaseException):
    """SIGTERM came."""


@contextlib.contextmanager
def protected_streams(stdin: BinaryIO, stdout: BinaryIO) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The streams to speak on. The process's own standard streams are taken away from everything else in it:
    whoever prints, in Python or below, prints on standard error."""
    with contextlib.ExitStack() as undo:
        if descriptor_number(stdin) == 0:
            stdin = undo.enter_context(_moved_stream(0, "rb", os.devnull))
        if descriptor_number(stdout) == 1:
            stdout.flush()
            stdout = undo.enter_context(_moved_stream(1, "wb", None))
        yield stdin, stdout


@contextlib.contextmanager
def _moved_stream(number: int, mode: str, replacement: str | None) -> Iterator[BinaryIO]:
    """The stream of descriptor ``number`` on another one; ``number`` itself leads elsewhere meanwhile."""
    own = os.dup(number)
    if replacement is None:
        os.dup2(2, number)
    else:
        other = os.open(replacement, os.O_RDONLY)
        os.dup2(other, number)
        os.close(other)
    stream = os.fdopen(os.dup(own), mode)
    try:
        yield stream  # type: ignore[misc]
    finally:
        with contextlib.suppress(OSError):  # the peer is gone
            stream.close()
        os.dup2(own, number)
        os.close(own)


@contextlib.contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """SIGTERM raises ``Terminated`` here, where this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_terminated(*_: object) -> None:
        raise Terminated

    previous = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def lead_own_session() -> bool:
    """Start a session of our own, unless we read from a terminal. True where the process group holds only this process
    and its children."""
    if sys.platform == "win32" or sys.stdin is None or os.isatty(0):
        return False
    if os.getsid(0) == os.getpid():
        return True
    try:
        os.setsid()
    except PermissionError:  # the leader of somebody's group
        return False
    return True


def end_children() -> None:
    """Send SIGTERM to the children; only after ``lead_own_session`` returned True."""
    if sys.platform != "win32":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)


def peer_is_gone(stdout: BinaryIO) -> bool:
    """Whether the reader of ``stdout`` has closed it."""
    if not hasattr(select, "poll") or descriptor_number(stdout) < 0:
        return False
    try:
        poll = select.poll()
        poll.register(descriptor_number(stdout), 0)
        return any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return True


def descriptor_number(stream: BinaryIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return -1
