"""The files of a workspace that a backup carries, outside of git's own directory."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import describe_os_error, is_temporary
from cleared.changes.backup.archive_members import MAX_DEPTH
from cleared.git.working_files import check_path
from cleared.workspace.location import Layout
from cleared.workspace.stores import is_carried

_REBUILT: Final = ("CACHEDIR.TAG", "pyvenv.cfg")
"""A folder with one of these says of itself that it can be made again."""


@dataclass(slots=True)
class FileWalk:
    """Goes through a workspace.

    ``committed``: the folders in which the last commit has files, each with a slash at its end. What a commit brings
    says of none of them that it can be made again. ``left_out`` tells, when all was gone through, what is not carried
    and why; what is declared as such (``workspace.stores``) is not told of.
    """

    root: Path
    committed: Collection[str]
    left_out: list[str]

    def list_entries(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Each folder, file and link to carry, with its path relative to the workspace; a folder before what is in it.

        Raises ``WorkspaceError`` where a folder cannot be read.
        """
        waiting = [""]
        while waiting:
            prefix = waiting.pop()
            folders = []
            for entry in self._read_folder(prefix):
                path = f"{prefix}{entry.name}"
                if not self._is_wanted(path, entry):
                    continue
                yield path, entry
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
            waiting += reversed(folders)

    def _read_folder(self, prefix: str) -> list[os.DirEntry[str]]:
        try:
            entries = sorted(os.scandir(self.root / prefix), key=lambda entry: entry.name)
        except OSError as error:
            raise WorkspaceError(
                f"the folder cannot be read, so there is no backup: {describe_os_error(error)}",
                place=Place(prefix),
                remedy="Give yourself the right to read it, or move it out of the workspace.",
            ) from error
        if prefix and prefix not in self.committed and any(entry.name in _REBUILT for entry in entries):
            self.left_out.append(f"{prefix} (it can be made again)")
            return []
        return entries

    def _is_wanted(self, path: str, entry: os.DirEntry[str]) -> bool:
        if path == ".git" or entry.name == "__pycache__" or is_temporary(entry.name):
            return False
        if path.startswith(f"{Layout.state}/"):
            inner = path.removeprefix(f"{Layout.state}/")
            if entry.is_dir(follow_symlinks=False):
                return is_carried("state", f"{inner}/file")
            return is_carried("state", inner) and self._is_plain(entry) and not inner.endswith((".db-wal", ".db-shm"))
        try:
            check_path(path)
        except WorkspaceError:
            is_git = entry.name == ".git"
            self.left_out.append(
                f"{path} ({'a repository of its own' if is_git else 'no name for a file of the books'})"
            )
            return False
        if path.count("/") >= MAX_DEPTH:
            self.left_out.append(f"{path} (more than {MAX_DEPTH} folders deep)")
            return False
        if entry.is_symlink():
            target = Path(os.path.realpath(entry.path))
            if not target.is_relative_to(self.root.resolve()):
                self.left_out.append(f"{path} (a link to {target}: not what it leads to)")
            return True
        if not self._is_plain(entry):
            self.left_out.append(f"{path} (no file)")
            return False
        return True

    @staticmethod
    def _is_plain(entry: os.DirEntry[str]) -> bool:
        return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def list_folders(paths: Iterable[str]) -> set[str]:
    """The folders that these files lie in, and those around them, each with a slash at its end."""
    return {f"{folder.as_posix()}/" for path in paths for folder in PurePosixPath(path).parents if folder.name}
