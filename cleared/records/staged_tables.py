"""The tables as of one commit, and what a run or decision stages on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cleared.base.effects import Effect
from cleared.base.errors import Place, PolicyError, PrimitiveError, WorkspaceError
from cleared.domains.domain import DraftDescription, Opening, Staged
from cleared.domains.record_audit import Violation
from cleared.records.row_changes import RowChange, change_effect, describe_change
from cleared.records.table_names import Key, is_table_name, schema_path, table_path
from cleared.records.table_rows import Row, Table, load_table, read_rows, render_table


class StagedTables(Staged):
    """Nothing is read of a table before a script names it."""

    def __init__(self, opening: Opening) -> None:
        self.opening, self.source = opening, opening.source
        self.tables: dict[str, Table] = {}
        self.changed: dict[str, dict[Key, Row | None]] = {}
        """Table → key → the row that it gets; None: it goes."""
        self.growth: dict[str, int] = {}
        """Table → how many rows more it has with the draft."""
        self.spent = 0
        """Rows that the run has put or removed."""

    def get_table(self, name: str) -> Table:
        """A table that counts here. Raises ``PrimitiveError`` where there is none, ``PolicyError`` where nobody has
        approved its schema."""
        if name in self.tables:
            return self.tables[name]
        path = schema_path(name)
        data = self.source.read(path) if is_table_name(name) else None
        if data is None:
            raise PrimitiveError(
                f"there is no table {name[:60]!r}",
                place=Place(field="table"),
                remedy=f"Its schema would be {path[:80]}.",
            )
        if doubt := self.opening.find_doubt(path):
            raise PolicyError(
                doubt, place=Place(path), remedy=f"Look at it, and say yes: cleared definition approve {path}."
            )
        try:
            table = load_table(self.source, name)
        except (ValueError, WorkspaceError) as error:
            raise PrimitiveError(
                f"the table {name} is damaged: {error}", place=Place(path), remedy="See cleared check."
            ) from None
        assert table is not None
        self.tables[name] = table
        return table

    def find_row(self, table: Table, key: Key) -> Row | None:
        """A row, with the draft."""
        staged = self.changed.get(table.name, {})
        return staged[key] if key in staged else table.rows.get(key)

    def current_rows(self, table: Table) -> dict[Key, Row]:
        """All rows of a table, with the draft, in the order of their keys."""
        staged = self.changed.get(table.name)
        if not staged:
            return table.rows
        rows = {key: row for key, row in (table.rows | staged).items() if row is not None}
        return {key: rows[key] for key in sorted(rows)}

    def set_row(self, table: Table, key: Key, row: Row | None) -> bool:
        """Stage what a key's row becomes; whether that changes anything."""
        before = self.find_row(table, key)
        if before == row:
            return False
        more = (row is not None) - (before is not None)
        self.growth[table.name] = self.growth.get(table.name, 0) + more
        staged = self.changed.setdefault(table.name, {})
        if table.rows.get(key) == row:
            del staged[key]
        else:
            staged[key] = row
        if not staged:
            del self.changed[table.name]
        return True

    def list_changes(self) -> Iterator[RowChange]:
        """What the draft changes, table by table, in the order of the keys."""
        for name in sorted(self.changed):
            table = self.tables[name]
            for key in sorted(self.changed[name]):
                yield RowChange(table.schema, name, key, table.rows.get(key), self.changed[name][key])

    # -- what the runtime asks ------------------------------------------------------------------------------------

    @property
    def has_changes(self) -> bool:
        return bool(self.changed)

    def draft_key(self) -> object:
        return tuple((name, tuple(rows.items())) for name, rows in self.changed.items())

    def describe_draft(self) -> DraftDescription:
        return DraftDescription({change.id: describe_change(change) for change in self.list_changes()})

    def list_effects(self) -> list[Effect]:
        return [change_effect(change) for change in self.list_changes()]

    def find_violations(self) -> list[Violation]:
        found: list[Violation] = []
        for path, data in self.render_files("").items():
            name = path.removeprefix("records/").removesuffix(".csv")
            found += read_rows(Table(name, self.tables[name].schema), data)
        return found

    def render_files(self, run_id: str) -> Mapping[str, bytes | None]:
        return {
            table_path(name): render_table(self.tables[name], self.current_rows(self.tables[name]))
            for name in sorted(self.changed)
        }
