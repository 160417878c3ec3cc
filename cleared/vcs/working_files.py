"""Files of the working tree: looked at without following symlinks, replaced whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Literal

from cleared.errors import WorkspaceError
from cleared.vcs.object_writer import blob_id
from cleared.vcs.repository import HashName, TreeEntry
from cleared.workspace.safe_files import sync_folder

_PREFIX, _SUFFIX = ".cleared-seal-", ".tmp"

#: What ``state`` says of a path at which there is something that is not a plain, readable file.
NotAFile = Literal["symlink", "folder", "special", "unreadable"]
NOT_A_FILE: frozenset[str] = frozenset({"symlink", "folder", "special", "unreadable"})


def check_path(path: str) -> None:
    """Refuses (``WorkspaceError``) a path that cannot be in a commit, leaves the root, or could reach ``.git``."""
    bad = not path or "\0" in path or (os.name == "nt" and ("\\" in path or ":" in path))
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        bad = True
    for name in path.split("/"):
        # As some file systems read it: no case, no invisible characters, no trailing dots, short names.
        plain = "".join(c for c in name if unicodedata.category(c) != "Cf").casefold().rstrip(" .")
        bad = bad or name in ("", ".", "..") or plain.split(":")[0] in (".git", "git~1")
    if bad:
        raise WorkspaceError(f"{path!r} is not a path that can be committed")


def check_parents(root: Path, path: str, *, going: frozenset[str] = frozenset()) -> None:
    """Refuses a path whose parent is a symlink or no folder (but for files in ``going``, soon deleted)."""
    parent = root
    done = ""
    for name in path.split("/")[:-1]:
        parent = parent / name
        done = f"{done}/{name}" if done else name
        try:
            mode = parent.lstat().st_mode
        except FileNotFoundError:
            return
        if stat.S_ISLNK(mode):
            raise WorkspaceError(
                f"{path} cannot be written: {done} is a symbolic link",
                remedy="Replace it by a real folder.",
            )
        if not stat.S_ISDIR(mode):
            if done in going and stat.S_ISREG(mode):
                return
            raise WorkspaceError(f"{path} cannot be written: {done} is not a folder")


def is_blocked(root: Path, path: str) -> bool:
    """Whether a parent of ``path`` is there and is not a folder of ours."""
    try:
        check_parents(root, path)
    except WorkspaceError:
        return True
    return False


def read_content_id(path: Path, hash_name: HashName) -> str | None:
    """The blob id of the file at ``path``, a word of ``Odd`` where it is no such thing, ``None`` where nothing is."""
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
    """Whether the file at ``path`` is to be executable: as the commit has it (``entry``); a new one if it is for a
    shell."""
    return path.endswith(".sh") if entry is None else entry.mode == "100755"


def missing_parents(root: Path, path: str) -> list[str]:
    """The parents of ``path`` that are not there yet, outermost first."""
    names = path.split("/")[:-1]
    parents = ["/".join(names[: n + 1]) for n in range(len(names))]
    return [parent for parent in parents if not os.path.lexists(root / parent)]


def stage_file(root: Path, path: str, content: bytes, *, executable: bool) -> Path:
    """Writes ``content`` next to ``path``, under a name of our own; ``place`` puts it there once it is synced."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(temporary, flags, 0o777 if executable else 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        with suppress(FileNotFoundError):
            # A file the user keeps to himself stays so.
            temporary.chmod(stat.S_IMODE(target.lstat().st_mode))
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return temporary


def place_file(temporary: Path, target: Path) -> None:
    """Makes a staged file the file at ``target``, in one step."""
    temporary.replace(target)


def remove_file(root: Path, path: str) -> None:
    """Removes a file, and the folders it leaves empty as git would.

    But the top ones stay: they are the workspace's layout, and somebody may be watching them.
    """
    (root / path).unlink(missing_ok=True)
    names = path.split("/")[:-1]
    with suppress(OSError):  # not empty, or gone already
        while len(names) > 1:
            (root / "/".join(names)).rmdir()
            names.pop()


def is_temporary(name: str) -> bool:
    """Whether ``name`` is one that ``stage`` gives."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def remove_temporaries(folder: Path) -> None:
    """Removes what a killed ``stage`` left in ``folder``."""
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            if is_temporary(entry.name) and entry.is_file(follow_symlinks=False):
                Path(entry.path).unlink(missing_ok=True)


def write_durably(path: Path, content: bytes) -> None:
    """Replaces a file of our own, durably; its folder exists."""
    temporary = path.parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
