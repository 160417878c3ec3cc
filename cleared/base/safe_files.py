"""Reading files that others may be writing, and writing files that others may be reading."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from cleared.base.clock import SystemClock
from cleared.base.errors import Place, WorkspaceError

_CHUNK = 1 << 20
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
READ_FLAGS: Final = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""To open what may be no file: a link is not followed, and a pipe holds nobody up."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_BINARY", 0)
_UNSEEN: Final = ".cleared"
"""The folder of a workspace in which git looks for nothing to commit."""
_OTHER_DISK: Final = (errno.EXDEV, errno.EACCES, errno.EPERM)
"""What a rename from another folder can be refused with, though the file may be made there."""
_PREFIX: Final = ".cleared-"
_SUFFIX: Final = ".tmp"
TEMPORARY_PATTERN: Final = f"{_PREFIX}*{_SUFFIX}"
"""The names of temporary files that have to lie beside others, as git's excludes have it."""
_AT_ONCE: Final = 8
"""How many files are made durable at the same time."""
_SLOW_SECONDS: Final = 0.0005
"""What makes one durable in less than this is not worth a thread for the next one."""
_last_seconds: Final = [0.0]
"""How long the last one took."""
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


if sys.platform == "win32":

    def _try_lock(descriptor: int) -> bool:
        return False

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        """Whether the file is locked now as one that is being written."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # somebody writes it, or the file system knows no locks
            return False
        return True


def write_atomic(path: Path, data: bytes, *, fsync: bool = True, mode: int = 0o666) -> None:
    """Put ``data`` at ``path`` so that any reader, and any crash, sees the old content or the new, whole.

    Missing folders are made; the permissions of an existing file are kept, ``mode`` are those of a new one, less what
    the umask takes. ``fsync=False`` leaves it to the system when the content reaches the disk. Raises
    ``WorkspaceError``; then the old content is still there.
    """
    with write_parts(path, fsync=fsync, mode=mode) as file:
        file.write(data)


@contextlib.contextmanager
def write_parts(
    path: Path,
    *,
    fsync: bool = True,
    mode: int = 0o666,
    replace: bool = True,
    check: Callable[[Path], None] | None = None,
) -> Iterator[BinaryIO]:
    """As ``write_atomic``, of content that is written part by part: it is at ``path`` when the block ends without an
    error. Unless ``replace`` is set, a file that is there by then stays, and ``WorkspaceError`` is raised.

    ``check`` is called with the whole file before it gets its name, and raises what keeps it from that.
    """
    try:
        with _open_replacement(path, fsync=fsync, mode=mode, replace=replace, check=check) as file:
            yield file
    except OSError as error:
        raise WorkspaceError(
            f"the file could not be written: {describe_os_error(error)}", place=Place(file=str(path))
        ) from error


def write_durably(path: Path, data: bytes) -> None:
    """As ``write_atomic``. Raises ``OSError`` as the system does."""
    with _open_replacement(path, fsync=True, mode=0o666, replace=True) as file:
        file.write(data)


@contextlib.contextmanager
def _open_replacement(
    path: Path, *, fsync: bool, mode: int, replace: bool, check: Callable[[Path], None] | None = None
) -> Iterator[BinaryIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _stage_file(path, mode) as (temporary, file):
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(path.lstat().st_mode))
        yield file
        _finish_file(file, fsync)
        if check is not None:
            check(temporary)
        place_file(temporary, path, replace=replace)
    if fsync:
        sync_folder(path.parent)


def write_new(path: Path, data: bytes, *, fsync: bool = True, mode: int = 0o666) -> bool:
    """Put ``data`` at ``path``, whole, if there is nothing yet; whether there was nothing. Of several that do this at
    once, one has made it. Raises ``OSError``.
    """
    with _stage_file(path, mode) as (temporary, file):
        file.write(data)
        _finish_file(file, fsync)
        try:
            place_file(temporary, path, replace=False)
        except FileExistsError:
            return False
    return True


@contextlib.contextmanager
def _stage_file(path: Path, mode: int) -> Iterator[tuple[Path, BinaryIO]]:
    """A file that is to become the one at ``path``, and its open content. It is gone after the block."""
    unseen = _find_unseen_folder(path.parent)
    if unseen is None:  # elsewhere nobody sweeps but who writes there
        sweep_temporaries(path.parent)
    temporary, descriptor = create_temporary(path, unseen, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield temporary, file
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _finish_file(file: BinaryIO, fsync: bool) -> None:
    file.flush()
    if fsync:
        os.fsync(file.fileno())
    if os.name == "nt":  # what is open cannot be renamed there; elsewhere it is locked as long as it is open
        file.close()


def create_temporary(path: Path, unseen: Path | None, mode: int) -> tuple[Path, int]:
    """Make a file that is to become the one at ``path``, whose folder exists; its name, and a descriptor to write it.

    ``unseen``: a folder where git looks for nothing to commit. Where that is on another disk, or there is none, the
    file lies beside ``path``, under a name that git is told to pass over. As long as it is open nobody sweeps it away.
    Raises ``OSError``.
    """
    parent = path.parent.stat()
    if unseen is not None:
        with contextlib.suppress(OSError):
            if unseen.stat().st_dev == parent.st_dev:
                return _create_locked(unseen, mode, parent)
    return _create_locked(path.parent, mode, parent)


def _create_locked(folder: Path, mode: int, parent: os.stat_result) -> tuple[Path, int]:
    """``parent``: of the folder that the file is to get into, whose group it gets where that is asked for there."""
    while True:
        temporary = folder / make_temporary_name()
        descriptor = os.open(temporary, _CREATE, mode)
        try:
            if _try_lock(descriptor) and not os.path.lexists(temporary):
                os.close(descriptor)  # it was swept away before it was locked
                continue
            if parent.st_mode & stat.S_ISGID:
                with contextlib.suppress(OSError):
                    os.chown(descriptor, -1, parent.st_gid)
        except BaseException:
            os.close(descriptor)
            raise
        return temporary, descriptor


def _find_unseen_folder(folder: Path) -> Path | None:
    """The state folder of the workspace that ``folder`` is in: git looks for nothing to commit there, and each command
    that writes sweeps it, though not what is below. ``None`` outside of every workspace."""
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links are followed when devices are compared
    for parent in (folder, *folder.parents):
        if parent.name == _UNSEEN:
            return parent
        with contextlib.suppress(OSError):
            if stat.S_ISDIR((parent / _UNSEEN).lstat().st_mode):
                return parent / _UNSEEN
    return None


def place_file(temporary: Path, path: Path, *, replace: bool = True) -> None:
    """Make a temporary file the one at ``path``, in one step; unless ``replace`` is set, only where there is none.

    Raises ``OSError``, ``FileExistsError`` where there is one.
    """
    move = Path.replace if replace else _rename_to_new
    try:
        move(temporary, path)
    except OSError as error:
        if error.errno not in _OTHER_DISK or temporary.parent == path.parent:
            raise
        import shutil  # rarely needed, and slow to import

        beside, descriptor = create_temporary(path, None, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file, temporary.open("rb") as source:
                shutil.copyfileobj(source, file)
                shutil.copymode(temporary, beside)
                _finish_file(file, fsync=True)
                move(beside, path)
        finally:
            beside.unlink(missing_ok=True)
        temporary.unlink(missing_ok=True)


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename where there is nothing yet. Raises ``FileExistsError`` where there is a file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as error:  # a memory stick, say, knows no links
        if error.errno == errno.EXDEV:
            raise
        os.close(os.open(path, _CREATE))
        temporary.replace(path)
    else:
        temporary.unlink()


def append_rotated(path: Path, data: bytes, most: int, keep: int) -> None:
    """Add ``data`` to a log of at most ``most`` bytes; ``keep`` old ones are beside it, .1 the newest of them.

    Raises ``OSError``.
    """
    if path.exists() and path.stat().st_size + len(data) > most:
        for number in range(keep - 1, 0, -1):
            older = Path(f"{path}.{number}")
            if older.exists():
                older.replace(f"{path}.{number + 1}")
        path.replace(f"{path}.1")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NOFOLLOW, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def make_temporary_name() -> str:
    """A new name for a file that will be renamed."""
    return f"{_PREFIX}{os.urandom(6).hex()}{_SUFFIX}"


def is_temporary(path: str) -> bool:
    """Whether a file there is one that is being written, or was when its writer was killed, by its name."""
    name = path.rpartition("/")[2]
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def sweep_temporaries(folder: Path) -> None:
    """Remove the temporary files that killed writers left in ``folder``; what is being written stays."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_temporary(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_abandoned(Path(entry.path))


def _remove_abandoned(temporary: Path) -> None:
    descriptor = os.open(temporary, READ_FLAGS)
    try:
        if _try_lock(descriptor) or os.name == "nt":  # there nobody can remove what is open
            temporary.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable (where the system can; Windows cannot)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_stable(path: Path, max_bytes: int, *, shown: str | None = None) -> tuple[bytes, os.stat_result]:
    """The whole content of a regular file that nobody changes meanwhile, and its ``fstat``.

    Never follows a link at the end of ``path`` (use ``names.inside`` for the folders before it), never waits
    on a pipe or a device, and never reads more than ``max_bytes``. ``shown`` names the file in messages.
    Raises ``WorkspaceError``.
    """
    place = Place(file=shown or str(path))
    try:
        before = path.lstat()
        if not stat.S_ISREG(before.st_mode):
            raise WorkspaceError(f"not a file but {_describe_file_kind(before.st_mode)}; not opened", place=place)
        descriptor = os.open(path, READ_FLAGS)
    except OSError as error:
        raise WorkspaceError(f"the file cannot be read: {describe_os_error(error)}", place=place) from error
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        try:
            first = os.fstat(descriptor)
            if not stat.S_ISREG(first.st_mode):  # swapped between the two calls
                raise WorkspaceError(f"not a file but {_describe_file_kind(first.st_mode)}; not opened", place=place)
            if first.st_size > max_bytes:
                raise WorkspaceError(
                    f"the file has {first.st_size:,} bytes; at most {max_bytes:,} are read", place=place
                )
            parts: list[bytes] = []
            room = first.st_size + 1
            while room > 0 and (part := file.read(min(room, _CHUNK))):
                parts.append(part)
                room -= len(part)
            last = os.fstat(descriptor)
        except OSError as error:
            raise WorkspaceError(f"the file cannot be read: {describe_os_error(error)}", place=place) from error
    data = b"".join(parts)
    if len(data) != first.st_size or (last.st_size, last.st_mtime_ns) != (first.st_size, first.st_mtime_ns):
        raise WorkspaceError("the file is still being written", place=place, remedy="Try again when it is complete.")
    return data, last


def is_open_to_others(status: os.stat_result) -> bool:
    """Whether a file is somebody else's, or others have rights to it; never on Windows, whose modes say nothing."""
    return sys.platform != "win32" and (status.st_uid != os.getuid() or bool(status.st_mode & 0o077))


def describe_os_error(error: OSError) -> str:
    """What the system said, in words a user can act on."""
    if error.errno == errno.ENOSPC:
        return "the disk is full"
    if error.errno == errno.EROFS:
        return "the disk is read-only"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "permission denied"
    if error.errno == errno.ENOENT:
        return "there is no such file or directory"
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "it is a symbolic link"
    return error.strerror or str(error)


def _describe_file_kind(mode: int) -> str:
    return next((name for test, name in _KINDS if test(mode)), "a device")


def sync_files(paths: Sequence[Path]) -> None:
    """Make the contents of files and the names in folders durable. Raises the first ``OSError``.

    Where the disk takes its time, several at once, as file systems do it together. On a fast one a thread costs more
    than it saves.
    """
    waiting = iter(paths)  # shared: each takes the next one
    failed, helpers = list[OSError](), list[threading.Thread]()

    def sync_next() -> None:
        try:
            for path in waiting:
                _sync_file(path)
        except OSError as error:
            failed.append(error)

    clock = SystemClock()
    try:
        for count, path in enumerate(waiting):
            if not helpers and _last_seconds[0] > _SLOW_SECONDS:
                helpers = [threading.Thread(target=sync_next) for _ in range(min(len(paths) - count, _AT_ONCE) - 1)]
                for helper in helpers:
                    helper.start()
            began = clock.monotonic()
            _sync_file(path)
            _last_seconds[0] = clock.monotonic() - began
    finally:
        for helper in helpers:
            helper.join()
    if failed:
        raise failed[0]


def _sync_file(path: Path) -> None:
    if os.name == "nt" and not path.is_dir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    else:  # to read is enough elsewhere, where a file is read-only, as git's objects are
        sync_folder(path)
