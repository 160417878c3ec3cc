"""Reports over large books: in an open process, and as a command beside ``cleared --help``."""

from __future__ import annotations

from functools import partial

from bench.books import beside_help, open_large_books
from bench.measure import Result, seconds
from bench.pace import judge_time, take_paced, time_act
from cleared.books import queries
from cleared.books.reports.catalogue import ReportRequest, make_report
from cleared.books.reports.report_books import ReportBooks

_NAMES = ("pnl", "balance-sheet", "trial-balance", "cash-flow", "vendors", "monthly")


def income_statement(quick: bool) -> Result:
    """``report pnl``, when the books were read before."""
    return beside_help("report pnl, 100,000 entries, warm", ["report", "pnl", "--period", "2025"], 1.5, quick)


def open_reports(quick: bool) -> Result:
    """The slowest report of those that do not list entries, in a process that stays open."""
    opened = open_large_books()

    def make_all() -> float:
        with queries.open_report_books(opened) as books:
            return max(time_act(partial(_go_through, books, name)) for name in _NAMES)

    first, again = make_all(), take_paced(make_all, 2 if quick else 8)
    opened.close()
    return judge_time(
        "a report, 100,000 entries, index open",
        again,
        0.05,
        baseline=seconds(first),
        ratio=again.measured / first,
        note=f"the slowest of {len(_NAMES)}; the baseline is the first time",
    )


def _go_through(books: ReportBooks, name: str) -> int:
    return sum(1 for _ in make_report(books, ReportRequest(name, "2025")).rows)
