"""Measures the arguments of a script's call before the host uses them.

Lists and dicts arrive with their sharing and their cycles: a few bytes of a script's heap can be 2**40 items, or
endless, for code that walks or copies them. The host may keep arguments until the run ends, so all of them together
must fit into the script's memory limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import chain
from typing import Final

MAX_DEPTH: Final = 100
MAX_PLACES: Final = 4_000
_ITEM_BYTES: Final = 64  # of any value, roughly
_MAX_BITS: Final = 16_000  # Python refuses to convert much longer numbers to text
_CONTAINERS: Final = (list, tuple, dict, set, frozenset)

_Measured = dict[int, tuple[int, int, object]]
"""Id of a container → its size, its depth, the container."""


def measure_arguments(args: tuple[object, ...], kwargs: dict[str, object], limit: int) -> int:
    """The size in bytes of a call's arguments, each counted as often as it occurs.

    Raises ``ValueError`` where the size is past ``limit``, where they are nested too deeply or contain themselves, and
    for a number of thousands of digits.
    """
    measured: _Measured = {}
    size = _measure_values(args, 1, measured)[0]
    if kwargs:
        size += _measure_values(kwargs.values(), 1, measured)[0]
    if size > limit:
        raise ValueError(
            "the arguments are larger, written out and with those of earlier calls, than the script's memory limit"
        )
    return size


def _measure_values(values: Iterable[object], depth: int, measured: _Measured) -> tuple[int, int]:
    """Size and depth of ``values``. Common types first, by exact type: every argument of every call passes here."""
    size = height = 0
    for value in values:
        size += _ITEM_BYTES
        value_type = type(value)
        if value_type is str:
            size += len(value)  # type: ignore[arg-type]
        elif value is None or value_type is float or value_type is bool:
            pass
        elif isinstance(value, int):
            if value.bit_length() > _MAX_BITS:
                raise ValueError("a number has thousands of digits")
        elif isinstance(value, Decimal):
            # 1E+999999999 is a few bytes here, and a gigabyte as text.
            if abs(value.adjusted()) > MAX_PLACES:
                raise ValueError("a number has thousands of digits")
            size += value.__sizeof__()
        elif isinstance(value, str | bytes):
            size += len(value)
        else:
            more, levels = _measure_value(value, depth, measured)
            size += more
            height = max(height, levels)
    return size, height


def _measure_keys(inner: dict[object, object]) -> tuple[int, Iterable[object]]:
    """The size of a dict's keys, and what is still to be measured of it: keys too, unless all of them are texts."""
    try:
        text_size = len("".join(inner))  # type: ignore[arg-type]
    except TypeError:
        return 0, chain(inner, inner.values())
    return text_size + _ITEM_BYTES * len(inner), inner.values()


def _measure_value(value: object, depth: int, measured: _Measured) -> tuple[int, int]:
    """Size and depth of one container, which is walked once however often it occurs."""
    entry = measured.get(id(value))
    if entry is None:
        # An instance of a script's own class arrives as a proxy with its attributes.
        inner = getattr(value, "attributes", value)
        if not isinstance(inner, _CONTAINERS):
            return 0, 0
        if depth > MAX_DEPTH:
            raise ValueError(f"an argument contains itself, or is nested more than {MAX_DEPTH} levels deep")
        size, items = _measure_keys(inner) if isinstance(inner, dict) else (0, inner)
        more, height = _measure_values(items, depth + 1, measured)
        size += more
        entry = measured[id(value)] = size, height + 1, inner  # held, so that no other object gets its id
    if depth + entry[1] - 1 > MAX_DEPTH:
        raise ValueError(f"an argument is nested more than {MAX_DEPTH} levels deep")
    return entry[:2]
