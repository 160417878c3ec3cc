"""Where the parts of a repository lie, and how it names its objects: read off a plain ``.git``, else asked of git."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from cleared.base.errors import WorkspaceError
from cleared.git.git_process import Git, find_git, first_line
from cleared.git.object_reader import HashName

_LOCATE: Final = (
    "rev-parse",
    "--show-object-format",
    "--is-bare-repository",
    "--absolute-git-dir",
    "--git-common-dir",
    "--show-toplevel",
)
_FOLDERS: Final = ("", ".git", ".git/objects", ".git/refs")
_FILES: Final = (".git/HEAD", ".git/config")
_ELSEWHERE: Final = (".git/commondir", ".git/config.worktree")
_MAX_CONFIG: Final = 64 << 10
_SWITCHES: Final = frozenset(
    b"core." + name
    for name in (b"bare", b"filemode", b"ignorecase", b"logallrefupdates", b"precomposeunicode", b"symlinks")
)
"""What git itself writes into a new repository: true or false. What else ``core`` says, git is asked about."""


class Location(Struct, frozen=True):
    """``git_dir``: the working tree's own directory; ``common_dir``: the same but in a linked worktree."""

    hash_name: HashName
    git_dir: Path
    common_dir: Path


def locate_repository(root: Path) -> Location:
    """The repository whose top level is ``root``, an absolute path. Raises ``WorkspaceError`` where git opens none
    there."""
    plain = _find_plain_hash(root)
    if plain is not None:
        folder = Path(os.path.realpath(root), ".git")
        return Location(plain, folder, folder)
    hash_name, _, git_dir, common_dir, top = _ask_git(root)
    if not root.samefile(top):
        raise WorkspaceError(
            f"{root} is inside the git repository {top}, not its top level",
            remedy=f"Use {top}, or make {root} a repository of its own (git init).",
        )
    if hash_name not in ("sha1", "sha256"):
        raise WorkspaceError(f"git stores objects here by {hash_name}, which is not supported")
    return Location(cast("HashName", hash_name), Path(git_dir), (root / common_dir).resolve())


def _find_plain_hash(root: Path) -> HashName | None:
    """By what the objects of a plain ``.git`` of this user's are named: each command asks, and to start git takes
    longer than to read two small files. None where git must say what is there, or whether it is to be trusted."""
    try:
        folders = [os.lstat(root / name if name else os.path.realpath(root)) for name in _FOLDERS]
        files = [os.lstat(root / name) for name in _FILES]
        if not all(stat.S_ISDIR(each.st_mode) for each in folders):
            return None
        if any(os.path.lexists(root / name) for name in _ELSEWHERE):
            return None
        if not all(stat.S_ISREG(each.st_mode) and each.st_size <= _MAX_CONFIG for each in files):
            return None
        head, config = ((root / name).read_bytes() for name in _FILES)
    except OSError:
        return None
    is_own = hasattr(os, "geteuid") and {each.st_uid for each in (*folders, *files)} == {os.geteuid()}
    find_git()
    return _read_hash_name(config) if is_own and head.startswith(b"ref: refs/") else None


def _read_hash_name(config: bytes) -> HashName | None:
    """What the settings of a repository say of the names of its objects; None where they are not plain: written so that
    git must read them, bare, of another place or with what only git knows."""
    settings: dict[bytes, bytes] = {}
    section = b""
    for line in map(bytes.strip, config.splitlines()):
        name, equals, value = line.partition(b"=")
        if line.count(b'"') % 2:
            return None
        if line.startswith(b"["):
            section = line[1:-1].lower()
            kind, is_named, _ = section.partition(b' "')
            is_odd = not kind.replace(b"-", b"").isalnum() or kind.startswith(b"include")
            if is_odd or not line.endswith(b"]") or line.count(b"]") > 1 or b"\\" in line:
                return None
            if is_named and kind in (b"core", b"extensions"):
                return None
        elif line and not line.startswith((b"#", b";")):
            name, value = name.strip(), value.strip()
            if not equals or line.endswith(b"\\") or not name[:1].isalpha() or not name.replace(b"-", b"").isalnum():
                return None
            settings[section + b"." + name.lower()] = value
    extensions = {key for key in settings if key.startswith(b"extensions.")}
    core = {key: value for key, value in settings.items() if key.startswith(b"core.")}
    version = core.pop(b"core.repositoryformatversion", None)
    is_plain = core.keys() <= _SWITCHES and {*core.values()} <= {b"true", b"false"}
    if core.get(b"core.bare") != b"false" or not is_plain or len(extensions) > 1:
        return None
    hash_name = settings.get(b"extensions.objectformat")
    if not extensions:
        return "sha1" if version in (b"0", b"1") else None
    return "sha256" if version == b"1" and hash_name == b"sha256" else None


def _ask_git(root: Path) -> tuple[str, ...]:
    """Git's five answers to ``_LOCATE``. Raises ``WorkspaceError``."""
    process = Git(root).start(_LOCATE)
    out, err = process.communicate()
    answers = out.decode("utf-8", "surrogateescape").splitlines()
    if process.returncode != 0 or len(answers) != 5:
        raise open_error(root, answers, err)
    return tuple(answers)


def open_error(root: Path, answers: list[str], err: bytes) -> WorkspaceError:
    """The error for ``root``, from what git printed when it was asked which repository ``root`` belongs to."""
    text = err.decode("utf-8", "replace")
    if not root.is_dir():
        return WorkspaceError(f"{root} is not a directory")
    if "dubious ownership" in text:
        command = next((line.strip() for line in text.splitlines() if "safe.directory" in line), "")
        return WorkspaceError(
            f"git does not trust {root}: it belongs to another user",
            remedy=f"If you do: {command}" if command else "See git's setting safe.directory.",
        )
    if len(answers) >= 2 and answers[1] == "true":
        return WorkspaceError(f"{root} is a bare repository, without files", remedy="Clone it and use the clone.")
    if "not a git repository" in text:
        return WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.")
    if "must be run in a work tree" in text:
        return WorkspaceError(
            f"{root} is the inside of a git repository, not its working tree",
            remedy="Use the directory that holds the files.",
        )
    return WorkspaceError(f"git cannot open {root}: {first_line(err) or 'its path is not one line'}")
