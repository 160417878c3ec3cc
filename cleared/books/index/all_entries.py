"""Every entry of a commit, for a process that asks again after each commit, such as the queue's: of the months that it
has read already nothing is read again.

A month is taken from the sealed index; one that the index has not, or that has changed since, is parsed, of the latter
what is new.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import check_deadline
from cleared.books.index.journal_index import JournalIndex, MonthKey, open_index
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.journal import parse_month_once
from cleared.git import Snapshot
from cleared.workspace.location import Layout

_MAX_ENTRIES: Final = 400_000
"""Entries that stay in memory, of all workspaces of this process."""


class _KnownMonth(Struct, frozen=True):
    blob: str
    places: int
    entries: Mapping[str, Entry]


class _EntryMemory:
    """The months that were read last, by workspace. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._months: OrderedDict[tuple[Path, MonthKey], _KnownMonth] = OrderedDict()

    def find(self, key: tuple[Path, MonthKey]) -> _KnownMonth | None:
        with self._lock:
            if key in self._months:
                self._months.move_to_end(key)
            return self._months.get(key)

    def keep(self, key: tuple[Path, MonthKey], month: _KnownMonth) -> None:
        with self._lock:
            self._months[key] = month
            self._months.move_to_end(key)
            count = sum(len(each.entries) for each in self._months.values())
            while count > _MAX_ENTRIES and len(self._months) > 1:
                count -= len(self._months.popitem(last=False)[1].entries)


_memory = _EntryMemory()


def read_all_entries(layout: Layout, snapshot: Snapshot, places: int) -> dict[str, Entry]:
    """The entries of a commit by id, in order. ``places``: decimals of the currency.

    Raises ``WorkspaceError`` where git cannot read a file.
    """
    index = open_index(layout, snapshot, places)
    entries: dict[str, Entry] = {}
    for key in check_deadline(index.months):
        place, blob = (layout.root, key), index.blobs[key]
        known = _memory.find(place)
        if known is None or (known.blob, known.places) != (blob, places):
            read = _read_month(layout, snapshot, index, key, is_first=known is None)
            known = _KnownMonth(blob, places, read)
            _memory.keep(place, known)
        entries |= known.entries
    return entries


def _read_month(
    layout: Layout, snapshot: Snapshot, index: JournalIndex, key: MonthKey, *, is_first: bool
) -> Mapping[str, Entry]:
    """``is_first``: whether this process has no version of the month; then the index gets it, where it has it not."""
    if (columns := index.find_entries(key)) is not None:
        return dict(zip(columns.ids, map(columns.make_entry, range(len(columns))), strict=True))
    path = layout.journal_path(*key)
    month = parse_month_once(snapshot.read_file(path), *key, path, index.places)
    if is_first:
        index.add_month(month)
    return {each.entry_id: each for each in month.entries.values()}
