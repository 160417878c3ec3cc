"""Whether a line that is known is another one than an equal row of a file: a file that begins where the known lines end
shares no row with them, as the balances say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property

from cleared.books.importing.bank_file import order_in_time
from cleared.books.ledger.bank_lines import BankLine, normalise_description
from cleared.books.ledger.bank_row import BankRow
from cleared.books.ledger.staged_bank_lines import NEAR_DAYS


class JoinedFile:
    """A file beside the lines of its account that are known. ``is_known``: whether one of these has all of a row, its
    balance, too; ``list_lines``: those from a day to another one."""

    def __init__(
        self,
        rows: Sequence[BankRow],
        is_known: Callable[[BankRow], bool],
        list_lines: Callable[[date, date], Iterable[BankLine]],
    ) -> None:
        self._rows, self._is_known, self._list_lines = rows, is_known, list_lines
        self._steps: dict[tuple[date, date], list[tuple[Decimal, Decimal]]] = {}

    def is_other(self, row: BankRow, line: BankLine) -> bool:
        """Whether ``line`` is another one for sure than ``row`` of the file, though it has its id: of a bank that uses
        its ids again, or where the running balances say that the file begins after it or ends before it."""
        if row.bank_id:
            return abs(line.posted_date - row.posted_date).days > NEAR_DAYS or is_reused_id(row, line)
        if row.balance is None or line.balance_after is None or row.balance == line.balance_after or not self._rest:
            return False
        (first, opening), (last, closing) = self._rest
        day, before = line.posted_date, line.balance_after - line.amount
        if day <= first and opening in _reach(line.balance_after, self._list_steps(day, first)):
            return True
        if last > day:
            return False
        return closing in _reach(before, [(after, earlier) for earlier, after in self._list_steps(last, day)])

    @cached_property
    def _rest(self) -> tuple[tuple[date, Decimal], tuple[date, Decimal]] | None:
        """First and last day of the file without the known rows at its two ends, where it overlaps others, each with
        the balance there. None where nothing is left, or a row states no balance."""
        rows = order_in_time(self._rows)
        if any(row.balance is None for row in rows):
            return None
        begin, end = 0, len(rows)
        while begin < end and self._is_known(rows[begin]):
            begin += 1
        while begin < end and self._is_known(rows[end - 1]):
            end -= 1
        if begin == end:
            return None
        first, last = rows[begin], rows[end - 1]
        assert first.balance is not None and last.balance is not None
        return (first.posted_date, first.balance - first.amount), (last.posted_date, last.balance)

    def _list_steps(self, first: date, last: date) -> list[tuple[Decimal, Decimal]]:
        """The balances before and after each line of these days."""
        if (first, last) not in self._steps:
            self._steps[first, last] = [
                (line.balance_after - line.amount, line.balance_after)
                for line in self._list_lines(first, last)
                if line.balance_after is not None and first <= line.posted_date <= last
            ]
        return self._steps[first, last]


def _reach(balance: Decimal, steps: Iterable[tuple[Decimal, Decimal]]) -> set[Decimal]:
    """The balances that one leads to, step by step."""
    onward: dict[Decimal, list[Decimal]] = defaultdict(list)
    for here, there in steps:
        onward[here].append(there)
    found, waiting = {balance}, [balance]
    while waiting:
        new = set(onward.pop(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def is_reused_id(row: BankRow | BankLine, line: BankLine) -> bool:
    """Whether a row has nothing of a posted line but id and amount: some banks count their ids anew in each file."""
    return (
        row.state == line.state == "posted"
        and row.posted_date != line.posted_date
        and normalise_description(row.description) != normalise_description(line.description)
    )
