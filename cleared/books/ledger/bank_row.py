"""What a bank file says, before any bookkeeping: one row, one statement, one file."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from operator import attrgetter
from typing import Final, Literal, Protocol, TypeVar

from msgspec import Struct

LineState = Literal["posted", "pending", "foreign"]
"""``pending``: the bank has not posted it yet. ``foreign``: it has, in another currency than the account's; the host
says so, no importer. Neither is ever posted in the books, and neither counts in a balance."""


class BankRow(Struct, frozen=True):
    """One row a bank reported. ``amount`` is signed as the account's balance moves: negative = money out."""

    row: int
    """1-based line of the file on which the row starts; where lines mean nothing (XML, OFX), its number in the file."""
    posted_date: date
    description: str
    """Exactly as the bank wrote it (may hold quotes, newlines, formulas, any script)."""
    amount: Decimal
    type: str = ""
    """The bank's own word for the kind of transaction, e.g. ``ACH_DEBIT``."""
    transaction_date: date | None = None
    currency: str | None = None
    """ISO 4217 code where the file states one."""
    bank_id: str = ""
    """An id the bank promises to be unique for the account (not a check number); empty where there is none."""
    balance: Decimal | None = None
    """The running balance after this row, where the file carries one."""
    state: LineState = "posted"
    fee: Decimal | None = None
    """What a processor kept of the gross: ``amount`` is net of it. Negative = kept. None: the file does not say."""
    corrects: str = ""
    """The bank's id of an earlier row that this one takes the place of."""


class Balance(Struct, frozen=True):
    """What an account held on a day, as the bank says."""

    amount: Decimal
    day: date | None = None


class Statement(Struct, frozen=True):
    """What a file says of one account over one period. One without rows is valid."""

    rows: tuple[BankRow, ...] = ()
    """In file order."""
    account: str = ""
    """The account's number as the file writes it; empty where it does not say."""
    bank: str = ""
    """The bank's own number or code."""
    currency: str | None = None
    opening: Balance | None = None
    closing: Balance | None = None
    hints: tuple[tuple[str, str], ...] = ()
    """What says whose it is: ``("account", …)``, ``("last4", "1234")``, ``("iban", …)``, ``("header", …)``."""
    first_day: date | None = None
    last_day: date | None = None
    """The period that it covers, where it says."""

    @property
    def says_nothing(self) -> bool:
        """Whether it has neither rows nor an account nor a balance."""
        return not (self.rows or self.account or self.opening or self.closing)


class ParsedFile(Struct, frozen=True):
    """A bank file, read whole: its statements in file order.

    A file of one account that states no balances may be given by ``rows`` and ``hints`` alone.
    """

    format: str
    rows: tuple[BankRow, ...] = ()
    """Of all statements, in file order; ``row`` rises over all of them."""
    hints: tuple[tuple[str, str], ...] = ()
    parts: tuple[Statement, ...] = ()
    """The statements, where the file says more of them than rows and hints."""
    notes: tuple[str, ...] = ()
    """What a person should know of how it was read: lines that were passed over."""

    @property
    def statements(self) -> tuple[Statement, ...]:
        """At least one."""
        return self.parts or (Statement(self.rows, hints=self.hints),)

    @classmethod
    def of_statements(cls, format: str, statements: Iterable[Statement], notes: Iterable[str] = ()) -> ParsedFile:
        """A file of several accounts, or of one with balances."""
        given = tuple(statements)
        rows = tuple(row for statement in given for row in statement.rows)
        return cls(format, rows, given[0].hints if len(given) == 1 else (), given, tuple(notes))


class _DatedRow(Protocol):
    @property
    def posted_date(self) -> date: ...
    @property
    def amount(self) -> Decimal: ...


_FEWEST_JUMPS: Final = 2
"""Of the balances, from which on a file is taken to be sorted: one is a row that is missing."""
_Row = TypeVar("_Row", bound=_DatedRow)


def order_rows(rows: Sequence[_Row], balance_of: Callable[[_Row], Decimal | None]) -> list[_Row]:
    """The rows of a file, as bank rows or as bank lines, in the order in which they happened. Banks write files in
    either direction, and a spreadsheet sorts them as it likes: where the balances after them do not add up, they are
    put by days, and within a day so that they do."""
    if len(rows) < 2:
        return list(rows)
    in_time = list(rows[::-1] if _is_newest_first(rows, balance_of) else rows)
    if _count_breaks(in_time, balance_of) < _FEWEST_JUMPS:
        return in_time
    chained: list[_Row] = []
    day_of = attrgetter("posted_date")
    for _, of_day in itertools.groupby(sorted(in_time, key=day_of), key=day_of):
        chained += _chain_rows(list(of_day), balance_of, balance_of(chained[-1]) if chained else None)
    return in_time if _count_breaks(chained, balance_of) else chained


def _chain_rows(rows: list[_Row], balance_of: Callable[[_Row], Decimal | None], start: Decimal | None) -> list[_Row]:
    """The rows of one day in an order in which each balance follows from the one before, ``start`` at first (None: not
    known); as they are where there is none. It is Hierholzer's: a way over the balances that takes each row once."""
    leaving: dict[Decimal, list[_Row]] = defaultdict(list)
    ends: list[Decimal] = []
    for row in reversed(rows):
        after = balance_of(row)
        if after is None:
            return rows
        leaving[after - row.amount].append(row)
        ends.append(after)
    if start not in leaving:
        begins = list((Counter({before: len(each) for before, each in leaving.items()}) - Counter(ends)).elements())
        if len(begins) != 1:
            return rows
        start = begins[0]
    way: list[_Row] = []
    open_ends: list[tuple[Decimal | None, _Row | None]] = [(start, None)]
    while open_ends:
        at, taken = open_ends[-1]
        if at is not None and leaving.get(at):
            row = leaving[at].pop()
            open_ends.append((balance_of(row), row))
        else:
            open_ends.pop()
            way += [taken] if taken is not None else []
    return way[::-1] if len(way) == len(rows) else rows


def _is_newest_first(rows: Sequence[_Row], balance_of: Callable[[_Row], Decimal | None]) -> bool:
    """Whether the rows stand the other way round than they happened. Of one day, that is the direction in which the
    balances after them add up."""
    if rows[0].posted_date != rows[-1].posted_date:
        return bool(rows[0].posted_date > rows[-1].posted_date)
    return _count_breaks(rows, balance_of) > _count_breaks(rows[::-1], balance_of)


def _count_breaks(rows: Sequence[_Row], balance_of: Callable[[_Row], Decimal | None]) -> int:
    steps = ((row.amount, balance_of(row)) for row in rows)
    return sum(
        before is not None and after is not None and before + amount != after
        for (_, before), (amount, after) in itertools.pairwise(steps)
    )
