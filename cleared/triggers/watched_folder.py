"""Looking at the folders an agent watches: which files are complete, and what they hold.

A file is complete when nobody has touched it for a while. Its own times tell that of a file that lay there before
anybody looked; where they cannot be believed (a clock that was set, a network drive with a clock of its own), what was
observed here does.
"""

from __future__ import annotations

import fnmatch
import hashlib
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleared.clock import Clock
from cleared.safe_files import describe_os_error
from cleared.workspace.drop_names import FINISHED_FOLDERS, MAX_FILES, escape_name, is_ready_name
from cleared.workspace.location import Layout

EMPTY_SECONDS: Final = 30.0
"""How long an empty file must have been still, at least: programs make the file first and write it later."""
_PIECE_BYTES: Final = 1 << 20
_MAX_PROBLEMS: Final = 20
_WAIT_MARGIN: Final = 0.001
"""Seconds added to a wait, so that whoever sleeps that long does not come a rounding error early."""
_READ_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_EXCLUDED_FOLDERS: Final = tuple(f"{Layout.import_dir}/{name}" for name in FINISHED_FOLDERS)

_GlobRest = tuple[re.Pattern[str] | None, ...]
"""What of a glob is still to be matched, name by name; None is ``**``: any folders, or none."""
_FileState = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of the last change of content and of anything, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class CompleteFile:
    """A complete file."""

    path: str
    """Relative to the workspace, POSIX."""
    sha256: str
    """Of its content."""
    size: int


@dataclass(frozen=True, slots=True)
class FolderScan:
    """What one look at the folders found."""

    ready: tuple[CompleteFile, ...]
    """The complete files, by path."""
    again_in: float | None
    """Seconds until the next file that is still being written may be complete; None: there is no such file."""
    problems: tuple[str, ...] = ()
    """What could not be looked at, a line each, and not without end. Said once, and again only if it was gone
    meanwhile."""


@dataclass(frozen=True, slots=True)
class _IncompleteFile:
    """A file that was not complete when it was last seen. Times are of the monotonic clock."""

    state: _FileState
    last_different: float
    """When it was last known to be otherwise, or not to be there."""
    first_seen: float
    """When it was first seen in this state."""


class WatchedFolder:
    """One agent's watched directories. For one thread at a time."""

    def __init__(
        self, root: Path, watch: Sequence[str], settle_seconds: float, clock: Clock, *, max_bytes: int
    ) -> None:
        """``watch``: directories and globs relative to the workspace ``root``, as in a header; of a directory, and
        of a glob that ends with a slash, everything beneath counts. ``max_bytes``: how much of a file may be in
        memory at once; a larger one is read in pieces."""
        self._root = os.path.realpath(root)
        self._settle = settle_seconds
        self._clock = clock
        self._piece = max(1, min(_PIECE_BYTES, max_bytes))
        self._wanted: dict[str, set[_GlobRest]] = {}
        self._never: list[str] = []
        for value in watch:
            base, rest = _parse_glob(value)
            if any(part.startswith(".") for part in base.split("/")) or f"{base}/".startswith(
                _with_slash(_EXCLUDED_FOLDERS)
            ):
                self._never.append(f"watch: {escape_name(value)}: this folder is never looked at")
            else:
                self._wanted.setdefault(base, set()).add(rest)
        self._waiting: dict[str, _IncompleteFile] = {}
        self._hashes: dict[_FileState, str] = {}
        self._told: set[str] = set()
        self._looked = -math.inf

    @property
    def directories(self) -> tuple[Path, ...]:
        """What to watch, with all beneath it: absolute, and without links. They need not exist yet."""
        found = set()
        for base in self._wanted:
            kind = self._mode_of(base)
            if kind is None or not stat.S_ISLNK(kind):
                found.add(base.rpartition("/")[0] if kind is not None and stat.S_ISREG(kind) else base)
        inner = {one for one in found for other in found if one != other and f"{one}/".startswith(_with_slash([other]))}
        return tuple(Path(self._root, base) for base in sorted(found - inner))

    def scan_files(self) -> FolderScan:
        """Look at every file; read those that are complete and were not read before."""
        started, now = self._clock.monotonic(), self._clock.now().timestamp()
        problems = list(self._never)
        states = list(self._file_states(problems))
        seen = self._clock.monotonic()
        ready: list[CompleteFile] = []
        due: list[float] = []
        waiting: dict[str, _IncompleteFile] = {}
        hashes: dict[_FileState, str] = {}
        for path, state in states:
            digest = self._hashes.get(state) or hashes.get(state)
            if digest is None:
                known = self._waiting.get(path)
                if known is None or known.state != state:
                    known = _IncompleteFile(state, self._looked, seen)
                waiting[path] = known
                wait = self._seconds_until_complete(known, started, now)
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
                    due.append(self._clock.monotonic() + self._settle)
                    continue
                del waiting[path]
            hashes[state] = digest
            ready.append(CompleteFile(path, digest, state[2]))
        fresh = list(dict.fromkeys(line for line in problems if line not in self._told))
        if len(fresh) > _MAX_PROBLEMS:
            fresh[_MAX_PROBLEMS:] = [f"and {len(fresh) - _MAX_PROBLEMS:,} more of this kind"]
        self._waiting, self._hashes, self._told, self._looked = waiting, hashes, set(problems), started
        again = max(0.0, min(due) - self._clock.monotonic()) + _WAIT_MARGIN if due else None
        return FolderScan(tuple(ready), again, tuple(fresh))

    def _seconds_until_complete(self, file: _IncompleteFile, started: float, now: float) -> float:
        """Seconds from the start of this look until the file is complete; not positive: it is."""
        needed = self._settle if file.state[2] else max(self._settle, EMPTY_SECONDS)
        # It cannot have been still for longer than since it was seen to be otherwise, whatever its times say.
        still = min(now - max(file.state[3:]) / 1e9, started - file.last_different)
        return needed - max(still, started - file.first_seen)

    def _hash_file(self, path: str, state: _FileState) -> str | None:
        """The SHA-256 of the content; None where the file is no longer in ``state``. Raises ``OSError``."""
        descriptor = os.open(f"{self._root}/{path}", _READ_FLAGS)
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
        """The files that count, by path, as they are now."""
        for path in self._list_files(problems):
            try:
                status = os.lstat(f"{self._root}/{path}")
            except FileNotFoundError:
                continue
            except OSError as error:
                problems.append(f"{escape_name(path)} cannot be looked at: {describe_os_error(error)}")
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, _file_state(status)

    def _list_files(self, problems: list[str]) -> list[str]:
        names: set[str] = set()
        for base, rests in self._wanted.items():
            kind = self._mode_of(base)
            if kind is not None and stat.S_ISLNK(kind):
                problems.append(f"{escape_name(base)} is reached through a symbolic link; it is not looked at")
            elif kind is not None and stat.S_ISREG(kind):
                if (None,) in rests and is_ready_name(base.rpartition("/")[2]):
                    names.add(base)
            elif kind is not None:
                self._walk_folder(base, frozenset(rests), names, problems)
        if len(names) <= MAX_FILES:
            return sorted(names)
        problems.append(
            f"there are more than {MAX_FILES:,} files in "
            f"{', '.join(escape_name(base or '.') for base in self._wanted)}; "
            "only the first by name are looked at. Move some of them elsewhere"
        )
        return sorted(names)[:MAX_FILES]

    def _walk_folder(self, base: str, rests: frozenset[_GlobRest], names: set[str], problems: list[str]) -> None:
        left = [(base, rests)]
        while left and len(names) <= MAX_FILES:
            folder, rests = left.pop()
            prefix = f"{folder}/" if folder else ""
            try:
                with os.scandir(f"{self._root}/{folder}") as entries:
                    found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                problems.append(f"{escape_name(folder or '.')}/ cannot be looked at: {describe_os_error(error)}")
                continue
            below: list[tuple[str, frozenset[_GlobRest]]] = []
            for name, is_folder in found:
                path = prefix + name
                if name.startswith(".") or path in _EXCLUDED_FOLDERS:
                    continue
                rest = _globs_below(rests, name) if is_folder else None
                if not rest and (is_folder or not is_ready_name(name) or not _matches_file(rests, name)):
                    continue
                if not _is_utf8(name):
                    problems.append(f"{escape_name(path)} is not looked at: its name is not UTF-8. Rename it")
                elif rest:
                    below.append((path, rest))
                else:
                    names.add(path)
            left += reversed(below)

    def _mode_of(self, base: str) -> int | None:
        """The mode of what lies there; that of the link where one is on the way; None where there is nothing."""
        mode, path = stat.S_IFDIR, self._root
        for part in base.split("/") if base else ():
            path = f"{path}/{part}"
            try:
                mode = os.lstat(path).st_mode
            except FileNotFoundError:
                return None
            except OSError:
                return stat.S_IFDIR  # the walk will say what is wrong
            if stat.S_ISLNK(mode):
                return mode
        return mode


def _parse_glob(value: str) -> tuple[str, _GlobRest]:
    """The folder to start from, and what follows."""
    parts = [part for part in value.split("/") if part not in ("", ".")]
    plain = next((i for i, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts))
    rest = [None if part == "**" else re.compile(fnmatch.translate(part)) for part in parts[plain:]]
    if not rest or value.endswith("/"):
        rest.append(None)
    return "/".join(parts[:plain]), tuple(rest)


def _matches_file(rests: Iterable[_GlobRest], name: str) -> bool:
    """Whether a file of that name matches one of the globs to its end."""
    for head, *tail in rests:
        if head is None:
            if not tail or _matches_file([tuple(tail)], name):
                return True
        elif not tail and head.match(name):
            return True
    return False


def _globs_below(rests: Iterable[_GlobRest], name: str) -> frozenset[_GlobRest]:
    """What is left of the globs in a folder of that name; nothing where no file there can match."""
    left: set[_GlobRest] = set()
    for rest in rests:
        head, tail = rest[0], rest[1:]
        if head is None:
            left.add(rest)
            if tail:
                left |= _globs_below([tail], name)
        elif tail and head.match(name):
            left.add(tail)
    return frozenset(left)


def _file_state(status: os.stat_result) -> _FileState:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _with_slash(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/" if folder else "" for folder in folders)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
