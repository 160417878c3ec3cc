"""The files that hold the index of the books, sealed under the version of the code that made them, and the months that
this process has read of them, kept for the next index.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.last_values import LastValues
from cleared.books.index.month_facts import MonthEntries, MonthSums
from cleared.workspace.sealed_files import SealedFiles, digest_sources

_MAX_ENTRIES: Final = 400_000
"""Entries that stay in memory, of all indexes of this process."""


class MonthFacts(Struct, frozen=True):
    """What is known of a month."""

    sums: MonthSums | None = None
    entries: MonthEntries | None = None

    def joined(self, other: MonthFacts) -> MonthFacts:
        return MonthFacts(self.sums or other.sums, other.entries if self.entries is None else self.entries)


shared_memory: Final = LastValues[tuple[str, MonthFacts]](_MAX_ENTRIES, lambda known: 1 + len(known[1].entries or ()))
"""The months that were asked for last, of all indexes of this process that stay open: the newest version of each, by
its blob id."""


_PARSERS: Final = ("base", "books/index", "books/ledger", "workspace")
"""The folders of the program that decide what is in the files."""


def index_files(state_dir: Path) -> SealedFiles:
    """The index files of one workspace. ``state_dir``: its ``.cleared/``."""
    return SealedFiles(state_dir, _parser_version)


@lru_cache(maxsize=1)
def _parser_version() -> bytes:
    """A digest of the code that decides what is in an index: any change of it makes all indexes anew."""
    return digest_sources(*_PARSERS)
