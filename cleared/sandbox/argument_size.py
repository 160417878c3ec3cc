"""What a script hands over in a call, weighed before the host looks at it.

Lists and dicts cross with their sharing and their cycles, so a few bytes of a script's heap can be endless, or
2**40 items, to whoever walks, copies, redacts or records them here. And everything handed over may be kept until
the run ends: together it must fit into what the script itself may hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import chain
from typing import Final

MAX_DEPTH: Final = 100
MAX_PLACES: Final = 4_000
_ITEM_BYTES: Final = 64  # bytes, roughly, of any value
_MAX_BITS: Final = 16_000  # Python refuses to write out much longer numbers
_CONTAINERS: Final = (list, tuple, dict, set, frozenset)

_Measured = dict[int, tuple[int, int, object]]


def measure_arguments(args: tuple[object, ...], kwargs: dict[str, object], limit: int) -> int:
    """The size in bytes of a call's arguments, written out. Raises ``ValueError`` where it is past ``limit``, or
    they are nested too deeply, contain themselves or a number of thousands of digits."""
    known: _Measured = {}
    size = _measure_values(args, 1, known)[0]
    if kwargs:
        size += _measure_values(kwargs.values(), 1, known)[0]
    if size > limit:
        raise ValueError(
            "the arguments are larger, written out and with those of earlier calls, than the script's memory limit"
        )
    return size


def _measure_values(values: Iterable[object], depth: int, known: _Measured) -> tuple[int, int]:
    """Size and height of ``values``. Spelt out, and by exact types: every argument of every call passes here."""
    size = height = 0
    for value in values:
        size += _ITEM_BYTES
        kind = type(value)
        if kind is str:
            size += len(value)  # type: ignore[arg-type]
        elif value is None or kind is float or kind is bool:
            pass
        elif isinstance(value, int):
            if value.bit_length() > _MAX_BITS:
                raise ValueError("a number has thousands of digits")
        elif isinstance(value, Decimal):
            # 1E+999999999 is a few bytes here, and a gigabyte once somebody writes it out.
            if abs(value.adjusted()) > MAX_PLACES:
                raise ValueError("a number has thousands of digits")
            size += value.__sizeof__()
        elif isinstance(value, str | bytes):
            size += len(value)
        else:
            more, levels = _measure_value(value, depth, known)
            size += more
            height = max(height, levels)
    return size, height


def _measure_value(value: object, depth: int, known: _Measured) -> tuple[int, int]:
    """Every container is walked once, however often it occurs."""
    found = known.get(id(value))
    if found is None:
        # An instance of a class of the script's own crosses as a proxy that holds its attributes.
        inner = getattr(value, "attributes", value)
        if not isinstance(inner, _CONTAINERS):
            return 0, 0
        if depth > MAX_DEPTH:
            raise ValueError(f"an argument contains itself, or is nested more than {MAX_DEPTH} levels deep")
        items = chain(inner, inner.values()) if isinstance(inner, dict) else inner
        size, height = _measure_values(items, depth + 1, known)
        found = known[id(value)] = size, height + 1, inner  # kept, so that no other object gets its id
    if depth + found[1] - 1 > MAX_DEPTH:
        raise ValueError(f"an argument is nested more than {MAX_DEPTH} levels deep")
    return found[:2]
