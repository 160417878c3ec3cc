"""What a person says that a row should have been: values of its columns, but for those that tell rows apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cleared.base.errors import Place, UsageError
from cleared.records.table_rows import Row, Table


class RowCorrection(Struct, frozen=True):
    """``values``: column → its text. Of what it does not name, the row stays as it is."""

    values: Mapping[str, str] = {}

    def to_data(self) -> Mapping[str, Any]:
        return {"values": dict(self.values)}


def parse_values(texts: Sequence[str]) -> RowCorrection:
    """``price=4.20`` of each column. Raises ``UsageError`` for anything else."""
    values: dict[str, str] = {}
    for text in texts:
        name, is_given, value = text.partition("=")
        if not is_given or not name or name in values:
            raise UsageError(f"{text[:60]!r} is not COLUMN=VALUE, each once", remedy="Write it like price=4.20.")
        values[name] = value
    return RowCorrection(values)


def correct_row(table: Table, row: Row, data: Mapping[str, Any]) -> Row:
    """The row as ``RowCorrection.to_data`` says. Raises ``UsageError`` where that says nothing of a row, or what does
    not fit its columns."""
    values = data.get("values")
    if not isinstance(values, dict) or not values:
        raise UsageError("a row is corrected by its columns", remedy="cleared queue correct ROW --set COLUMN=VALUE.")
    texts = dict(zip(table.schema.columns, row, strict=True))
    for name, value in values.items():
        column = table.schema.columns.get(str(name))
        if column is None or name in table.schema.key:
            others = ", ".join(each for each in table.schema.columns if each not in table.schema.key)
            raise UsageError(f"{str(name)[:60]!r} is no column that can be corrected", remedy=f"One of: {others}.")
        try:
            texts[name] = column.take_text(str(value))
        except ValueError as error:
            place, remedy = Place(field=str(name)), f"{name} takes: {column.describe()}."
            raise UsageError(f"{str(value)[:60]!r} does not fit: {error}", place=place, remedy=remedy) from None
    return tuple(texts.values())
