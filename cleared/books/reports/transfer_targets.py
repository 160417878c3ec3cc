"""Where money went by way of the clearing account: to the account that the other side of the transfer moves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from cleared.base import money
from cleared.base.date_spans import DateSpan
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, MAX_DAYS, TransferSide, pair_sides
from cleared.books.reports.correction_origins import CorrectionOrigins
from cleared.books.reports.month_digests import iter_digests

if TYPE_CHECKING:
    from cleared.books.index.month_facts import MonthEntries
    from cleared.books.reports.report_books import ReportBooks


class ClearedMovement(NamedTuple):
    """What the entries of a period that belong to one bank line post to the clearing account."""

    bank: int
    """The account that the bank line moves."""
    target: int
    """The account that the other side moves."""
    units: int
    """Debits less credits on the clearing account, in the smallest unit."""


def list_cleared_movements(books: ReportBooks, period: DateSpan) -> list[ClearedMovement]:
    """The movements of the period whose other side is in the books, whenever that arrived."""
    accounts = frozenset(bank.ledger_account for bank in books.business.banks)
    origins = CorrectionOrigins(books.index, accounts)
    posted = _sum_by_root(books, period, origins)
    if not posted:
        return []
    days = [day for root in sorted(posted) if (day := origins.find_day(root)) is not None]
    first, last = min([period.start, *days]), max([period.end, *days])
    margin = timedelta(days=MAX_DAYS)
    around = DateSpan(max(first, date.min + margin) - margin, min(last, date.max - margin) + margin, "")
    sides = []
    for root, units in sorted(_sum_by_root(books, around, origins).items()):
        day, account = origins.find_day(root), origins.find_bank(root)
        if units and day is not None and account is not None:
            amount = money.from_units(-units, books.index.places)
            sides.append(TransferSide(root, day, account, amount, "", "", True))
    targets: dict[str, tuple[int, int]] = {}
    for pair in pair_sides(sorted(sides, key=lambda side: (side.day, side.entry_id))):
        targets[pair.out.entry_id] = pair.out.account, pair.into.account
        targets[pair.into.entry_id] = pair.into.account, pair.out.account
    return [ClearedMovement(*targets[root], units) for root, units in posted.items() if root in targets]


def _sum_by_root(books: ReportBooks, period: DateSpan, origins: CorrectionOrigins) -> dict[str, int]:
    """Entry of a bank line → what it, its corrections and what takes these back post to the clearing account."""
    places = books.index.places
    sums: dict[str, int] = defaultdict(int)
    digests = iter_digests(books.index, period, ("clearing", places), lambda e, at: _list_posted(e, at, places))
    for entry_id, units in (pair for part in digests for pair in part):
        sums[origins.find_root(entry_id)] += units
    return sums


def _list_posted(entries: MonthEntries, at: Sequence[int], places: int) -> list[tuple[str, int]]:
    """The entries that post to the clearing account, each with its smallest units."""
    wanted = set(at)
    found = [place for place in entries.find_account(CLEARING_ACCOUNT) if place in wanted]
    posted = []
    for entry_id, legs in zip(entries.list_texts("entry_id", found), entries.list_movements(found), strict=True):
        amounts = [text for account, text in legs if account == CLEARING_ACCOUNT]
        posted.append((entry_id, sum(money.count_units(Decimal(text), places) for text in amounts)))
    return posted
