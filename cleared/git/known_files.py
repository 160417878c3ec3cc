"""Files of the working tree whose content was read before: a run or decision reads those that changed since.

Whatever is done to a file gives it a new time of change (ctime), which no program sets. A file that was read within
seconds of its last change is read again, as a second change may have the same time. A check reads every file.
"""

from __future__ import annotations

import json
import os
from typing import Final

from cleared.base.clock import SystemClock
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "files"
_SETTLED_SECONDS: Final = 3
_WORTH: Final = 16
"""Files that were read, from which on what is known of them is written."""

_State = tuple[int, ...]


class KnownFiles:
    """The blob ids of files by their paths. ``sealed``: where they are kept."""

    def __init__(self, sealed: SealedFiles) -> None:
        self._sealed = sealed
        data = sealed.read(_NAME)
        self._known: dict[str, tuple[_State, str]] = {}
        for path, (state, oid) in json.loads(data).items() if data is not None else ():
            self._known[path] = tuple(state), oid
        self._settled = (SystemClock().now().timestamp() - _SETTLED_SECONDS) * 1e9
        self._noted = 0

    def find_id(self, path: str, status: os.stat_result) -> str | None:
        """What was read from a file that has not changed since."""
        state, oid = self._known.get(path, ((), None))
        return oid if state == _state_of(status) else None

    def note_id(self, path: str, status: os.stat_result, oid: str) -> None:
        """Remember what was read. ``status``: of the file before it was."""
        if max(status.st_ctime_ns, status.st_mtime_ns) < self._settled:
            self._known[path] = _state_of(status), oid
            self._noted += 1

    def save(self) -> None:
        """Keep it for the next process, where that is worth it."""
        if self._noted >= _WORTH:
            self._sealed.write(_NAME, json.dumps(self._known).encode("ascii"))


def _state_of(status: os.stat_result) -> _State:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
