"""A row that a draft or a commit changes, in the forms in which it is compared, shown and weighed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct

from cleared.base.effects import Effect
from cleared.base.errors import WorkspaceError
from cleared.base.file_source import FileSource
from cleared.domains.record_comparison import Record, RecordComparison, RecordDifference, RecordSummary
from cleared.records.table_names import Key, parse_row_id, row_id, table_of, table_path
from cleared.records.table_rows import Row, Table, load_table
from cleared.records.table_schema import Schema
from cleared.workspace.location import Layout


class RowChange(Struct, frozen=True):
    """``before`` and ``after``: None where there is no such row."""

    schema: Schema
    table: str
    key: Key
    before: Row | None
    after: Row | None

    @property
    def id(self) -> str:
        return row_id(self.table, self.key)

    @property
    def word(self) -> str:
        return "added" if self.before is None else "removed" if self.after is None else "changed"

    def list_differences(self) -> list[tuple[str, str, str]]:
        """``(column, old text, new text)``."""
        none = ("",) * len(self.schema.columns)
        texts = zip(self.schema.columns, self.before or none, self.after or none, strict=True)
        return [(name, old, new) for name, old, new in texts if old != new]

    def describe(self) -> str:
        """``changed: price 4.20 → 4.50``."""
        if self.after is None:
            return "removed"
        shown = [
            f"{name} {old} → {new}" if self.before is not None else f"{name} {new}"
            for name, old, new in self.list_differences()
            if name not in self.schema.key
        ]
        return f"{self.word}: {', '.join(shown)}" if shown else self.word


def describe_change(change: RowChange) -> dict[str, Any]:
    """It in values that JSON takes."""
    return {
        "row_id": change.id,
        "table": change.table,
        "change": change.word,
        "before": _name_texts(change.schema, change.before),
        "after": _name_texts(change.schema, change.after),
        "text": change.describe(),
    }


def describe_record_schema() -> Mapping[str, Any]:
    """JSON Schema of ``describe_change``."""
    text = {"type": "string"}
    row = {"anyOf": [{"type": "object", "additionalProperties": text}, {"type": "null"}]}
    properties = {"row_id": text, "table": text, "change": text, "before": row, "after": row, "text": text}
    return {"type": "object", "properties": properties, "required": sorted(properties), "additionalProperties": False}


def change_effect(change: RowChange) -> Effect:
    """It as it is weighed where two have to decide: what a row is worth nobody knows, so it is more than any amount."""
    return Effect(
        f"row {change.id}: {change.after!r}", None, record=change.id, outcome=("row", change.id, change.after)
    )


def list_changes_between(before: FileSource, after: FileSource, files: Collection[str]) -> Iterator[RowChange]:
    """What differs of the rows from one commit to another. Raises ``WorkspaceError`` where they cannot be read."""
    for name in sorted(filter(None, (table_of(path, "csv") for path in files))):
        old, new = read_table(before, name), read_table(after, name)
        known = new or old
        if known is None:
            continue
        then, now = old.rows if old is not None else {}, new.rows if new is not None else {}
        if old is not None and new is not None and list(old.schema.columns) != list(new.schema.columns):
            continue  # a schema was changed, which is a decision of its own
        for key in sorted({*then, *now}):
            if then.get(key) != now.get(key):
                yield RowChange(known.schema, name, key, then.get(key), now.get(key))


def count_changes(records: Iterable[Record]) -> str:
    """How many rows change, by table: ``3 rows of prices change``."""
    counts: dict[str, int] = {}
    for record in records:
        counts[str(record["table"])] = counts.get(str(record["table"]), 0) + 1
    return ", ".join(f"{n} row{'s' * (n != 1)} of {name} change{'s' * (n == 1)}" for name, n in sorted(counts.items()))


class RowComparison(RecordComparison):
    """Rows are paired by table and key."""

    shown_fields: ClassVar = frozenset(("change", "values"))
    correction_key: ClassVar = "values"

    def check_correction(self, expected: Any) -> None:
        texts = [text for name, values in expected.items() for pair in values.items() for text in (name, *pair)]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("a corrected row is not its columns and their texts")

    def describe_correction(self, expected: Any, names: Mapping[str, str]) -> list[str]:
        return [f"row {name}: {_list_values(values)}" for name, values in expected.items()]

    def compare_correction(self, expected: Any, records: Sequence[Record]) -> list[str]:
        rows = {str(record["row_id"]): record["after"] for record in records}
        differences = []
        for name, values in expected.items():
            row = rows.get(name)
            got = {column: row.get(column) for column in values} if row is not None else None
            if got != values:
                is_now = f"it is {_list_values(got)}" if got is not None else "it is not put"
                differences.append(f"row {name}: to be {_list_values(values)}, but {is_now}")
        return differences

    def summarise(self, record: Record) -> RecordSummary:
        return RecordSummary(str(record["row_id"]), f"{record['row_id']} {record['text']}")

    def flatten(self, record: Record) -> Mapping[str, Any]:
        values = record["after"] or {}
        return {
            "change": record["change"],
            "values": ", ".join(f"{name} {text}" for name, text in values.items() if text),
        }

    def describe_difference(
        self, before: Record | None, after: Record | None, names: Mapping[str, str]
    ) -> RecordDifference:
        """By its table; of a row that both have, what each would make of it."""
        only = after if after is not None else before
        assert only is not None
        table = only["table"]
        if before is not None:
            group = f"otherwise in {table}" if after is not None else f"left as they are in {table}"
        else:
            group = f"{only['change']} {_PLACES[only['change']]} {table}"
        return RecordDifference(group, *(each["text"] if each is not None else "" for each in (before, after)))

    def read_added(
        self, layout: Layout, before: FileSource, after: FileSource, files: Collection[str]
    ) -> Mapping[str, Record]:
        return {change.id: describe_change(change) for change in list_changes_between(before, after, files)}

    def read_standing(self, layout: Layout, source: FileSource, ids: Collection[str]) -> Mapping[str, Record]:
        standing: dict[str, Record] = {}
        for name in ids:
            found = find_row(source, name)
            if found is not None:
                table, key, row = found
                standing[name] = describe_change(RowChange(table.schema, table.name, key, None, row))
        return standing


def _list_values(values: Mapping[str, Any]) -> str:
    """``group hardware, price 4.20``"""
    return ", ".join(f"{name} {text or 'nothing'}" for name, text in values.items())


_PLACES: Final = {"added": "to", "removed": "from", "changed": "in"}


def find_row(source: FileSource, name: str) -> tuple[Table, Key, Row] | None:
    """The row of this id in a commit. Raises ``WorkspaceError`` where its table cannot be read."""
    parsed = parse_row_id(name)
    if parsed is None or table_of(table_path(parsed[0]), "csv") is None:
        return None
    table = read_table(source, parsed[0])
    if table is None or parsed[1] not in table.rows:
        return None
    return table, parsed[1], table.rows[parsed[1]]


def read_table(source: FileSource, name: str) -> Table | None:
    """A table of a commit; None where it has no schema. Raises ``WorkspaceError`` where it is damaged."""
    try:
        return load_table(source, name)
    except ValueError as error:
        raise WorkspaceError(f"the table {name} is damaged: {error}", remedy="See cleared check.") from None


def _name_texts(schema: Schema, row: Row | None) -> dict[str, str] | None:
    return dict(zip(schema.columns, row, strict=True)) if row is not None else None
