"""The id of a clone, which its commits name. It lies in the git directory, so that no clone takes it along."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from cleared.base.safe_files import write_atomic
from cleared.git.repository import Repository

_NAME = "cleared-origin"
_MARK = re.compile(r"[0-9a-f]{12}")


def forget_clone_id(git_dir: Path) -> None:
    """Give the clone another id when it needs one: it is a copy of one that keeps this."""
    (git_dir / _NAME).unlink(missing_ok=True)


def find_clone_id(repo: Repository, *, make: bool = False) -> str | None:
    """The id of this clone: 12 hex digits; ``None`` where it has none yet.

    ``make`` gives it one; the caller holds the writer lock then.
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
