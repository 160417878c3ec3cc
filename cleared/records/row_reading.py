"""Which calls of a run read a row, as its trace has them: a script names a table and a key, not the row's id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cleared.base.errors import WorkspaceError
from cleared.base.file_source import FileSource
from cleared.records.row_changes import read_table
from cleared.records.table_names import Key, parse_row_id
from cleared.records.table_schema import Schema

_BY_KEY = frozenset(("table_get", "table_ask"))
_ALL = "table_rows"
_WRITING = frozenset(("table_put", "table_remove"))
"""What they answer says which row was put; the run has read nothing by it."""


def is_reading(source: FileSource, call: Mapping[str, Any], record_id: str) -> bool | None:
    """As ``RecordReview.is_reading``: also where the run was told that there is no such row."""
    name, parsed = str(call["name"]), parse_row_id(record_id)
    if parsed is None or not parsed[1] or name not in (*_BY_KEY, _ALL, *_WRITING):
        return None
    if name in _WRITING:
        return False
    try:
        given = json.loads(call["arguments"])
        values = dict(zip(("table", "where" if name == _ALL else "key"), given["args"], strict=False)) | given["kwargs"]
        table = read_table(source, parsed[0])
    except (ValueError, KeyError, TypeError, WorkspaceError):  # cut off, or there is no such table any more
        return None
    if table is None or values.get("table") != parsed[0]:
        return None
    asked = values.get("where") or {} if name == _ALL else _name_key(table.schema, values.get("key"))
    return _fits(table.schema, asked, parsed[1]) or None


def _name_key(schema: Schema, key: Any) -> Any:
    """The key that was passed, by its columns."""
    if isinstance(key, dict):
        return key
    return dict(zip(schema.key, key if isinstance(key, list) else [key], strict=False))


def _fits(schema: Schema, asked: Any, key: Key) -> bool:
    """Whether these values are not those of another row. Columns beside the key may have been as asked by then."""
    if not isinstance(asked, dict):
        return True
    for name, text in zip(schema.key, key, strict=False):
        try:
            if name in asked and schema.columns[name].take_value(asked[name]) != text:
                return False
        except ValueError:
            return False
    return True
