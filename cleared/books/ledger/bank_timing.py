"""Bank lines that the books have on another day than the bank, and lines that they do not have yet.

An entry may be dated by the day of a purchase, or on the first day after a closed period: then the books and the bank
differ between the two days by that line, and both are right. A line that the books have more than once, or with the
other sign, is no matter of days: nothing is allowed for it, so that the balance differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from cleared.base import money
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import ZERO


class BookedLine(NamedTuple):
    """A bank line, and what the books have of it. ``parts``: (entry's date, amount) of each leg that was ever matched
    to it, those of voided entries and of reversals too. ``is_ignored``: somebody said that it is not to be booked."""

    line_id: str
    posted_date: date
    amount: Decimal
    parts: tuple[tuple[date, Decimal], ...]
    is_ignored: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the books have all of it in the end."""
        return self.sum_booked(None) == self.amount

    @property
    def is_timely(self) -> bool:
        """Whether the books have all of it on the bank's day, at once."""
        return len(self.parts) == 1 and self.parts[0] == (self.posted_date, self.amount)

    def sum_booked(self, day: date | None) -> Decimal:
        """How much of it the books have by the end of a day; None: in the end."""
        return money.total([amount for on, amount in self.parts if day is None or on <= day])

    def is_overbooked(self, day: date) -> bool:
        """Whether the books have more of it than the bank says, or with the other sign."""
        booked = self.sum_booked(day)
        return booked != 0 and ((booked > 0) != (self.amount > 0) or abs(booked) > abs(self.amount))

    def find_open_part(self, day: date) -> Decimal:
        """What the bank has of it by then and the books have not; negative where it is the other way round."""
        if self.is_overbooked(day):
            return ZERO
        return (self.amount if self.posted_date <= day else ZERO) - self.sum_booked(day)


class BankTiming:
    """What stands between the balances of bank and books on any day, by the account of the books."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, BookedLine]] = []
        """(account, line) of those that the books do not have whole on the bank's day."""
        self._in_transit = DayBalances()
        self._waiting = DayBalances()
        self._ignored = DayBalances()

    def add_line(self, account: int, line: BookedLine) -> None:
        """Count one line of a bank."""
        if line.is_timely:
            return
        self.lines.append((account, line))
        kind = self._in_transit if line.is_whole else self._ignored if line.is_ignored else self._waiting
        before = ZERO
        for day in sorted({line.posted_date, *(day for day, _ in line.parts)}):
            part = line.find_open_part(day)
            if part != before:
                kind.add_movement(account, day, part - before)
            before = part

    def in_transit(self, account: int, day: date) -> Decimal:
        """Of lines that the books have on another day: what the bank has by then and the books have not."""
        return self._in_transit.balance_on(account, day)

    def waiting(self, account: int, day: date) -> Decimal:
        """The same of lines that are not in the books: held or voided, each with its reason on record."""
        return self._waiting.balance_on(account, day)

    def ignored(self, account: int, day: date) -> Decimal:
        """The same of lines that are not to be booked. The bank's balance may have them, or they are one that it wrote
        twice."""
        return self._ignored.balance_on(account, day)

    def list_in_transit(self, account: int, day: date) -> list[tuple[BookedLine, Decimal]]:
        """The lines behind ``in_transit``, each with its part."""
        parts = ((line, line.find_open_part(day)) for of, line in self.lines if of == account and line.is_whole)
        return [(line, part) for line, part in parts if part]

    def list_overbooked(self, account: int, day: date) -> Iterable[BookedLine]:
        """The lines of which the books have too much on a day."""
        return (line for of, line in self.lines if of == account and line.is_overbooked(day))
