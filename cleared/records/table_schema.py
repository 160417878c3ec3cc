"""What the columns of a table are: ``records/NAME.yaml``. A person approves it; nothing else makes it count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cleared.base.errors import Place, WorkspaceError
from cleared.records.column_values import KINDS, Column, parse_bound
from cleared.workspace.settings.yaml_tree import Node, TreeError, parse_yaml

FOLDER: Final = "records"
MAX_ROWS: Final = 100_000
"""Of a table, whatever its schema says."""
_USUAL_ROWS: Final = 10_000
_MAX_BYTES: Final = 100_000
_MAX_COLUMNS: Final = 100
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,59}", re.ASCII)
_COLUMN: Final = re.compile(r"[a-z][a-z0-9_]{0,59}", re.ASCII)
_FILE: Final = re.compile(rf"{FOLDER}/([^/]+)\.(csv|yaml)")
_OPTIONS: Final = ("type", "optional", "min", "max", "places", "max_length", "choices")


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of one table in their order, by their names, and those that tell its rows apart."""

    columns: Mapping[str, Column]
    key: tuple[str, ...]
    max_rows: int = _USUAL_ROWS


def table_path(name: str) -> str:
    return f"{FOLDER}/{name}.csv"


def schema_path(name: str) -> str:
    return f"{FOLDER}/{name}.yaml"


def is_table_name(name: str) -> bool:
    """Whether it can name a table: small letters, digits, ``-`` and ``_``."""
    return _NAME.fullmatch(name) is not None


def table_of(path: str, ending: str) -> str | None:
    """The table whose file with this ending is at a path; None where that is no such file."""
    match = _FILE.fullmatch(path)
    return match[1] if match is not None and match[2] == ending and is_table_name(match[1]) else None


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
