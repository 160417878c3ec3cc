"""How bank lines are booked: one movement of a bank account and where it went, corrections counted in."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.entry import ZERO, Entry

DECIDED: Final = frozenset({"user-confirmed", "user-corrected"})
"""The statuses that a person gives."""
TEXT_LENGTH: Final = 200
"""Of a bank's text, what a transfer's card keeps."""


class BookedLine(Struct, frozen=True, array_like=True):
    """One entry of a bank account. ``amount``: as the bank moves, negative is money out."""

    entry_id: str
    day: date
    text: str
    bank: int
    amount: Decimal
    lines: tuple[tuple[int, Decimal], ...]
    """The other accounts and their amounts, positive is a debit: together the opposite of ``amount``."""
    status: str
    counterparty: str
    reference: str

    @property
    def account(self) -> int:
        """The account of the largest part."""
        return max(self.lines, key=lambda line: (abs(line[1]), -line[0]))[0]


_FEW: Final = 2


def clean_payee(description: str) -> str:
    """What equal payees have in common: the words of the text, without numbers and marks. A name may begin with a digit
    or two and letters (``3M COMPANY``); what has more of them, or stands later, is a number of the line."""
    text, words = normalise_description(description), []
    for number, word in enumerate(text.replace("*", " ").replace("#", " ").split()):
        plain = word.strip(".,;:-/()'\"")
        if plain.isalpha() or (plain and sum(map(str.isdigit, plain)) <= (0 if number or plain.isdigit() else _FEW)):
            words.append(plain)
    return " ".join(words) or text


def book_line(standing: Entry, bank_accounts: Collection[int]) -> BookedLine | None:
    """An entry, as it counts, as a bank account moves; None where it moves none, or more than one."""
    totals: dict[int, Decimal] = {}
    for leg in standing.legs:
        totals[leg.account_id] = totals.get(leg.account_id, ZERO) + leg.amount
    banks = [account for account, amount in totals.items() if amount and account in bank_accounts]
    lines = tuple((a, amount) for a, amount in totals.items() if amount and a not in bank_accounts)
    if len(banks) != 1 or not lines:
        return None
    return BookedLine(
        standing.entry_id,
        standing.date,
        standing.description,
        banks[0],
        totals[banks[0]],
        lines,
        standing.status,
        standing.counterparty,
        standing.reference,
    )


class OpenLine(Struct, frozen=True):
    """A bank line that has no account yet. ``reference`` and ``entry_id``: what is no evidence about itself."""

    text: str
    amount: Decimal
    day: date
    bank: int
    reference: str = ""
    entry_id: str = ""

    def is_same(self, line: BookedLine) -> bool:
        """Whether the booked line is this one."""
        return line.entry_id == self.entry_id or (bool(self.reference) and line.reference == self.reference)
