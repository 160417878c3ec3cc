"""What books are closed with, from their entries."""

from __future__ import annotations

from datetime import date

from cleared.books.ledger.closed_periods import digest_trial_balance
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.staged_journal import Books


def digest_entries(books: Books, through: date) -> str:
    """The digest of the trial balance at the end of a day."""
    balances = DayBalances()
    for entry in books.iter_entries():
        balances.add_entry(entry)
    return digest_trial_balance(balances, through, books.bounds.places)
