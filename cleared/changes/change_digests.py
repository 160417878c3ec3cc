"""Digests of what a commit changes, so that an attestation counts for this change alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from cleared.git.object_writer import blob_id

if TYPE_CHECKING:
    from cleared.git import Snapshot

BlobChange = tuple[str, str, str]
"""Path, and the blob ids before and after; empty where there is nothing."""

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


def digest_rows(before: Snapshot, after: Mapping[str, bytes | None], changes: Iterable[BlobChange]) -> str:
    """A digest of the lines that each file loses and gains: a rebase keeps it. ``after``: path → content."""
    rows: list[tuple[str, list[str], list[str]]] = []
    for path, *_ in sorted(_select_changes(changes)):
        rows.append((path, *_compare_lines(before.read_file(path), after[path])))
    return _digest(rows)


def _compare_lines(old: bytes | None, new: bytes | None) -> tuple[list[str], list[str]]:
    """The lines that only the old and only the new text have, in order; a file that comes or goes is a single one."""
    if old is None or new is None:
        lost, gained = ([] if data is None else [hashlib.sha256(data).hexdigest()] for data in (old, new))
        return lost, gained
    start, end = _find_common_ends(old, new)
    lines = [Counter(data[start : len(data) - end].splitlines()) for data in (old, new)]
    return _list_lines((lines[0] - lines[1]).elements()), _list_lines((lines[1] - lines[0]).elements())


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


def _list_lines(lines: Iterable[bytes]) -> list[str]:
    return [line.decode("latin-1") for line in sorted(lines)]


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, separators=(",", ":")).encode("ascii")).hexdigest()
