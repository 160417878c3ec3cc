"""The token that a client of ``cleared mcp --http`` shows. It lies in ``.cleared/``, readable by its owner alone."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import describe_os_error, write_new
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.workspace.lock import ensure_state_dir

FILE: Final = "mcp-token.secret"
"""A name that no job may read (``jobs.forbidden_files``)."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{40,100}")


def load_token(host: Host) -> tuple[str, Path, bool]:
    """The token, its file, and whether it was made now. One that others could read, or that is committed, is replaced.

    Raises ``WorkspaceError`` where it cannot be written.
    """
    ensure_state_dir(host.layout.state_dir)
    path = host.layout.state_dir / FILE
    token = None if _is_committed(host, path) else _read_own_file(path)
    if token is not None:
        return token, path, False
    try:
        with suppress(FileNotFoundError):
            path.unlink()
        token = secrets.token_urlsafe(32)
        if write_new(path, f"{token}\n".encode("ascii"), mode=0o600):
            return token, path, True
        token = _read_own_file(path)  # two servers made it at once
    except OSError as error:
        raise WorkspaceError(
            f"the token could not be written to {path}: {describe_os_error(error)}", remedy="See what lies there."
        ) from None
    if token is None:
        raise WorkspaceError(f"the token in {path} cannot be read", remedy="Delete the file, and start again.")
    return token, path, False


def _read_own_file(path: Path) -> str | None:
    """The token in a file of this user's that nobody else can read; None where it is none."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            about = os.fstat(file.fileno())
            text = file.read(200).decode("ascii").strip()
    except (OSError, ValueError):
        return None
    is_own = sys.platform == "win32" or (about.st_uid == os.getuid() and not about.st_mode & 0o077)
    is_plain = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
    return text if is_own and is_plain and _TOKEN.fullmatch(text) else None


def _is_committed(host: Host, path: Path) -> bool:
    """Whether the repository holds such a file: then whoever pushed it knows the token."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        return snapshot.read_file(path.relative_to(host.root).as_posix()) is not None
