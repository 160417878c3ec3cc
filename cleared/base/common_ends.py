"""What two versions of a file begin and end with: most of a large one that grows, or of which a row changes."""

from __future__ import annotations

from collections.abc import Callable


def find_common_ends(old: bytes, new: bytes) -> tuple[int, int]:
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
