"""Finding many entries of an index by their ids."""

from __future__ import annotations

from cleared.books.index.journal_index import JournalIndex, MonthKey
from cleared.books.index.month_facts import MonthEntries
from cleared.books.ledger.entry import Entry, parse_entry_id


class EntryLookup:
    """Each month is read once, and its ids are gone through once."""

    def __init__(self, index: JournalIndex) -> None:
        self._index = index
        self._months: dict[MonthKey, tuple[MonthEntries, dict[str, int]]] = {}

    def find(self, entry_id: str) -> Entry | None:
        """The entry; None where there is none."""
        parts = parse_entry_id(entry_id)
        if parts is None or parts[:2] not in self._index.blobs:
            return None
        if parts[:2] not in self._months:
            entries = self._index.month_entries(parts[:2])
            self._months[parts[:2]] = entries, {name: at for at, name in enumerate(entries.ids)}
        entries, places = self._months[parts[:2]]
        return entries.make_entry(places[entry_id]) if entry_id in places else None
