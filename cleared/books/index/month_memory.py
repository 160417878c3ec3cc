"""The files that hold the index of the books, sealed under the version of the code that made them, and the months that
this process has read of them, kept for the next index.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.books.index.month_facts import MonthEntries, MonthSums
from cleared.workspace.sealed_files import SealedFiles, digest_sources

_MAX_ENTRIES: Final = 400_000
"""Entries that stay in memory, of all indexes of this process."""
_MAX_MONTHS: Final = 1_200


class MonthFacts(Struct, frozen=True):
    """What is known of a month."""

    sums: MonthSums | None = None
    entries: MonthEntries | None = None

    def joined(self, other: MonthFacts) -> MonthFacts:
        return MonthFacts(self.sums or other.sums, other.entries if self.entries is None else self.entries)


class MonthMemory:
    """The months that were used last, of all indexes of this process that stay open. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._months: OrderedDict[object, MonthFacts] = OrderedDict()
        self._entries = 0

    def find(self, key: object) -> MonthFacts:
        with self._lock:
            if key not in self._months:
                return MonthFacts()
            self._months.move_to_end(key)
            return self._months[key]

    def keep(self, key: object, facts: MonthFacts) -> MonthFacts:
        with self._lock:
            before = self._months.pop(key, MonthFacts())
            self._months[key] = joined = facts.joined(before)
            self._entries += _count(joined) - _count(before)
            while len(self._months) > _MAX_MONTHS or (self._entries > _MAX_ENTRIES and len(self._months) > 1):
                self._entries -= _count(self._months.popitem(last=False)[1])
            return joined


def _count(facts: MonthFacts) -> int:
    return 0 if facts.entries is None else len(facts.entries)


shared_memory = MonthMemory()


_PARSERS: Final = ("base", "books/index", "books/ledger", "workspace")
"""The folders of the program that decide what is in the files."""


def index_files(state_dir: Path) -> SealedFiles:
    """The index files of one workspace. ``state_dir``: its ``.cleared/``."""
    return SealedFiles(state_dir, _parser_version())


@lru_cache(maxsize=1)
def _parser_version() -> bytes:
    """A digest of the code that decides what is in an index: any change of it makes all indexes anew."""
    return digest_sources(*_PARSERS)
