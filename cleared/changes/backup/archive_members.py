"""The inside of a backup: a tar of plain files, folders and links, written and read as a stream.

Who writes a backup knows its passphrase, and is trusted so far. What is read is bounded and held inside all the same.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, Self

from msgspec import Struct

from cleared.base.bounds import clip_text
from cleared.base.errors import BusyError, Place, WorkspaceError
from cleared.base.safe_files import READ_FLAGS, describe_os_error
from cleared.base.short_text import parse_count
from cleared.changes.backup.sealed_stream import OpeningReader, SealingWriter, damage_error
from cleared.git.working_files import check_path

MAX_MEMBERS: Final = 5_000_000
MAX_DEPTH: Final = 100
_MAX_HEADER: Final = 64 << 10
"""Bytes of a member's own header: names and times."""
_MAX_AT_ONCE: Final = 8 << 20
"""A file up to this size is read whole before it is written, and read again where it changed meanwhile."""
_TRIES: Final = 5
_CHUNK: Final = 1 << 20
_KINDS: Final = frozenset({tarfile.XHDTYPE, tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE})


class ArchiveWriter:
    """Writes members, one after the other. ``finish`` ends the archive."""

    def __init__(self, stream: SealingWriter) -> None:
        self._stream = stream
        # The encoding of names is fixed, whatever this machine's is.
        self._tar = tarfile.open(  # noqa: SIM115 - finish closes it
            mode="w|", fileobj=stream, format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
        )
        self.files = 0

    def add_bytes(self, name: str, data: bytes) -> None:
        """A file of this content."""
        self._add(_make_info(name, tarfile.REGTYPE, len(data), 0o600), io.BytesIO(data))

    def add_folder(self, name: str, mode: int) -> None:
        self._add(_make_info(name, tarfile.DIRTYPE, 0, mode))

    def add_link(self, name: str, target: str) -> None:
        info = _make_info(name, tarfile.SYMTYPE, 0, 0o777)
        info.linkname = target
        self._add(info)

    def add_file(self, name: str, path: Path) -> None:
        """The file at ``path`` as it is now. A file that only grows meanwhile (a log) is taken up to where it was.

        Raises ``BusyError`` where it is being changed all the time, ``WorkspaceError`` where it cannot be read.
        """
        try:
            for _ in range(_TRIES):
                with os.fdopen(os.open(path, READ_FLAGS), "rb", buffering=0) as file:
                    status = os.fstat(file.fileno())
                    if not stat.S_ISREG(status.st_mode):
                        raise WorkspaceError("it is no file any more", place=Place(str(path)), remedy="Run it again.")
                    if status.st_size > _MAX_AT_ONCE:
                        self._add_large(name, file, status, path)
                        return
                    data = _read_size(file, status.st_size)
                    if len(data) == status.st_size and not _was_rewritten(status, os.fstat(file.fileno())):
                        info = _make_info(name, tarfile.REGTYPE, len(data), stat.S_IMODE(status.st_mode))
                        _set_time(info, status.st_mtime_ns)
                        self._add(info, io.BytesIO(data))
                        return
        except OSError as error:
            raise WorkspaceError(
                f"the file cannot be read, so there is no backup: {describe_os_error(error)}",
                place=Place(str(path)),
                remedy="Give yourself the right to read it, or move it out of the workspace.",
            ) from error
        raise _changing_error(path)

    def finish(self) -> None:
        self._tar.close()
        self._stream.finish()

    def _add_large(self, name: str, file: IO[bytes], status: os.stat_result, path: Path) -> None:
        info = _make_info(name, tarfile.REGTYPE, status.st_size, stat.S_IMODE(status.st_mode))
        _set_time(info, status.st_mtime_ns)
        try:
            self._add(info, file)
        except tarfile.TarError:
            raise _changing_error(path) from None
        except OSError as error:  # tarfile: unexpected end of data
            if error.errno is None:
                raise _changing_error(path) from None
            raise
        if _was_rewritten(status, os.fstat(file.fileno())):
            raise _changing_error(path)

    def _add(self, info: tarfile.TarInfo, content: IO[bytes] | None = None) -> None:
        self._tar.addfile(info, content)
        _forget_members(self._tar)
        self.files += info.isreg()


class Member(Struct, frozen=True):
    """``kind``: file, folder or link. ``content``: of a file, to be read before the next member. ``modified``: in
    nanoseconds, 0 where it is not known."""

    name: str
    kind: str
    size: int
    mode: int
    modified: int
    target: str
    content: IO[bytes] | None


class ArchiveReader:
    """The members of an archive, in their order. ``read_members`` has read all of the stream when it ends."""

    def __init__(self, stream: OpeningReader, shown: str) -> None:
        self._stream, self._shown = stream, shown

    def read_members(self) -> Iterator[Member]:
        """Each member, its name checked. Raises ``WorkspaceError`` for what no backup holds."""
        seen = 0
        try:
            with tarfile.open(
                mode="r|", fileobj=self._stream, tarinfo=_BoundedInfo, encoding="utf-8", errors="surrogateescape"
            ) as tar:
                for info in tar:
                    seen += 1
                    if seen > MAX_MEMBERS:
                        raise self._refusal("it has too many files")
                    yield self._make_member(tar, info)
                    _forget_members(tar)
        except (tarfile.TarError, ValueError, LookupError, OverflowError) as error:  # the last ones of odd headers
            raise self._refusal(f"what it holds cannot be read ({error})") from None
        self._stream.drain()

    def _make_member(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
        self._refuse_unsafe(info)
        kind = "file" if info.isreg() else "folder" if info.isdir() else "link"
        content = tar.extractfile(info) if kind == "file" else None
        modified = _parse_time(info.pax_headers.get("mtime", ""))
        return Member(info.name, kind, info.size, info.mode & 0o777, modified, info.linkname, content)

    def _refuse_unsafe(self, info: tarfile.TarInfo) -> None:
        top, _, inner = info.name.partition("/")
        try:
            # The git directory's files are named one by one; a name that is .git on some file system never is.
            check_path(inner or top)
        except WorkspaceError:
            raise self._refusal(
                f"it holds {clip_text(repr(info.name), 200)}, which is no path in a workspace"
            ) from None
        if info.issparse() or info.name.count("/") > MAX_DEPTH or len(info.name) > 4096 or info.name.startswith("/"):
            raise self._refusal(f"it holds {clip_text(repr(info.name), 200)}, which no backup has")

    def _refusal(self, why: str) -> WorkspaceError:
        return damage_error(self._shown, why)


class _BoundedInfo(tarfile.TarInfo):
    """A header that is refused before anything is read that it asks for: links between files, devices, long headers."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        info = super().frombuf(buf, encoding, errors)
        if info.type not in _KINDS or info.size < 0 or (info.type == tarfile.XHDTYPE and info.size > _MAX_HEADER):
            raise tarfile.ReadError(f"a part of the kind {info.type!r}")
        return info


def _forget_members(tar: tarfile.TarFile) -> None:
    """Else all of them stay in memory."""
    tar.members = []  # type: ignore[attr-defined]


def _make_info(name: str, kind: bytes, size: int, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, size, mode
    return info


def _set_time(info: tarfile.TarInfo, nanoseconds: int) -> None:
    """To the nanosecond: held bank files are known by it (``changes.imported_files``)."""
    info.pax_headers = {"mtime": f"{nanoseconds // 10**9}.{nanoseconds % 10**9:09d}"}


def _parse_time(text: str) -> int:
    whole, _, part = text.partition(".")
    seconds, nanoseconds = parse_count(whole, 11), parse_count(f"{part[:9]:0<9}")
    return 0 if seconds is None or nanoseconds is None else seconds * 10**9 + nanoseconds


def _read_size(file: IO[bytes], size: int) -> bytes:
    parts, room = [], size
    while room > 0 and (part := file.read(min(room, _CHUNK))):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def _was_rewritten(before: os.stat_result, after: os.stat_result) -> bool:
    """Whether it was changed in another way than by adding to its end."""
    return after.st_size < before.st_size or (
        after.st_size == before.st_size and after.st_mtime_ns != before.st_mtime_ns
    )


def _changing_error(path: Path) -> BusyError:
    return BusyError(
        "the file is being written all the time; nothing was written",
        place=Place(str(path)),
        remedy="Run the command again when it is complete.",
    )
