"""What kept answers depend on besides git's objects: the branch's commit, the commit that is remembered of it,
``config.yaml`` and what is approved of it, and the place of the workspace, byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cleared.workspace.location import (
    APPROVED_CONFIG,
    CONFIG_NAME,
    read_git_line,
    read_git_text,
    remembered_ref,
    trust_folder,
)
from cleared.workspace.sealed_files import SealedFiles

STATE_DIR: Final = ".cleared"
_MAX_CONFIG_BYTES: Final = 1_000_000
_OID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Checkout(NamedTuple):
    """What is checked out in a working tree."""

    branch: str
    """The full name of the branch."""
    commit: str
    remembered: str
    """What stands in the reference that remembers the last commit that this program made there; empty without one."""


class Surroundings(NamedTuple):
    """What the answers depend on, besides git's objects."""

    root: str
    checkout: Checkout
    config: str
    """SHA-256 of ``config.yaml`` and of the record that approves it."""
    trust: int
    """When what this user trusts was last written, in nanoseconds."""


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
    head = read_git_line(git / "HEAD")
    branch = head.removeprefix("ref: ").strip()
    if not head.startswith("ref: ") or not branch.startswith("refs/heads/") or branch == "refs/heads/.invalid":
        return None
    commit = read_git_line(git / branch).strip()
    if not commit and not (git / branch).exists():
        line = rf"^({_OID.pattern}) {re.escape(branch)}$"
        packed = re.search(line, read_git_text(git / "packed-refs"), re.MULTILINE)
        commit = packed[1] if packed is not None else ""
    return Checkout(branch, commit, read_git_line(git / remembered_ref(branch))) if _OID.fullmatch(commit) else None


def read_surroundings(root: Path) -> Surroundings | None:
    """What holds for the workspace at ``root`` now; None where that is not plain to see."""
    checkout = read_checkout(root)
    if checkout is None:
        return None
    try:
        path = root / CONFIG_NAME
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_CONFIG_BYTES:
            return None
        digest = hashlib.sha256(path.read_bytes())
        record = root / APPROVED_CONFIG
        digest.update(record.read_bytes() if record.is_file() and not record.is_symlink() else b"")
        trust = trust_folder().stat().st_mtime_ns
    except OSError:
        return None
    return Surroundings(os.path.realpath(root), checkout, digest.hexdigest(), trust)


def write_answer(files: SealedFiles, name: str, surroundings: Surroundings, answer: Sequence[object]) -> None:
    """Keep plain data under this name, for as long as these surroundings hold."""
    content = json.dumps([surroundings, answer]).encode()
    if files.read(name) != content:
        files.write(name, content)


def read_answer(files: SealedFiles, name: str, surroundings: Surroundings | None) -> list[Any] | None:
    """What was kept under this name, where it was kept in these surroundings."""
    content = files.read(name) if surroundings is not None else None
    if content is None:
        return None
    (root, checkout, config, trust), answer = json.loads(content)
    return answer if Surroundings(root, Checkout(*checkout), config, trust) == surroundings else None
