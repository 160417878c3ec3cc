"""``receivables``: what customers owe, from the account of receivables."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date as Day
from decimal import Decimal
from typing import Final

from cleared.base import money
from cleared.base.clock import check_deadline
from cleared.base.errors import Place, PrimitiveError
from cleared.books.ledger.entry import Entry
from cleared.books.primitives.book_shapes import Receivable
from cleared.books.staged_books import books_of
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import AccountId, Date

_RECEIVABLE: Final = 1200
"""Accounts receivable in every chart that comes with the program."""


@primitive(effect=Effect.READ, grant="journal.read")
def receivables(ctx: Context, as_of: Date | None = None, account: AccountId = _RECEIVABLE) -> list[Receivable]:
    """What each customer owes at the end of a day (today), whoever waits longest first.

    It is what was posted to ``account`` (1200, accounts receivable), by counterparty: payments settle the oldest
    invoices first. A customer who owes nothing is left out; a negative amount is a payment without an invoice.
    """
    books, through = books_of(ctx).books, as_of or ctx.today
    if books.chart.find_account(account) is None:
        message, remedy = books.chart.why_not_postable(account, ctx.today) or ("", "")
        raise PrimitiveError(message, place=Place(field="account"), remedy=remedy)
    names: dict[str, str] = {}
    moved: dict[str, list[tuple[Day, Decimal]]] = {}
    for entry in check_deadline(_list_entries(books.iter_entries(), account, through)):
        name = " ".join((entry.counterparty or entry.description).split())
        amount = money.total([leg.amount for leg in entry.legs if leg.account_id == account])
        moved.setdefault(names.setdefault(name.casefold(), name), []).append((entry.date, amount))
    rows = [_describe_customer(name, moves, through) for name, moves in moved.items()]
    return sorted((row for row in rows if row["amount"]), key=lambda row: (row["since"], row["counterparty"]))


def _list_entries(entries: Iterable[Entry], account: int, through: Day) -> list[Entry]:
    found = [e for e in entries if e.date <= through and any(leg.account_id == account for leg in e.legs)]
    return sorted(found, key=lambda entry: entry.date)


def _describe_customer(name: str, moves: list[tuple[Day, Decimal]], through: Day) -> Receivable:
    """``moves``: what a customer came to owe (or paid, negative), in the order of the days."""
    owed = money.total([amount for _, amount in moves])
    sign = 1 if owed > 0 else -1
    settled = money.total([amount for _, amount in moves if amount * sign < 0])
    since = moves[0][0]
    for day, amount in moves:
        if amount * sign > 0:
            since, settled = day, settled + amount
            if settled * sign > 0:
                break
    return {
        "counterparty": name,
        "amount": owed,
        "since": since.isoformat(),
        "days": (through - since).days,
    }
