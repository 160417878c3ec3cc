"""Which receipts are kept, which entries they prove, and which payments have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from heapq import nsmallest
from typing import Any

from cleared.base import money
from cleared.base.errors import Place, RestoreRemedy, UsageError, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.books.index.entry_lookup import EntryLookup
from cleared.books.index.standing_books import StandingBooks, read_standing_books
from cleared.books.ledger.chart import OWNER_DRAWS
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.grouped_items import GroupedItems
from cleared.books.ledger.receipts import (
    FindEntry,
    Payment,
    Receipt,
    find_likely,
    find_receipt,
    list_inbox,
    list_payments,
    parse_receipts,
)
from cleared.books.ledger.staged_journal import Books
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, find_sides
from cleared.books.queries import make_report_books, open_committed_books, open_journal_index
from cleared.books.staged_books import ledger_accounts
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource


def list_receipts(host: Host, *, loose: bool = False) -> dict[str, Any]:
    """``{receipts: [{name, sha256, file, bytes, at, by, entries, is_here}], inbox: [name]}``, newest first.

    ``loose``: only those without an entry that stands. ``is_here``: whether this clone has the file.
    """
    with open_journal_index(host) as (index, books):
        receipts = parse_receipts(books.source.read(books.paths.receipts), books.paths.receipts)
        rows = []
        for receipt in reversed(receipts.values()):
            entries = receipt.list_proved(index.find_entry)
            is_loose = all(entry.status == "voided" for entry in entries)
            if is_loose or not loose:
                voided = [entry.entry_id for entry in entries if entry.status == "voided"]
                rows.append({**_receipt_data(host, receipt, entries), "voided": voided})
    return {"receipts": rows, "inbox": [path.name for path in list_inbox(host.root)]}


def _receipt_data(host: Host, receipt: Receipt, entries: Sequence[Entry]) -> dict[str, Any]:
    return {
        "name": receipt.name,
        "sha256": receipt.sha256,
        "file": receipt.file,
        "bytes": receipt.size,
        "at": receipt.at,
        "by": receipt.by,
        "entries": [entry.entry_id for entry in entries],
        "is_here": (host.root / receipt.file).is_file(),
    }


def list_missing_receipts(host: Host, over: Decimal, period: str | None = None) -> dict[str, Any]:
    """``{payments: [{entry_id, date, amount, text}], total, currency}``: what ``find_missing_receipts`` finds."""
    payments = find_missing_receipts(host, over, period)
    return {
        "payments": list(map(describe_payment, payments)),
        "total": money.format_amount(money.total([each.amount for each in payments])),
        "currency": host.config.business.currency,
    }


def find_missing_receipts(host: Host, over: Decimal, period: str | None = None) -> list[Payment]:
    """Money that went out, more than ``over`` each, and no receipt proves it, nor did the owner take it; oldest first.
    Raises ``UsageError`` for what is no period or amount."""
    if not over.is_finite() or over < 0:
        raise UsageError(f"{over} is not an amount", remedy="Such as --over 75.")
    with open_journal_index(host) as (index, books):
        span = make_report_books(host, index, books).parse_period(period) if period is not None else None
        receipts = parse_receipts(books.source.read(books.paths.receipts), books.paths.receipts)
        standing, banks = _read_standing(host, books)
    proved = _list_proved(receipts, standing.entries.get)
    sides = find_sides(_list_cleared(standing), banks)
    proved |= {side.entry_id for side in sides if side.is_cleared}  # no transfer has a receipt
    return [
        each
        for month in standing.months.values()
        for each in month.entries.recall(_find_payments, banks)
        if each.is_out
        and each.amount > over
        and each.entry_id not in proved
        and (span is None or span.start <= each.day <= span.end)
        and not _is_drawn(month.standing.items.get(each.entry_id), banks)
    ]


def _list_proved(receipts: Mapping[str, Receipt], find_entry: FindEntry) -> set[str]:
    """The entries that have a receipt."""
    return {entry.entry_id for receipt in receipts.values() for entry in receipt.list_proved(find_entry)}


def _read_standing(host: Host, books: Books) -> tuple[StandingBooks, frozenset[int]]:
    """The entries of books that are open; and which accounts are banks'."""
    assert isinstance(books.source, CommittedSource)
    banks = frozenset(ledger_accounts(host.config).values())
    return read_standing_books(host.layout, books.source.snapshot, host.decimal_places), banks


def _list_payments(standing: StandingBooks, banks: frozenset[int]) -> list[Payment]:
    return [each for month in standing.months.values() for each in month.entries.recall(_find_payments, banks)]


def _find_payments(part: GroupedItems[Entry], banks: frozenset[int]) -> list[Payment]:
    return list(list_payments(part.items.values(), banks))


def _is_drawn(standing: Entry | None, banks: frozenset[int]) -> bool:
    """Whether it is what the owner took, as it counts: that is no cost of the business."""
    accounts = {leg.account_id for leg in standing.legs} if standing is not None else set[int]()
    return OWNER_DRAWS in accounts and accounts - banks == {OWNER_DRAWS}


def _list_cleared(standing: StandingBooks) -> list[Entry]:
    """The entries that go through the clearing account, each with its corrections; or do by a correction."""
    months = standing.months.values()
    found = {each.entry_id: each for month in months for each in month.entries.group(_is_cleared).get(True, ())}
    for month in months:
        for entry_id, corrections in month.corrected.items():
            chain = [month.entries.items[entry_id], *corrections]
            if any(True in _is_cleared(each) for each in chain):
                found |= {each.entry_id: each for each in chain}
    return list(found.values())


def _is_cleared(entry: Entry) -> tuple[bool, ...]:
    return (True,) if any(leg.account_id == CLEARING_ACCOUNT for leg in entry.legs) else ()


def read_payments(host: Host) -> list[Payment]:
    """All payments of the books."""
    with open_committed_books(host) as (_, _snapshot, books, _bank):
        return _list_payments(*_read_standing(host, books))


def read_receipt(host: Host, name: str, payments: Sequence[Payment], wanted: str, most: int) -> dict[str, Any]:
    """One receipt: what ``list_receipts`` says of it, and the ``amounts`` and ``days`` that it names. Of ``payments``,
    all of the books: those of its entries (``proved``), those that it is ``likely`` of, and at most so many ``others``
    without a receipt, of whose text, amount or day ``wanted`` is a part, nearest to its days first.

    Raises ``UsageError`` where there is none of that digest or name.
    """
    with open_journal_index(host) as (index, books):
        receipts = parse_receipts(books.source.read(books.paths.receipts), books.paths.receipts)
        receipt, taken = find_receipt(receipts, name), _list_proved(receipts, EntryLookup(index).find)
        entries = receipt.list_proved(index.find_entry)
    open_payments = [each for each in payments if each.entry_id not in taken]
    today = host.clock.now().date()
    likely = find_likely(receipt, open_payments, today)
    day = receipt.days[0] if receipt.days else today
    others = (each for each in open_payments if each not in likely and (not wanted or wanted in _search_text(each)))
    return {
        **_receipt_data(host, receipt, entries),
        "amounts": [money.format_amount(amount) for amount in receipt.amounts],
        "days": [str(each) for each in receipt.days],
        "proved": [describe_payment(each) for each in payments if each.entry_id in {e.entry_id for e in entries}],
        "likely": [describe_payment(each) for each in likely],
        "others": [describe_payment(each) for each in nsmallest(most, others, lambda each: abs((each.day - day).days))],
    }


def _search_text(payment: Payment) -> str:
    return f"{payment.text} {money.format_amount(payment.amount)} {payment.day}".casefold()


def read_receipt_file(host: Host, name: str) -> tuple[str, bytes]:
    """What a receipt was called, and its content. Raises ``UsageError`` where there is none, or this clone has not got
    it, ``WorkspaceError`` where the file is not the one that was kept."""
    with open_committed_books(host) as (_, _snapshot, books, _bank):
        receipts = parse_receipts(books.source.read(books.paths.receipts), books.paths.receipts)
    receipt = find_receipt(receipts, name)
    path = host.root / receipt.file
    if not path.is_file():
        raise UsageError(f"this clone has not got {receipt.name!r}", remedy="Keep it here: hand it in once more.")
    data, _ = read_stable(path, host.config.receipts.max_bytes, shown=receipt.file)
    if not receipt.has_content(data):
        raise WorkspaceError(
            "the file is not the one that was kept", place=Place(receipt.file), remedy=RestoreRemedy(receipt.file)
        )
    return receipt.name, data


def describe_payment(payment: Payment) -> dict[str, str]:
    """A payment as plain data."""
    return {
        "entry_id": payment.entry_id,
        "date": str(payment.day),
        "amount": money.format_amount(payment.amount),
        "text": payment.text,
    }
