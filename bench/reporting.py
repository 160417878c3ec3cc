"""Reports over large books: in an open process, and as a command beside ``cleared --help``."""

from __future__ import annotations

import time

from bench.books import beside_help, open_large_books
from bench.measure import Result, seconds
from cleared.books import queries
from cleared.books.reports.catalogue import ReportRequest, make_report
from cleared.books.reports.report import Report

_NAMES = ("pnl", "balance-sheet", "trial-balance", "cash-flow", "vendors", "monthly")


def income_statement(quick: bool) -> Result:
    """``report pnl``, when the books were read before."""
    return beside_help("report pnl, 100,000 entries, warm", ["report", "pnl", "--period", "2025"], 1.5, quick)


def open_reports(quick: bool) -> Result:
    """The slowest report of those that do not list entries, in a process that stays open."""
    opened = open_large_books()
    slowest, worst = [], ""
    for _ in range(3 if quick else 9):
        with queries.open_report_books(opened) as books:
            times = {}
            for name in _NAMES:
                began = time.process_time()
                _go_through(make_report(books, ReportRequest(name, "2025")))
                times[name] = time.process_time() - began
            worst = max(times, key=lambda name: times[name])
            slowest.append(times[worst])
    opened.close()
    again, first = min(slowest[1:]), slowest[0]
    return Result(
        "a report, 100,000 entries, index open",
        seconds(again),
        seconds(first),
        again / first,
        "≤ 50 ms",
        again <= 0.05,
        f"the slowest of {len(_NAMES)}: {worst}; the baseline is the first time",
    )


def _go_through(report: Report) -> int:
    return sum(1 for _ in report.rows)
