"""A private clone: where a program works that may change files, and how what it changed is read.

It has a ``.git`` of its own, no remote and no hooks. The program may write all of it, its git settings too; so this
process never runs git in it. What was changed is found by comparing plain files with the commit it was made from.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from msgspec import Struct

from cleared.base.errors import ClearedError, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.base.safe_names import relative_problem
from cleared.base.terminal import escape_text
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.gate.program_changes import find_repositories, is_inside
from cleared.gate.program_changes import sort_change as sort_change
from cleared.git import Snapshot
from cleared.git.history_copy import copy_files, copy_history
from cleared.git.untracked_files import find_ignored
from cleared.git.working_files import check_path

MAX_FILE_BYTES: Final = 32 << 20
MAX_ALL_BYTES: Final = 64 << 20
"""Of all changed files together, which are held in memory; a file without content on the disk can be of any size."""
TOO_MUCH: Final = f"makes it more than {MAX_ALL_BYTES >> 20} MB together"
IN_REPOSITORY: Final = "git takes its folder for a repository, and would run what the settings there name"
UNREADABLE: Final = "it cannot be read"
MAX_CHANGES: Final = 2_000


class TooManyChanges(WorkspaceError):
    """More files were changed than anybody looks at."""


class FileChange(Struct, frozen=True):
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
        """What differs from the commit, by path; not new files that git ignores. ``ignore``: others that do not count.

        Raises ``TooManyChanges`` where more than ``MAX_CHANGES`` files differ.
        """
        with self._host.open_for_reading() as repo:
            snapshot = Snapshot(repo, self.base)
            committed = {path for path, (mode, _) in snapshot.list_entries().items() if mode.startswith("100")}
            present = dict(_list_files(self.folder))
            changes, room = [], MAX_ALL_BYTES
            repositories = find_repositories(committed | present.keys())
            passed_over = ignore | find_ignored(repo, present.keys() - committed)
            for path in sorted((committed | present.keys()) - passed_over):
                old = snapshot.read_file(path) if path in committed else None
                unreadable = any(present.get(str(above)) == 0 for above in PurePosixPath(path).parents)
                change = self._compare(path, old, 0 if unreadable else present.get(path))
                if change is not None and is_inside(path, repositories):
                    change = FileChange(path, old, None, IN_REPOSITORY)
                if change is not None:
                    size = len(change.new or b"")
                    changes.append(change if size <= room else FileChange(path, old, None, f"it {TOO_MUCH}"))
                    room -= size if size <= room else 0
                if len(changes) > MAX_CHANGES:
                    raise _too_many(present.keys() - committed - passed_over)
        return changes

    def keep_changes(self, folder: Path) -> list[FileChange]:
        """Make another clone at ``folder`` with what was changed in this one, for a person to look at. What they use
        there runs nothing: its ``.git`` is new, and only plain files get in. Those that do not are the result.

        Raises ``TooManyChanges`` as ``list_changes`` does.
        """
        changes = self.list_changes()
        remove_tree(folder)
        with self._host.open_for_reading() as repo:
            copy_history(repo, self.base, folder)
        for change in changes:
            if not change.problem:
                write_file(folder, change.path, change.new)
        return [change for change in changes if change.problem]

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
            return FileChange(path, old, None, "it is no plain file" if mode else UNREADABLE)
        try:
            check_path(path)
            new = read_stable(self.folder / path, MAX_FILE_BYTES, shown=path)[0]
        except ClearedError as error:
            return FileChange(path, old, None, error.message)
        except OSError:
            return FileChange(path, old, None, UNREADABLE)
        return FileChange(path, old, new) if new != old else None


def make_private_clone(host: Host, folder: Path, commit: str | None = None) -> PrivateClone:
    """Clone a commit (None: the last one of the workspace) into ``folder``, which is emptied first; not what was
    before it."""
    remove_tree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with host.open_for_reading() as repo:
        commit = commit or repo.read_head()
        copy_files(repo, commit, folder)
    return PrivateClone(host, folder, commit)


def _too_many(new: Iterable[str]) -> TooManyChanges:
    folders = Counter(path.partition("/")[0] for path in new if "/" in path).most_common(1)
    most = f", {folders[0][1]:,} of them new in {escape_text(folders[0][0])}/" if folders else ""
    return TooManyChanges(
        f"more than {MAX_CHANGES:,} files were changed in the clone{most}",
        remedy="Nothing of them was taken over. What is not to count goes into the workspace's .gitignore.",
    )


def _list_files(folder: Path) -> Iterator[tuple[str, int]]:
    """``(path, mode)`` of everything below the folder that is no folder, without its ``.git``. The mode is 0 for what
    cannot be looked at: a folder that cannot be listed, or what is in one that may be listed and not entered."""
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        try:
            entries = list(os.scandir(folder / prefix))
        except OSError:
            yield prefix.rstrip("/") or ".", 0
            continue
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if path == ".git":
                continue
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError:
                mode = 0
            if stat.S_ISDIR(mode):
                waiting.append(f"{path}/")
            else:
                yield path, mode


def is_executable_text(data: bytes) -> bool:
    """Whether a new file is a program by its first bytes."""
    return data.startswith(b"#!")


def write_file(root: Path, path: str, new: bytes | None) -> None:
    """Put a changed file into a private tree; None: it is removed. Links in the way are removed, never followed."""
    full, folder = root / path, root
    for part in Path(path).parts[:-1]:
        folder = folder / part
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            folder.unlink()
        folder.mkdir(exist_ok=True)
    if os.path.lexists(full):
        full.unlink()
    if new is not None:
        full.write_bytes(new)
        if is_executable_text(new):
            full.chmod(0o755)
