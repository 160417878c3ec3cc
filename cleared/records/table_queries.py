"""What can be asked of tables: which there are, their rows, and how many. Read from the last commit."""

from __future__ import annotations

from typing import Any, Final

from cleared.base.errors import Place, UsageError
from cleared.base.schema_parts import FLAG, INTEGER, OBJECT, TEXT, TEXTS, list_of, object_of
from cleared.changes.definitions import find_definition_doubt
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.operation import Operation, Parameter
from cleared.records.row_changes import read_table
from cleared.records.table_names import FOLDER, row_id, schema_path, table_of
from cleared.records.table_rows import Table


def list_tables(host: Host) -> list[dict[str, Any]]:
    """Each table with its columns in words. Raises ``WorkspaceError`` for one that is damaged."""
    return [
        {
            "table": table.name,
            "rows": len(table.rows),
            "key": list(table.schema.key),
            "columns": [f"{column.name}: {column.describe()}" for column in table.schema.columns.values()],
            "counts": not doubt,
        }
        for table, doubt in _read_tables(host)
    ]


def list_rows(host: Host, name: str, *, limit: int | None = None) -> list[dict[str, Any]]:
    """The rows of a table in the order of their keys, the first so many. Raises ``UsageError`` where there is none of
    that name, ``WorkspaceError`` where it is damaged."""
    table = next((table for table, _ in _read_tables(host) if table.name == name), None)
    if table is None:
        raise UsageError(
            f"there is no table {name[:60]!r}", place=Place(field="table"), remedy="cleared definition list shows them."
        )
    columns = tuple(table.schema.columns)
    return [
        {"row_id": row_id(name, key), "values": dict(zip(columns, row, strict=True))}
        for key, row in list(table.rows.items())[:limit]
    ]


def count_rows(host: Host) -> int:
    """How many rows all tables have together. Raises ``WorkspaceError`` for one that is damaged."""
    return sum(len(table.rows) for table, _ in _read_tables(host))


def _read_tables(host: Host) -> list[tuple[Table, str]]:
    """The tables of the last commit, each with why its schema does not count; empty where it does."""
    with host.open_last_commit() as snapshot:
        source = CommittedSource(snapshot)
        names = [name for path in source.list_paths(FOLDER) if (name := table_of(path, "yaml")) is not None]
        tables = [table for name in names if (table := read_table(source, name)) is not None]
        return [(table, find_definition_doubt(host, source, schema_path(table.name))) for table in tables]


_TABLES: Final = list_of(object_of(table=TEXT, rows=INTEGER, key=TEXTS, columns=TEXTS, counts=FLAG))
_ROWS: Final = list_of(object_of(row_id=TEXT, values=OBJECT))

OPERATIONS: Final = (
    Operation(
        "table.list",
        "The tables: their columns, how many rows each has, and whether its schema counts here.",
        "read",
        list_tables,
        result=_TABLES,
    ),
    Operation(
        "table.rows",
        "The rows of a table in the order of their keys.",
        "read",
        list_rows,
        (
            Parameter("name", "string", doc="The table's name."),
            Parameter("limit", "integer", None, least=1, doc="At most so many."),
        ),
        _ROWS,
    ),
)
