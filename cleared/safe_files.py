"""Reading files that others may be writing, and writing files that others may be reading."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cleared.errors import Place, WorkspaceError

_CHUNK = 1 << 20
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_BINARY", 0)
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp", re.DOTALL)
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def write_atomic(path: Path, data: bytes, *, fsync: bool = True, mode: int = 0o666) -> None:
    """Put ``data`` at ``path`` so that any reader, and any crash, sees the old content or the new, whole.

    Missing folders are made; the permissions of an existing file are kept, ``mode`` are those of a new one, less what
    the umask takes. ``fsync=False`` leaves it to the system when the content reaches the disk. Raises
    ``WorkspaceError``; then the old content is still there.
    """
    with write_parts(path, fsync=fsync, mode=mode) as file:
        file.write(data)


@contextlib.contextmanager
def write_parts(path: Path, *, fsync: bool = True, mode: int = 0o666, replace: bool = True) -> Iterator[BinaryIO]:
    """As ``write_atomic``, of content that is written part by part: it is at ``path`` when the block ends without an
    error. Unless ``replace`` is set, a file that is there by then stays, and ``WorkspaceError`` is raised.
    """
    temporary = path.with_name(f".{path.name[:60]}.{secrets.token_hex(6)}.tmp")
    try:
        try:
            descriptor = os.open(temporary, _CREATE, mode)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(temporary, _CREATE, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                with contextlib.suppress(FileNotFoundError):
                    temporary.chmod(stat.S_IMODE(path.lstat().st_mode))
                yield file
                if fsync:
                    file.flush()
                    os.fsync(file.fileno())
            if replace:
                temporary.replace(path)
            else:
                _rename_to_new(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if fsync:
            sync_folder(path.parent)
    except OSError as error:
        raise WorkspaceError(
            f"the file could not be written: {describe_os_error(error)}", place=Place(file=str(path))
        ) from error


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename where there is nothing yet. Raises ``FileExistsError`` where there is a file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a memory stick, say, knows no links
        os.close(os.open(path, _CREATE))
        temporary.replace(path)
    else:
        temporary.unlink()


def write_new(path: Path, data: bytes, *, fsync: bool = True, mode: int = 0o666) -> bool:
    """Put ``data`` at ``path``, whole, if there is nothing yet; whether there was nothing. Of several that do this at
    once, one has made it. Raises ``OSError``.
    """
    staged = path.with_name(f".{path.name[:60]}.{secrets.token_hex(6)}.tmp")
    try:
        with os.fdopen(os.open(staged, _CREATE, mode), "wb") as file:
            file.write(data)
            if fsync:
                file.flush()
                os.fsync(file.fileno())
        os.link(staged, path)
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(OSError):
            staged.unlink()
    return True


def append_rotated(path: Path, data: bytes, most: int, keep: int) -> None:
    """Add ``data`` to a log of at most ``most`` bytes; ``path.1`` is the newest of the ``keep`` old ones beside it.

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


def sweep_temporaries(folder: Path) -> None:
    """Remove what a killed ``write_atomic`` left in ``folder``. Only while nobody else writes there."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                Path(entry.path).unlink(missing_ok=True)


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
        descriptor = os.open(path, _READ)
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
