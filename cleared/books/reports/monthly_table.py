"""Months beside each other: revenue, expenses and what is left, account by account."""

from __future__ import annotations

from typing import Final

from cleared.base import money
from cleared.base.date_spans import DateSpan
from cleared.base.errors import UsageError
from cleared.books.reports.account_tree import AccountTree, add_amounts, turn_sign
from cleared.books.reports.report import BarChart, Column, Report, Row
from cleared.books.reports.report_books import ReportBooks

MAX_MONTHS: Final = 36


def make_monthly_table(books: ReportBooks, period: DateSpan) -> Report:
    """Each month of the period, and their sum. Raises ``UsageError`` for more than three years."""
    months = period.months
    if len(months) > MAX_MONTHS:
        raise UsageError(
            f"a table of {len(months)} months is too wide", remedy=f"Take at most {MAX_MONTHS} months: --period 2025."
        )
    spans = list(period.split_months())
    sums = [books.balances(span.start, span.end, closings=False) for span in spans]
    rows: list[Row] = []
    totals = []
    for title, kind, sign in (("Revenue", "revenue", -1), ("Expenses", "expense", 1)):
        numbers = [n for n in books.accounts if any(part.get(n) for part in sums) and books.is_of(n, kind)]
        amounts = {n: tuple(turn_sign(part.get(n, books.zero), sign) for part in sums) for n in numbers}
        summed = {n: (*cells, money.total([books.zero, *cells])) for n, cells in amounts.items()}
        inner, parts, total = AccountTree(books.accounts, summed, len(spans) + 1, books.zero).list_rows(1, kind)
        rows += [Row(title, kind="heading"), *inner]
        rows.append(Row(f"Total {title.lower()}", total, "total", key=kind, parts=parts))
        totals.append(total)
    net = add_amounts([totals[0], tuple(-a for a in totals[1])], len(spans) + 1, books.zero)
    rows.append(Row("Net income", net, "total", key="net-income", parts=(("revenue", 1), ("expense", -1))))
    for number in {n for part in sums for n in part}:
        books.find_account(number)
    groups = tuple((span.label, (totals[0][n], totals[1][n])) for n, span in enumerate(spans))
    return books.make_report(
        "monthly",
        "Revenue and expenses by month",
        period,
        [*(Column(span.label, span.label, hides_zero=True) for span in spans), Column("total", "total")],
        rows,
        pending=books.pending(period.start, period.end),
        make_chart=lambda: (
            BarChart("Revenue and expenses by month", ("Revenue", "Expenses"), groups) if len(groups) > 1 else None
        ),
    )
