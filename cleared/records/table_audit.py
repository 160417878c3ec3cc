"""How tables are judged: in any commit, and in the working tree."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cleared.base.effects import Effect
from cleared.base.errors import Place, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.domains.record_audit import DefinitionChange, RecordAudit, Violation, describe_error
from cleared.git import Snapshot
from cleared.records.table_names import FOLDER, schema_path, table_of, table_path


def list_checks() -> Mapping[str, str]:
    """What holds of tables, by the names of the checks."""
    return {
        "schema": "Every row of a table is as its schema says, and the rows stand in the order of their keys.",
        "key": "No two rows of a table have the same key.",
    }


class TableAudit(RecordAudit):
    """Judges the tables. Their rows come and go; who may change them is what stays.

    What it takes is imported when it is used: every command asks which files are tables, and most workspaces have none.
    """

    def check_records(self, source: FileSource, commit: Snapshot | None = None) -> list[Violation]:
        from cleared.records.table_rows import Table, read_rows
        from cleared.records.table_schema import parse_schema

        found: list[Violation] = []
        for path in source.list_paths(FOLDER):
            name = table_of(path, "csv")
            if name is None and path.endswith(".csv"):
                found.append(_describe_stray(path, f"no table is called so: {path[:200]!r}"))
            elif name is not None and source.read(schema_path(name)) is None:
                found.append(_describe_stray(path, f"the table {name} has no schema, {schema_path(name)}"))
            if (name := table_of(path, "yaml")) is not None:
                try:
                    table = Table(name, parse_schema(source.read(path) or b"", path))
                except WorkspaceError as error:
                    found.append(describe_error(error, "schema"))
                else:
                    found += read_rows(table, source.read(table_path(name)))
        return found

    def list_effects(self, before: FileSource, after: FileSource, files: Collection[str]) -> list[Effect]:
        from cleared.records.row_changes import change_effect, list_changes_between

        return [change_effect(change) for change in list_changes_between(before, after, files)]

    @property
    def folders(self) -> Sequence[str]:
        return (FOLDER,)

    def is_record_file(self, path: str) -> bool:
        return path.startswith(f"{FOLDER}/") and not self.is_definition(path)

    def is_definition(self, path: str) -> bool:
        return table_of(path, "yaml") is not None

    def describe_definition(
        self, path: str, before: bytes | None, after: bytes | None, source: FileSource
    ) -> DefinitionChange:
        from cleared.records.schema_changes import describe_schema_change

        return describe_schema_change(path, before, after, source)

    def list_fixed_rows(self, path: str, data: bytes) -> list[bytes]:
        return []


def _describe_stray(path: str, message: str) -> Violation:
    return Violation("schema", message, f"Take it away, or bring back what is missing: git log -- {path}.", Place(path))
