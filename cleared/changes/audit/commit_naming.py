"""How a check names commits, and rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cleared.base.clock import format_iso
from cleared.base.short_text import list_first
from cleared.git.history import CommitInfo

_MAX_SHOWN: Final = 3


def describe_commit(commit: CommitInfo) -> str:
    """Which commit it is, of whom and when."""
    return f"commit {commit.id[:10]} ({commit.subject[:60]!r}, {commit.author}, {format_iso(commit.when)})"


def quote_rows(rows: Iterable[bytes]) -> str:
    """The first of them, and how many there are more."""
    return list_first([repr(row.decode("utf-8", "replace")[:60]) for row in rows], _MAX_SHOWN)
