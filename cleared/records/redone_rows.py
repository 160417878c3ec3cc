"""What a run or a decision did to rows of tables, done again on tables in which others have changed rows, too."""

from __future__ import annotations

from collections.abc import Collection

from cleared.base.file_source import FileSource
from cleared.domains.renamed_records import RenamedRecords, WorkConflict
from cleared.primitives.context import Context
from cleared.records.records_domain import tables_of
from cleared.records.row_changes import read_table
from cleared.records.table_names import FOLDER, row_id, schema_path, table_of


def redo_rows(context: Context, before: FileSource, after: FileSource, renamed: RenamedRecords) -> Collection[str]:
    """See ``Domain.redo``. A table whose columns it changed is a file like any other."""
    done = []
    for path in sorted({*before.list_paths(FOLDER), *after.list_paths(FOLDER)}):
        name = table_of(path, "csv")
        if name is None or before.read(path) == after.read(path):
            continue
        schema = schema_path(name)
        if before.read(schema) != after.read(schema):
            continue
        old, new = read_table(before, name), read_table(after, name)
        if old is None or new is None:
            continue
        tables = tables_of(context)
        if tables.source.read(schema) != after.read(schema):
            raise WorkConflict(f"{schema} is another one there")
        table = tables.get_table(name)
        for key in sorted({*old.rows, *new.rows}):
            was, wanted, there = old.rows.get(key), new.rows.get(key), tables.find_row(table, key)
            if was == wanted or there == wanted:
                continue
            if there != was:
                raise WorkConflict(f"the row {row_id(name, key)} was changed there, too, in another way")
            tables.set_row(table, key, wanted)
        done.append(path)
    return done
