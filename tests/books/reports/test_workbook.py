"""B20: workbooks open elsewhere with the same texts and sums."""

from __future__ import annotations

import io
from datetime import date
from decimal import Decimal
from typing import Any

import openpyxl
import pytest
from report_samples import make_books, sample_entries

from cleared.base.date_spans import parse_span
from cleared.base.errors import UsageError
from cleared.books.reports.report import Report
from cleared.books.reports.statements import make_balance_sheet, make_trial_balance
from cleared.books.reports.workbook import Workbook


def write(*reports: Report, **options: Any) -> bytes:
    file = io.BytesIO()
    with Workbook(file, title="Acme", **options) as book:
        for report in reports:
            book.add_report(report)
    return file.getvalue()


def test_totals_are_formulas_beside_their_values() -> None:
    books, period = make_books(sample_entries()), parse_span("2025")
    data = write(make_trial_balance(books, period, None), make_balance_sheet(books, period, None))
    assert data == write(make_trial_balance(books, period, None), make_balance_sheet(books, period, None))
    formulas, values = (
        openpyxl.load_workbook(io.BytesIO(data)),
        openpyxl.load_workbook(io.BytesIO(data), data_only=True),
    )
    assert formulas.sheetnames == ["Trial balance", "Balance sheet"]
    rows = list(formulas["Trial balance"].values)
    total = next(n for n, row in enumerate(rows, 1) if row[0] == "Total")
    first = next(n for n, row in enumerate(rows, 1) if row[0] == "account") + 1
    assert rows[total - 1][1:3] == (f"=SUM(B{first}:B{total - 1})", f"=SUM(C{first}:C{total - 1})")
    sums = list(values["Trial balance"].values)[total - 1]
    assert sums[1] == sums[2] == sum(row[1] for row in rows[first - 1 : total - 1])
    sheet = {row[0]: row[1] for row in values["Balance sheet"].values}
    assert sheet["Total assets"] == sheet["Total liabilities and equity"] == 2457.5
    assert all(
        str(row[1]).startswith("=") for row in formulas["Balance sheet"].values if str(row[0]).startswith("Total")
    )


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@x",
        '=HYPERLINK("http://x")',
        "http://example.com",
        "\x00\x1b[31m",
        "\u202ex",
        "x" * 40_000,
        "mailto:a@b",
        "{=1}",
        "_x0041_",
        "<b>&",
    ],
)
def test_hostile_texts_stay_texts(text: str) -> None:
    file = io.BytesIO()
    with Workbook(file, title=text) as book:
        book.add_table(text, ["a", "b", "c"], [[text, Decimal("-1.50"), date(2025, 1, 2)]], ["text", "amount", "date"])
        book.add_table(text, ["a"], [[Decimal("1234567890123456.78")]], ["amount"])
    book = openpyxl.load_workbook(io.BytesIO(file.getvalue()))
    cell = book.worksheets[0]["A2"]
    assert cell.data_type == "s" and cell.hyperlink is None and len(cell.value) <= 32_767
    assert book.worksheets[0]["B2"].value == -1.5
    assert book.worksheets[1]["A2"].value == "1234567890123456.78"


def test_a_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "xlsxwriter", None)
    with pytest.raises(UsageError, match="XlsxWriter") as refused:
        Workbook(io.BytesIO(), title="")
    assert str(refused.value.remedy) == "In the checkout: pip install '.[xlsx]'"
