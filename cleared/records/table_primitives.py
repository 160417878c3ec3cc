"""``table_*``: rows of typed tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cleared.base.clock import check_deadline
from cleared.base.errors import Place, PrimitiveError, merge_faults
from cleared.primitives.context import Context, budget_error
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Json, Line, Text
from cleared.records.records_domain import tables_of
from cleared.records.table_names import Key, row_id

if TYPE_CHECKING:
    from cleared.records.table_rows import Table


@primitive(effect=Effect.READ, grant="table.read")
def table_rows(ctx: Context, table: Line, where: Json = None) -> list[Any]:
    """The rows of a table in the order of their keys, with what this run has put and removed: a dict each.

    ``where``: only rows that have these values, such as ``{"supplier": "acme"}``. A number is an int or a Decimal, a
    day is YYYY-MM-DD, what is empty is None.
    """
    tables, found = tables_of(ctx), _open_table(ctx, table)
    wanted = _take_texts(found, where, "where") if where else {}
    places = {name: index for index, name in enumerate(found.schema.columns)}
    rows = check_deadline(tables.current_rows(found).values())
    return [found.read_row(row) for row in rows if all(row[places[name]] == text for name, text in wanted.items())]


@primitive(effect=Effect.READ, grant="table.read")
def table_get(ctx: Context, table: Line, key: Json) -> Any:
    """One row as a dict, or None where there is none. ``key``: its value; of several columns a list of theirs."""
    tables, found = tables_of(ctx), _open_table(ctx, table)
    row = tables.find_row(found, _take_key(found, key))
    return found.read_row(row) if row is not None else None


@primitive(effect=Effect.STAGE, grant="table.write")
def table_put(ctx: Context, table: Line, row: Json) -> str:
    """Put a row, in the place of the one with the same key if there is one; the row's id, such as ``prices/ABC-1``.

    ``row``: a dict with each column; one that is optional may be missing.
    """
    tables, found = tables_of(ctx), _open_table(ctx, table)
    texts = _take_texts(found, row, "row")
    missing = [name for name, column in found.schema.columns.items() if name not in texts and not column.is_optional]
    if missing:
        raise _refuse("row", f"{', '.join(missing)} is missing", "Pass each column that is not optional.")
    values = tuple(texts.get(name, "") for name in found.schema.columns)
    key = found.key_of(values)
    is_new = tables.find_row(found, key) is None
    if is_new and len(found.rows) + tables.growth.get(found.name, 0) >= found.schema.max_rows:
        most = found.schema.max_rows
        raise _refuse("row", f"{found.name} has {most:,} rows already", "Remove some, or have max_rows raised.")
    if tables.set_row(found, key, values):
        _charge(ctx)
        ctx.log_action("table_put", row_id(found.name, key)[:500])
    return row_id(found.name, key)


@primitive(effect=Effect.STAGE, grant="table.write")
def table_remove(ctx: Context, table: Line, key: Json) -> bool:
    """Remove a row; whether there was one. ``key`` as for ``table_get``."""
    tables, found = tables_of(ctx), _open_table(ctx, table)
    wanted = _take_key(found, key)
    if not tables.set_row(found, wanted, None):
        return False
    _charge(ctx)
    ctx.log_action("table_remove", row_id(found.name, wanted)[:500])
    return True


@primitive(effect=Effect.STAGE, grant="queue.write")
def table_ask(ctx: Context, table: Line, key: Json, question: Text) -> str:
    """Ask a person whether a row is right; gives the card's id. They confirm it, or put back the row that was there
    before this run. Asking twice about the same values makes one card."""
    from cleared.records.row_cards import stage_row_card  # late: most workspaces have no tables

    tables, found = tables_of(ctx), _open_table(ctx, table)
    wanted = _take_key(found, key)
    row = tables.find_row(found, wanted)
    if row is None:
        raise _refuse("key", f"{found.name} has no row {', '.join(wanted)[:100]}", "Put it first.")
    ctx.log_action("table_ask", f"{row_id(found.name, wanted)}: {question}"[:500])
    return stage_row_card(ctx, found, wanted, row, question)


def _open_table(ctx: Context, name: str) -> Table:
    allowed = ctx.permissions.header_values.get("tables")
    if allowed is not None and name not in allowed:
        raise budget_error("tables", f"the table {name[:60]}", ", ".join(allowed))
    return tables_of(ctx).get_table(name)


def _charge(ctx: Context) -> None:
    tables, most = tables_of(ctx), ctx.permissions.header_values.get("max_rows")
    tables.spent += 1
    if most is not None and tables.spent > most:
        raise budget_error("max_rows", f"{tables.spent} rows", most)


def _take_texts(table: Table, values: object, field: str) -> dict[str, str]:
    """The texts of these values, by their columns. Raises ``PrimitiveError`` with every fault."""
    if not isinstance(values, dict):
        raise _refuse(field, f"a {type(values).__name__} is not a dict", f"Columns: {', '.join(table.schema.columns)}.")
    texts: dict[str, str] = {}
    faults: list[PrimitiveError] = []
    for name, value in values.items():
        column = table.schema.columns.get(name)
        if column is None:
            known = ", ".join(table.schema.columns)
            faults.append(_refuse(field, f"{table.name} has no column {name[:60]!r}", f"Columns: {known}."))
            continue
        try:
            texts[name] = column.take_value(value)
        except ValueError as error:
            faults.append(_refuse(field, f"{name}: {error}", f"{name} takes: {column.describe()}."))
    if faults:
        raise merge_faults(faults)
    return texts


def _take_key(table: Table, key: object) -> Key:
    names = table.schema.key
    if isinstance(key, dict):
        values = dict(key)
    elif isinstance(key, list):
        values = dict(zip(names, key, strict=False)) if len(key) == len(names) else {}
    else:
        values = {names[0]: key} if len(names) == 1 else {}
    if values.keys() != set(names):
        raise _refuse("key", f"the key of {table.name} is {', '.join(names)}", "Pass a value for each.")
    texts = _take_texts(table, values, "key")
    return tuple(texts[name] for name in names)


def _refuse(field: str, message: str, remedy: str) -> PrimitiveError:
    return PrimitiveError(message, place=Place(field=field), remedy=remedy)
