"""Which rows there are, and how often each: as a sum that says nothing of their order, or held against another file.

AdHash (Bellare and Micciancio, "A New Paradigm for Collision-free Hashing", EUROCRYPT 1997), as a hash of multisets
(Clarke et al., "Incremental Multiset Hash Functions", ASIACRYPT 2003): each row is hashed to a number, and these are
added. Two states with the same sum have the same rows, unless somebody solves a k-sum problem: Wagner's generalized
birthday attack (CRYPTO 2002) takes about 2^(2·√BITS) steps, so 4,096 bits are worth 128.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

BITS: Final = 4096
_BYTES: Final = BITS // 8
MASK: Final = (1 << BITS) - 1
"""A sum is a number from 0 to this; what is taken away is added with its sign turned, and cut by it."""
_DOMAIN: Final = b"cleared row 1\n"


Element = tuple[bytes, ...]
"""Texts in their order."""


def sum_elements(kind: bytes, counts: Mapping[Element, int]) -> int:
    """The sum of elements, each as often as it is there. What all of them begin with is ``kind``, such as a file's
    name."""
    total, begin = 0, _DOMAIN + b"%d:%b" % (len(kind), kind)
    for element, count in counts.items():
        told = begin
        for part in element:
            told = b"%b%d:%b" % (told, len(part), part)
        number = int.from_bytes(hashlib.shake_256(told).digest(_BYTES), "big")
        total += number if count == 1 else count * number
    return total


def encode_sum(total: int) -> str:
    """A sum as text."""
    return base64.b64encode((total & MASK).to_bytes(_BYTES, "big")).decode("ascii")


def decode_sum(text: object) -> int:
    """The sum in a text; 0 where there is none, or it is of another form."""
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return 0
    return int.from_bytes(data, "big") if len(data) == _BYTES else 0


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
