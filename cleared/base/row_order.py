"""Which rows a file has more of than another, and which it has elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

_Row = TypeVar("_Row", str, bytes)


def mark_more(lines: Sequence[_Row], others: Sequence[_Row]) -> list[bool]:
    """Of each line whether ``others`` has it less often; of the same lines the last."""
    more = Counter(lines) - Counter(others)
    marks = []
    for line in reversed(lines):
        marks.append(more[line] > 0)
        more[line] -= 1
    return marks[::-1]


def find_moved(before: Sequence[_Row], after: Sequence[_Row]) -> list[_Row]:
    """The first row that does not come after those that it came after before. git joins files without moving any; of
    some files the last row is what counts."""
    left, rest = Counter(after), iter(after)
    for row in before:
        if left[row] > 0:
            left[row] -= 1
            if row not in rest:
                return [row]
    return []
