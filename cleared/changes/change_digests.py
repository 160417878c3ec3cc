"""Digests of what a commit changes, so that an attestation counts for this change alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from cleared.base.multiset_sum import mark_more
from cleared.changes.latest_rows import list_rows_before
from cleared.git.object_writer import blob_id

if TYPE_CHECKING:
    from cleared.git import Snapshot

BlobChange = tuple[str, str, str]
"""Path, and the blob ids before and after; empty where there is nothing."""
Hunk = tuple[list[str], list[str], list[str]]
"""Lines that a file loses and gains in one place, and where that is: the lines around it, ``_END``, or nothing where a
lost one says it."""
_END: Final = ["\n"]

_ATTESTATIONS: Final = re.compile(r"logs/attestations-[0-9]{4}-[0-9]{2}\.jsonl")


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
    start, end = _find_common_ends(old, new)
    before, after = (_to_lines(data[start : len(data) - end]) for data in (old, new))
    is_lost, is_gained = mark_more(before, after), mark_more(after, before)
    kept = [line for line, is_so in zip(before, is_lost, strict=True) if not is_so]
    if kept != [line for line, is_so in zip(after, is_gained, strict=True) if not is_so]:
        return [([], [], [hashlib.sha256(new).hexdigest()])]
    above, below = _to_lines(old[:start])[-1:], _to_lines(new[len(new) - end :])[:1]
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


def _to_lines(data: bytes) -> list[str]:
    return [line.decode("latin-1") for line in data.splitlines()]


def _find_common_ends(old: bytes, new: bytes) -> tuple[int, int]:
    """How many bytes of whole lines both texts begin and end with: most of a large file."""
    most = min(len(old), len(new))
    same = _count_same(lambda low, high: old[low:high] == new[low:high], most)
    start = old.rfind(b"\n", 0, same) + 1
    most -= start
    same = _count_same(
        lambda low, high: old[len(old) - high : len(old) - low] == new[len(new) - high : len(new) - low], most
    )
    at = old.find(b"\n", len(old) - same) + 1
    return start, len(old) - at if at else 0


def _count_same(is_same: Callable[[int, int], bool], most: int) -> int:
    """How many bytes are the same, at most so many. ``is_same``: whether those from one place to another are."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_same(low, middle) else (low, middle - 1)
    return low


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, separators=(",", ":")).encode("ascii")).hexdigest()
