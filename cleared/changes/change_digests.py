"""Rows that stay once they are committed: which there are, how often each is there, and digests of what a commit
changes of them, so that an attestation counts for this change alone.

They are those of the domains, the queue and attested decisions. Of some files the last row about the same counts: a
period, the outcome of a line. There a row stands for itself and the one about the same before it, so their order is
part of the state. The first row of a CSV file is its header, which two clones may both write. Files to which people add
by hand, the log, approvals and attestations are not counted.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct

from cleared.base.common_ends import find_common_ends
from cleared.base.csv_text import split_rows
from cleared.base.file_source import MONTH_MARK
from cleared.base.multiset_sum import Element, find_moved, mark_more, sum_elements
from cleared.cards.queue_files import SUFFIX
from cleared.domains.installed_domains import ManagedFiles, load_domains
from cleared.domains.record_audit import NamedRow, RowKind
from cleared.git import Snapshot
from cleared.git.object_reader import blob_id
from cleared.workspace.location import Layout

BlobChange = tuple[str, str, str]
"""Path, and the blob ids before and after; empty where there is nothing."""
Hunk = tuple[list[str], list[str], list[str]]
"""Lines that a file loses and gains in one place, and where that is: the lines around it, ``_END``, or nothing where a
lost one says it."""
_END: Final = ["\n"]

_ATTESTATIONS: Final = re.compile(r"logs/attestations-[0-9]{4}-[0-9]{2}(?:_[0-9]{3,})?\.jsonl")


def list_blob_changes(before: Snapshot, changes: Mapping[str, bytes | None]) -> list[BlobChange]:
    """What these changes (path → content, ``None``: deleted) make of a commit's files."""
    name = before.hash_name
    return [
        (path, before.find_blob_id(path) or "", "" if data is None else blob_id(data, name))
        for path, data in changes.items()
    ]


def digest_blobs(changes: Iterable[BlobChange]) -> str:
    """A digest of the files before and after, but for the files of attestations: these cannot name themselves."""
    return _digest(sorted(_select_changes(changes)))


def _select_changes(changes: Iterable[BlobChange]) -> Iterator[BlobChange]:
    for path, old, new in changes:
        if old != new and not is_attestation(path):
            yield path, old, new


def is_attestation(path: str) -> bool:
    """Whether a file is one of those that hold attestations."""
    return _ATTESTATIONS.fullmatch(path) is not None


def digest_lines(before: Snapshot, after: Mapping[str, bytes | None], changes: Iterable[BlobChange]) -> str:
    """A digest of the lines that each file loses and gains, in their order, and of where they stand: a rebase keeps it,
    and nobody moves a line. Where of the rows about the same the last counts, the one before each new one is part of
    it: so nobody moves a commit. ``after``: path → content."""
    described = []
    for path in sorted(path for path, *_ in _select_changes(changes)):
        old, new = before.read_file(path), after[path]
        described.append((path, _describe_change(old, new), list_rows_before(path, old, new)))
    return _digest(described)


def _describe_change(old: bytes | None, new: bytes | None) -> list[Hunk]:
    """What a file loses and gains, in order. One that comes or goes, or in which a line was moved, is a single line."""
    if old is None or new is None:
        lost, gained = ([] if data is None else [hashlib.sha256(data).hexdigest()] for data in (old, new))
        return [(lost, gained, [])]
    start, end = find_common_ends(old, new)
    before, after = (_to_lines(data[start : len(data) - end].splitlines()) for data in (old, new))
    is_lost, is_gained = mark_more(before, after), mark_more(after, before)
    kept = [line for line, is_so in zip(before, is_lost, strict=True) if not is_so]
    if kept != [line for line, is_so in zip(after, is_gained, strict=True) if not is_so]:
        return [([], [], [hashlib.sha256(new).hexdigest()])]
    above = _to_lines(old[:start].splitlines()[-1:])
    below = _to_lines(new[len(new) - end :].splitlines()[:1])
    hunks: list[Hunk] = []
    at = to = 0
    for line in [*kept, *below, None]:
        first, other = at, to
        at, to = _pass_marked(is_lost, at), _pass_marked(is_gained, to)
        lost, gained = before[first:at], after[other:to]
        if lost or gained:
            hunks.append((lost, gained, [] if lost else _END if line is None else [*above, line]))
        above, at, to = [line] if line is not None else [], at + 1, to + 1
    return hunks


def _pass_marked(marks: Sequence[bool], at: int) -> int:
    """The first from one on that is not marked, or the end."""
    while at < len(marks) and marks[at]:
        at += 1
    return min(at, len(marks))


def _to_lines(lines: Sequence[bytes]) -> list[str]:
    return [line.decode("latin-1") for line in lines]


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, separators=(",", ":")).encode("ascii")).hexdigest()


Subject = tuple[str, ...]
"""What a row is about."""


def list_rows_before(path: str, old: bytes | None, new: bytes | None) -> list[str]:
    """Of each row that a file gains, the one about the same that stood last before it; empty where there is none.
    Nothing for files of which the last row does not count, and for those that come or go."""
    columns = find_subject_columns(path)
    if columns is None or old is None or new is None:
        return []
    rows = split_rows(new)
    before = [earlier for _, earlier in pair_with_rows_before(path, new) or ()]
    is_new = mark_more(rows, split_rows(old))
    return [earlier.decode("latin-1") for earlier, new_row in zip(before, is_new, strict=True) if new_row]


def pair_with_rows_before(path: str, data: bytes) -> list[tuple[bytes, bytes]] | None:
    """Each row of a file, with the one about the same that stood last before it (empty: none). ``None`` for files of
    which the last row does not count."""
    columns = find_subject_columns(path)
    if columns is None:
        return None
    last: dict[Subject, bytes] = {}
    pairs = []
    for row in split_rows(data):
        subject = _read_subject(row, columns)
        pairs.append((row, last.get(subject, b"")))
        last[subject] = row
    return pairs


def find_moved_rows(path: str, old: bytes, new: bytes) -> list[bytes]:
    """The first row of each subject that does not come after those that it came after before."""
    columns = find_subject_columns(path)
    if columns is None or new.startswith(old):
        return []
    then, now = (_group_rows(data, columns) for data in (old, new))
    return [row for subject, rows in then.items() for row in find_moved(rows, now.get(subject, []))]


def _group_rows(data: bytes, columns: Sequence[int]) -> dict[Subject, list[bytes]]:
    groups: dict[Subject, list[bytes]] = {}
    for row in split_rows(data):
        groups.setdefault(_read_subject(row, columns), []).append(row)
    return groups


def find_subject_columns(path: str) -> Sequence[int] | None:
    """The columns that say what a row of a file is about; ``None`` for files of which the last row does not count."""
    name = PurePosixPath(MONTH_MARK.sub("", path)).name
    return next((domain.latest_rows[name] for domain in load_domains() if name in domain.latest_rows), None)


def _read_subject(row: bytes, columns: Sequence[int]) -> Subject:
    text = row.decode("utf-8", "surrogateescape").rstrip("\r\n")
    fields = text.split(",")
    if '"' in text:
        with suppress(csv.Error):  # damaged as it is, it is about something else
            fields = next(csv.reader(io.StringIO(text, newline="")), [])
    return tuple(fields[at] for at in columns if at < len(fields))


_LINE_END: Final = "\r\n?|\n"
"""As who reads the bytes of these files ends a line; a text may have other characters at which one could be ended."""
Row = tuple[str, ...]
"""The key of its kind, and the values that tell two rows of it apart."""


def _read_cards(text: str) -> Iterator[NamedRow]:
    for line in re.split(_LINE_END, text):
        try:
            event = json.loads(line)
            row = (str(event["event"]), str(event["id"]), str(event.get("resolution", "")))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        yield row, row[1]


def _read_decisions(text: str) -> Iterator[NamedRow]:
    for line in re.split(_LINE_END, text):
        try:
            yield (line,), str(json.loads(line)["says"]["by"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue


CARDS: Final = RowKind("cards", ("card", "cards"), _read_cards)
DECISIONS: Final = RowKind(
    "decisions",
    ("attested decision", "attested decisions"),
    _read_decisions,
    label="decisions",
    counted_as="attested runs and decisions",
)


class CommittedRows:
    """Reads the rows that stay of the commits of one workspace."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.audits = [domain.audit(layout) for domain in load_domains()]

    @property
    def kinds(self) -> Sequence[RowKind]:
        """All kinds of rows that stay."""
        return (*(kind for audit in self.audits for kind in audit.row_kinds), CARDS, DECISIONS)

    @property
    def counted_kinds(self) -> Sequence[RowKind]:
        """Those whose number this machine remembers."""
        return [kind for kind in self.kinds if kind.counted_as]

    def list_changed_paths(self, one: Snapshot, other: Snapshot) -> Iterator[str]:
        """Paths of records, queue and attestations that differ between two commits."""
        layout = self.layout
        roots = {layout.queue_dir, layout.logs_dir}
        roots |= {root for audit in self.audits for each in (one, other) for root in audit.list_roots(each)}
        for root in sorted(roots):
            changed = sorted(other.list_changes(one, root))
            yield from (path for path in changed if root != layout.logs_dir or is_attestation(path))

    def read_rows(self, snapshot: Snapshot, paths: Sequence[str]) -> list[tuple[Row, str]]:
        """The rows of these files of one commit, each with its id, as far as they can be read."""
        return [row for path in paths for row in self._read_rows(path, snapshot.read_file(path) or b"")]

    def read_differing_rows(
        self, one: Snapshot, other: Snapshot, paths: Sequence[str]
    ) -> tuple[list[tuple[Row, str]], list[tuple[Row, str]]]:
        """The rows of these files in both commits, but for those with which a file begins and ends in both."""
        rows: tuple[list[tuple[Row, str]], list[tuple[Row, str]]] = [], []
        for path in paths:
            cut = _cut_common_rows(path, one.read_file(path), other.read_file(path))
            for found, data in zip(rows, cut, strict=True):
                found += self._read_rows(path, data)
        return rows

    def _read_rows(self, path: str, data: bytes) -> Iterator[tuple[Row, str]]:
        kind = self._find_kind(path)
        if kind is not None:
            for values, name in kind.read_rows(data.decode("utf-8", "replace")):
                yield (kind.key, *values), name

    def count_rows(
        self, before: Snapshot, had: Mapping[str, int], files: Iterable[tuple[str, bytes | None]]
    ) -> dict[str, int]:
        """How many rows of each kind there are once a commit that had so many has these files (path and content)."""
        counts = {kind.key: had.get(kind.key, 0) for kind in self.counted_kinds}
        for path, now in files:
            kind = self._find_kind(path)
            if kind is not None and kind.counted_as:
                for sign, data in ((1, now or b""), (-1, before.read_file(path) or b"")):
                    counts[kind.key] += sign * (data.count(b"\n") - (1 if data and path.endswith(".csv") else 0))
        return counts

    def _find_kind(self, path: str) -> RowKind | None:
        """What the rows of a file are; None where they are not compared."""
        if path.startswith(f"{self.layout.queue_dir}/"):
            return CARDS if path.endswith(SUFFIX) else None
        if is_attestation(path):
            return DECISIONS
        return next((kind for audit in self.audits if (kind := audit.find_row_kind(path)) is not None), None)


class RowChanges(Struct, frozen=True):
    """What a file gains and loses from one commit to another: rows, each with the one before it where that counts."""

    path: str
    gained: Counter[Element]
    lost: Counter[Element]


class CountedRows(Struct, frozen=True):
    """Counts the rows of the commits of one workspace, as its settings name its folders."""

    managed: ManagedFiles

    def list_changes(self, before: Snapshot, after: Snapshot) -> Iterator[RowChanges]:
        """What each file gains and loses between two commits."""
        roots = {*self.managed.list_counted_roots(before), *self.managed.list_counted_roots(after)}
        for path in sorted({path for root in roots for path in after.list_changes(before, root)}):
            if self.managed.is_counted(path):
                yield _compare(path, before.read_file(path), after.read_file(path))

    def sum_difference(self, before: Snapshot, after: Snapshot) -> int:
        """The sum of the rows that a commit has more than another, less those that it has fewer."""
        return sum(map(sum_rows, self.list_changes(before, after)))

    def sum_changes(self, before: Snapshot, changes: Mapping[str, bytes | None]) -> int:
        """The same for changes that are to be made: path → content (``None``: deleted)."""
        counted = (path for path in changes if self.managed.is_counted(path))
        return sum(sum_rows(_compare(path, before.read_file(path), changes[path])) for path in counted)


def sum_rows(changes: RowChanges) -> int:
    """The sum of the rows that a file gains, less those that it loses."""
    name = changes.path.encode("utf-8", "surrogateescape")
    return sum_elements(name, changes.gained) - sum_elements(name, changes.lost)


def _compare(path: str, old: bytes | None, new: bytes | None) -> RowChanges:
    old, new = old or b"", new or b""
    # A row ends where the old ones do: no quoted field goes on behind them.
    is_whole = not old or (old.endswith(b"\n") and (not path.endswith(".csv") or old.count(b'"') % 2 == 0))
    if is_whole and new.startswith(old):
        return RowChanges(path, _count(path, new, len(old)), Counter())
    if old and new and find_subject_columns(path) is None:
        old, new = _cut_common_rows(path, old, new)
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
    return Counter(zip(rows if start or not path.endswith(".csv") else rows[1:]))


def _cut_common_rows(path: str, old: bytes | None, new: bytes | None) -> tuple[bytes, bytes]:
    """Two contents of a file without the rows with which both begin and end; of a CSV file with its header."""
    old, new = old or b"", new or b""
    start, end = find_common_ends(old, new)
    middles = old[start : len(old) - end], new[start : len(new) - end]
    if not start and path.endswith(".csv"):  # another header, or none
        return old, new
    head = old[: old.find(b"\n") + 1] if path.endswith(".csv") else b""
    if not all(_has_whole_rows(path, data) for data in (old[:start], head, *middles)):
        return old, new
    return head + middles[0], head + middles[1]


def _has_whole_rows(path: str, data: bytes) -> bool:
    """Whether the rows of a piece of a file are the same by themselves: ``split_rows`` joins lines as quotes do, and
    ends a row after each line that begins as JSON."""
    begin_as_json = data.count(b"\n{") + data.startswith(b"{")
    if path.endswith(".csv"):
        return data.count(b'"') % 2 == 0 and not begin_as_json and b"\r" not in data
    return path.endswith(".jsonl") and begin_as_json == len(data.splitlines())
