"""Which entry a receipt belongs to, by amount and day. It is proposed to a person, never linked by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from cleared.books.ledger.entry import Entry
from cleared.books.ledger.receipts import Receipt

DAYS_BEFORE: Final = 3
"""A bank line may be so much older than the receipt's day."""
DAYS_AFTER: Final = 10
"""Or so much younger: a card is charged days later."""
DAYS_UNDATED: Final = 45
"""How old an entry may be for a receipt that names no day."""


class Payment(NamedTuple):
    """What of an entry a receipt can prove: money that left or reached a bank account."""

    entry_id: str
    day: date
    amount: Decimal
    """Positive; what the bank accounts moved in all."""
    is_out: bool
    text: str


def list_payments(entries: Iterable[Entry], bank_accounts: Collection[int]) -> Iterator[Payment]:
    """The payments among entries: what stands, and moved money of a bank account; not transfers between them. A
    correction is one where it was posted for the bank's line again."""
    for entry in entries:
        if entry.status == "voided":
            continue
        moved = sum((leg.amount for leg in entry.legs if leg.account_id in bank_accounts), Decimal(0))
        if moved:
            yield Payment(entry.entry_id, entry.date, abs(moved), moved < 0, entry.counterparty or entry.description)


def find_likely(receipt: Receipt, payments: Collection[Payment], today: date) -> list[Payment]:
    """The payments that a receipt is most likely about: none, one, or several that are as likely."""
    ranked: list[tuple[int, int, Payment]] = []
    for payment in payments:
        if payment.amount in receipt.amounts and (days := _days_between(receipt, payment.day, today)) is not None:
            ranked.append((receipt.amounts.index(payment.amount), days, payment))
    ranked.sort(key=lambda each: each[:2])
    if not receipt.days:
        return [payment for *_, payment in ranked]
    return [payment for *likely, payment in ranked if tuple(likely) == ranked[0][:2]]


def _days_between(receipt: Receipt, paid: date, today: date) -> int | None:
    """How far a payment is from the nearest day of the receipt; None where it is too far."""
    if not receipt.days:
        return 0 if timedelta(0) <= today - paid <= timedelta(DAYS_UNDATED) else None
    near = [abs((paid - day).days) for day in receipt.days if -DAYS_BEFORE <= (paid - day).days <= DAYS_AFTER]
    return min(near) if near else None


def first_day(receipts: Iterable[Receipt], today: date) -> date:
    """The first day of which a payment can be meant by any of these receipts."""
    spans = [(day, DAYS_BEFORE) for receipt in receipts for day in receipt.days] + [(today, DAYS_UNDATED)]
    return min(day - min(timedelta(before), day - date.min) for day, before in spans)
