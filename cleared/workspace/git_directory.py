"""Where git keeps a working tree's history, read from its files (gitrepository-layout): no program is started."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from cleared.base.safe_files import TEMPORARY_PATTERN

_LINK: Final = "gitdir:"
_OID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REMEMBERED: Final = "refs/worktree/cleared"
_MAX_NAME_BYTES: Final = 150


class Checkout(NamedTuple):
    """What is checked out in a working tree."""

    branch: str
    """The full name of the branch."""
    commit: str
    remembered: str
    """What stands in the reference that remembers the last commit that this program made there; empty without one."""


def find_git_folders(root: Path) -> tuple[Path, Path] | None:
    """The git directory of ``root``, and the one it shares with linked working trees (``commondir``), links followed.

    The same where it shares none; None where ``root`` is no top of a working tree.
    """
    folder = root / ".git"
    if folder.is_file():
        text = _read_line(folder)
        if not text.startswith(_LINK):
            return None
        folder = root / text.removeprefix(_LINK).strip()
    if not folder.is_dir():
        return None
    common, real = _read_line(folder / "commondir"), folder.resolve()
    return real, (folder / common).resolve() if common else real


def exclude_temporaries(root: Path) -> None:
    """Have git pass over temporary files that have to lie beside others, in every working tree of the repository."""
    folders = find_git_folders(root)
    if folders is None:
        return
    path = folders[1] / "info" / "exclude"
    text = _read_text(path)
    if TEMPORARY_PATTERN in text.splitlines():
        return
    gap = "\n" if text and not text.endswith("\n") else ""
    with suppress(OSError):  # whoever may not write there commits nothing either
        path.parent.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            os.write(descriptor, f"{gap}{TEMPORARY_PATTERN}\n".encode("ascii"))
        finally:
            os.close(descriptor)


def _read_line(path: Path) -> str:
    return _read_text(path).rstrip("\r\n")


def read_checkout(root: Path) -> Checkout | None:
    """The branch that is checked out at ``root``, and its commit, as git would tell them.

    None wherever that is not plain to see: a linked working tree, no branch, another format of references, a git
    directory of another user, a commit that was killed or is under way.
    """
    git = root / ".git"
    try:
        if not git.is_dir() or (git / "commondir").exists() or (git / "reftable").exists():
            return None
        if hasattr(os, "geteuid") and {root.stat().st_uid, git.stat().st_uid} != {os.geteuid()}:
            return None
        if (git / "index.lock").exists() or (root / ".cleared/seal.json").exists():
            return None
    except OSError:
        return None
    head = _read_line(git / "HEAD")
    branch = head.removeprefix("ref: ").strip()
    if not head.startswith("ref: ") or not branch.startswith("refs/heads/") or branch == "refs/heads/.invalid":
        return None
    commit = _read_line(git / branch).strip()
    if not commit and not (git / branch).exists():
        line = rf"^({_OID.pattern}) {re.escape(branch)}$"
        packed = re.search(line, _read_text(git / "packed-refs"), re.MULTILINE)
        commit = packed[1] if packed is not None else ""
    return Checkout(branch, commit, _read_line(git / remembered_ref(branch))) if _OID.fullmatch(commit) else None


def remembered_ref(branch: str) -> str:
    """The name of the reference that remembers the last commit of a branch, by the branch's full name."""
    # Escaped, so that the reference of one branch is never a folder of another's.
    name = branch.removeprefix("refs/heads/").replace("%", "%25").replace("/", "%2F")
    if len(name.encode("utf-8", "surrogateescape")) > _MAX_NAME_BYTES:
        name = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{_REMEMBERED}/{name}"


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return ""
