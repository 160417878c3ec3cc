"""The books as a workbook (xlsx): statements with formulas that sum, and the tables they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, Final

from cleared.base.date_spans import DateSpan
from cleared.books.exports.book_tables import list_tables
from cleared.books.exports.export_target import open_target, refuse_target
from cleared.books.exports.exported_journal import ExportedBooks
from cleared.books.exports.journal_export import open_exported_books
from cleared.books.queries import make_report_books
from cleared.books.reports.catalogue import REPORTS, ReportRequest, make_report
from cleared.books.reports.report import Report
from cleared.books.reports.report_books import ReportBooks
from cleared.books.reports.workbook import Workbook
from cleared.changes.host import Host

FILE_NAME: Final = "books.xlsx"


def export_workbook(host: Host, directory: Path, period: str | None = None, *, force: bool = False) -> dict[str, Any]:
    """Write the books of a period (default: the fiscal year of the newest entries) into a workbook in ``directory``:
    ``{file, period, pending, warnings}``.

    Raises ``PolicyError`` where there is such a file already (unless ``force``), ``UsageError`` for what is no period,
    for more rows than a sheet can have, and where XlsxWriter is not installed.
    """
    path = directory / FILE_NAME
    refuse_target(host.root, path, force=force)
    with open_exported_books(host) as exported:
        books = make_report_books(host, exported.index, exported.books)
        span = books.parse_period(period)
        reports = [report for report in list_reports(books, span.label) if report.name != "ledger"]
        with open_target(host.root, path, force=force) as file:
            write_workbook(file, exported, reports, span)
        waiting = books.pending(span.start, span.end)
        warnings = list(dict.fromkeys(line for report in reports for line in report.list_warnings()))
    return {"file": str(path), "period": span.label, "pending": waiting.count, "warnings": warnings}


def list_reports(books: ReportBooks, period: str) -> list[Report]:
    """All reports of a period; those of taxes say where they are not final."""
    return [make_report(books, ReportRequest(name, period, draft=name == "tax")) for name in REPORTS]


def write_workbook(file: BinaryIO, exported: ExportedBooks, reports: Iterable[Report], span: DateSpan) -> None:
    """Statements first, then the tables."""
    with Workbook(file, title=f"{exported.title} {span.label}", places=exported.index.places) as workbook:
        for report in reports:
            workbook.add_report(report)
        for table in list_tables(exported, span):
            workbook.add_table(table.name, table.titles, table.list_rows(), table.kinds)
