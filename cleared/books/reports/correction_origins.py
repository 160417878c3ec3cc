"""The entry behind others, and its bank account: behind corrections, and what takes corrections back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final

from cleared.books.index.journal_index import JournalIndex, MonthKey
from cleared.books.index.month_facts import MonthEntries
from cleared.books.ledger.chains import CORRECTS, REPLACES, REVERSES, list_links
from cleared.books.ledger.chart import OPENING_BALANCES
from cleared.books.ledger.entry import parse_entry_id

_MAX_STEPS: Final = 8
"""A reversal of a correction takes two; tags that were written by hand may lead round in a circle."""


def find_origin(tags: str) -> str:
    """The id of the entry that this one corrects or reverses; empty where it does neither."""
    return next((target for mark, target in list_links(tags) if mark in (CORRECTS, REPLACES, REVERSES)), "")


class CorrectionOrigins:
    """Finds the entry at the bottom of corrections. Fastest where it is asked in the order of the ids."""

    def __init__(self, index: JournalIndex, banks: frozenset[int]) -> None:
        self._index = index
        self._banks = banks
        self._month: MonthKey | None = None
        self._entries: MonthEntries | None = None
        self._places: dict[str, int] = {}

    def find_bank(self, entry_id: str) -> int | None:
        """The one bank account that an entry, or the one that it corrects or reverses, moves.

        ``None`` where there is no such entry, and where it moves no bank account, several, or posts an opening balance.
        """
        for _ in range(_MAX_STEPS):
            read = self._read(entry_id)
            if read is None:
                return None
            accounts, tags, _ = read
            touched = {account for account in accounts if account in self._banks}
            if touched:
                return touched.pop() if len(touched) == 1 and OPENING_BALANCES not in accounts else None
            entry_id = find_origin(tags)
        return None

    def find_root(self, entry_id: str) -> str:
        """The entry at the bottom: itself where it corrects and reverses nothing that is there."""
        for _ in range(_MAX_STEPS):
            read = self._read(entry_id)
            origin = find_origin(read[1]) if read else ""
            if not origin or self._read(origin) is None:
                break
            entry_id = origin
        return entry_id

    def find_day(self, entry_id: str) -> date | None:
        """The day of an entry; ``None`` where there is no such entry."""
        read = self._read(entry_id)
        return date.fromisoformat(read[2]) if read else None

    def _read(self, entry_id: str) -> tuple[Sequence[int], str, str] | None:
        """The accounts of an entry, its tags and its day as written."""
        parts = parse_entry_id(entry_id)
        if parts is None or parts[:2] not in self._index.blobs:
            return None
        if parts[:2] != self._month or self._entries is None:
            self._month, self._entries = parts[:2], self._index.month_entries(parts[:2])
            self._places = {name: at for at, name in enumerate(self._entries.ids)}
        at = self._places.get(entry_id)
        if at is None:
            return None
        legs = next(iter(self._entries.list_movements([at])))
        tags, day = (self._entries.list_texts(name, [at])[0] for name in ("tags", "date"))
        return [account for account, _ in legs], tags, day
