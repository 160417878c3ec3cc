"""The rows that only runs and decisions make, counted: records of the domains and the queue, each row as often as it
is there.

Of files of which the last row about the same counts, a row stands for itself and the one about the same before it: so
their order is part of the state. The first row of a CSV file is its header, which two clones may both write. Files to
which people add by hand, the log, approvals and attestations are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cleared.base.csv_text import split_rows
from cleared.base.multiset_sum import hash_element
from cleared.changes.latest_rows import pair_with_rows_before
from cleared.domains.managed_files import ManagedFiles
from cleared.git import Snapshot
from cleared.workspace.location import Layout

Element = tuple[bytes, ...]
"""A row, and the one before it where that counts."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What a file gains and loses from one commit to another."""

    path: str
    gained: Counter[Element]
    lost: Counter[Element]


class CountedRows:
    """Counts the rows of the commits of one workspace, as its settings name its folders."""

    def __init__(self, layout: Layout) -> None:
        self._managed = ManagedFiles(layout)

    def has_path(self, path: str) -> bool:
        """Whether the rows of a file are counted."""
        return self._managed.is_counted(path)

    def list_changes(self, before: Snapshot, after: Snapshot) -> Iterator[RowChanges]:
        """What each file gains and loses between two commits."""
        roots = {*self._managed.list_counted_roots(before), *self._managed.list_counted_roots(after)}
        olds: dict[str, tuple[str, str]] = {}
        news: dict[str, tuple[str, str]] = {}
        for root in roots:
            if before.find_entry(root) != after.find_entry(root):
                olds |= before.list_entries(root)
                news |= after.list_entries(root)
        for path in sorted({*olds, *news}):
            if olds.get(path) != news.get(path) and self.has_path(path):
                yield _compare(path, before.read_file(path), after.read_file(path))

    def sum_difference(self, before: Snapshot, after: Snapshot) -> int:
        """The sum of the rows that a commit has more than another, less those that it has fewer."""
        return sum(map(sum_rows, self.list_changes(before, after)))

    def sum_changes(self, before: Snapshot, changes: Mapping[str, bytes | None]) -> int:
        """The same for changes that are to be made: path → content (``None``: deleted)."""
        counted = (path for path in changes if self.has_path(path))
        return sum(sum_rows(_compare(path, before.read_file(path), changes[path])) for path in counted)


def sum_rows(changes: RowChanges) -> int:
    """The sum of the rows that a file gains, less those that it loses."""
    name = changes.path.encode("utf-8", "surrogateescape")
    signed = ((1, changes.gained), (-1, changes.lost))
    return sum(sign * count * hash_element(name, *row) for sign, rows in signed for row, count in rows.items())


def read_elements(path: str, data: bytes | None) -> Counter[Element]:
    """What a file has, each as often as it is there."""
    return _count(path, data or b"")


def _compare(path: str, old: bytes | None, new: bytes | None) -> RowChanges:
    old, new = old or b"", new or b""
    if old and new.startswith(old) and _ends_whole(path, old):
        then: Counter[Element] = Counter()
        now = _count(path, new, len(old))
    else:
        then, now = _count(path, old), _count(path, new)
    return RowChanges(path, now - then, then - now)


def _count(path: str, data: bytes, start: int = 0) -> Counter[Element]:
    """The elements of a file, or of what stands in it from ``start`` on, where a row begins."""
    if not path.endswith((".csv", ".jsonl")):
        return Counter([(data,)] if data else [])
    paired = pair_with_rows_before(path, data)
    if paired is not None:  # to know what stood before a row, all of them are read
        skipped = len(split_rows(data[:start])) if start else 1
        return Counter(paired[skipped:])
    rows = split_rows(data[start:])
    return Counter((row,) for row in (rows if start or not path.endswith(".csv") else rows[1:]))


def _ends_whole(path: str, data: bytes) -> bool:
    """Whether a row ends where a text ends: no quoted field goes on behind it."""
    return data.endswith(b"\n") and (not path.endswith(".csv") or data.count(b'"') % 2 == 0)
