"""What accounts hold at the end of a day: the one sum behind every balance of an account on a day.

A leg counts on its entry's date, voided entries and their reversals too. ``JournalIndex.day_balances`` gives it what it
has summed up by day or month before, so that no entry need be read; a test compares that with the entries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container
from datetime import date
from decimal import Decimal

from cleared.base import money
from cleared.books.ledger.entry import ZERO, Entry


class DayBalances:
    """Sums movements of accounts by day. ``accounts``: those that are of interest; None: all."""

    def __init__(self, accounts: Container[int] | None = None) -> None:
        self._accounts = accounts
        self._moved: dict[int, dict[date, Decimal]] = {}
        self._ends: dict[int, tuple[list[date], list[Decimal]]] = {}
        """Account → its days in order, and what it held at the end of each."""

    def add_entry(self, entry: Entry) -> None:
        """Count all legs of an entry."""
        for leg in entry.legs:
            if self._accounts is None or leg.account_id in self._accounts:
                self.add_movement(leg.account_id, entry.date, leg.amount)

    def add_movement(self, account: int, day: date, amount: Decimal) -> None:
        """Count an amount (debit minus credit) that moves an account on a day."""
        days = self._moved.setdefault(account, {})
        before = days.get(day)
        days[day] = amount if before is None else money.total((before, amount))
        if self._ends:
            self._ends.pop(account, None)

    def balance_on(self, account: int, day: date | None = None) -> Decimal:
        """Debits minus credits of an account up to and including a day; None: of all days."""
        days, ends = self._ends.get(account) or self._sum_days(account)
        place = len(days) if day is None else bisect_right(days, day)
        return ends[place - 1] if place else ZERO

    def trial_balance(self, day: date | None = None) -> dict[int, Decimal]:
        """The same of every account that moved up to the day, by account."""
        return {
            account: self.balance_on(account, day)
            for account, days in sorted(self._moved.items())
            if day is None or min(days) <= day
        }

    def _sum_days(self, account: int) -> tuple[list[date], list[Decimal]]:
        moved = self._moved.get(account, {})
        days, ends, held = sorted(moved), [], ZERO
        for day in days:
            held = money.total((held, moved[day]))
            ends.append(held)
        self._ends[account] = days, ends
        return days, ends
