"""The entries of a commit and what counts of them, for a process that asks again after each commit, such as the page's:
of the months that it has read already only what changed is looked at again.

A month is taken from the sealed index; one that the index has not, or that has changed since, is parsed, of the latter
what is new. Corrections lie in other months than what they correct: a month is known with those of its entries.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from datetime import date
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import check_deadline
from cleared.base.last_values import LastValues
from cleared.books.index.journal_index import JournalIndex, MonthKey, open_index
from cleared.books.index.month_items import MonthItems
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.entry import Entry, parse_entry_id
from cleared.books.ledger.grouped_items import GroupedItems, find_differences
from cleared.books.ledger.journal import parse_month_once
from cleared.books.ledger.standing_entries import CORRECTING, find_corrections_among, names_corrected, stand_entry
from cleared.git import Snapshot
from cleared.workspace.location import Layout

_MAX_ENTRIES: Final = 400_000
"""Entries that stay in memory, of all workspaces of this process."""


class KnownMonth(Struct, frozen=True):
    """A month's entries, and what follows from them. ``corrected``: those that others correct, with these;
    ``correcting``: those that only correct another."""

    blob: str
    read: Mapping[str, Entry]
    """What was read of it last: of another version most is the very same."""
    entries: GroupedItems[Entry]
    corrected: Mapping[str, Sequence[Entry]]
    correcting: Set[str]
    standing: GroupedItems[Entry]

    def list_versions(self) -> list[str]:
        """Texts that are others where something else counts in it: its blob, and a digest of corrections."""
        corrections = repr((sorted(self.corrected.items()), sorted(self.correcting)))
        return [self.blob, hashlib.sha256(corrections.encode("utf-8", "surrogatepass")).hexdigest()]


def _begin_month(read: Mapping[str, Entry]) -> KnownMonth:
    """A month of which nobody knows yet what is corrected: nearly all entries count as they are."""
    entries = GroupedItems(read)
    voided = dict.fromkeys(each.entry_id for each in entries.list_where("status", "voided".__eq__))
    return KnownMonth("", read, entries, {}, frozenset(), entries.exchange(voided))


_reading: Final = threading.Lock()
"""Who asks while another thread reads waits, and finds what that one has read."""
_memory: Final = LastValues[KnownMonth](_MAX_ENTRIES, lambda month: len(month.entries.items))


class _Entries(Mapping[str, Entry]):
    """All entries by id, in order, month by month."""

    def __init__(self, months: Mapping[MonthKey, GroupedItems[Entry]]) -> None:
        self._months = months

    def __getitem__(self, entry_id: str) -> Entry:
        parts = parse_entry_id(entry_id)
        month = self._months.get(parts[:2]) if parts is not None else None
        if month is None:
            raise KeyError(entry_id)
        return month.items[entry_id]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(month.items for month in self._months.values())

    def __len__(self) -> int:
        return sum(len(month.items) for month in self._months.values())


class StandingBooks(Struct, frozen=True):
    """The entries of one commit. Do not alter them."""

    months: Mapping[MonthKey, KnownMonth]
    entries: Mapping[str, Entry]

    def find_standing(self, entry_id: str) -> Entry | None:
        """An entry as it counts; None for one that is voided, or only corrects another."""
        parts = parse_entry_id(entry_id)
        month = self.months.get(parts[:2]) if parts is not None else None
        return month.standing.items.get(entry_id) if month is not None else None

    def count_uses(self) -> Counter[int]:
        """How many entries that are decided use each account."""
        return sum((part.recall(_count_uses) for part in self.parts), Counter[int]())

    @property
    def parts(self) -> list[GroupedItems[Entry]]:
        """What counts, month by month."""
        return [month.standing for month in self.months.values()]

    @property
    def versions(self) -> dict[str, list[str]]:
        """Month (``YYYY-MM``) → all that decides what counts in it."""
        return {f"{year:04d}-{number:02d}": month.list_versions() for (year, number), month in self.months.items()}

    def list_parts_until(self, day: date) -> list[GroupedItems[Entry]]:
        """The same up to a day's month."""
        return [month.standing for key, month in self.months.items() if key <= (day.year, day.month)]


def _find_use(standing: Entry) -> Collection[tuple[str, tuple[int, ...]]]:
    """The status of an entry and the accounts that it is on."""
    return [(standing.status, tuple([leg.account_id for leg in standing.legs]))]


def _count_uses(part: GroupedItems[Entry]) -> Counter[int]:
    uses, items = Counter[int](), part.items
    if isinstance(items, MonthItems):
        kinds = items.count_accounts()
    else:
        kinds = Counter({use: len(alike) for use, alike in part.group(_find_use).items()})
    for (status, accounts), count in kinds.items():
        for account in set(accounts) if status != "pending-review" else ():
            uses[account] += count
    return uses


def read_standing_books(layout: Layout, snapshot: Snapshot, places: int) -> StandingBooks:
    """The books of a commit. ``places``: decimals of the currency.

    Raises ``WorkspaceError`` where git cannot read a file.
    """
    with _reading:
        return _read_books(layout, snapshot, places)


def _read_books(layout: Layout, snapshot: Snapshot, places: int) -> StandingBooks:
    index = open_index(layout, snapshot, places, stays_open=True)
    place = (layout.root, places)
    known = {key: _memory.find((*place, key)) for key in index.months}
    texts = {key: _read_month(layout, snapshot, index, key, known[key]) for key in check_deadline(index.months)}
    before = {key: known[key] or _begin_month(text) for key, text in texts.items()}
    changes = {key: find_differences(before[key].read, text) for key, text in texts.items()}
    read = {key: before[key].entries.exchange(changed) for key, changed in changes.items()}
    entries = _Entries(read)
    corrected, correcting = _find_corrections(read, entries)
    months = {}
    for key in check_deadline(read):
        now = replace(before[key], blob=index.blobs[key], read=texts[key], entries=read[key])
        month = _follow(now, changes[key], corrected[key], correcting[key])
        _memory.keep((*place, key), month)
        months[key] = month
    return StandingBooks(months, entries)


def _read_month(
    layout: Layout, snapshot: Snapshot, index: JournalIndex, key: MonthKey, before: KnownMonth | None
) -> Mapping[str, Entry]:
    """A month's entries. One of which this process knows no version is put into the index, where it has it not."""
    if before is not None and before.blob and before.blob == index.blobs[key]:
        return before.read
    if (columns := index.find_entries(key)) is not None:
        return MonthItems(columns)
    path = locate_books(layout).journal_path(*key)
    month = parse_month_once(snapshot.read_file(path), *key, path, index.places)
    if before is None:
        index.add_month(month)
    return {each.entry_id: each for each in month.entries.values()}


def _find_corrections(
    months: Mapping[MonthKey, GroupedItems[Entry]], entries: Mapping[str, Entry]
) -> tuple[Mapping[MonthKey, dict[str, Sequence[Entry]]], Mapping[MonthKey, set[str]]]:
    """By month: what is corrected of its entries, with what corrects it; and which of them only correct another."""
    corrected: dict[MonthKey, dict[str, Sequence[Entry]]] = defaultdict(dict)
    correcting: dict[MonthKey, set[str]] = defaultdict(set)
    linked = chain.from_iterable(month.group(names_corrected, CORRECTING).get(True, ()) for month in months.values())
    for entry_id, corrections in find_corrections_among(linked, entries.get).items():
        corrected[entries[entry_id].month][entry_id] = corrections
        for each in corrections:
            correcting[each.month].add(each.entry_id)
    return corrected, correcting


def _follow(
    before: KnownMonth,
    changed: Collection[str],
    corrected: Mapping[str, Sequence[Entry]],
    correcting: Set[str],
) -> KnownMonth:
    """The month with what follows from its entries. ``before``: with what followed before some had ``changed``."""
    either = corrected.keys() | before.corrected.keys()
    corrected_otherwise = {each for each in either if corrected.get(each) != before.corrected.get(each)}
    differing = {*changed, *corrected_otherwise, *(before.correcting ^ correcting)}
    if not differing:
        return before
    entries = before.entries.items
    standing: dict[str, Entry | None] = dict.fromkeys(differing - entries.keys())
    for entry_id in (each for each in entries if each in differing):
        standing[entry_id] = stand_entry(
            entries[entry_id], corrected.get(entry_id, ()), corrects=entry_id in correcting
        )
    return replace(before, corrected=corrected, correcting=correcting, standing=before.standing.exchange(standing))
