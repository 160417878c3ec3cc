"""Files of the working tree: looked at without following symlinks, replaced whole or not at all, and compared with a
commit.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Literal

from msgspec import Struct

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import create_temporary, is_temporary
from cleared.base.safe_names import fold_path
from cleared.git.known_files import KnownFiles
from cleared.git.object_reader import HashName, TreeEntry, blob_id
from cleared.git.repository import Snapshot

#: What ``read_content_id`` gives for a path at which there is something else than a plain, readable file.
NOT_A_FILE: frozenset[str] = frozenset({"symlink", "folder", "special", "unreadable"})


def check_path(path: str) -> None:
    """Raises ``WorkspaceError`` for a path that cannot be in a commit, leaves the root, or could reach ``.git``."""
    bad = not path or "\0" in path or (os.name == "nt" and ("\\" in path or ":" in path))
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        bad = True
    bad = bad or not {"", ".", ".."}.isdisjoint(path.split("/"))
    bad = bad or not {".git", "git~1"}.isdisjoint(fold_path(path).split("/"))  # the second is its short name
    if bad:
        raise WorkspaceError(f"{path!r} is not a path that can be committed")


def check_parents(root: Path, path: str, *, deleted: frozenset[str] = frozenset()) -> None:
    """Raises ``WorkspaceError`` where a parent of ``path`` is a symlink or no folder.

    A parent in ``deleted`` may be a file: the same commit deletes it.
    """
    relative = ""
    for name in path.split("/")[:-1]:
        relative = f"{relative}/{name}" if relative else name
        try:
            mode = os.lstat(f"{root}{os.sep}{relative}").st_mode  # so often that a Path takes longer than all else
        except FileNotFoundError:
            return
        if stat.S_ISLNK(mode):
            raise WorkspaceError(
                f"{path} cannot be written: {relative} is a symbolic link",
                remedy=f"Take it away: rm {quote(relative)} (where it is committed so: git rm, and commit that).",
            )
        if not stat.S_ISDIR(mode):
            if relative in deleted and stat.S_ISREG(mode):
                return
            raise WorkspaceError(
                f"{path} cannot be written: {relative} is not a folder",
                remedy=f"Move it out of the way: {name_way_aside(relative)}. Then run the command again.",
            )


def name_way_aside(path: str) -> str:
    """The command that moves out of the way what stands in place of a file or folder."""
    return f"mv {quote(path)} {quote(f'{path}.aside')}"


def is_blocked(root: Path, path: str) -> bool:
    """Whether a parent of ``path`` is there and is not a real folder."""
    try:
        check_parents(root, path)
    except WorkspaceError:
        return True
    return False


def read_content_id(path: Path, hash_name: HashName) -> str | None:
    """The blob id of the file at ``path``; a word of ``NOT_A_FILE`` for something else, ``None`` for nothing."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            return blob_id(path.read_bytes(), hash_name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return "unreadable"
    return "symlink" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "special"


def is_executable(entry: TreeEntry | None, path: str) -> bool:
    """Whether the file at ``path`` is to be executable: as the commit has it (``entry``), or a new shell script."""
    return path.endswith(".sh") if entry is None else entry.mode == "100755"


def missing_parents(root: Path, path: str) -> list[str]:
    """The parents of ``path`` that are not there yet, outermost first."""
    names = path.split("/")[:-1]
    parents = ["/".join(names[: n + 1]) for n in range(len(names))]
    return [parent for parent in parents if not os.path.lexists(root / parent)]


def stage_file(root: Path, unseen: Path, path: str, content: bytes, *, executable: bool) -> Path:
    """Write ``content`` to a temporary file, in ``unseen`` where that is on the same disk; ``place_file`` makes it the
    one at ``path`` once it is synced."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary, descriptor = create_temporary(target, unseen, 0o777 if executable else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        with suppress(FileNotFoundError):
            # The permissions of the file that is there stay.
            temporary.chmod(stat.S_IMODE(target.lstat().st_mode))
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return temporary


def remove_file(root: Path, path: str) -> None:
    """Remove a file, and the folders that it leaves empty, as git does.

    Folders at the top level stay: they are the workspace's layout, and somebody may be watching them.
    """
    (root / path).unlink(missing_ok=True)
    names = path.split("/")[:-1]
    with suppress(OSError):  # not empty, or gone already
        while len(names) > 1:
            (root / "/".join(names)).rmdir()
            names.pop()


#: ``type``: a symlink, folder or device where the commit has a file, or the other way round.
DifferenceKind = Literal["modified", "deleted", "untracked", "type", "unreadable"]


class Difference(Struct, frozen=True, order=True):
    """One path that is not as the commit has it."""

    path: str
    kind: DifferenceKind


def find_differences(
    snapshot: Snapshot,
    root: Path,
    prefixes: Sequence[str],
    ignore: Callable[[str], bool] | None = None,
    known: KnownFiles | None = None,
) -> list[Difference]:
    """All differences under the folders (or of the files) ``prefixes``, sorted by path.

    ``ignore`` gets each path that the commit does not have (a folder with a slash at its end), and returns whether to
    pass it over. ``known``: files that need not be read again. Executable bits are not compared. Symlinks are never
    followed.
    """
    tracked: dict[str, tuple[str, str]] = {}
    for prefix in prefixes:
        tracked.update(snapshot.list_entries(prefix))
    scan = _Scan(root, tracked, ignore or (lambda _: False))
    for prefix in prefixes:
        scan.scan_prefix(prefix.strip("/"))
    differing = {Difference(path, "unreadable") for path in scan.unreadable}
    for path, entry in tracked.items():
        kind = _compare_file(snapshot, root, path, entry, scan, known)
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
        self._folders = set[str]()
        """Those in which files lie, and in which these do."""
        for folder in {path.rpartition("/")[0] for path in tracked}:
            while folder and folder not in self._folders:
                self._folders.add(folder)
                folder = folder.rpartition("/")[0]
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
    snapshot: Snapshot, root: Path, path: str, entry: tuple[str, str], scan: _Scan, known: KnownFiles | None
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
        status = os.lstat(f"{root}{os.sep}{path}")  # of each file, where a Path takes longer than all else
        known = known if stat.S_ISREG(mode) else None
        content_id = known.find_id(path, status) if known is not None else None
        if content_id is None:
            content = os.fsencode((root / path).readlink()) if stat.S_ISLNK(mode) else (root / path).read_bytes()
            content_id = blob_id(content, snapshot.hash_name)
            if known is not None:
                known.note_id(path, status, content_id)
    except FileNotFoundError:
        return "deleted"
    except OSError:
        return "unreadable"
    return None if content_id == oid else "modified"
