"""What the columns of a table are: ``records/NAME.yaml``. A person approves it; nothing else makes it count.

A value of a column is as scripts pass and get it, and as the file has it. Each has one text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import Place, WorkspaceError
from cleared.base.money import require_bounded
from cleared.workspace.settings.yaml_tree import Node, TreeError, parse_yaml

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,20})?", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


class Kind(Struct, frozen=True):
    """A type of columns. ``parse`` and ``take`` raise ``ValueError`` with the reason."""

    parse: Callable[[str], Any]
    """What the text in the file says."""
    take: Callable[[Any], Any]
    """The value that a script passed."""
    options: frozenset[str]
    """What a schema may say of such a column beside ``optional``."""


class Column(Struct, frozen=True):
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


MAX_ROWS: Final = 100_000
"""Of a table, whatever its schema says."""
_USUAL_ROWS: Final = 10_000
_MAX_BYTES: Final = 100_000
_MAX_COLUMNS: Final = 100
_COLUMN: Final = re.compile(r"[a-z][a-z0-9_]{0,59}", re.ASCII)
_OPTIONS: Final = ("type", "optional", "min", "max", "places", "max_length", "choices")


class Schema(Struct, frozen=True):
    """The columns of one table in their order, by their names, and those that tell its rows apart."""

    columns: Mapping[str, Column]
    key: tuple[str, ...]
    max_rows: int = _USUAL_ROWS


def parse_schema(data: bytes, path: str) -> Schema:
    """Raises ``WorkspaceError`` for anything that is no schema, with the line."""
    try:
        if len(data) > _MAX_BYTES:
            raise TreeError(f"longer than {_MAX_BYTES:,} bytes", 1)
        root = parse_yaml(data.decode("utf-8"))
        if root is None:
            raise TreeError("the file is empty", 1)
        return _read_schema(root)
    except TreeError as error:
        place, message = Place(path, error.line, error.column), error.message
    except UnicodeDecodeError as error:
        place, message = Place(path), f"byte {error.start} is not UTF-8"
    remedy = "Write `key: COLUMN` and `columns:` with a line `NAME: TYPE` each (docs/howto/price-lists.md)."
    raise WorkspaceError(f"this is no schema of a table: {message}", place=place, remedy=remedy)


def _read_schema(root: Node) -> Schema:
    parts = _read_map(root, ("key", "columns", "max_rows"), "a schema")
    for name in ("key", "columns"):
        if name not in parts:
            raise TreeError(f"{name}: is missing", root.line)
    columns: dict[str, Column] = {}
    for name, node in _read_map(parts["columns"], None, "columns").items():
        if not _COLUMN.fullmatch(name):
            raise TreeError(f"{name[:60]!r} is no name of a column: small letters, digits and _", node.line)
        columns[name] = _read_column(name, node)
    if not 1 <= len(columns) <= _MAX_COLUMNS:
        raise TreeError(f"a table has 1 to {_MAX_COLUMNS} columns, not {len(columns)}", parts["columns"].line)
    node = parts["key"]
    key = tuple(_read_text(each) for each in (node.items if node.kind == "list" else [node]))
    if not key or len(set(key)) < len(key):
        raise TreeError("key: names one column, or several, none twice", node.line)
    for name in key:
        if name not in columns:
            raise TreeError(f"key: there is no column {name[:60]!r}", node.line)
        if columns[name].is_optional:
            raise TreeError(f"key: {name} is optional; a row is told apart by what it always has", node.line)
    most = _read_number(parts["max_rows"], 1, MAX_ROWS) if "max_rows" in parts else _USUAL_ROWS
    return Schema(columns, key, most)


def _read_column(name: str, node: Node) -> Column:
    if node.kind == "scalar":
        return Column(name, _read_kind(node))
    parts = _read_map(node, _OPTIONS, f"column {name}")
    if "type" not in parts:
        raise TreeError(f"column {name} has no type:", node.line)
    kind = _read_kind(parts["type"])
    for option in parts.keys() - {"type", "optional"}:
        if option not in KINDS[kind].options:
            raise TreeError(f"{option}: says nothing of {kind}", parts[option].line)
    choices = parts.get("choices")
    if choices is not None and (choices.kind != "list" or not choices.items):
        raise TreeError("choices: is a list, such as [open, paid]", choices.line)
    try:
        return Column(
            name,
            kind,
            is_optional=_read_flag(parts["optional"]) if "optional" in parts else False,
            low=parse_bound(kind, _read_text(parts["min"])) if "min" in parts else None,
            high=parse_bound(kind, _read_text(parts["max"])) if "max" in parts else None,
            places=_read_number(parts["places"], 0, 20) if "places" in parts else None,
            max_length=_read_number(parts["max_length"], 1, 10_000) if "max_length" in parts else 1_000,
            choices=tuple(_read_text(each) for each in choices.items) if choices is not None else (),
        )
    except ValueError as error:
        raise TreeError(f"column {name}: {error}", node.line) from None


def _read_map(node: Node, known: tuple[str, ...] | None, what: str) -> dict[str, Node]:
    if node.kind != "map":
        raise TreeError(f"{what} is a map, with a line `NAME: …` each", node.line)
    found: dict[str, Node] = {}
    for key, value in node.pairs:
        name = _read_text(key)
        if name in found:
            raise TreeError(f"{name[:60]}: is given twice", key.line)
        if known is not None and name not in known:
            raise TreeError(f"{name[:60]!r} is unknown here (known: {', '.join(known)})", key.line)
        found[name] = value
    return found


def _read_text(node: Node) -> str:
    if node.kind != "scalar" or not node.text:
        raise TreeError("a name or a value is missing here", node.line)
    return node.text


def _read_kind(node: Node) -> str:
    kind = _read_text(node)
    if kind not in KINDS:
        raise TreeError(f"{kind[:60]!r} is no type (known: {', '.join(KINDS)})", node.line)
    return kind


def _read_flag(node: Node) -> bool:
    text = _read_text(node)
    if text not in ("true", "false"):
        raise TreeError(f"{text[:60]!r} is neither true nor false", node.line)
    return text == "true"


def _read_number(node: Node, low: int, high: int) -> int:
    text = _read_text(node)
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or not low <= int(text) <= high:
        raise TreeError(f"{text[:60]!r} is no whole number from {low:,} to {high:,}", node.line)
    return int(text)
