"""Values between a script and its host, over JSON.

*Plain* is for any host: a ``Decimal`` is ``{"$decimal": "4.00"}``, a date its ISO text, the rest is JSON; what JSON
cannot hold is refused. *Exact* is for a host that is ``cleared`` itself: over a bridge its primitives must see, and
refuse, just what they would see directly, so everything else goes as ``{"$exact": [kind, …]}``.
"""

from __future__ import annotations

import base64
import math
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from cleared.base import money
from cleared.base.json_values import from_wire

MAX_DEPTH: Final = 40
"""Of a value; the vocabulary and results end at 32."""

_TAGS: Final = ("$decimal", "$exact")
_PLAIN_DIGITS: Final = 13_000  # bits; Python reads and writes up to 4300 decimal digits
_MAX_HEX: Final = 1 << 20


def encode_value(value: Any, *, exact: bool, depth: int = 0) -> Any:
    """JSON for ``value``. Raises ``ValueError`` where plain JSON cannot hold it, or it is nested too deep."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        if value.bit_length() <= _PLAIN_DIGITS:
            return value
        return _tagged_value("int", hex(value)[: _MAX_HEX + 2], exact=exact)
    if kind is float:
        return value if math.isfinite(value) else _tagged_value("float", repr(value), exact=exact)
    if kind is Decimal:
        return _encode_decimal(value, exact)
    if depth >= MAX_DEPTH:
        if not exact:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
        return _tagged_value(
            "other", kind.__name__, "…", exact=exact
        )  # refused by any primitive, as the whole would be
    if kind is list:
        return [encode_value(v, exact=exact, depth=depth + 1) for v in value]
    if isinstance(value, dict):
        return _encode_dict(value, exact, depth)
    if isinstance(value, list | tuple):
        items = [encode_value(v, exact=exact, depth=depth + 1) for v in value]
        return _tagged_value("tuple", items, exact=exact) if exact else items
    if isinstance(value, date):
        if not exact:
            return value.isoformat()
        return _tagged_value("datetime" if isinstance(value, datetime) else "date", value.isoformat(), exact=exact)
    if isinstance(value, set | frozenset):
        items = [encode_value(v, exact=exact, depth=depth + 1) for v in value] if exact else []
        return _tagged_value(kind.__name__, items, exact=exact)
    if isinstance(value, bytes):
        return _tagged_value("bytes", base64.b64encode(value).decode(), exact=exact)
    if isinstance(value, timedelta):
        return _tagged_value("timedelta", [value.days, value.seconds, value.microseconds], exact=exact)
    return _tagged_value("other", kind.__name__[:100], str(value)[:200] if exact else "", exact=exact)


def decode_value(value: Any, *, exact: bool) -> Any:
    """What ``encode`` was given. Raises ``ValueError`` for malformed tags."""
    return _decode_exact(value) if exact else from_wire(value)


def _tagged_value(*parts: Any, exact: bool) -> dict[str, Any]:
    if not exact:
        name = parts[1] if parts[0] == "other" else parts[0]
        raise ValueError(f"a {name} like this cannot be written as JSON")
    return {"$exact": list(parts)}


def _encode_decimal(value: Decimal, exact: bool) -> Any:
    try:
        exponent = money.require_bounded(value).as_tuple().exponent
    except ValueError:
        exponent = None
    if exponent is not None and (not exact or (isinstance(exponent, int) and exponent <= 0)):
        return {"$decimal": format(value, "f")}
    return _tagged_value("decimal", str(value)[:20_000], exact=exact)


def _encode_dict(value: dict[Any, Any], exact: bool, depth: int) -> Any:
    plain = all(type(k) is str for k in value) and not (len(value) == 1 and next(iter(value)) in _TAGS)
    if plain:
        return {k: encode_value(v, exact=exact, depth=depth + 1) for k, v in value.items()}
    if not exact:
        raise ValueError("a dict has keys that are no texts, or is one that means a Decimal")
    pairs = [
        [encode_value(k, exact=True, depth=depth + 1), encode_value(v, exact=True, depth=depth + 1)]
        for k, v in value.items()
    ]
    return _tagged_value("dict", pairs, exact=True)


def _decode_exact(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode_exact(v) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        if "$decimal" in value:
            return from_wire(value)
        if "$exact" in value:
            try:
                return _read_tag(value["$exact"])
            except (ValueError, TypeError, ArithmeticError, InvalidOperation) as e:
                raise ValueError(f"a malformed value: {e}"[:200]) from None
    return {k: _decode_exact(v) for k, v in value.items()}


def _read_tag(parts: Any) -> Any:
    match parts:
        case ["int", str(text)]:
            return int(text, 16)
        case ["float", "inf" | "-inf" | "nan" as text]:
            return float(text)
        case ["decimal", str(text)]:
            return Decimal(text)
        case ["tuple", list(items)]:
            return tuple(_decode_exact(v) for v in items)
        case ["set", list(items)]:
            return {_decode_exact(v) for v in items}
        case ["frozenset", list(items)]:
            return frozenset(_decode_exact(v) for v in items)
        case ["dict", list(pairs)]:
            return {_decode_exact(k): _decode_exact(v) for k, v in pairs}
        case ["bytes", str(text)]:
            return base64.b64decode(text, validate=True)
        case ["date", str(text)]:
            return date.fromisoformat(text)
        case ["datetime", str(text)]:
            return datetime.fromisoformat(text)
        case ["timedelta", [int(days), int(seconds), int(micros)]]:
            return timedelta(days, seconds, micros)
        case ["other", str(name), str(text)]:
            return _opaque_value(name, text)
    raise ValueError("an unknown kind")


def _opaque_value(name: str, text: str) -> Any:
    """Something of which only the name of its type crosses: a function, an exception, a class."""
    made: type = type(name, (), {"__str__": lambda self: text, "__repr__": lambda self: text})
    return made()
