"""What a bank file says, before any bookkeeping: one row, one statement, one file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal

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


def is_newest_first(rows: Sequence[Any], balance_of: Callable[[Any], Decimal | None]) -> bool:
    """Whether the rows of a file, as bank rows or as bank lines, stand in it the other way round than they happened. Of
    one day, that is the direction in which the balances after them add up."""
    if rows[0].posted_date != rows[-1].posted_date:
        return bool(rows[0].posted_date > rows[-1].posted_date)
    steps = [(row.amount, balance_of(row)) for row in rows]
    return _count_breaks(steps) > _count_breaks(steps[::-1])


def _count_breaks(steps: Sequence[tuple[Decimal, Decimal | None]]) -> int:
    return sum(
        before is not None and after is not None and before + amount != after
        for (_, before), (amount, after) in itertools.pairwise(steps)
    )
