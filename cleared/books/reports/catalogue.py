"""All reports by name."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.books.reports import statements
from cleared.books.reports.report import Report
from cleared.books.reports.report_books import ReportBooks
from cleared.books.reports.report_notes import add_notes

REPORTS: Final = {
    "pnl": "Profit and loss: revenue less expenses",
    "balance-sheet": "What is owned, owed and left on the last day",
    "trial-balance": "Debits and credits of every account on the last day",
    "cash-flow": "Where money in the bank came from and went to",
    "ledger": "General ledger: every posting, with a running balance",
    "vendors": "Whom money was spent with; who may need a 1099",
    "monthly": "Months beside each other",
    "tax": "By the lines of the tax form",
}
"""Name → what it is."""
COMPARED: Final = ("pnl", "balance-sheet", "trial-balance")
"""Those that can stand beside another period."""


class ReportRequest(Struct, frozen=True):
    """Which report is wanted."""

    name: str
    period: str | None = None
    """As people write it; None: the fiscal year of the newest entries."""
    compare: str | None = None
    """``previous``: beside the period before; ``year``: beside the same a year earlier."""
    draft: bool = False
    """Whether a tax report may be made while entries wait for review."""
    account: int | None = None
    """Of the ledger: only this account."""


def make_report(books: ReportBooks, wanted: ReportRequest) -> Report:
    """The report. Raises ``UsageError`` for what there is not, ``CheckFailed`` for taxes that are not final."""
    _check_request(wanted)
    return add_notes(books, _make_plain_report(books, wanted))


def _make_plain_report(books: ReportBooks, wanted: ReportRequest) -> Report:
    period = books.parse_period(wanted.period)
    compared = None
    if wanted.compare:
        compared = period.previous() if wanted.compare == "previous" else period.year_before()
    match wanted.name:
        case "pnl" | "balance-sheet" | "trial-balance":
            makers = {
                "pnl": statements.make_income_statement,
                "balance-sheet": statements.make_balance_sheet,
                "trial-balance": statements.make_trial_balance,
            }
            return makers[wanted.name](books, period, compared)
        case "cash-flow":
            from cleared.books.reports.cash_flow import make_cash_flow

            return make_cash_flow(books, period)
        case "ledger":
            from cleared.books.reports.general_ledger import make_general_ledger

            return make_general_ledger(books, period, wanted.account)
        case "vendors":
            from cleared.books.reports.vendor_report import make_vendor_report

            return make_vendor_report(books, period)
        case "monthly":
            from cleared.books.reports.monthly_table import make_monthly_table

            return make_monthly_table(books, period)
        case _:
            from cleared.books.reports.tax_report import make_tax_report

            return make_tax_report(books, period, draft=wanted.draft)


def _check_request(wanted: ReportRequest) -> None:
    if wanted.name not in REPORTS:
        raise UsageError(f"there is no report {wanted.name[:40]!r}", remedy=f"There are: {', '.join(REPORTS)}.")
    if wanted.compare and wanted.compare not in ("previous", "year"):
        raise UsageError(
            f"--compare {wanted.compare[:40]!r} is not known", remedy="Use --compare previous or --compare year."
        )
    if wanted.compare and wanted.name not in COMPARED:
        raise UsageError(f"the report {wanted.name} cannot be compared", remedy=f"These can: {', '.join(COMPARED)}.")
    if wanted.account is not None and wanted.name != "ledger":
        raise UsageError("--account is for the ledger alone", remedy="cleared report ledger --account N")
    if wanted.draft and wanted.name != "tax":
        raise UsageError("--draft is for the tax report alone", remedy="Leave it out.")
