"""Corrections: entries tagged ``@corrects=<id>`` that take back legs of another and post others."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from cleared.ledger.entry import ZERO, Entry, Leg
from cleared.ledger.staged_journal import Books

CORRECTS: Final = "@corrects="
REVERSES: Final = "@rev="
"""The tag of an entry that takes all of another back."""


def make_leg(account: int, amount: Decimal) -> Leg:
    """One leg; a positive amount is a debit."""
    return Leg(account, amount, ZERO) if amount > 0 else Leg(account, ZERO, -amount)


def find_corrections(books: Books, entry: Entry) -> list[Entry]:
    """The corrections of an entry that stand, oldest first."""
    mark = f"{CORRECTS}{entry.entry_id}"
    return [e for e in books.iter_entries() if e.status != "voided" and mark in e.tags.split(";")]


def find_all_corrections(books: Books) -> dict[str, list[Entry]]:
    """Entry id → the corrections of it that stand, oldest first; for who asks about many entries."""
    corrections: dict[str, list[Entry]] = {}
    for entry in books.iter_entries():
        if CORRECTS in entry.tags and entry.status != "voided":
            for tag in entry.tags.split(";"):
                if tag.startswith(CORRECTS):
                    corrections.setdefault(tag.removeprefix(CORRECTS), []).append(entry)
    return corrections


def effective_legs(books: Books, entry: Entry) -> tuple[Leg, ...]:
    """The entry's legs after all corrections of it that stand."""
    corrections = find_corrections(books, entry)
    if not corrections:
        return entry.legs
    totals: dict[int, Decimal] = {}
    for each in (*entry.legs, *(x for e in corrections for x in e.legs)):
        totals[each.account_id] = totals.get(each.account_id, ZERO) + each.amount
    return tuple(make_leg(account, amount) for account, amount in totals.items() if amount)
