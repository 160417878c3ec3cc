"""A report as CSV, JSON, an HTML page or a workbook, written row by row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, BinaryIO, Final

from cleared.base import money
from cleared.base.csv_text import format_record
from cleared.base.date_spans import DateSpan
from cleared.books.reports.cell_texts import protect_text
from cleared.books.reports.html_page import write_page
from cleared.books.reports.report import Report, Row
from cleared.books.reports.workbook import Workbook

FORMATS: Final = ("table", "csv", "json", "html", "xlsx")
_AT_ONCE: Final = 500


def write_csv(report: Report) -> Iterator[str]:
    """One line for each row: account, label, kind, depth, then the columns. Figures are plain digits."""
    yield format_record(["account", "label", "kind", "depth", *(c.key for c in report.columns)])
    for row in report.rows:
        cells = [
            protect_text(cell)
            if isinstance(cell, str)
            else ""
            if cell is None
            else money.format_amount(cell)
            if isinstance(cell, Decimal)
            else str(cell)
            for cell in row.cells or (None,) * len(report.columns)
        ]
        number = "" if row.account_id is None else str(row.account_id)
        yield format_record([number, protect_text(row.label), row.kind, str(row.depth), *cells])


def write_json(report: Report) -> Iterator[str]:
    """One JSON object; ASCII only. Amounts and days are texts."""
    head = {
        "report": report.name,
        "title": report.title,
        "business": report.business,
        "currency": report.currency,
        "basis": report.basis,
        "period": _span_data(report.period),
        "compared": _span_data(report.compared),
        "as_of": report.as_of,
        "commit": report.commit,
        "pending": {"count": report.pending.count, "amount": report.pending.amount},
        "notes": list(report.notes),
        "columns": [{"key": c.key, "title": c.title, "kind": c.kind} for c in report.columns],
    }
    yield _dump(head)[:-1] + ', "rows": ['
    between = "\n"
    for row in report.rows:
        yield between + _dump(_row_data(row, report))
        between = ",\n"
    yield "\n]}\n"


def _row_data(row: Row, report: Report) -> dict[str, Any]:
    data: dict[str, Any] = {"label": row.label, "kind": row.kind, "depth": row.depth, "account_id": row.account_id}
    data |= {c.key: cell for c, cell in zip(report.columns, row.cells, strict=False)}
    return data | ({"entries": list(row.entries)} if row.entries else {})


def _span_data(span: DateSpan | None) -> dict[str, Any] | None:
    return {"label": span.label, "start": span.start, "end": span.end} if span else None


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, default=lambda v: f"{v:f}" if isinstance(v, Decimal) else str(v))


def write_text(report: Report, format: str) -> Iterator[str]:
    """The report in a format of text: csv, json or html."""
    if format == "html":
        return write_page(report)
    return write_csv(report) if format == "csv" else write_json(report)


def write_file(report: Report, format: str, file: BinaryIO, places: int) -> None:
    """Write it to a file. Raises ``UsageError`` where a library is missing."""
    if format == "xlsx":
        with Workbook(file, title=f"{report.business} {report.title} {report.period.label}", places=places) as book:
            book.add_report(report)
        return
    for text in join_texts(write_text(report, format)):
        file.write(text.encode("utf-8", "backslashreplace"))


def join_texts(texts: Iterable[str]) -> Iterator[str]:
    """The same, some hundred at a time."""
    waiting: list[str] = []
    for text in texts:
        waiting.append(text)
        if len(waiting) >= _AT_ONCE:
            yield "".join(waiting)
            waiting.clear()
    yield "".join(waiting)
