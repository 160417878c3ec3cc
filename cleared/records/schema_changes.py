"""What another schema makes of a table: said before a person approves it, and done with the same commit."""

from __future__ import annotations

from collections.abc import Iterator

from cleared.base.errors import Place, UsageError
from cleared.base.file_source import FileSource
from cleared.base.terminal import count_noun
from cleared.domains.record_audit import DefinitionChange
from cleared.records.table_names import Key, table_of, table_path
from cleared.records.table_rows import Row, Table, read_rows, render_table
from cleared.records.table_schema import Schema, parse_schema


def describe_schema_change(
    path: str, before: bytes | None, after: bytes | None, source: FileSource
) -> DefinitionChange:
    """``before``: the schema that was approved last and made the rows of ``source``; ``after``: None where it goes.

    Raises ``WorkspaceError`` where the new one is no schema, ``UsageError`` where rows do not fit it.
    """
    name = table_of(path, "yaml") or ""
    old = _read_old(name, before, source)
    if after is None:
        rows = count_noun(len(old.rows), "row") if old is not None else "no rows"
        return DefinitionChange(
            (f"The table {name} is removed, with {rows}.",), {table_path(name): None} if old else {}
        )
    new = Table(name, parse_schema(after, path))
    lines = list(_describe_difference(name, old.schema if old is not None else None, new.schema))
    if old is None or not old.rows:
        kept = source.read(table_path(name)) if old is None else None
        if kept is not None:
            _require_fit(new, kept)
        return DefinitionChange(tuple(lines), {table_path(name): render_table(new, new.rows)})
    for key, row in old.rows.items():
        moved = _convert_row(old, new, key, row)
        if new.key_of(moved) in new.rows:
            shown = ", ".join(new.key_of(moved))[:100]
            raise UsageError(
                f"two rows of {name} would have the key {shown}", place=Place(path), remedy="Keep the key."
            )
        new.rows[new.key_of(moved)] = moved
    if len(new.rows) > new.schema.max_rows:
        raise UsageError(f"{name} has {len(new.rows):,} rows", place=Place(path), remedy="Raise max_rows.")
    return DefinitionChange(
        (*lines, f"It has {count_noun(len(old.rows), 'row')}, and keeps them."),
        {table_path(name): render_table(new, new.rows)},
    )


def _read_old(name: str, before: bytes | None, source: FileSource) -> Table | None:
    """The table as it is. Raises ``UsageError`` where its rows are damaged."""
    if before is None:
        return None
    table = Table(name, parse_schema(before, ""))
    _require_fit(table, source.read(table_path(name)))
    return table


def _require_fit(table: Table, data: bytes | None) -> None:
    wrong = next(read_rows(table, data), None)
    if wrong is not None:
        raise UsageError(f"rows do not fit: {wrong.message}", place=wrong.place, remedy="See cleared check.")


def _describe_difference(name: str, old: Schema | None, new: Schema) -> Iterator[str]:
    if old is None:
        yield f"The table {name} is new. A row is told apart by {', '.join(new.key)}; at most {new.max_rows:,} rows."
    elif old.key != new.key:
        yield f"Rows are told apart by {', '.join(new.key)} instead of {', '.join(old.key)}."
    if old is not None and old.max_rows != new.max_rows:
        yield f"It may have {new.max_rows:,} rows instead of {old.max_rows:,}."
    then = old.columns if old is not None else {}
    for column in new.columns.values():
        was = then.get(column.name)
        if was is None:
            yield f"{'New column' if old is not None else 'Column'} {column.name}: {column.describe()}."
        elif was != column:
            yield f"Column {column.name}: {column.describe()}; it was {was.describe()}."
    for gone in sorted(then.keys() - new.columns.keys()):
        yield f"Column {gone} goes, with its values."
    if then and [c for c in then if c in new.columns] != [c for c in new.columns if c in then]:
        yield f"The columns are in another order: {', '.join(new.columns)}."


def _convert_row(old: Table, new: Table, key: Key, row: Row) -> Row:
    texts = dict(zip(old.schema.columns, row, strict=True))
    try:
        return tuple(column.take_text(texts.get(name, "")) for name, column in new.schema.columns.items())
    except ValueError as error:
        raise UsageError(
            f"the row {', '.join(key)[:100]} does not fit: {error}",
            place=Place(table_path(new.name)),
            remedy="Make the column optional, or its bounds wider; or have an agent mend the rows first.",
        ) from None
