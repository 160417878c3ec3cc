"""What amount and days of booked lines explain of another one: the other side of a transfer, the purchase that a refund
gives back, the same charge of the months before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from itertools import islice
from typing import Final

from msgspec import Struct

from cleared.books.ledger.all_booked_lines import AllBookedLines
from cleared.books.ledger.booked_lines import TEXT_LENGTH, BookedLine, OpenLine, clean_payee
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, MAX_DAYS, TransferSide, find_transfers

REFUND_DAYS: Final = 120
"""Days after a purchase in which its refund is looked for."""
_MONTH: Final = range(25, 37)
_NEAR: Final = 0.4
"""How alike the payees must be."""
_MAX_CANDIDATES: Final = 50
_MOST_MONTHS: Final = 6
_REFUND_WORDS: Final = frozenset({"REFUND", "RETURN", "RETURNED", "CREDIT", "REVERSAL", "PURCHASE"})

Likeness = Callable[[str, str], float]
"""How alike two payees are, from 0 to 1."""


class AmountMatches(Struct, frozen=True):
    """Looks among ``lines``. ``refused``: texts of both sides of what persons said is no transfer, cleaned."""

    lines: AllBookedLines
    likeness: Likeness
    refused: set[tuple[str, str]]

    def find_other_side(self, open_line: OpenLine) -> BookedLine | None:
        """The only line of another own account that the line can be a transfer to or from."""
        sides, known = [_open_side(open_line)], {}
        for amount in (open_line.amount, -open_line.amount):
            for line in self._between(amount, open_line.day, 3 * MAX_DAYS, 3 * MAX_DAYS):
                if not open_line.is_same(line) and len(line.lines) == 1:
                    sides.append(_booked_side(line))
                    known[line.entry_id] = line
        sides.sort(key=lambda side: (side.day, side.entry_id))
        for pair in find_transfers(sides).proposed:
            texts = (clean_payee(pair.out.text[:TEXT_LENGTH]), clean_payee(pair.into.text[:TEXT_LENGTH]))
            if "" in (pair.out.entry_id, pair.into.entry_id) and texts not in self.refused:
                return known[pair.into.entry_id or pair.out.entry_id]
        return None

    def find_purchase(self, open_line: OpenLine) -> BookedLine | None:
        """The newest purchase of the same amount and a like payee, if it was not refunded yet."""
        if open_line.amount <= 0:
            return None
        bought = self._alike(open_line, -open_line.amount, REFUND_DAYS)
        returned = self._alike(open_line, open_line.amount, REFUND_DAYS)
        return bought[0] if len(bought) > len(returned) else None

    def find_months_before(self, open_line: OpenLine) -> list[BookedLine]:
        """The same amount of a like payee a month before, and in the months before that; newest first."""
        alike = self._alike(open_line, open_line.amount, (_MOST_MONTHS + 1) * _MONTH.stop)
        found: list[BookedLine] = []
        day = open_line.day
        for line in alike:
            if (day - line.day).days in _MONTH and len(found) < _MOST_MONTHS:
                found.append(line)
                day = line.day
        return found

    def _alike(self, open_line: OpenLine, amount: Decimal, before: int) -> list[BookedLine]:
        """Lines of the same bank account that are more than a guess, newest first."""
        payee = _plain_payee(open_line.text)
        near = self._between(amount, open_line.day, before, 0)
        firm = (
            line
            for line in reversed(near)
            if line.bank == open_line.bank and line.status != "pending-review" and not open_line.is_same(line)
        )
        return [
            line
            for line in islice(firm, _MAX_CANDIDATES)
            if all(account != CLEARING_ACCOUNT for account, _ in line.lines)
            and self.likeness(payee, _plain_payee(line.text)) >= _NEAR
        ]

    def _between(self, amount: Decimal, day: date, before: int, after: int) -> list[BookedLine]:
        first, last = find_days_around(day, before, after)
        lines = sorted(self.lines.iter_of_amount(amount, first, last), key=_day)
        low, high = bisect_left(lines, first, key=_day), bisect_right(lines, last, key=_day)
        return lines[max(low, high - _MAX_CANDIDATES * 10) : high]


def find_days_around(day: date, before: int, after: int) -> tuple[date, date]:
    """The days that lie so far before and after a day, as far as there are such."""
    first = day - timedelta(days=min(before, (day - date.min).days))
    return first, day + timedelta(days=min(after, (date.max - day).days))


def _plain_payee(text: str) -> str:
    words = clean_payee(text).split()
    return " ".join(word for word in words if word not in _REFUND_WORDS) or " ".join(words)


def _open_side(line: OpenLine) -> TransferSide:
    return TransferSide("", line.day, line.bank, line.amount, line.text, "pending-review", False)


def _booked_side(line: BookedLine) -> TransferSide:
    return TransferSide(
        line.entry_id, line.day, line.bank, line.amount, line.text, line.status, line.account == CLEARING_ACCOUNT
    )


def _day(line: BookedLine) -> date:
    return line.day
