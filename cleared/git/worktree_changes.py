"""How the working tree differs from a commit, found by reading the files themselves.

Neither git's index nor its filters are used: the index can be wrong, and filters can run programs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cleared.base.safe_files import is_temporary
from cleared.git.object_writer import blob_id
from cleared.git.snapshot import Snapshot

#: ``type``: a symlink, folder or device where the commit has a file, or the other way round.
DifferenceKind = Literal["modified", "deleted", "untracked", "type", "unreadable"]


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """One path that is not as the commit has it."""

    path: str
    kind: DifferenceKind


def find_differences(
    snapshot: Snapshot,
    root: Path,
    prefixes: Sequence[str],
    ignore: Callable[[str], bool] | None = None,
) -> list[Difference]:
    """All differences under the folders (or of the files) ``prefixes``, sorted by path.

    ``ignore`` gets each path that the commit does not have (a folder with a slash at its end), and returns whether to
    pass it over. Executable bits are not compared. Symlinks are never followed.
    """
    tracked: dict[str, tuple[str, str]] = {}
    for prefix in prefixes:
        tracked.update(snapshot.list_entries(prefix))
    scan = _Scan(root, tracked, ignore or (lambda _: False))
    for prefix in prefixes:
        scan.scan_prefix(prefix.strip("/"))
    differing = {Difference(path, "unreadable") for path in scan.unreadable}
    for path, entry in tracked.items():
        kind = _compare_file(snapshot, root, path, entry, scan)
        if kind is not None:
            differing.add(Difference(path, kind))
    differing |= {Difference(path, "untracked") for path in scan.others if path not in tracked}
    return sorted(differing)


class _Scan:
    """The files under some folders: ``modes`` by path, the untracked ``others``, and what is ``unreadable``."""

    def __init__(self, root: Path, tracked: Mapping[str, object], ignore: Callable[[str], bool]) -> None:
        self._root = root
        self._ignore = ignore
        self._tracked = tracked
        self._folders = {path[:at] for path in tracked for at, c in enumerate(path) if c == "/"}
        self.modes: dict[str, int] = {}
        self.others: list[str] = []
        self.unreadable: list[str] = []

    def scan_prefix(self, prefix: str) -> None:
        path = ""
        for name in prefix.split("/") if prefix else ():
            path = f"{path}/{name}" if path else name
            try:
                mode = (self._root / path).lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                return
            except OSError:
                self.unreadable.append(path)
                return
            if not stat.S_ISDIR(mode):
                self._record_file(path, mode)
                return
        self._scan_folder(path)

    def _scan_folder(self, folder: str) -> None:
        self.modes[folder] = stat.S_IFDIR
        below: list[str] = []
        try:
            with os.scandir(self._root / folder if folder else self._root) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.name == ".git" or is_temporary(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if path in self._folders or not self._ignore(path + "/"):
                            below.append(path)
                    elif entry.is_file(follow_symlinks=False):
                        self._record_file(path, stat.S_IFREG)
                    else:
                        self._record_file(path, stat.S_IFLNK if entry.is_symlink() else stat.S_IFCHR)
        except FileNotFoundError:
            return
        except OSError:
            self.unreadable.append(folder or ".")
        for path in below:
            self._scan_folder(path)

    def _record_file(self, path: str, mode: int) -> None:
        self.modes[path] = mode
        if path not in self._tracked and not self._ignore(path):
            self.others.append(path)


def _compare_file(
    snapshot: Snapshot, root: Path, path: str, entry: tuple[str, str], scan: _Scan
) -> DifferenceKind | None:
    git_mode, oid = entry
    mode = scan.modes.get(path)
    if mode is None:
        parents = [path[:at] for at, c in enumerate(path) if c == "/"]
        return "unreadable" if any(p in scan.unreadable for p in (".", *parents)) else "deleted"
    if git_mode == "160000":
        return None if stat.S_ISDIR(mode) else "type"
    if stat.S_ISLNK(mode) != (git_mode == "120000") or stat.S_ISDIR(mode) or stat.S_ISCHR(mode):
        return "type"
    try:
        content = os.fsencode((root / path).readlink()) if stat.S_ISLNK(mode) else (root / path).read_bytes()
    except FileNotFoundError:
        return "deleted"
    except OSError:
        return "unreadable"
    return None if blob_id(content, snapshot.hash_name) == oid else "modified"
