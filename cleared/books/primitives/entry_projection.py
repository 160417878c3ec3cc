"""An entry as scripts see it."""

from __future__ import annotations

from decimal import Decimal
from typing import cast

from cleared.books.ledger.entry import Entry, entry_dict
from cleared.books.primitives.book_shapes import EntryRef, JournalEntry


def entry_reference(entry: Entry) -> EntryRef:
    """What posting and voiding give: id, date and status."""
    return {"entry_id": entry.entry_id, "date": entry.date.isoformat(), "status": entry.status, "duplicate": False}


def describe_entry(entry: Entry) -> JournalEntry:
    """An entry as scripts see it."""
    return cast(JournalEntry, entry_dict(entry, _unchanged))


def _unchanged(number: Decimal) -> Decimal:
    return number
