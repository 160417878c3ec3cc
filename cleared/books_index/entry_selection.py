"""Which entries a list is to show, from the texts of a command or a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cleared.books_index.journal_index import EntryFilter, JournalIndex
from cleared.errors import UsageError
from cleared.schema.days import parse_month


def make_filter(
    month: str | None = None, status: str | None = None, account: int | None = None, text: str | None = None
) -> EntryFilter:
    """The filter. ``month`` is ``YYYY-MM``. Raises ``UsageError``."""
    year, number = parse_month(month) if month else (None, None)
    return EntryFilter(year, number, status=status, account=account, text=text or None)


def select_entries(
    index: JournalIndex, month: str | None = None, status: str | None = None, account: int | None = None,
    text: str | None = None, limit: int | None = None,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Entries as plain data, in the order of their ids; ``limit``: the newest so many. Raises ``UsageError``."""
    if limit is not None and limit < 0:
        raise UsageError("the limit is negative", remedy="Leave it out for all entries.")
    return index.iter_dicts(make_filter(month, status, account, text), limit=limit)
