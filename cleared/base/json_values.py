"""Values on JSON transports: a ``Decimal`` is ``{"$decimal": "4.00"}``, everything else is plain JSON."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from cleared.base import money

MAX_NESTING: Final = 100
MAX_PAYLOAD_NESTING: Final = 90
"""Of what an event brings: a card holds it some levels deeper, and a line of the queue has ``MAX_NESTING``."""
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


def to_wire(value: Any) -> Any:
    """Plain JSON data for a value a primitive gives or takes."""
    if isinstance(value, Decimal):
        return {"$decimal": format(value, "f")}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {k: to_wire(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(v) for v in value]
    return value


def from_wire(value: Any) -> Any:
    """The value that JSON data means. Raises ``ValueError`` for a malformed ``$decimal``."""
    if isinstance(value, dict):
        if len(value) == 1 and "$decimal" in value:
            text = value["$decimal"]
            try:
                number = Decimal(text) if isinstance(text, str) and len(text) <= 100 else None
            except InvalidOperation:
                number = None
            if number is None or not number.is_finite():
                raise ValueError(f"{str(text)[:40]!r} is not a decimal number")
            return money.require_bounded(number)
        return {k: from_wire(v) for k, v in value.items()}
    if isinstance(value, list):
        return [from_wire(v) for v in value]
    return value


def to_plain_json(value: Any) -> Any:
    """A value as it comes back from a file of JSON, so that what was stored and what is new can be compared. What JSON
    does not know becomes its text."""
    return json.loads(json.dumps(value, default=str))


def parse_json_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that a text is; empty where it is none, is damaged, or is nested too deeply."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def is_nested_deeply(value: Any, text: bytes, most: int = MAX_NESTING) -> bool:
    """Whether a value that was parsed from a text has more than so many levels. They are counted one by one, so that no
    depth exhausts the stack."""
    if text.count(b"[") + text.count(b"{") <= most:
        return False
    level = [value]
    for _ in range(most):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    return level != []


def refuse_unstorable(value: Any) -> None:
    """Raises ``ValueError`` for what is no payload of an event: no JSON, half a character, NUL, which no file takes, or
    what is nested too deeply for the card of a run that fails."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        data = text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text holds half a character (a lone surrogate)") from None
    except (TypeError, ValueError, RecursionError):
        raise ValueError("it cannot be written as JSON") from None
    if _NUL.search(text):
        raise ValueError("a text holds the character NUL")
    if is_nested_deeply(value, data, MAX_PAYLOAD_NESTING):
        raise ValueError(f"nested deeper than {MAX_PAYLOAD_NESTING}")


def require_text(value: Any) -> str:
    """The value. Raises ``TypeError`` for anything but a text."""
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is not a text")
    return value


def to_json(value: Any) -> Any:
    """For people and ``--json``: like ``to_wire``, but a ``Decimal`` is its digits as a string."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is Decimal:
        return format(value, "f")
    # Exact types first, and no call for what stays as it is: listings of a month are tens of thousands of values.
    if kind is dict:
        return {k: v if type(v) in _PLAIN else to_json(v) for k, v in value.items()}
    if kind is list:
        return [v if type(v) in _PLAIN else to_json(v) for v in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {k: to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    return value
