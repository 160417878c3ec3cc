"""B18: trial balance, P&L and balance sheet."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from report_samples import entry, make_books, sample_entries

from cleared.base.date_spans import parse_span
from cleared.books.reports.report import Report
from cleared.books.reports.statements import make_balance_sheet, make_income_statement, make_trial_balance


def shown(report: Report) -> list[str]:
    """The rows as lines: label and cells."""
    return [
        " ".join(
            [
                *["-"] * row.depth,
                *([str(row.account_id)] if row.account_id else []),
                row.label,
                *(f"{cell:f}" for cell in row.cells if isinstance(cell, Decimal)),
            ]
        )
        for row in report.rows
    ]


def test_a_trial_balance_has_both_sides() -> None:
    report = make_trial_balance(make_books(sample_entries()), parse_span("2025-01"), None)
    assert report.span == "as of 2025-01-31"
    assert shown(report) == [
        "1010 Business checking 2900.00 0.00",
        "3900 Opening balances 0.00 1000.00",
        "4010 Service revenue 0.00 2000.00",
        "5110 Contract labour 650.00 0.00",
        "Retained earnings of earlier years (computed) 0.00 550.00",
        "Total 3550.00 3550.00",
    ]


def test_a_trial_balance_after_closing_entries_retains_nothing_twice() -> None:
    closing = entry("2024-12-31", "Close", {4010: "700.00", 5010: "-150.00", 3010: "-550.00"}, tags="@kind=closing")
    books = make_books([*sample_entries(), closing])
    rows = shown(make_trial_balance(books, parse_span("2025-01"), parse_span("2024")))
    assert rows == [
        "1010 Business checking 2900.00 0.00 1550.00 0.00",
        "3010 Member's equity 0.00 550.00 0.00 550.00",
        "3900 Opening balances 0.00 1000.00 0.00 1000.00",
        "4010 Service revenue 0.00 2000.00 0.00 0.00",
        "5010 Advertising and marketing 0.00 0.00 0.00 0.00",
        "5110 Contract labour 650.00 0.00 0.00 0.00",
        "Total 3550.00 3550.00 1550.00 1550.00",
    ]


def test_profit_and_loss_compared_with_the_quarter_before() -> None:
    period = parse_span("2025-Q1")
    report = make_income_statement(make_books(sample_entries()), period, period.previous())
    assert [c.title for c in report.columns] == ["2025-Q1", "2024-Q4", "change"]
    assert shown(report) == [
        "Revenue",
        "- 4010 Service revenue 2000.00 700.00 1300.00",
        "Total revenue 2000.00 700.00 1300.00",
        "Expenses",
        "- 5010 Advertising and marketing 0.00 150.00 -150.00",
        "- 5020 Software and subscriptions 30.00 0.00 30.00",
        "- 5030 Uncategorised expense 19.99 0.00 19.99",
        "- 5070 Meals 92.51 0.00 92.51",
        "- 5110 Contract labour 1550.00 0.00 1550.00",
        "Total expenses 1692.50 150.00 1542.50",
        "Net income 307.50 550.00 -242.50",
    ]
    assert report.list_warnings() == ["Not final: 1 entry of 19.99 USD waits for review."]


def test_a_balance_sheet_computes_what_was_earned() -> None:
    report = make_balance_sheet(make_books(sample_entries()), parse_span("2025-Q1"), None)
    assert shown(report) == [
        "Assets",
        "- 1010 Business checking 1957.50",
        "- 1020 Business savings 500.00",
        "Total assets 2457.50",
        "Liabilities",
        "- 2010 Credit card 900.00",
        "Total liabilities 900.00",
        "Equity",
        "- 3200 Member draws -300.00",
        "- 3900 Opening balances 1000.00",
        "- Retained earnings of earlier years (computed) 550.00",
        "- Net income of the fiscal year (computed) 307.50",
        "Total equity 1557.50",
        "Total liabilities and equity 2457.50",
    ]


def test_closing_entries_change_no_income_and_the_sheet_balances() -> None:
    closing = entry("2024-12-31", "Close", {4010: "700.00", 5010: "-150.00", 3010: "-550.00"}, tags="x;@kind=closing")
    books = make_books([*sample_entries(), closing])
    income = make_income_statement(books, parse_span("2024"), None)
    assert shown(income)[-1] == "Net income 550.00"
    sheet = shown(make_balance_sheet(books, parse_span("2024"), None))
    assert sheet[-4:] == [
        "- Net income of the fiscal year (computed) 550.00",
        "- Net income closed into equity accounts -550.00",
        "Total equity 1550.00",
        "Total liabilities and equity 1550.00",
    ]
    assert "- Retained earnings of earlier years (computed) 0.00" not in shown(
        make_balance_sheet(books, parse_span("2025"), None)
    )


def test_a_fiscal_year_is_called_by_the_year_in_which_it_ends() -> None:
    books = make_books(sample_entries(), start_month=4)
    year = books.parse_period(None)
    assert (year.label, year.start, year.end) == ("FY2025", date(2024, 4, 1), date(2025, 3, 31))
    assert shown(make_balance_sheet(books, year, None))[-3] == "- Net income of the fiscal year (computed) 857.50"


@pytest.mark.parametrize(
    ("text", "start", "end", "previous", "year_before"),
    [
        ("2025", "2025-01-01", "2025-12-31", "2024", "2024"),
        ("2025-Q1", "2025-01-01", "2025-03-31", "2024-Q4", "2024-Q1"),
        ("2024-02", "2024-02-01", "2024-02-29", "2024-01", "2023-02"),
        ("2025-01..2025-03", "2025-01-01", "2025-03-31", "2024-Q4", "2024-Q1"),
        ("2025-11..2026-02", "2025-11-01", "2026-02-28", "2025-07..2025-10", "2024-11..2025-02"),
        ("2024-02-29", "2024-02-29", "2024-02-29", "2024-02-28", "2023-02-28"),
        ("2025-03-02..2025-03-05", "2025-03-02", "2025-03-05", "2025-02-26..2025-03-01", "2024-03-02..2024-03-05"),
        ("FY2025", "2024-07-01", "2025-06-30", "2023-07..2024-06", "2023-07..2024-06"),
        ("fy2025-q2", "2024-10-01", "2024-12-31", "2024-Q3", "2023-Q4"),
    ],
)
def test_periods_as_people_write_them(text: str, start: str, end: str, previous: str, year_before: str) -> None:
    span = parse_span(text, 7)
    assert (str(span.start), str(span.end)) == (start, end)
    assert (span.previous().label, span.year_before().label) == (previous, year_before)
