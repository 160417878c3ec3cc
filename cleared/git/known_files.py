"""Files of the working tree whose content was read before: what compares them with a commit reads those that changed.

Whatever is done to a file gives it a new time of change (ctime), which no program sets. A file that was read within
seconds of its last change is read again, as a second change may have the same time. What rots on a disk changes without
a time: so a check reads some of the files again, and ``doctor`` all of them.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from cleared.base.clock import SystemClock
from cleared.base.last_values import LastValues
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "files"
_VERSION: Final = b"3"
_SETTLED_SECONDS: Final = 3
_WORTH: Final = 16
"""Files that were read, from which on what is known of them is written."""
_TURNS: Final = 8
_MOST_AGAIN: Final = 4
"""Files that are read again at once: an eighth of all, but of old books no more than of young ones."""

_K = TypeVar("_K")
_T = TypeVar("_T")

FileState = tuple[int, ...]
"""What is otherwise once a file was changed."""
_Known = dict[bytes, tuple[FileState, str]]
_MAX_WORKSPACES: Final = 4
_last_known: Final = LastValues[_Known](_MAX_WORKSPACES)
"""What this process knew last of each workspace. Do not alter it."""


class KnownFiles:
    """The blob ids of files by their paths. ``state_dir``: where they are kept. ``in_turns``: some, those that
    were read longest ago, are read again. ``stays``: what is known stays in this process."""

    def __init__(self, state_dir: Path, *, in_turns: bool = False, stays: bool = False) -> None:
        self._sealed = SealedFiles(state_dir, _VERSION)
        self._stays = stays
        known = dict(_last_known.find(state_dir) or {}) if stays else {}
        if not known and (data := self._sealed.read(_NAME)) is not None:
            known = msgspec.msgpack.decode(data, type=_Known)
        self._known = skip_turn(known) if in_turns else known
        self._settled = settle_time()
        self._worth = 1 if in_turns else _WORTH
        self._noted = 0

    def find_id(self, path: str, status: os.stat_result) -> str | None:
        """What was read from a file that has not changed since."""
        state, oid = self._known.get(os.fsencode(path), ((), None))
        return oid if state == describe_state(status) else None

    def note_id(self, path: str, status: os.stat_result, oid: str) -> None:
        """Remember what was read. ``status``: of the file before it was."""
        if max(status.st_ctime_ns, status.st_mtime_ns) < self._settled:
            name = os.fsencode(path)  # git's names need not be text
            self._known.pop(name, None)  # what was read last stands at the end
            self._known[name] = describe_state(status), oid
            self._noted += 1

    def save(self) -> None:
        """Keep it for the next process, where that is worth it."""
        if self._stays:
            _last_known.keep(self._sealed.state_dir, self._known)
        if self._noted >= self._worth:
            self._sealed.write(_NAME, msgspec.msgpack.encode(self._known))


def describe_state(status: os.stat_result) -> FileState:
    """What tells a file from the same one after a change: inode, size and both times."""
    return status.st_ino % (1 << 63), status.st_size, status.st_mtime_ns, status.st_ctime_ns


def settle_time() -> float:
    """A change from now on has another time than one before this, in nanoseconds. To be asked before a file is read."""
    return (SystemClock().now().timestamp() - _SETTLED_SECONDS) * 1e9


def skip_turn(known: dict[_K, _T]) -> dict[_K, _T]:
    """All but those whose turn it is to be read again: what was read longest ago stands first."""
    return dict(islice(known.items(), min(-(-len(known) // _TURNS), _MOST_AGAIN), None))
