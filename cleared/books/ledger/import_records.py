"""The bank files that were imported, and the imports that were taken back.

    <books>/bank/imports-YYYY-MM.csv   the files, by the month in which they were imported
    <books>/bank/imports.csv           the same, of all months: what earlier versions wrote; it is read, too
    <books>/bank/undone.csv            imports that were taken back: what they said may come again

All append-only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.base.csv_text import format_record
from cleared.base.file_source import FileSource
from cleared.base.newest_versions import keep_newest
from cleared.books.ledger.bank_lines import damage_error, read_rows
from cleared.books.ledger.book_paths import BookPaths, require_day, require_month

IMPORT_COLUMNS: Final = (
    "file_sha256",
    "name",
    "account",
    "first_date",
    "last_date",
    "rows",
    "new",
    "sum",
    "opening_balance",
    "closing_balance",
    "imported_at",
    "run",
)
IMPORT_OPTIONAL: Final = ("format",)
"""Not in files of earlier versions."""
UNDONE_COLUMNS: Final = ("file_sha256", "account", "run", "at", "by", "reason")


class ImportRecord(Struct, frozen=True, array_like=True):
    """One file that was marked processed."""

    file_sha256: str
    name: str
    account: str
    first_date: str
    last_date: str
    rows: int
    new: int
    sum: str
    opening_balance: str
    closing_balance: str
    imported_at: str
    run: str
    format: str = ""
    """Empty in records of earlier versions."""

    def to_csv(self) -> str:
        fields = (
            self.file_sha256,
            self.name,
            self.account,
            self.first_date,
            self.last_date,
            str(self.rows),
            str(self.new),
            self.sum,
            self.opening_balance,
            self.closing_balance,
            self.imported_at,
            self.run,
            self.format,
        )
        return format_record(fields)

    def read_closing(self) -> tuple[date, Decimal] | None:
        """The day and the amount of the balance with which it ends; None where it says none, or it is damaged."""
        with suppress(ValueError, InvalidOperation):
            if self.closing_balance:  # of many files none says one, and to raise takes longer
                day, amount = date.fromisoformat(self.last_date), Decimal(self.closing_balance)
                return (day, amount) if amount.is_finite() else None
        return None


class UndoneImport(Struct, frozen=True):
    """An import that a person has taken back. ``run``: the run that had imported the file."""

    file_sha256: str
    account: str
    run: str
    at: str
    by: str
    reason: str

    def to_csv(self) -> str:
        return format_record((self.file_sha256, self.account, self.run, self.at, self.by, self.reason))


ImportReader = Callable[[FileSource, BookPaths], list[ImportRecord]]


def read_imports(source: FileSource, paths: BookPaths) -> list[ImportRecord]:
    """The files that were imported, oldest first, those of undone imports too. Raises ``WorkspaceError`` with a
    damaged line."""
    records: list[ImportRecord] = []
    for _, path in paths.list_month_files(source, paths.imports):
        records += parse_imports(source.read(path), path)
    return records


@keep_newest(files=128, versions=2)
def parse_imports(
    data: bytes | None, before: tuple[bytes | None, Sequence[ImportRecord]] | None, file: str
) -> Sequence[ImportRecord]:
    """The files of one month, oldest first; the same text is read once in a process. Raises ``WorkspaceError`` with the
    damaged line."""
    records = []
    months, days = set[str](), {""}
    for line, r in read_rows(data, file, IMPORT_COLUMNS, IMPORT_OPTIONAL):
        try:
            for text in r[7:10]:
                if text:
                    money.read_amount(text)
            for day in r[3:5]:
                if day not in days:
                    days.add(require_day(day))
            if (month := r[10][:7]) not in months:
                months.add(require_month(month))
            counts = int(r[5]), int(r[6])
            records.append(ImportRecord(r[0], r[1], r[2], r[3], r[4], *counts, r[7], r[8], r[9], r[10], r[11], r[12]))
        except (ValueError, ArithmeticError):
            raise damage_error(file, line, "an import record is not readable") from None
    return records


def parse_undone(data: bytes | None, file: str) -> list[UndoneImport]:
    """The imports that were taken back, oldest first."""
    return [UndoneImport(*r) for _, r in read_rows(data, file, UNDONE_COLUMNS)]


def describe_imports(records: Sequence[ImportRecord]) -> list[dict[str, str]]:
    """Imported files, as an event describes them."""
    return [{"name": r.name, "account": r.account, "sha256": r.file_sha256} for r in records]
