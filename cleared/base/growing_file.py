"""A file that grows, such as a log: its last lines, then what is added to it, also where it is rotated."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from cleared.base.safe_files import READ_FLAGS

_MOST_BYTES: Final = 4 << 20
"""Of the end of a file, in which its last lines are looked for."""


def decode_line(line: bytes) -> str:
    """A line as text, whatever bytes are in it."""
    return line.decode("utf-8", "replace")


class GrowingFile:
    """Reads one file; lines that are not whole yet are left for the next time. A link, a pipe or a device has none:
    whoever can push may have put one in the place of a log, and it may have no end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        """Inode and the byte to read on from."""
        self._left = b""

    def read_last(self, count: int) -> list[bytes]:
        """Its last ``count`` whole lines. Then ``read_new`` gives what comes after them."""
        data = self._read_from(None)
        *lines, self._left = data.split(b"\n")
        return lines[-count:] if count else []

    def read_new(self) -> list[bytes]:
        """The lines that were added since the last time; all where it is another file by now."""
        *lines, self._left = (self._left + self._read_from(self._seen)).split(b"\n")
        return lines

    def _read_from(self, seen: tuple[int, int] | None) -> bytes:
        try:
            with open(self.path, "rb", opener=lambda path, _: os.open(path, READ_FLAGS)) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "not a plain file")
                inode, at = seen or (status.st_ino, max(0, status.st_size - _MOST_BYTES))
                if inode != status.st_ino or at > status.st_size:
                    at, self._left = 0, b""
                file.seek(at)
                data = file.read()
                self._seen = (status.st_ino, at + len(data))
        except OSError:
            self._seen = (0, 0)
            return b""
        return data
