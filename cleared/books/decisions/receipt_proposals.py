"""Proposing which entry a kept receipt belongs to, as cards: when it comes, and when an import brings the entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cleared.base import money
from cleared.books.card_kinds import RECEIPT
from cleared.books.entry_cards import choose_key, mark_postings
from cleared.books.ledger.receipts import (
    Payment,
    Receipt,
    find_likely,
    first_day,
    group_by_entry,
    list_payments,
    parse_receipts,
)
from cleared.books.staged_books import books_of
from cleared.cards.card import card_id
from cleared.primitives.context import Context


def read_receipts(context: Context) -> dict[str, Receipt]:
    """SHA-256 → the committed receipts."""
    path = books_of(context).bank.paths.receipts
    data = books_of(context).bank.source.read(path)
    return parse_receipts(data, path) if data is not None else {}


def propose_kept_receipts(context: Context) -> None:
    """Stage a card for each receipt without an entry that a payment fits now: where it was given to one, that of a
    month to which the draft posts, as what was taken back may have come again. Others would be read for each run."""
    receipts, staged = read_receipts(context), books_of(context).books.staged
    months = {f"{year:04}-{month:02}" for year, month in staged}
    propose_links(context, [each for each in receipts.values() if {i[:7] for i in each.links} <= months], receipts)


def propose_links(
    context: Context, loose: Iterable[Receipt], receipts: Mapping[str, Receipt]
) -> dict[str, list[Payment]]:
    """Stage a card for each receipt without an entry that stands, where one payment fits; SHA-256 → that payment, or
    several that fit as well. Nothing is asked twice."""
    loose = [each for each in loose if each.amounts and not _proves_any(context, each)]
    if not loose:
        return {}
    since = first_day(loose, context.today)
    given = group_by_entry(receipts.values())
    months = [month for month in books_of(context).books.list_months() if month >= (since.year, since.month)]
    entries = (
        entry
        for month in sorted({*months, *books_of(context).books.staged})
        for entry in books_of(context).books.iter_entries(*month)
        if not any(receipt.proves(entry) for receipt in given.get(entry.entry_id, ()))
    )
    banks = set(books_of(context).ledger_accounts.values())
    payments = list(list_payments(entries, banks))
    likely: dict[str, list[Payment]] = {}
    for receipt in loose:
        fits = find_likely(receipt, payments, context.today)
        if len(fits) == 1 and not _stage_card(context, receipt, fits[0]):
            continue
        likely[receipt.sha256] = fits
    return likely


def _proves_any(context: Context, receipt: Receipt) -> bool:
    return any(entry.status != "voided" for entry in receipt.list_proved(books_of(context).books.find_entry))


def _stage_card(context: Context, receipt: Receipt, payment: Payment) -> bool:
    """Whether it was not asked before."""
    entries = [books_of(context).books.get_entry(payment.entry_id)]
    key = choose_key(context.cards, RECEIPT.name, [receipt.sha256, payment.entry_id], entries, again=False)
    if card_id(RECEIPT.name, *key) in context.cards.committed_cards:
        return False
    amount = money.format_amount(payment.amount)
    title = f"{receipt.name[:80]}: the receipt of {amount} on {payment.day} ({payment.text[:80]})?"
    context.stage_card(
        RECEIPT.name,
        tuple(key),
        title[:300],
        receipt=receipt.sha256,
        entry=payment.entry_id,
        amount=amount,
        file=receipt.file,
        rows=[{"entry": payment.entry_id, "date": str(payment.day), "amount": amount, "text": payment.text[:200]}],
        _postings=mark_postings(entries),
    )
    return True
