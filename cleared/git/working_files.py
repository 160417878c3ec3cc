"""Files of the working tree: looked at without following symlinks, replaced whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Literal

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import create_temporary
from cleared.base.safe_names import fold_path
from cleared.git.object_reader import HashName, TreeEntry
from cleared.git.object_writer import blob_id

#: What ``read_content_id`` gives for a path at which there is something else than a plain, readable file.
NotAFile = Literal["symlink", "folder", "special", "unreadable"]
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
    parent = root
    relative = ""
    for name in path.split("/")[:-1]:
        parent = parent / name
        relative = f"{relative}/{name}" if relative else name
        try:
            mode = parent.lstat().st_mode
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
    """The blob id of the file at ``path``; a word of ``NotAFile`` for something else, ``None`` for nothing."""
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
