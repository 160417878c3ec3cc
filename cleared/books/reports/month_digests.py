"""What a report makes of the entries of a month, made once for as long as the month stays in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from cleared.base.date_spans import DateSpan
from cleared.books.index.journal_index import EntryFilter, JournalIndex
from cleared.books.index.month_facts import MonthEntries

T = TypeVar("T")
_memory: Final[WeakKeyDictionary[MonthEntries, dict[object, Any]]] = WeakKeyDictionary()


def iter_digests(
    index: JournalIndex, period: DateSpan, key: object, make: Callable[[MonthEntries, Sequence[int]], T]
) -> Iterator[T]:
    """``make`` of each month that has entries in the period, with their places. ``key``: names ``make`` and all that
    its answer depends on."""
    for month, places in index.find_places(EntryFilter(start=period.start, end=period.end)):
        entries = index.month_entries(month)
        if len(places) < len(entries):
            yield make(entries, places)
            continue
        known = _memory.setdefault(entries, {})
        if key not in known:
            if len(known) > 8:
                known.clear()
            known[key] = make(entries, places)
        yield known[key]
