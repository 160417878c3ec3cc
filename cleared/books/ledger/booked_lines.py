"""How bank lines are booked: one movement of a bank account and where it went, corrections counted in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from cleared.base.clock import check_deadline
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.chains import CORRECTS
from cleared.books.ledger.entry import ZERO, Entry, Leg

DECIDED: Final = frozenset({"user-confirmed", "user-corrected"})
"""The statuses that a person gives."""


class BookedLine(NamedTuple):
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


def clean_payee(description: str) -> str:
    """What equal payees have in common: the words of the text, without numbers and marks."""
    words = []
    for word in normalise_description(description).replace("*", " ").replace("#", " ").split():
        plain = word.strip(".,;:-/()'\"")
        if plain and not any(c.isdigit() for c in plain):
            words.append(plain)
    return " ".join(words) or normalise_description(description)


def read_booked_lines(entries: Iterable[Entry], bank_accounts: Collection[int]) -> Iterator[BookedLine]:
    """The standing entries that move one bank account, in the order of the journal."""
    corrections: dict[str, list[Leg]] = defaultdict(list)
    heads = {entry.entry_id: entry for entry in check_deadline(entries) if entry.status != "voided"}
    corrected = {entry_id: standing for entry_id, entry in heads.items() if (standing := _corrected(entry, heads))}
    for entry_id, originals in corrected.items():
        for original in originals:
            corrections[original] += heads[entry_id].legs
    for entry_id, entry in heads.items():
        if entry_id in corrected:
            continue
        totals: dict[int, Decimal] = {}
        for leg in (*entry.legs, *corrections.get(entry_id, ())):
            totals[leg.account_id] = totals.get(leg.account_id, ZERO) + leg.amount
        banks = [account for account, amount in totals.items() if amount and account in bank_accounts]
        lines = tuple((a, amount) for a, amount in totals.items() if amount and a not in bank_accounts)
        if len(banks) == 1 and lines:
            yield BookedLine(
                entry_id,
                entry.date,
                entry.description,
                banks[0],
                totals[banks[0]],
                lines,
                entry.status,
                entry.counterparty,
                entry.reference,
            )


def _corrected(entry: Entry, standing: Collection[str]) -> list[str]:
    """The standing entries that an entry corrects."""
    if CORRECTS not in entry.tags:
        return []
    named = [tag.removeprefix(CORRECTS) for tag in entry.tags.split(";") if tag.startswith(CORRECTS)]
    return [entry_id for entry_id in named if entry_id in standing]
