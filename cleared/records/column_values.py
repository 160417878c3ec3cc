"""Values of one column: as scripts pass and get them, and as the file has them. Each value has one text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

from cleared.base.money import require_bounded

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,20})?", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of columns. ``parse`` and ``take`` raise ``ValueError`` with the reason."""

    parse: Callable[[str], Any]
    """What the text in the file says."""
    take: Callable[[Any], Any]
    """The value that a script passed."""
    options: frozenset[str]
    """What a schema may say of such a column beside ``optional``."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, and what its values may be."""

    name: str
    kind: str
    is_optional: bool = False
    low: Any = None
    high: Any = None
    places: int | None = None
    max_length: int = 1_000
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for bounds that no value can meet."""
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"min: {format_value(self.low)} is above max: {format_value(self.high)}")

    def describe(self) -> str:
        """It in words: ``decimal, optional, from 0, up to 10000``."""
        bounds = [f"from {format_value(self.low)}"] if self.low is not None else []
        bounds += [f"up to {format_value(self.high)}"] if self.high is not None else []
        bounds += [f"{self.places} decimal places"] if self.places is not None else []
        bounds += [f"at most {self.max_length} characters"] if self.max_length != 1_000 else []
        bounds += [f"one of {', '.join(self.choices)}"] if self.choices else []
        return ", ".join([self.kind, *(["optional"] if self.is_optional else []), *bounds])

    def read_text(self, text: str) -> Any:
        """The value of a text in the file; None for an empty one. Raises ``ValueError`` where it is none."""
        if not text:
            return self._require_optional()
        value = self._check_bounds(KINDS[self.kind].parse(text))
        if self._write(value) != text:
            raise ValueError(f"{text[:40]!r} would be written {self._write(value)[:40]!r}")
        return value

    def take_value(self, value: Any) -> str:
        """The text for a value that a script passed. Raises ``ValueError`` where it does not fit."""
        if value is None or value == "":
            self._require_optional()
            return ""
        return self._write(self._check_bounds(KINDS[self.kind].take(value)))

    def take_text(self, text: str) -> str:
        """The text for one that another column of this name had. Raises ``ValueError`` where it does not fit."""
        if not text:
            self._require_optional()
            return ""
        return self._write(self._check_bounds(KINDS[self.kind].parse(text)))

    def _require_optional(self) -> None:
        if not self.is_optional:
            raise ValueError("it is missing, and the column is not optional")

    def _check_bounds(self, value: Any) -> Any:
        if isinstance(value, str):
            if len(value) > self.max_length:
                raise ValueError(f"it has {len(value)} characters; {self.max_length} are allowed")
            if self.choices and value not in self.choices:
                raise ValueError(f"{value[:40]!r} is none of {', '.join(self.choices)[:200]}")
        if self.low is not None and value < self.low:
            raise ValueError(f"{format_value(value)} is below {format_value(self.low)}")
        if self.high is not None and value > self.high:
            raise ValueError(f"{format_value(value)} is above {format_value(self.high)}")
        if self.places is not None and len(format_value(value).partition(".")[2]) > self.places:
            raise ValueError(f"{format_value(value)} has more than {self.places} decimal places")
        return value

    def _write(self, value: Any) -> str:
        if self.places is not None:
            return f"{value:.{self.places}f}"
        return format_value(value)


def format_value(value: Any) -> str:
    """The one text of a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        text = format(value, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text in ("-0", "") else text
    return value.isoformat() if isinstance(value, date) else str(value)


def parse_bound(kind: str, text: str) -> Any:
    """``min:`` or ``max:`` of a schema. Raises ``ValueError``."""
    return KINDS[kind].parse(text)


def _parse_text(text: str) -> str:
    if any(unicodedata.category(c) in _UNSEEN for c in text):
        raise ValueError("the text holds a line end or another character that cannot be seen")
    if text != text.strip():
        raise ValueError("the text begins or ends with a blank")
    if not unicodedata.is_normalized("NFC", text):
        raise ValueError("the text has letters in parts (it is not in Unicode's form NFC)")
    return text


def _parse_integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a whole number")
    return int(text)


def _parse_decimal(text: str) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a number such as 12.50")
    number = Decimal(text)
    return number if number else Decimal(0)


def _parse_date(text: str) -> date:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError(f"{text[:40]!r} is not a day written YYYY-MM-DD")


def _parse_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text[:40]!r} is neither true nor false")
    return text == "true"


def _take_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a {type(value).__name__} is not a text; use str(…)")
    return _parse_text(unicodedata.normalize("NFC", value))


def _take_integer(value: Any) -> int:
    if type(value) is not int or abs(value) >= 10**18:
        raise ValueError("it is not a whole number")
    return value


def _take_decimal(value: Any) -> Decimal:
    if isinstance(value, float):
        value = repr(value)
        if not _DECIMAL.fullmatch(value):
            raise ValueError(f"{value[:40]} is not a plain number; pass it as a text")
    if isinstance(value, str):
        return _parse_decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(f"a {type(value).__name__} is not a number")
    number = require_bounded(Decimal(value))
    if not number.is_finite():
        raise ValueError(f"{number} is not a number")
    return _parse_decimal(format(number, "f"))


def _take_date(value: Any) -> date:
    if not isinstance(value, str):
        raise ValueError(f"a {type(value).__name__} is not a day; pass YYYY-MM-DD")
    return _parse_date(value)


def _take_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"a {type(value).__name__} is not True or False")
    return value


_BOUNDS: Final = frozenset(("min", "max"))
KINDS: Final = {
    "text": Kind(_parse_text, _take_text, frozenset(("max_length", "choices"))),
    "integer": Kind(_parse_integer, _take_integer, _BOUNDS),
    "decimal": Kind(_parse_decimal, _take_decimal, _BOUNDS | {"places"}),
    "date": Kind(_parse_date, _take_date, _BOUNDS),
    "bool": Kind(_parse_bool, _take_bool, frozenset()),
}
"""The types of columns, by their names."""
