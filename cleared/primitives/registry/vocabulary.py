"""The vocabulary: the types a primitive may take or give, with how each is decoded and described.

A domain adds its own. A decoder gets what a script or client passed and raises ``ValueError`` with the reason; dispatch
adds the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, Final

from msgspec import Struct, field

from cleared.base import clock, money
from cleared.base.bounds import MAX_ITEMS
from cleared.workspace.settings.secrets import Redactor

MAX_DEPTH: Final = 32
_ISO_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CONTROL: Final = r"[\x00-\x1f\x7f\x85\u2028\u2029]"


class DecodingContext(Struct, frozen=True):
    """What decoding depends on: the base currency's decimal places, and the bounds of texts and lists."""

    places: int = 2
    max_text_bytes: int = 10_240
    max_items: int = MAX_ITEMS
    redactor: Redactor = field(default_factory=Redactor)
    """Takes secrets out of every text that is passed."""
    dates: dict[str, date] = {}
    """Dates decoded already; bank files repeat them."""


class ValueType(Struct, frozen=True, eq=False):
    """One type of the vocabulary."""

    name: str
    accepts: str
    """What the type checker lets a script pass."""
    schema: Mapping[str, Any]
    """JSON Schema of the wire form."""
    decode: Callable[[Any, DecodingContext], Any]
    gives: str = ""
    """What the type checker takes a result of it for; empty: the name of its Python type."""
    definition: str = ""
    """A line of the stubs that defines a name in ``accepts``."""


def _decode_date(value: object, env: DecodingContext) -> date:
    if type(value) is str:
        cached = env.dates.get(value)
        if cached is not None:
            return cached
        if not _ISO_DATE.fullmatch(value):
            raise ValueError(f"{value[:40]!r} is not a date written YYYY-MM-DD")
        try:
            parsed = date.fromisoformat(value)
        except ValueError:
            raise ValueError(f"there is no day {value}") from None
        if len(env.dates) < 10_000:
            env.dates[value] = parsed
        return parsed
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise ValueError(f"a {type(value).__name__} is not a date; pass YYYY-MM-DD")


def _decode_amount(value: object, env: DecodingContext) -> Decimal:
    try:
        return money.decode(value, env.places)
    except money.FinerThanCurrency as error:
        raise ValueError(f"{error}; money_allocate splits an amount and loses no cent") from None


def _decode_positive_amount(value: object, env: DecodingContext) -> Decimal:
    amount = _decode_amount(value, env)
    if amount <= 0:
        advice = ": pass abs(amount)" if amount else ""
        raise ValueError(f"{amount} is not positive; debit and credit say the direction{advice}")
    return amount


def _decode_weight(value: object, env: DecodingContext) -> Decimal:
    if isinstance(value, float):
        value = repr(value)
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise ValueError(f"a {type(value).__name__} is not a number")
    try:
        number = Decimal(value if not isinstance(value, str) or len(value) <= 100 else "")
    except ArithmeticError:
        raise ValueError(f"{quote_value(value)} is not a number") from None
    money.require_bounded(number)
    if number < 0:
        raise ValueError(f"{number} is not a weight: finite and not negative")
    return number


def _decode_confidence(value: object, env: DecodingContext) -> Decimal:
    if isinstance(value, float):
        number = _read_float(value)
    elif isinstance(value, bool) or not isinstance(value, Decimal | int):
        raise ValueError(f"a {type(value).__name__} is not a number from 0 to 1")
    else:
        number = money.require_bounded(Decimal(value))
    if not number.is_finite() or not 0 <= number <= 1:
        raise ValueError(f"{number} does not lie between 0 and 1")
    return number or abs(number)  # nothing has no sign


@lru_cache(maxsize=100)
def _read_float(value: float) -> Decimal:
    """The number as it is written: a script has few confidences."""
    return Decimal(repr(value))


def _decode_account_id(value: object, env: DecodingContext) -> int:
    if type(value) is not int:
        raise ValueError(f"{quote_value(value)} is not an account number (a whole number such as 1010)")
    if not 0 < value < 10**9:
        raise ValueError(f"{value if abs(value) < 10**20 else 'that number'} is not an account number")
    return value


def _decode_text(value: object, env: DecodingContext) -> str:
    if type(value) is not str:
        raise ValueError(f"a {type(value).__name__} is not a text; use str(…)")
    if value.isascii() and len(value) <= env.max_text_bytes and "\0" not in value:
        return env.redactor.redact_text(value)
    if "\0" in value:
        raise ValueError("the text holds a NUL character")
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise ValueError("the text holds a lone surrogate, which is no character") from None
    if size > env.max_text_bytes:
        raise ValueError(
            f"the text has {size} bytes; the limit is {env.max_text_bytes}: shorten it, or raise limits.max_text_bytes"
        )
    return env.redactor.redact_text(value)


def decode_line(value: object, env: DecodingContext) -> str:
    """Text on one line. Raises ``ValueError``."""
    text = _decode_text(value, env)
    if not text.isprintable() and re.search(_CONTROL, text):
        raise ValueError("the text must be one line, without control characters")
    return text


def _decode_whole_number(value: object, env: DecodingContext) -> int:
    if type(value) is not int or abs(value) > 10**12:
        raise ValueError(f"{quote_value(value)} is not a whole number")
    return value


def _decode_bool(value: object, env: DecodingContext) -> bool:
    if type(value) is not bool:
        raise ValueError(f"a {type(value).__name__} is not True or False")
    return value


def quote_value(value: object) -> str:
    """A value as a refusal quotes it: its beginning, and of what is no plain value its type."""
    if isinstance(value, str):
        return repr(value[:40])
    if value is None or isinstance(value, float | Decimal) or (isinstance(value, int) and abs(value) < 10**20):
        return str(value)[:40]
    return "that number" if isinstance(value, int) else f"a {type(value).__name__}"


def _decode_json(value: object, env: DecodingContext) -> Any:
    """Plain data: None, bool, int, finite float, Decimal, text, lists and dicts with text keys."""
    return _decode_data(value, env, 0, [env.max_items])


def _decode_data(value: object, env: DecodingContext, depth: int, left: list[int]) -> Any:
    """``left``: how many values there may be more."""
    if depth > MAX_DEPTH:
        raise ValueError(f"the data is nested deeper than {MAX_DEPTH}")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _decode_text(value, env)
    if isinstance(value, int):
        if abs(value) >= money.TOO_BIG:
            money.refuse_digits()
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{value} is not a finite number")
        return value
    if isinstance(value, Decimal):
        return money.require_bounded(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple | dict):
        left[0] -= len(value)
        if left[0] < 0:
            raise ValueError(f"the data has more than {env.max_items} values: pass less of it")
        clock.count_steps(len(value))
    if isinstance(value, list | tuple):
        return [_decode_data(v, env, depth + 1, left) for v in value]
    if isinstance(value, dict):
        if any(type(k) is not str for k in value):
            raise ValueError("the keys of a dict must be texts")
        return {_decode_text(k, env): _decode_data(v, env, depth + 1, left) for k, v in value.items()}
    raise ValueError(f"a {type(value).__name__} is not plain data")


_NUMBER: Final = {"anyOf": [{"type": "number"}, {"type": "string"}, {"$ref": "#/$defs/decimal"}]}
_MONEY: Final = "Decimal | int | float | str"

VALUE_TYPES: Final = {
    k.name: k
    for k in (
        ValueType("Date", "str | datetime.date", {"type": "string", "format": "date"}, _decode_date, gives="str"),
        ValueType("Amount", _MONEY, _NUMBER, _decode_amount),
        ValueType("PositiveAmount", _MONEY, _NUMBER, _decode_positive_amount),
        ValueType("Weight", _MONEY, _NUMBER, _decode_weight),
        ValueType(
            "Confidence", "Decimal | int | float", {"type": "number", "minimum": 0, "maximum": 1}, _decode_confidence
        ),
        ValueType("AccountId", "int", {"type": "integer", "minimum": 1}, _decode_account_id),
        ValueType("Text", "str", {"type": "string"}, _decode_text),
        ValueType("Line", "str", {"type": "string", "pattern": r"^[^\u0000-\u001f]*$"}, decode_line),
        ValueType("Whole", "int", {"type": "integer"}, _decode_whole_number),
        ValueType("Bool", "bool", {"type": "boolean"}, _decode_bool),
        ValueType("Json", "object", {}, _decode_json, gives="Any"),
    )
}

Date = Annotated[date, VALUE_TYPES["Date"]]
"""A day: ``YYYY-MM-DD`` or a ``date``."""
Amount = Annotated[Decimal, VALUE_TYPES["Amount"]]
"""Money in the base currency, any sign."""
PositiveAmount = Annotated[Decimal, VALUE_TYPES["PositiveAmount"]]
Weight = Annotated[Decimal, VALUE_TYPES["Weight"]]
Confidence = Annotated[Decimal, VALUE_TYPES["Confidence"]]
"""0 to 1."""
AccountId = Annotated[int, VALUE_TYPES["AccountId"]]
Text = Annotated[str, VALUE_TYPES["Text"]]
"""Any text up to ``limits.max_text_bytes``; newlines allowed."""
Line = Annotated[str, VALUE_TYPES["Line"]]
"""Text on one line."""
Whole = Annotated[int, VALUE_TYPES["Whole"]]
Json = Annotated[Any, VALUE_TYPES["Json"]]
"""Plain data."""
