"""Corrections: entries tagged ``@corrects=<id>`` that take back legs of another and post others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from cleared.books.ledger.chains import CORRECTS, sum_by_account
from cleared.books.ledger.entry import ZERO, Entry, Leg
from cleared.books.ledger.staged_journal import Books


def make_leg(account: int, amount: Decimal) -> Leg:
    """One leg; a positive amount is a debit."""
    return Leg(account, amount, ZERO) if amount > 0 else Leg(account, ZERO, -amount)


def find_corrections(books: Books, entry: Entry) -> list[Entry]:
    """The corrections of an entry that stand, oldest first."""
    corrections = [books.get_entry(entry_id) for entry_id in books.chains.find_linked(entry.entry_id, CORRECTS)]
    return [each for each in corrections if each.status != "voided"]


def effective_legs(books: Books, entry: Entry) -> tuple[Leg, ...]:
    """The entry's legs after all corrections of it that stand."""
    return join_legs(entry, find_corrections(books, entry))


def join_legs(entry: Entry, corrections: Sequence[Entry]) -> tuple[Leg, ...]:
    """What an entry posts together with its corrections, a leg for each account that they move."""
    if not corrections:
        return entry.legs
    totals = sum_by_account((leg.account_id, leg.amount) for each in (entry, *corrections) for leg in each.legs)
    return tuple(make_leg(account, amount) for account, amount in totals.items() if amount)


def void_with_corrections(
    books: Books, entry: Entry, reason: str, not_before: date | None = None
) -> list[tuple[Entry, Entry]]:
    """Void an entry and its corrections, all on one day, not before ``not_before``: ``(original, reversal)`` of each,
    the entry's own last.

    Raises ``PrimitiveError`` where it is voided already.
    """
    day = books.date_change([entry.entry_id], not_before)
    corrections = reversed(find_corrections(books, entry))  # what is corrected is taken back after its correction
    return [books.void_entry(each.entry_id, reason, day) for each in (*corrections, entry)]
