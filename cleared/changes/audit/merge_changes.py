"""What a merge has done by itself, judged row by row: git joins files, it neither makes rows nor takes any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from cleared.base.csv_text import split_rows
from cleared.base.multiset_sum import find_moved
from cleared.changes.audit.commit_naming import quote_rows
from cleared.changes.host import Host
from cleared.domains.installed_domains import ManagedFiles
from cleared.git import Repository, Snapshot

LOST: Final = "lost"
"""What is said of rows that one side has brought, and that the merge lacks, begins with this."""
BROUGHT_BACK: Final = "brought back what one side had taken out:"


def find_merge_changes(
    host: Host, repo: Repository, merge: str, before: Sequence[str], *, is_cut: bool
) -> list[tuple[str, str]]:
    """What a merge has that none of its parents had, or more often than any of them, and what it lacks that one of them
    had brought; each with its file.

    The parents are joined one by one: what came before differs with each, and may be several commits. Where a shallow
    clone (``is_cut``) does not have them, only what all parents have can be lost.
    """
    managed = ManagedFiles(host.layout)
    after, sides = Snapshot(repo, merge), [Snapshot(repo, parent) for parent in before]
    bases = [
        [Snapshot(repo, base) for base in repo.list_merge_bases(before[at], before[:at])]
        for at in range(1, len(before))
    ]
    paths: set[str] = set()
    for root in managed.audited_folders:
        for each in (after, *sides):
            paths |= each.list_entries(root).keys()
    changes = []
    for path in sorted(path for path in paths if path in managed.audited_folders or managed.has_path(path)):
        entry, entries = after.find_entry(path), [side.find_entry(path) for side in sides]
        if all(each == entry for each in entries):
            continue
        if entry is not None and not (entry.is_file or entry.is_tree) and entry not in entries:
            changes.append((path, "put there what is no file"))
        changes += [(path, what) for what in _compare_rows(after, sides, bases, path, is_cut)]
    return changes


def _compare_rows(
    after: Snapshot, sides: Sequence[Snapshot], bases: Sequence[Sequence[Snapshot]], path: str, is_cut: bool
) -> Iterable[str]:
    rows, of_sides = _read_rows(after, path), [_read_rows(side, path) for side in sides]
    now, then = Counter(rows), list(map(Counter, of_sides))
    most: Counter[bytes] = Counter()
    for side in then:
        most |= side
    kept = then[0]
    for side, before in zip(then[1:], bases, strict=True):
        start = [Counter(_read_rows(each, path)) for each in before]
        kept = _join(kept, side, start) if before or not is_cut else kept & side
    new = Counter({row: count for row, count in now.items() if row not in most})
    repeated = now - most - new
    moved = [] if new or repeated else [row for side in of_sides for row in find_moved(side, rows)]
    back = Counter() if is_cut else now - kept - new - repeated
    found = (
        (kept - now, LOST),
        (back, BROUGHT_BACK),
        (new, "added what neither had:"),
        (repeated, "repeated"),
        (moved, "put elsewhere"),
    )
    return [f"{what} {quote_rows(some)}" for some, what in found if some]


def _join(one: Counter[bytes], other: Counter[bytes], before: Sequence[Counter[bytes]]) -> Counter[bytes]:
    """How often each row is there at least once both are joined: what one of them has taken out is gone."""
    start: Counter[bytes] = Counter()
    for each in before:
        start |= each
    least = one & other
    return least | Counter({row: count for row, count in (one | other).items() if least[row] >= start[row]})


def _read_rows(snapshot: Snapshot, path: str) -> list[bytes]:
    return [row.rstrip(b"\r\n") for row in split_rows(snapshot.read_file(path) or b"")]
