"""What a reader of any report has to know of the books: the basis they are kept on, and where they begin."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Final

from msgspec.structs import replace

from cleared.books.ledger.chart import INCOME_TYPES, OPENING_BALANCES
from cleared.books.reports.report import Report
from cleared.books.reports.report_books import ReportBooks

RECEIVABLE: Final = 1200
"""Invoices that wait to be paid, in every chart."""
PAYABLE: Final = 2100
"""Bills that wait to be paid, in every chart: paying one is a payment to its vendor, though no expense."""
_ACCRUED: Final = {RECEIVABLE: "asset", PAYABLE: "liability"}
_OF_THE_YEAR: Final = frozenset({"pnl", "cash-flow", "monthly", "tax"})
"""Reports of what happened in a period."""


def name_basis(books: ReportBooks, end: date | None) -> str:
    """``cash``, or ``modified cash`` where bills or invoices were entered before they were paid."""
    return "modified cash" if list_accrued(books, None, end) else "cash"


def list_accrued(books: ReportBooks, start: date | None, end: date | None) -> list[int]:
    """The accounts of unpaid bills and invoices that were posted to."""
    sums = books.index.sum_accounts(start, end)
    return [number for number, kind in _ACCRUED.items() if number in sums and books.is_of(number, kind)]


def add_notes(books: ReportBooks, report: Report) -> Report:
    """The report with its basis, and with notes of what a reader could take wrongly."""
    start = None if report.as_of else report.period.start
    accrued = list_accrued(books, start, report.period.end)
    notes = list(report.notes)
    if accrued:
        report = replace(report, basis="modified cash")
        names = " and ".join(f"{n} {books.find_account(n).account_name}" for n in accrued)
        notes.append(f"Bills and invoices count on the day they were entered, not when they were paid: {names}.")
    if report.name in _OF_THE_YEAR:
        notes += _describe_taken_over(books, report)
    return replace(report, notes=notes) if len(notes) > len(report.notes) else report


def _describe_taken_over(books: ReportBooks, report: Report) -> Iterator[str]:
    """Books that begin within a year have its income and expenses so far as one sum, and no cash of then."""
    first = books.index.months[0] if books.index.months else None
    if first is None or not date(*first, 1) <= report.period.end or report.period.start >= _end_of(first):
        return
    days = books.index.month_sums(first).days.values()
    if not any(OPENING_BALANCES in day and any(books.is_of(n, *INCOME_TYPES) for n in day) for day in days):
        return  # the entries need not be read
    entries = books.index.month_entries(first)
    for at, legs in enumerate(entries.list_movements(range(len(entries)))):
        is_opening = any(account == OPENING_BALANCES for account, _ in legs) and entries.statuses[at] != "voided"
        entry = entries.make_entry(at) if is_opening else None
        if (
            entry is not None
            and entry.date > report.period.start
            and any(books.is_of(leg.account_id, *INCOME_TYPES) for leg in entry.legs)
        ):
            what = "Cash of before" if report.name == "cash-flow" else "Income and expenses of before"
            how = "is not in it: the books begin with what was" if report.name == "cash-flow" else "were"
            yield f"{what} {how} taken over as one sum on {entry.date}."
            return


def _end_of(month: tuple[int, int]) -> date:
    year, number = month
    return date(year + number // 12, number % 12 + 1, 1) if (year, number) < (date.max.year, 12) else date.max
