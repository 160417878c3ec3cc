"""Which clone made a commit: a mark in its own git directory, which no clone takes along."""

from __future__ import annotations

import re
import secrets

from cleared.vcs.repository import Repository
from cleared.workspace.safe_files import write_atomic

_NAME = "cleared-origin"
_MARK = re.compile(r"[0-9a-f]{12}")


def find_clone_id(repo: Repository, *, make: bool = False) -> str | None:
    """The mark of this clone: 12 hex digits. None where it has made no commit yet and none is to be made now.

    The caller holds the writer lock where ``make`` is set.
    """
    path = repo.git_dir / _NAME
    try:
        text = path.read_text("ascii").strip()
    except (OSError, ValueError):
        text = ""
    if _MARK.fullmatch(text):
        return text
    if not make:
        return None
    text = secrets.token_hex(6)
    write_atomic(path, f"{text}\n".encode())
    return text
