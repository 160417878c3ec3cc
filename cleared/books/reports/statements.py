"""Trial balance, income statement (P&L) and balance sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from cleared.base.date_spans import DateSpan, fiscal_year_of
from cleared.base.errors import WorkspaceError
from cleared.books.reports.account_tree import AccountTree, Amounts, add_amounts, turn_sign
from cleared.books.reports.report import BarChart, Column, Report, Row
from cleared.books.reports.report_books import ReportBooks

_MAX_BARS = 36
_RETAINED: Final = "Retained earnings of earlier years (computed)"


def make_trial_balance(books: ReportBooks, period: DateSpan, compared: DateSpan | None) -> Report:
    """Debits and credits of every account at the end of the period; both sides sum to the same. Revenue and expenses
    are those of the fiscal year; what was earned before is computed, as on the balance sheet."""
    days = [period.end, *([compared.end] if compared else [])]
    balances = [_list_year_balances(books, day) for day in days]
    columns = [Column(side, side, hides_zero=True) for side in ("debit", "credit")]
    columns += [
        Column(f"{side}_before", f"{side} {compared.end}", hides_zero=True) for side in ("debit", "credit") if compared
    ]
    zero = books.zero
    for number in {number for balance in balances for number in balance}:
        books.find_account(number)
    rows = [
        Row(
            account.account_name,
            tuple(side for b in balances for side in _split_sides(b.get(number, zero), zero)),
            account_id=number,
            key=str(number),
        )
        for number, account in books.accounts.items()
        if any(number in b for b in balances)
    ]
    retained = [-_sum_retained(books, day) for day in days]
    if any(retained):
        sides = tuple(side for amount in retained for side in _split_sides(amount, zero))
        rows.append(Row(_RETAINED, sides, key="retained"))
    total = add_amounts([row.amounts for row in rows], len(columns), zero)
    rows.append(Row("Total", total, "total", key="total", above=len(rows)))
    return books.make_report(
        "trial-balance",
        "Trial balance",
        period,
        columns,
        rows,
        compared,
        as_of=True,
        pending=books.pending(None, period.end),
    )


def make_income_statement(books: ReportBooks, period: DateSpan, compared: DateSpan | None) -> Report:
    """Revenue less expenses. Entries that close a year are no part of it."""
    spans = [period, *([compared] if compared else [])]
    sums = [books.balances(span.start, span.end, closings=False) for span in spans]
    rows: list[Row] = []
    revenue = add_section(books, rows, "Revenue", ("revenue",), sums, -1)
    expenses = add_section(books, rows, "Expenses", ("expense",), sums, 1)
    net = tuple(r - e for r, e in zip(revenue, expenses, strict=True))
    rows.append(
        Row("Net income", _with_change(net), "total", key="net-income", parts=(("revenue", 1), ("expense", -1)))
    )
    return books.make_report(
        "pnl",
        "Profit and loss",
        period,
        _amount_columns(period.label, compared),
        rows,
        compared,
        pending=books.pending(period.start, period.end),
        make_chart=lambda: _chart_months(books, period),
    )


def make_balance_sheet(books: ReportBooks, period: DateSpan, compared: DateSpan | None) -> Report:
    """What is owned, owed and left at the end of the period. Net income and retained earnings are computed, so that
    assets are liabilities plus equity, whether or not somebody has posted entries that close a year."""
    days = [period.end, *([compared.end] if compared else [])]
    sums = [books.balances(None, day) for day in days]
    rows: list[Row] = []
    assets = add_section(books, rows, "Assets", ("asset",), sums, 1)
    liabilities = add_section(books, rows, "Liabilities", ("liability",), sums, -1)
    equity = add_section(books, rows, "Equity", ("equity",), sums, -1, _list_computed(books, days))
    both = tuple(a + b for a, b in zip(liabilities, equity, strict=True))
    rows.append(
        Row(
            "Total liabilities and equity",
            _with_change(both),
            "total",
            key="both",
            parts=(("liability", 1), ("equity", 1)),
        )
    )
    if assets != both:
        raise WorkspaceError(
            "entries do not balance, so there is no balance sheet",
            remedy="Run cleared check: the books were damaged by hand.",
        )
    columns = _amount_columns(str(period.end), compared, _label_day(compared))
    return books.make_report(
        "balance-sheet",
        "Balance sheet",
        period,
        columns,
        rows,
        compared,
        as_of=True,
        pending=books.pending(None, period.end),
        notes=_note_openings(books),
        make_chart=lambda: BarChart(
            "Assets, liabilities and equity",
            ("",),
            tuple(
                (label, (amounts[0],))
                for label, amounts in (("Assets", assets), ("Liabilities", liabilities), ("Equity", equity))
            ),
        ),
    )


def _list_computed(books: ReportBooks, days: Sequence[date]) -> list[Row]:
    """Rows of equity that nobody posts: earnings of the years before, and of this year."""
    retained, net, closed = [], [], []
    for day in days:
        begins = fiscal_year_of(day, books.business.start_month).start
        retained.append(_sum_retained(books, day))
        net.append(_sum_result(books, books.balances(begins, day, closings=False)))
        closed.append(_sum_result(books, books.closings(begins, day)))
    rows = [
        Row(_RETAINED, _with_change(tuple(retained)), depth=1, key="retained"),
        Row("Net income of the fiscal year (computed)", _with_change(tuple(net)), depth=1, key="net-income"),
        Row("Net income closed into equity accounts", _with_change(tuple(closed)), depth=1, key="closed"),
    ]
    return [row for row, amounts in zip(rows, (retained, net, closed), strict=True) if any(amounts)]


def _list_year_balances(books: ReportBooks, day: date) -> dict[int, Decimal]:
    """The balance of each account on a day: of revenue and expenses since the fiscal year began."""
    begins = fiscal_year_of(day, books.business.start_month).start
    year = books.balances(begins, day)
    return {
        number: year.get(number, books.zero) if books.is_of(number, "revenue", "expense") else amount
        for number, amount in books.balances(None, day).items()
        if number in year or not books.is_of(number, "revenue", "expense")
    }


def _sum_retained(books: ReportBooks, day: date) -> Decimal:
    """What was earned before the fiscal year of this day, and not closed into equity by an entry."""
    begins = fiscal_year_of(day, books.business.start_month).start
    last = begins - timedelta(days=1) if begins > date.min else None
    return _sum_result(books, books.balances(None, last) if last else {})


def _sum_result(books: ReportBooks, balances: Mapping[int, Decimal]) -> Decimal:
    """Revenue less expenses."""
    amounts = [(-amount,) for number, amount in balances.items() if books.is_of(number, "revenue", "expense")]
    return add_amounts(amounts, 1, books.zero)[0]


def _note_openings(books: ReportBooks) -> list[str]:
    """Bank accounts that were not there before the first entry, as far as the books know."""
    opened = {number for number, account in books.accounts.items() if account.account_id == 3900}
    balances = books.index.used_accounts()
    missing = [f"{bank.name} ({number})" for number, bank in books.cash_accounts.items() if number in balances]
    if not missing or opened & balances:
        return []
    return [
        f"No opening balance is posted (of {', '.join(missing)}): balances are those since the first entry. "
        "cleared journal open posts them."
    ]


def add_section(
    books: ReportBooks,
    rows: list[Row],
    title: str,
    types: tuple[str, ...],
    sums: Sequence[Mapping[int, Decimal]],
    sign: int,
    more: Sequence[Row] = (),
) -> Amounts:
    """Add the accounts of these types as rows, and their sum; gives the sum, one for each of ``sums``."""
    numbers = sorted({n for part in sums for n in part if books.is_of(n, *types)})
    amounts = {
        n: _with_change(tuple(turn_sign(part.get(n, books.zero), sign) for part in sums))
        for n in numbers
        if any(part.get(n) for part in sums)
    }
    width = len(sums) if len(sums) == 1 else len(sums) + 1
    key = types[0]
    inner, parts, total = AccountTree(books.accounts, amounts, width, books.zero).list_rows(1, key)
    parts += tuple((row.key, 1) for row in more)
    total = add_amounts([total, *(row.amounts for row in more)], width, books.zero)
    rows += [
        Row(title, kind="heading"),
        *inner,
        *more,
        Row(f"Total {title.lower()}", total, "total", 0, None, key, parts),
    ]
    return total[: len(sums)]


def _with_change(amounts: Amounts) -> Amounts:
    """The amounts, and where there are two of them how much the first is more."""
    return amounts if len(amounts) < 2 else (*amounts, amounts[0] - amounts[1])


def _split_sides(balance: Decimal, zero: Decimal) -> tuple[Decimal, Decimal]:
    return (balance, zero) if balance > 0 else (zero, -balance)


def _amount_columns(title: str, compared: DateSpan | None, before: str = "") -> list[Column]:
    if compared is None:
        return [Column("amount", title)]
    return [Column("amount", title), Column("before", before or compared.label), Column("change", "change")]


def _label_day(span: DateSpan | None) -> str:
    return str(span.end) if span else ""


def _chart_months(books: ReportBooks, period: DateSpan) -> BarChart | None:
    if not 1 < len(period.months) <= _MAX_BARS:
        return None
    groups = []
    for month in period.split_months():
        sums = books.balances(month.start, month.end, closings=False)
        sides = [
            add_amounts([(turn_sign(a, sign),) for n, a in sums.items() if books.is_of(n, kind)], 1, books.zero)[0]
            for kind, sign in (("revenue", -1), ("expense", 1))
        ]
        groups.append((month.label, tuple(sides)))
    return BarChart("Revenue and expenses by month", ("Revenue", "Expenses"), tuple(groups))
