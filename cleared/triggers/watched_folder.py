"""Scanning the folders that an agent watches: which files are complete, and the hashes of their content.

A file is complete when it has not changed for a while. For a file that was there before the first scan, its own times
say so; where they cannot be right (a clock that was set, a network drive with its own clock), the scans decide.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import Clock
from cleared.base.safe_files import READ_FLAGS, describe_os_error
from cleared.workspace.watched_names import WatchedNames, escape_name

EMPTY_SECONDS: Final = 30.0
"""Seconds for which an empty file must not have changed: programs create a file first and write it later."""
_PIECE_BYTES: Final = 1 << 20
_MAX_PROBLEMS: Final = 20
_WAIT_MARGIN: Final = 0.001
"""Seconds added to a wait, so that the next scan does not come too early by a rounding error."""
_FileState = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of the last change of content and of anything, in nanoseconds."""


class CompleteFile(Struct, frozen=True):
    """A complete file."""

    path: str
    """Relative to the workspace, POSIX."""
    sha256: str
    """Of its content."""
    size: int


class FolderScan(Struct, frozen=True):
    """What one scan of the folders found."""

    ready: tuple[CompleteFile, ...]
    """The complete files, by path."""
    again_in: float | None
    """Seconds until the next file that is still being written may be complete; None: there is no such file."""
    problems: tuple[str, ...] = ()
    """What could not be scanned, a line each, at most 21 lines. A line is repeated only if it was absent from a scan in
    between."""


class _IncompleteFile(Struct, frozen=True):
    """A file that was not complete when it was last seen. Times are of the monotonic clock."""

    state: _FileState
    last_different: float
    """When it was last seen in another state, or known not to exist."""
    first_seen: float
    """When it was first seen in this state."""


class WatchedFolder:
    """One agent's watched directories. For one thread at a time."""

    def __init__(
        self, root: Path, watch: Sequence[str], settle_seconds: float | None, clock: Clock, *, max_bytes: int
    ) -> None:
        """``watch``: directories and globs relative to the workspace ``root``, as in a header; a directory, and a glob
        that ends with a slash, stand for everything beneath. ``max_bytes``: how much of a file may be in memory at
        once; a larger one is read in pieces. ``settle_seconds``: None where every file is complete as it lies."""
        self._root = os.path.realpath(root)
        self._settle = settle_seconds
        self._clock = clock
        self._piece = max(1, min(_PIECE_BYTES, max_bytes))
        self._names = WatchedNames(self._root, watch)
        self._waiting: dict[str, _IncompleteFile] = {}
        self._hashes: dict[_FileState, str] = {}
        self._reported: set[str] = set()
        self._last_scan = -math.inf

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directories to watch, with all beneath them: absolute, and without links. They need not exist yet."""
        return self._names.find_directories()

    def scan_files(self) -> FolderScan:
        """Examine every file; read those that are complete and were not read before."""
        started, now = self._clock.monotonic(), self._clock.now().timestamp()
        problems = list(self._names.excluded)
        states = list(self._file_states(problems))
        seen = self._clock.monotonic()
        ready: list[CompleteFile] = []
        due: list[float] = []
        waiting: dict[str, _IncompleteFile] = {}
        hashes: dict[_FileState, str] = {}
        for path, state in states:
            digest = self._hashes.get(state) or hashes.get(state)
            if digest is None:
                incomplete = self._waiting.get(path)
                if incomplete is None or incomplete.state != state:
                    incomplete = _IncompleteFile(state, self._last_scan, seen)
                waiting[path] = incomplete
                wait = self._seconds_until_complete(incomplete, started, now)
                if wait > 0:
                    due.append(started + wait)
                    continue
                try:
                    digest = self._hash_file(path, state)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    problems.append(f"{escape_name(path)} cannot be read: {describe_os_error(error)}")
                    continue
                if digest is None:
                    due.append(self._clock.monotonic() + (self._settle or 0.0))
                    continue
                del waiting[path]
            hashes[state] = digest
            ready.append(CompleteFile(path, digest, state[2]))
        fresh = list(dict.fromkeys(line for line in problems if line not in self._reported))
        if len(fresh) > _MAX_PROBLEMS:
            fresh[_MAX_PROBLEMS:] = [f"and {len(fresh) - _MAX_PROBLEMS:,} more of this kind"]
        self._waiting, self._hashes, self._reported, self._last_scan = waiting, hashes, set(problems), started
        again = max(0.0, min(due) - self._clock.monotonic()) + _WAIT_MARGIN if due else None
        return FolderScan(tuple(ready), again, tuple(fresh))

    def _seconds_until_complete(self, file: _IncompleteFile, started: float, now: float) -> float:
        """Seconds from the start of this scan until the file is complete; zero or less where it is."""
        if self._settle is None:
            return 0.0
        needed = self._settle if file.state[2] else max(self._settle, EMPTY_SECONDS)
        # Whatever its times say, it has not been unchanged for longer than since it was seen in another state.
        unchanged = min(now - max(file.state[3:]) / 1e9, started - file.last_different)
        return needed - max(unchanged, started - file.first_seen)

    def _hash_file(self, path: str, state: _FileState) -> str | None:
        """The SHA-256 of the content; None where the file is no longer in ``state``. Raises ``OSError``."""
        descriptor = os.open(f"{self._root}/{path}", READ_FLAGS)
        try:
            if _file_state(os.fstat(descriptor)) != state:
                return None
            digest = hashlib.sha256()
            while piece := os.read(descriptor, self._piece):
                digest.update(piece)
            return digest.hexdigest() if _file_state(os.fstat(descriptor)) == state else None
        finally:
            os.close(descriptor)

    def _file_states(self, problems: list[str]) -> Iterator[tuple[str, _FileState]]:
        """The path and state of each file that is watched for, sorted by path."""
        for path in self._names.list_files(problems):
            try:
                status = os.lstat(f"{self._root}/{path}")
            except FileNotFoundError:
                continue
            except OSError as error:
                problems.append(f"{escape_name(path)} cannot be looked at: {describe_os_error(error)}")
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, _file_state(status)


def _file_state(status: os.stat_result) -> _FileState:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
