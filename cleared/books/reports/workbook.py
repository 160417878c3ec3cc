"""Workbooks for spreadsheet programs (xlsx), by XlsxWriter: the same content gives the same bytes.

    with Workbook(file, title="Acme 2025", places=2) as workbook:
        workbook.add_report(report)
        workbook.add_table("Journal", ["entry", "date", "amount"], rows)

Texts stay texts, whatever they begin with. Sums are formulas, with their value beside them for programs that do not
calculate. Rows are written as they come, so that a long table takes no memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from cleared.base.errors import UsageError
from cleared.base.short_text import shorten_text
from cleared.base.terminal import escape_text
from cleared.books.reports.cell_texts import format_label
from cleared.books.reports.report import Cell, Column, Report, Row

MAX_ROWS: Final = 1_048_576
"""That a sheet can have."""
MAX_TEXT: Final = 32_767
"""Characters that a cell can have."""
MAX_NAME: Final = 31
_FORBIDDEN: Final = re.compile(r"[\[\]:*?/\\']")
_MAX_FORMULA: Final = 8_000
_EXACT_BELOW: Final = Decimal(10**15)
"""A spreadsheet counts with 15 digits; amounts with more are written as text."""
_CREATED: Final = datetime(2000, 1, 1)  # noqa: DTZ001  (the file shall not tell when it was made)
_WIDTHS: Final = {"amount": 14, "count": 9, "text": 32, "date": 11}


class Workbook:
    """A workbook that is being written to ``file``. ``places``: decimals of the currency.

    Raises ``UsageError`` where XlsxWriter is not installed, and for what does not fit on a sheet.
    """

    def __init__(self, file: BinaryIO, *, title: str, places: int = 2) -> None:
        try:
            import xlsxwriter
        except ImportError:
            raise UsageError(
                "workbooks (xlsx) need one more package, XlsxWriter",
                remedy="In the checkout: pip install '.[xlsx]'",
            ) from None
        options = {
            "constant_memory": True,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
        }
        self._book = xlsxwriter.Workbook(file, options)
        self._book.set_properties({"title": _clip(title), "created": _CREATED})
        amount = "#,##0" + ("." + "0" * places if places else "")
        self._formats = {
            (kind, bold): self._book.add_format({"bold": bold, **shape})
            for bold in (False, True)
            for kind, shape in (
                ("text", {}),
                ("count", {"num_format": "0"}),
                ("date", {"num_format": "yyyy-mm-dd"}),
                ("amount", {"num_format": amount}),
            )
        }
        self._indents: dict[tuple[int, bool], Any] = {}
        self._names: set[str] = set()
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()

    def close(self) -> None:
        """Finish the file; nothing can be added then."""
        if not self._is_closed:
            self._is_closed = True
            if not self._names:
                self.add_table("Empty", [], [])
            self._book.close()

    def add_report(self, report: Report) -> None:
        """A sheet with a report; totals are formulas over the rows that they sum."""
        sheet = self._add_sheet(report.title, [Column("label", "", "text"), *report.columns])
        heads = report.list_heads()
        for n, line in enumerate(heads):
            self._write(sheet, n, 0, line, bold=n == 0)
        top = len(heads) + 1
        for n, title in enumerate([report.label_title, *(c.title for c in report.columns)]):
            self._write(sheet, top, n, title, bold=True)
        places: dict[str, int] = {}
        for at, row in enumerate(report.rows, top + 1):
            self._add_row(sheet, at, row, report.columns, places)
            if row.key:
                places[row.key] = at

    def add_table(
        self, name: str, titles: Sequence[str], rows: Iterable[Sequence[Cell]], kinds: Sequence[str] = ()
    ) -> None:
        """A sheet with a plain table. ``kinds``: of each column ``amount``, ``count``, ``text`` or ``date``."""
        kinds = [*kinds, *["text"] * (len(titles) - len(kinds))]
        sheet = self._add_sheet(name, [Column("", title, kind) for title, kind in zip(titles, kinds, strict=True)])  # type: ignore[arg-type]
        for n, title in enumerate(titles):
            self._write(sheet, 0, n, title, bold=True)
        sheet.freeze_panes(1, 0)
        for at, cells in enumerate(rows, 1):
            for n, cell in enumerate(cells):
                self._write(sheet, at, n, cell)

    def _add_sheet(self, name: str, columns: Sequence[Column]) -> Any:
        sheet = self._book.add_worksheet(self._choose_name(name))
        for n, column in enumerate(columns):
            sheet.set_column(n, n, 44 if column.key == "label" else _WIDTHS[column.kind])
        return sheet

    def _add_row(self, sheet: Any, at: int, row: Row, columns: Sequence[Column], places: dict[str, int]) -> None:
        bold = row.is_bold
        self._write(sheet, at, 0, format_label(row), bold=bold, indent=row.depth)
        for n, cell in enumerate(row.cells, 1):
            formula = _make_formula(row, at, n, places) if isinstance(cell, Decimal | int) else None
            if formula is None or not columns[n - 1].is_summed:
                self._write(sheet, at, n, cell, bold=bold)
            else:
                sheet.write_formula(at, n, formula, self._formats[columns[n - 1].kind, bold], cell)

    def _write(self, sheet: Any, at: int, column: int, cell: Cell, *, bold: bool = False, indent: int = 0) -> None:
        if at >= MAX_ROWS:
            raise UsageError(
                f"a sheet cannot have more than {MAX_ROWS:,} rows", remedy="Take a shorter period, or --format csv."
            )
        match cell:
            case None:
                return
            case Decimal() if abs(cell) < _EXACT_BELOW:
                sheet.write_number(at, column, cell, self._formats["amount", bold])
            case Decimal():
                sheet.write_string(at, column, f"{cell:f}", self._formats["text", bold])
            case int():
                sheet.write_number(at, column, cell, self._formats["count", bold])
            case date():
                sheet.write_datetime(at, column, cell, self._formats["date", bold]) if cell.year >= 1900 else (
                    sheet.write_string(at, column, str(cell), self._formats["text", bold])
                )
            case str():
                style = self._indent_format(indent, bold) if indent else self._formats["text", bold]
                sheet.write_string(at, column, _clip(cell), style)

    def _indent_format(self, indent: int, bold: bool) -> Any:
        key = (min(indent, 15), bold)
        if key not in self._indents:
            self._indents[key] = self._book.add_format({"bold": bold, "indent": key[0]})
        return self._indents[key]

    def _choose_name(self, name: str) -> str:
        """A name that a sheet can have, and no other sheet has."""
        stem = _FORBIDDEN.sub(" ", escape_text(name)).strip()[:MAX_NAME] or "Sheet"
        if stem.casefold() == "history":  # a name that spreadsheet programs keep for themselves
            stem = "History of books"
        chosen, n = stem, 2
        while chosen.casefold() in self._names:
            chosen = f"{stem[: MAX_NAME - len(str(n)) - 1]} {n}"
            n += 1
        self._names.add(chosen.casefold())
        return chosen


def _make_formula(row: Row, at: int, column: int, places: dict[str, int]) -> str | None:
    letter = _name_column(column)
    if row.parts:
        if not all(key in places for key, _ in row.parts):
            return None
        rows = [places[key] + 1 for key, _ in row.parts]
        if all(sign == 1 for _, sign in row.parts) and rows == list(range(rows[0], rows[0] + len(rows))):
            return f"=SUM({letter}{rows[0]}:{letter}{rows[-1]})"
        terms = [f"{'+' if sign > 0 else '-'}{letter}{places[key] + 1}" for key, sign in row.parts]
        formula = "=" + "".join(terms).removeprefix("+")
        return formula if len(formula) <= _MAX_FORMULA else None
    if row.above:
        return f"=SUM({letter}{at - row.above + 1}:{letter}{at})"
    return None


def _name_column(number: int) -> str:
    """0 → A, 26 → AA."""
    name = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        name = chr(65 + letter) + name
    return name


def _clip(text: str) -> str:
    return shorten_text(escape_text(text), MAX_TEXT)
