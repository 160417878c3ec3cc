"""The trial balance that a period was closed with, and whether it is still that."""

from __future__ import annotations

import hashlib
from datetime import date

from cleared.base import money
from cleared.base.errors import Place
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.staged_journal import Books
from cleared.domains.record_audit import Violation


def check_closed_periods(books: Books, balances: DayBalances) -> list[Violation]:
    """A closed period's trial balance is still the one it was closed with."""
    through = books.periods.closed_through
    if through is None:
        return []
    marks = [m for m in books.periods.marks if m.through == through and m.digest]
    if not marks or marks[-1].digest == digest_trial_balance(balances, through, books.bounds.places):
        return []
    return [
        Violation(
            "period_open",
            f"the trial balance at {through} is not the one the period was closed with",
            "Find the change (cleared check names entries, git log -- books) and reverse it.",
            Place(books.paths.periods),
        )
    ]


def digest_trial_balance(balances: DayBalances, through: date, places: int) -> str:
    """SHA-256 over ``account amount`` lines of the trial balance at the end of ``through``; zero balances left out."""
    quantum = money.quantum(places)
    text = "".join(
        f"{account} {money.format_amount(amount.quantize(quantum))}\n"
        for account, amount in balances.trial_balance(through).items()
        if amount
    )
    return hashlib.sha256(text.encode()).hexdigest()
