"""Whom money was spent with, and to whom forms 1099 may be due."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Final

from cleared.base import money
from cleared.base.date_spans import DateSpan
from cleared.books.index.month_facts import MonthEntries
from cleared.books.reports.correction_origins import CorrectionOrigins, find_origin
from cleared.books.reports.month_digests import iter_digests
from cleared.books.reports.report import BarChart, Cell, Column, Report, Row
from cleared.books.reports.report_books import ReportBooks
from cleared.books.reports.report_notes import PAYABLE

_THRESHOLDS: Final = Path(__file__).parent / "form_1099_thresholds.json"
_NOBODY: Final = "(no counterparty)"
_MAX_BARS: Final = 12
Spending = Mapping[str, Sequence[int]]
"""Counterparty → number of payments, units spent, units paid from bank accounts for that or for bills."""
Corrections = Mapping[tuple[str, str], int]
"""An entry and a counterparty → units that corrections of the entry, and what takes these back, make of it paid for."""


@cache
def read_thresholds() -> dict[int, int]:
    """Year of payment → US dollars from which a form 1099-NEC or 1099-MISC is due."""
    data = json.loads(_THRESHOLDS.read_text("utf-8"))
    return {int(year): dollars for year, dollars in data["threshold_from_year"].items()}


def find_threshold(year: int) -> tuple[int, bool]:
    """The threshold of a year, and whether it is known to be that of this year."""
    steps = read_thresholds()
    begins = max((y for y in steps if y <= year), default=min(steps))
    return steps[begins], year <= max(steps)


def make_vendor_report(books: ReportBooks, period: DateSpan) -> Report:
    """Expenses by counterparty, the largest first; in the US also who is above the threshold of forms 1099."""
    files_1099 = books.business.currency == "USD" and books.business.entity_type != "generic"
    expenses = frozenset(n for n, a in books.accounts.items() if a.account_type == "expense")
    cash, places = frozenset(books.cash_accounts), books.index.places
    vendors = _collect_spending(books, period, expenses, cash)
    year = period.end.year
    threshold, is_known = find_threshold(year)
    due = money.count_units(Decimal(threshold), places) if files_1099 else 0
    columns = [Column("entries", "entries", "count"), Column("spent", "spent")]
    columns += [Column("not_by_card", "not by card"), Column("form_1099", "1099", "text", False)] if files_1099 else []
    rows: list[Row] = []
    for name, (count, spent, plain) in sorted(vendors.items(), key=lambda item: (-item[1][1], item[0])):
        amounts = [money.from_units(units, places) for units in (spent, plain)]
        mark = "yes" if name and plain >= due else ""
        cells: tuple[Cell, ...] = (count, amounts[0], amounts[1], mark) if files_1099 else (count, amounts[0])
        rows.append(Row(name or _NOBODY, cells, key=f"vendor.{len(rows)}"))
    total: tuple[Cell, ...] = (
        sum(count for count, _, _ in vendors.values()),
        *(money.from_units(sum(v[n] for v in vendors.values()), places) for n in (1, 2)),
    )
    largest = [(row.label, (amount,)) for row in rows[:_MAX_BARS] if isinstance(amount := row.cells[1], Decimal)]
    rows.append(Row("Total", (*total, "") if files_1099 else total[:2], "total", key="total", above=len(rows)))
    notes = _note_1099(period, threshold, is_known, _NOBODY if "" in vendors else "") if files_1099 else []
    return books.make_report(
        "vendors",
        "Vendors",
        period,
        columns,
        rows,
        label_title="vendor",
        pending=books.pending(period.start, period.end),
        notes=notes,
        make_chart=lambda: BarChart("Spent, by vendor", ("",), tuple(largest)) if largest else None,
    )


def _note_1099(period: DateSpan, threshold: int, is_known: bool, nobody: str) -> list[str]:
    year = period.end.year
    notes = [
        f"1099: paid {threshold} USD or more in {year} from bank accounts; payments by card and through processors are "
        "left out. No form is due for goods alone, and mostly none for corporations: ask for a W-9."
    ]
    if not is_known:
        notes.append(f"The threshold of {year} is not known to this version; that of {max(read_thresholds())} is used.")
    if (period.start, period.end) != (date(year, 1, 1), date(year, 12, 31)):
        notes.append(f"The threshold is of a whole calendar year: see --period {year}.")
    if nobody:
        notes.append(f"Entries of {nobody} may belong to any of them.")
    return notes


def _collect_spending(
    books: ReportBooks, period: DateSpan, expenses: frozenset[int], cash: frozenset[int]
) -> dict[str, list[int]]:
    places = books.index.places
    vendors: dict[str, list[int]] = {}
    corrections: dict[tuple[str, str], int] = defaultdict(int)
    key = ("vendors", expenses, cash, places)
    for part, moved in iter_digests(
        books.index, period, key, lambda e, at: _sum_spending(e, at, expenses, cash, places)
    ):
        for name, figures in part.items():
            sums = vendors.setdefault(name, [0, 0, 0])
            for n, figure in enumerate(figures):
                sums[n] += figure
        for pair, units in moved.items():
            corrections[pair] += units
    origins = CorrectionOrigins(books.index, cash)
    for (entry_id, name), units in sorted(corrections.items()):
        if units and origins.find_bank(entry_id) is not None:
            vendors[name][2] += units
    return {name: sums for name, sums in vendors.items() if any(sums)}


def _sum_spending(
    entries: MonthEntries, at: Sequence[int], expenses: frozenset[int], cash: frozenset[int], places: int
) -> tuple[Spending, Corrections]:
    vendors: dict[str, list[int]] = {}
    corrections: dict[tuple[str, str], int] = defaultdict(int)
    payments: dict[tuple[str, str], int] = defaultdict(int)
    texts = [entries.list_texts(name, at) for name in ("entry_id", "status", "tags", "counterparty")]
    for legs, entry_id, status, tags, written in zip(entries.list_movements(at), *texts, strict=True):
        spent = billed = paid = 0
        is_expense = moves_cash = pays_bill = False
        for account, text in legs:
            if account in expenses or account in cash or account == PAYABLE:
                units = money.count_written_units(text, places)
                if account in expenses:
                    is_expense = True
                    spent += units
                elif account == PAYABLE:
                    pays_bill = True
                    billed += units
                else:
                    moves_cash = True
                    paid -= units
        if is_expense or pays_bill:
            name, origin = written.strip(), find_origin(tags)
            sums = vendors.setdefault(name, [0, 0, 0])
            bought = spent + billed
            sums[1] += spent
            sums[2] += max(0, min(bought, paid)) if bought >= 0 else min(0, max(bought, paid))
            if origin and not moves_cash:
                corrections[origin, name] += bought
            if status != "voided":
                payments[name, origin or entry_id] += spent
    for (name, _), spent in payments.items():
        vendors[name][0] += spent != 0
    return vendors, corrections
