"""Where files are read from: a commit, a working tree, or a dictionary in a test; and which part of a file that only
grows takes what comes next.

What grows is cut by month, and a month in which much happens by size: ``2025-01.jsonl``, then ``2025-01_002.jsonl``. A
commit writes each file that it changes whole, so one file for ever would make each commit dearer than the one before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, Protocol

MAX_PART_BYTES: Final = 128 << 10
"""What is larger is not added to any more."""
_PART: Final = r"_[0-9]{3,}(?=\.[a-z]+\Z)"
MONTH_MARK: Final = re.compile(r"-([0-9]{4}-(?:0[1-9]|1[0-2]))(?:_[0-9]{3,})?(?=\.[a-z]+\Z)")
"""What a path ends with that is of a month, or a part of one, before its suffix. Without it, it is the path of the file
that earlier versions had for all months."""


class FileSource(Protocol):
    """Read-only files by workspace-relative POSIX path."""

    def read(self, path: str) -> bytes | None:
        """The file's bytes, or None where there is none."""

    def list_paths(self, prefix: str) -> Iterable[str]:
        """All files below ``prefix`` (a directory, or ``""``), sorted."""


def choose_part(source: FileSource, path: str, known: Collection[str], header: str = "") -> str:
    """The part of the file ``path`` that takes what is added next; ``known``: the paths that there are beside it.

    None to which another version of the program has given another ``header``, or whose last line somebody has cut:
    what is added would be no row of it.
    """
    number, part = 1, path
    while (following := _name_part(path, number + 1)) in known:
        number, part = number + 1, following
    data = source.read(part)
    if data is None:
        return part
    is_open = len(data) < MAX_PART_BYTES and data.startswith(header.encode()) and data.endswith(b"\n")
    return part if is_open else following


def find_whole(path: str) -> str:
    """The path of the file that a path is a part of, which is its first part."""
    return re.sub(_PART, "", path)


def list_dated(source: FileSource, path: str) -> list[str]:
    """The file ``path`` of all months, and those of each month with their parts, oldest first."""
    return [each for _, each in select_dated(source.list_paths(path.rpartition("/")[0]), path)]


def select_dated(paths: Iterable[str], path: str) -> list[tuple[str, str]]:
    """Month (``YYYY-MM``) and path of those that are the file ``path`` of a month, or a part of one, oldest first. That
    of all months is of earlier versions: it comes first, with an empty month."""
    stem = path.rpartition(".")[0]
    found = [each for each in paths if each.startswith(stem) and MONTH_MARK.sub("", each) == path]
    return sorted(("" if each == path else MONTH_MARK.split(each)[1], each) for each in found)


def choose_dated(source: FileSource, path: str, month: str, header: str = "") -> str:
    """The part of the file ``path`` of a month (``YYYY-MM``) that takes what is added next; see ``choose_part``."""
    stem, dot, suffix = path.rpartition(".")
    return choose_part(source, f"{stem}-{month}{dot}{suffix}", list_dated(source, path), header)


def _name_part(path: str, number: int) -> str:
    stem, dot, suffix = path.rpartition(".")
    return f"{stem}_{number:03d}{dot}{suffix}"
