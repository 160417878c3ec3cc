"""A private clone: where a program works that may change files, and how what it changed is read.

It has a ``.git`` of its own, no remote and no hooks. The program may write all of it, its git settings too; so this
process never runs git in it. What was changed is found by comparing plain files with the commit it was made from.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from cleared.base.errors import ClearedError, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.base.safe_names import relative_problem
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.gate.program_changes import sort_change as sort_change
from cleared.git import Snapshot
from cleared.git.history_copy import copy_history
from cleared.git.working_files import check_path

MAX_FILE_BYTES: Final = 32 << 20
MAX_ALL_BYTES: Final = 64 << 20
"""Of all changed files together, which are held in memory; a file without content on the disk can be of any size."""
TOO_MUCH: Final = f"makes it more than {MAX_ALL_BYTES >> 20} MB together"
MAX_CHANGES: Final = 2_000


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed file. ``old``, ``new``: its content, None where there is none. ``problem``: why it cannot be read."""

    path: str
    old: bytes | None
    new: bytes | None
    problem: str = ""

    @property
    def kind(self) -> Literal["added", "modified", "deleted"]:
        return "added" if self.old is None else "deleted" if self.new is None and not self.problem else "modified"


class PrivateClone:
    """A clone of the workspace's last commit at ``folder``. ``base``: the id of that commit."""

    def __init__(self, host: Host, folder: Path, base: str) -> None:
        self._host, self.folder, self.base = host, folder, base

    def list_changes(self, *, ignore: frozenset[str] = frozenset()) -> list[FileChange]:
        """What differs from the commit, by path. ``ignore``: paths that do not count.

        Raises ``WorkspaceError`` where more than ``MAX_CHANGES`` files differ.
        """
        with self._host.open_for_reading() as repo:
            snapshot = Snapshot(repo, self.base)
            committed = {path for path, (mode, _) in snapshot.list_entries().items() if mode.startswith("100")}
            present = dict(_list_files(self.folder))
            changes, room = [], MAX_ALL_BYTES
            for path in sorted(committed | present.keys()):
                if path in ignore:
                    continue
                old = snapshot.read_file(path) if path in committed else None
                change = self._compare(path, old, present.get(path))
                if change is not None:
                    size = len(change.new or b"")
                    changes.append(change if size <= room else FileChange(path, old, None, f"it {TOO_MUCH}"))
                    room -= size if size <= room else 0
                if len(changes) > MAX_CHANGES:
                    raise WorkspaceError(
                        f"more than {MAX_CHANGES} files were changed in the clone",
                        remedy="Nothing of it was taken over.",
                    )
        return changes

    def remove(self) -> None:
        """Delete the clone, whatever rights its files have."""
        remove_tree(self.folder)

    def _compare(self, path: str, old: bytes | None, mode: int | None) -> FileChange | None:
        if mode is None:
            return FileChange(path, old, None) if old is not None else None
        problem = relative_problem(path)
        if problem:  # what shows the name would show another, or nothing could
            return FileChange(path, old, None, f"its name {problem}")
        if not stat.S_ISREG(mode):
            return FileChange(path, old, None, "it is no plain file")
        try:
            check_path(path)
            new = read_stable(self.folder / path, MAX_FILE_BYTES, shown=path)[0]
        except ClearedError as error:
            return FileChange(path, old, None, error.message)
        return FileChange(path, old, new) if new != old else None


def make_private_clone(host: Host, folder: Path) -> PrivateClone:
    """Clone the last commit of the workspace into ``folder``, which is emptied first."""
    remove_tree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with host.open_for_reading() as repo:
        commit = repo.read_head()
        copy_history(repo, commit, folder)
    return PrivateClone(host, folder, commit)


def _list_files(folder: Path) -> Iterator[tuple[str, int]]:
    """``(path, mode)`` of everything below the folder that is no folder, without its ``.git``."""
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        try:
            entries = list(os.scandir(folder / prefix))
        except OSError:
            yield prefix.rstrip("/"), 0
            continue
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if path == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{path}/")
            else:
                yield path, entry.stat(follow_symlinks=False).st_mode
