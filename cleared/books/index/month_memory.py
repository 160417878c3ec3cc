"""The files that hold the index of the books, and what else follows from the files of a past month, sealed under the
version of the code that made them; and the months that this process has read of the index, kept for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from cleared.base.file_source import FileSource
from cleared.base.last_values import LastValues
from cleared.books.index.month_facts import MonthEntries, MonthSums
from cleared.changes.record_sources import CommittedSource
from cleared.workspace.sealed_files import SealedFiles, digest_sources

_MAX_ENTRIES: Final = 400_000
"""Entries that stay in memory, of all indexes of this process."""


_KIND: Final = ".past"
T = TypeVar("T")


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


def read_months_once(
    source: FileSource,
    state_dir: Path,
    name: str,
    kind: type[T],
    files: Mapping[str, Sequence[str]],
    read: Callable[[str], T],
) -> dict[str, T]:
    """What ``read`` makes of each month, the oldest first. ``files``: month → those that it follows from. Of all but
    the newest it is kept under this name, and read again where git calls one of the files otherwise. ``state_dir``: the
    workspace's ``.cleared/``."""
    sealed = index_files(state_dir)
    data = sealed.read(f"{name}{_KIND}") if isinstance(source, CommittedSource) and len(files) > 1 else None
    kept = msgspec.msgpack.decode(data, type=dict[str, tuple[list[str], kind]]) if data is not None else {}  # type: ignore[valid-type]
    found: dict[str, tuple[list[str], T]] = {}
    for month in sorted(files):
        versions = []
        if isinstance(source, CommittedSource):
            versions = [source.snapshot.find_blob_id(path) or "" for path in files[month]]
        known = kept.get(month)
        is_known = known is not None and versions and known[0] == versions
        found[month] = known if known is not None and is_known else (versions, read(month))
    past = {month: each for month, each in found.items() if each[0] and month != max(found)}
    if any(each is not kept.get(month) for month, each in past.items()):
        # Of an older commit, which a rehearsal reads, others are not among them.
        sealed.write(f"{name}{_KIND}", msgspec.msgpack.encode(kept | past))
    return {month: each for month, (_, each) in found.items()}
