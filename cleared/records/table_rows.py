"""One table as its file has it: every row told apart by its key, in the order of the keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from cleared.base.clock import check_deadline
from cleared.base.csv_text import CsvDamage, encode, format_record, read_records
from cleared.base.errors import Place, RestoreRemedy
from cleared.base.file_source import FileSource
from cleared.domains.record_audit import Violation
from cleared.records.table_names import Key, schema_path, table_path
from cleared.records.table_schema import Schema, parse_schema

Row: TypeAlias = tuple[str, ...]
"""The texts of a row, in the order of the columns."""


class Table(Struct):
    """A table of a commit. ``rows``: by their keys, sorted."""

    name: str
    schema: Schema
    rows: dict[Key, Row] = {}

    def key_of(self, row: Row) -> Key:
        columns = list(self.schema.columns)
        return tuple(row[columns.index(name)] for name in self.schema.key)

    def read_row(self, row: Row) -> dict[str, Any]:
        """The values of a row, as a script gets them."""
        values = zip(self.schema.columns.values(), row, strict=True)
        return {column.name: _for_script(column.read_text(text)) for column, text in values}


def load_table(source: FileSource, name: str) -> Table | None:
    """A table of a commit whose rows are in order; None where there is no such schema. Raises ``WorkspaceError`` where
    the schema is none, or ``ValueError`` with what is wrong in the rows."""
    data = source.read(schema_path(name))
    if data is None:
        return None
    table = Table(name, parse_schema(data, schema_path(name)))
    violations = list(read_rows(table, source.read(table_path(name))))
    if violations:
        raise ValueError(str(violations[0]))
    return table


def read_rows(table: Table, data: bytes | None) -> Iterator[Violation]:
    """Read the rows of a file into a table; what is wrong with them."""
    if data is None:
        return
    path, columns, last = table_path(table.name), list(table.schema.columns.values()), None
    try:
        for line, texts in check_deadline(read_records(data, [column.name for column in columns])):
            row = tuple(texts)
            key, place = table.key_of(row), Place(path, line)
            for column, text in zip(columns, row, strict=True):
                try:
                    column.read_text(text)
                except ValueError as error:
                    yield _violation("schema", f"{column.name}: {error}", Place(path, line, field=column.name))
            if key in table.rows:
                yield _violation("key", f"a second row has the key {', '.join(key)[:200]}", place)
            elif last is not None and key < last:
                yield _violation("schema", f"the row {', '.join(key)[:200]} is not in the order of the keys", place)
            table.rows[key], last = row, key
    except CsvDamage as error:
        yield _violation("schema", str(error), Place(path, error.line))
    if len(table.rows) > table.schema.max_rows:
        message = f"the table has {len(table.rows):,} rows; its schema allows {table.schema.max_rows:,}"
        yield _violation("schema", message, Place(path))


def render_table(table: Table, rows: Mapping[Key, Row]) -> bytes:
    """The file of these rows."""
    records = [format_record(table.schema.columns)]
    records += [format_record(rows[key]) for key in check_deadline(sorted(rows))]
    return encode("".join(records))


def describe_row(table: Table, row: Row) -> str:
    """A row in words, but for its key: ``price 4.50, since 2026-01-01``."""
    return ", ".join(
        f"{name} {text}"
        for name, text in zip(table.schema.columns, row, strict=True)
        if name not in table.schema.key and text
    )


def _for_script(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _violation(check: str, message: str, place: Place) -> Violation:
    return Violation(check, message, RestoreRemedy(str(place.file), "Or mend what wrote it"), place)
