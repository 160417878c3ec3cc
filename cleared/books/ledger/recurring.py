"""What comes month after month: a charge that did not come, that came twice, or that costs a fifth more.

A series is one payee on one bank account, charged about once a month at least three times in a row. Everything else is
left alone: nobody wants to hear of a second coffee.
"""

from __future__ import annotations

import hashlib
import itertools
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from heapq import nlargest
from statistics import median
from typing import Final

from cleared.base.clock import check_deadline
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.booked_lines import clean_payee

HISTORY: Final = timedelta(days=400)
"""How far back charges are looked at."""
MAX_LINES: Final = 20_000
"""Of one account are looked at: the newest."""
_FEWEST: Final = 3
"""Charges that make a series."""
_MONTH: Final = range(25, 37)
"""Days between two charges of a series."""
_GRACE: Final = 7
"""Days after which a charge is late."""
_TWICE: Final = 20
"""Days within which a second charge is one too many."""
_STEADY: Final = Decimal("1.05")
"""How much the charges before may differ for a price to be known."""
_DEARER: Final = Decimal("1.2")


@dataclass(frozen=True, slots=True)
class RecurringFinding:
    """``what``: ``missing``, ``doubled`` or ``dearer``. ``series`` names the payee on the account, ``about`` the
    occasion: together they are never said twice. ``lines``: the charges before, oldest first, then the new one."""

    what: str
    series: str
    about: str
    payee: str
    lines: tuple[BankLine, ...]
    due: date | None = None
    """When a missing charge should have come."""


def find_recurring(account: str, lines: Iterable[BankLine], new: set[str], through: date) -> Iterator[RecurringFinding]:
    """What is odd about the monthly charges of one bank account. ``lines``: those that are posted; ``new``: ids of
    those that came just now; ``through``: the day up to which the bank has said everything."""
    since = through - min(HISTORY, through - date.min)
    known = [line for line in check_deadline(lines) if line.amount < 0 and since <= line.posted_date <= through]
    if len(known) > MAX_LINES:
        known = nlargest(MAX_LINES, known, key=lambda line: line.posted_date)
    payees: dict[str, str] = {}
    by_payee: dict[str, list[BankLine]] = {}
    for line in known:
        payee = payees.get(line.description) or payees.setdefault(line.description, clean_payee(line.description)[:200])
        by_payee.setdefault(payee, []).append(line)
    for payee, charges in check_deadline(by_payee.items()):
        if len(charges) >= _FEWEST:
            charges.sort(key=lambda line: (line.posted_date, line.row, line.line_id))
            series = f"{account}:{hashlib.sha256(payee.encode()).hexdigest()[:16]}"
            for finding in _judge_series(series, payee, charges, new, through):
                if finding.due is None or not _came_otherwise(finding, by_payee.values()):
                    yield finding


def _judge_series(
    series: str, payee: str, charges: Sequence[BankLine], new: set[str], through: date
) -> Iterator[RecurringFinding]:
    for at in range(_FEWEST, len(charges)):
        before, line = charges[at - _FEWEST : at], charges[at]
        if line.line_id not in new or not _is_monthly(before):
            continue
        days = (line.posted_date - before[-1].posted_date).days
        if days < _TWICE and line.amount == before[-1].amount:
            yield RecurringFinding("doubled", series, line.line_id, payee, (*before, line))
        elif days in _MONTH and _is_steady(before) and -line.amount >= _DEARER * -before[-1].amount:
            yield RecurringFinding("dearer", series, line.line_id, payee, (*before, line))
    last = charges[-_FEWEST:]
    if _is_monthly(last):
        due = _add_month(last[-1].posted_date)
        if (through - due).days > _GRACE:
            yield RecurringFinding("missing", series, last[-1].line_id, payee, tuple(last), due)


def _came_otherwise(finding: RecurringFinding, payees: Iterable[Sequence[BankLine]]) -> bool:
    """Whether a payee who was never seen before charged the same amount when a charge was missing: banks write a name
    otherwise in another format, or after a change of theirs."""
    last, due = finding.lines[-1], finding.due
    return due is not None and any(
        all(line.posted_date > last.posted_date for line in charges)
        and any(line.amount == last.amount and abs((line.posted_date - due).days) <= _GRACE for line in charges)
        for charges in payees
    )


def _is_monthly(charges: Sequence[BankLine]) -> bool:
    days = [(b.posted_date - a.posted_date).days for a, b in itertools.pairwise(charges)]
    return all(each in _MONTH for each in days)


def _is_steady(charges: Sequence[BankLine]) -> bool:
    middle = median(-line.amount for line in charges)
    return all(middle / _STEADY <= -line.amount <= middle * _STEADY for line in charges)


def _add_month(day: date) -> date:
    """The same day of the next month, or its last."""
    year, month = (day.year, day.month + 1) if day.month < 12 else (day.year + 1, 1)
    if year > date.max.year:
        return date.max
    return date(year, month, min(day.day, monthrange(year, month)[1]))
