"""How a check names commits, and rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cleared.base.clock import format_iso
from cleared.git.history import CommitInfo

_MAX_SHOWN: Final = 3


def describe_commit(commit: CommitInfo) -> str:
    """Which commit it is, of whom and when."""
    return f"commit {commit.id[:10]} ({commit.subject[:60]!r}, {commit.author}, {format_iso(commit.when)})"


def quote_rows(rows: Iterable[bytes]) -> str:
    """The first of them, and how many there are more."""
    texts = [row.decode("utf-8", "replace")[:60] for row in rows]
    more = f" and {len(texts) - _MAX_SHOWN} more lines" if len(texts) > _MAX_SHOWN else ""
    return ", ".join(repr(text) for text in texts[:_MAX_SHOWN]) + more
