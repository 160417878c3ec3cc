"""What a script hands over in a call, weighed before the host looks at it.

Lists and dicts cross with their sharing and their cycles, so a few bytes of a script's heap can be endless, or
2**40 items, to whoever walks, copies, redacts or records them here. And everything handed over may be kept until
the run ends: together it must fit into what the script itself may hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final

MAX_DEPTH: Final = 100
MAX_PLACES: Final = 4_000
_ITEM: Final = 64  # bytes, roughly, of any value
_MAX_BITS: Final = 16_000  # Python refuses to write out much longer numbers
_CONTAINERS: Final = (list, tuple, dict, set, frozenset)

_Known = dict[int, tuple[int, int]]


def weigh(args: tuple[object, ...], kwargs: dict[str, object], limit: int) -> int:
    """The size in bytes of a call's arguments, written out. Raises ``ValueError`` where it is past ``limit``, or
    they are nested too deeply, contain themselves or a number of thousands of digits."""
    known: _Known = {}
    size = 0
    for values in (args, kwargs.values()):
        for value in values:
            kind = type(value)
            if kind is str:
                size += _ITEM + len(value)  # type: ignore[arg-type]
            else:
                size += _size(value, 1, limit, known)[0]
    if size > limit:
        raise ValueError(
            "the arguments are larger, written out and with those of earlier calls, than the script's memory limit"
        )
    return size


def _size(value: object, depth: int, limit: int, known: _Known) -> tuple[int, int]:
    """Size and height of ``value``. Every container is walked once, however often it occurs."""
    if isinstance(value, str | bytes):
        return _ITEM + len(value), 0
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            raise ValueError("a number has thousands of digits")
        return _ITEM, 0
    if isinstance(value, Decimal):
        # 1E+999999999 is a few bytes here, and a gigabyte once somebody writes it out.
        if value.is_finite() and abs(value.adjusted()) > MAX_PLACES:
            raise ValueError("a number has thousands of digits")
        return _ITEM + value.__sizeof__(), 0
    # An instance of a class of the script's own crosses as a proxy that holds its attributes.
    value = getattr(value, "attributes", value)
    if not isinstance(value, _CONTAINERS):
        return _ITEM, 0
    size, height = known.get(id(value), (0, 0))
    if not size:
        if depth > MAX_DEPTH:
            raise ValueError(f"an argument contains itself, or is nested more than {MAX_DEPTH} levels deep")
        size = _ITEM
        parts: tuple[Iterable[object], ...] = (value, value.values()) if isinstance(value, dict) else (value,)
        for part in parts:
            for item in part:
                inner, levels = _size(item, depth + 1, limit, known)
                size += inner
                height = max(height, levels)
        height += 1
        known[id(value)] = size, height
    if depth + height - 1 > MAX_DEPTH:
        raise ValueError(f"an argument is nested more than {MAX_DEPTH} levels deep")
    return size, height
