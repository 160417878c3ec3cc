"""One writer at a time, across processes.

The lock is the kernel's: a process that dies releases it, whatever killed it. The file's text names the holder, for
messages only. The descriptor is not inherited by programs that the holder starts.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.clock import Clock, SystemClock, format_iso
from cleared.base.errors import BusyError, Place, WorkspaceError
from cleared.base.safe_files import describe_os_error, sweep_temporaries
from cleared.workspace.location import exclude_temporaries

_POLL_SECONDS = 0.05
_ORPHAN_SECONDS = 1.0
"""How much longer is waited where the holder was killed: a child just started has a copy until its exec is through."""
_SPARE = 4096
_held: dict[str, tuple[int, int]] = {}
"""Real path of a lock file → (process, thread) of this process that holds it."""
_guard = threading.Lock()


class LockHolder(Struct, frozen=True):
    pid: int
    what: str
    """What it does, such as ``agent run ingest``."""
    since: str
    """ISO 8601, UTC."""

    def __str__(self) -> str:
        return f"{self.what} (process {self.pid}, since {self.since})"


if sys.platform == "win32":
    import msvcrt

    # Locks are mandatory there: lock a byte far behind the text, so that others can read who holds it.
    _BYTE = 1 << 30

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        # Closing is not enough: a child just started has a copy until its exec is through.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def ensure_state_dir(state_dir: Path) -> None:
    """Make ``.cleared/``: readable by its owner only, and unknown to git whatever ``.gitignore`` says.

    Raises ``WorkspaceError`` where it cannot be made, or is something other than a directory.
    """
    place = Place(file=state_dir.name)
    try:
        try:
            state_dir.mkdir(mode=0o700)
        except FileExistsError:
            if not stat.S_ISDIR(state_dir.lstat().st_mode):
                raise WorkspaceError(
                    "this must be a directory of the workspace itself, not a file or a link",
                    place=place,
                    remedy=f"Remove it: {state_dir}",
                ) from None
        ignore = state_dir / ".gitignore"
        # Two may do this at once, before either has the lock: written in place, there is nothing to sweep up.
        if not ignore.is_symlink() and (not ignore.exists() or ignore.stat().st_size == 0):
            ignore.write_bytes(b"*\n")
    except OSError as error:
        raise WorkspaceError(f"the directory cannot be made: {describe_os_error(error)}", place=place) from error


@contextmanager
def writer_lock(
    state_dir: Path,
    wait_seconds: float,
    activity: str,
    *,
    clock: Clock | None = None,
    on_wait: Callable[[LockHolder | None], None] | None = None,
    name: str = "lock",
) -> Iterator[None]:
    """Hold the workspace's writer lock for the length of a ``with`` block.

    If another process (or thread) holds it, ``on_wait`` is called once with the holder, and then this call waits;
    ``count_waiters`` counts those that wait. ``name``: of another lock of the workspace, with the same rules.

    Raises ``BusyError`` when ``wait_seconds`` have passed, ``WorkspaceError`` where the lock file cannot be made,
    ``RuntimeError`` where this very thread holds it already (a fault of the program).
    """
    clock = clock or SystemClock()
    ensure_state_dir(state_dir)
    path = state_dir / name
    key = os.path.realpath(path)
    me = (os.getpid(), threading.get_ident())
    with _guard:
        if _held.get(key) == me:
            raise RuntimeError("the writer lock is held by this thread already")
    descriptor = _acquire_lock(path, wait_seconds, clock, on_wait)
    try:
        _write_holder(descriptor, LockHolder(os.getpid(), activity, format_iso(clock.now())))
        with _guard:
            _held[key] = me
        if name == "lock":
            sweep_temporaries(state_dir)
            exclude_temporaries(state_dir.parent)
        yield
    finally:
        with _guard:
            if _held.get(key) == me:
                del _held[key]
        try:
            _clear_file(descriptor)
            _unlock(descriptor)
        finally:
            os.close(descriptor)


def is_held_here(state_dir: Path) -> bool:
    """Whether this very thread holds the lock."""
    with _guard:
        return _held.get(os.path.realpath(state_dir / "lock")) == (os.getpid(), threading.get_ident())


def read_holder(state_dir: Path, name: str = "lock") -> LockHolder | None:
    """Who holds the writer lock now, or None. A guess by the time it is read: for messages only."""
    path = state_dir / name
    holder = _parse_holder(path)
    if holder is None:
        return None  # free: the holder wipes the text at its end, so the lock need not be touched
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return holder
    try:
        if not _try_lock(descriptor):
            return holder
        _unlock(descriptor)
        return None  # text without a lock: its writer was killed
    finally:
        os.close(descriptor)


def count_waiters(state_dir: Path) -> int:
    """How many other processes wait for the writer lock now. Files of those that are gone are removed."""
    waiters = 0
    for path in state_dir.glob("waiting-*"):
        try:
            pid = int(path.name.removeprefix("waiting-"))
            if pid != os.getpid():
                os.kill(pid, 0)
                waiters += 1
        except (ValueError, ProcessLookupError):
            path.unlink(missing_ok=True)
        except OSError:
            waiters += 1  # another user's
    return waiters


def _is_gone(holder: LockHolder | None) -> bool:
    """Whether the process that wrote its name is there no more."""
    try:
        if holder is not None:
            os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # another user's
    return False


def _acquire_lock(
    path: Path, wait_seconds: float, clock: Clock, on_wait: Callable[[LockHolder | None], None] | None
) -> int:
    start, began = clock.monotonic(), time.monotonic()
    pause = 0.001
    reported = False
    queue = path.with_name(f"waiting-{os.getpid()}")
    while True:
        descriptor = _open_lock_file(path)
        try:
            while not _try_lock(descriptor):
                waited = clock.monotonic() - start
                if waited >= wait_seconds:
                    other = _parse_holder(path)
                    if not _is_gone(other) or time.monotonic() - began >= wait_seconds + _ORPHAN_SECONDS:
                        raise BusyError(
                            f"another command is writing to this workspace: {other or 'unknown'}",
                            remedy="Try again when it is done; lock.wait_seconds in config.yaml says how long "
                            f"to wait (it was {wait_seconds:g}).",
                        )
                if not reported and waited > 0.02:  # who just took it may not have written its name yet
                    reported = True
                    with suppress(OSError):
                        queue.touch(mode=0o600)
                    if on_wait:
                        on_wait(_parse_holder(path))
                time.sleep(min(pause, max(0.001, wait_seconds - waited)))
                pause = min(pause * 2, _POLL_SECONDS)
            if _same_file(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            if reported:
                queue.unlink(missing_ok=True)
        os.close(descriptor)  # .cleared/ was deleted meanwhile: what was locked is not what others see


def _open_lock_file(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        ensure_state_dir(path.parent)
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise WorkspaceError(
            f"the writer lock cannot be opened: {describe_os_error(error)}",
            place=Place(file=f"{path.parent.name}/{path.name}"),
        ) from error


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _write_holder(descriptor: int, mine: LockHolder) -> None:
    _clear_file(descriptor)
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(asdict(mine)).encode()[:_SPARE])
    except OSError:
        pass  # a full disk: the lock holds all the same, only its message is poorer


def _clear_file(descriptor: int) -> None:
    try:
        os.ftruncate(descriptor, 0)
    except OSError:
        pass


def _parse_holder(path: Path) -> LockHolder | None:
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_SPARE))
        return LockHolder(int(data["pid"]), str(data["what"]), str(data["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
