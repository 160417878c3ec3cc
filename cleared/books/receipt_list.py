"""Which receipts are kept, which entries they prove, and which payments have none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from cleared.base import money
from cleared.base.errors import Place, UsageError, WorkspaceError, restore_remedy
from cleared.base.safe_files import read_stable
from cleared.books.index.journal_index import EntryFilter
from cleared.books.ledger.receipts import (
    Payment,
    Receipt,
    find_likely,
    find_receipt,
    group_by_entry,
    list_inbox,
    list_payments,
    parse_receipts,
)
from cleared.books.ledger.transfers import find_sides
from cleared.books.queries import make_report_books, open_committed_books, open_journal_index
from cleared.books.staged_books import ledger_accounts
from cleared.changes.host import Host


def list_receipts(host: Host, *, loose: bool = False) -> dict[str, Any]:
    """``{receipts: [{name, sha256, file, bytes, at, by, entries, is_here}], inbox: [name]}``, newest first.

    ``loose``: only those without an entry that stands. ``is_here``: whether this clone has the file.
    """
    with open_journal_index(host) as (index, books):
        receipts = parse_receipts(books.source.read(books.paths.receipts), books.paths.receipts)
        rows = []
        for receipt in reversed(receipts.values()):
            entries = [entry for entry_id in receipt.entries if (entry := index.find_entry(entry_id)) is not None]
            is_loose = all(entry.status == "voided" for entry in entries)
            if is_loose or not loose:
                voided = [entry.entry_id for entry in entries if entry.status == "voided"]
                rows.append({**_receipt_data(host, receipt), "voided": voided})
    return {"receipts": rows, "inbox": [path.name for path in list_inbox(host.root)]}


def _receipt_data(host: Host, receipt: Receipt) -> dict[str, Any]:
    return {
        "name": receipt.name,
        "sha256": receipt.sha256,
        "file": receipt.file,
        "bytes": receipt.size,
        "at": receipt.at,
        "by": receipt.by,
        "entries": list(receipt.entries),
        "is_here": (host.root / receipt.file).is_file(),
    }


def list_missing_receipts(host: Host, over: Decimal, period: str | None = None) -> dict[str, Any]:
    """``{payments: [{entry_id, date, amount, text}], total, currency}``: money that went out, more than ``over`` each,
    and no receipt proves it; oldest first. Raises ``UsageError`` for what is no period or amount."""
    if not over.is_finite() or over < 0:
        raise UsageError(f"{over} is not an amount", remedy="Such as --over 75.")
    with open_journal_index(host) as (index, books):
        wanted = EntryFilter()
        if period is not None:
            span = make_report_books(host, index, books).parse_period(period)
            wanted = EntryFilter(start=span.start, end=span.end)
        receipts = parse_receipts(books.source.read(books.paths.receipts), books.paths.receipts)
        proved = {entry_id for receipt in receipts.values() for entry_id in receipt.entries}
        entries, banks = list(index.iter_entries(wanted)), set(ledger_accounts(host.config).values())
        proved |= {side.entry_id for side in find_sides(entries, banks) if side.is_cleared}  # no transfer has a receipt
        payments = [
            each
            for each in list_payments(entries, banks)
            if each.is_out and each.amount > over and each.entry_id not in proved
        ]
    return {
        "payments": [_payment_data(each) for each in payments],
        "total": money.format_amount(money.total([p.amount for p in payments])),
        "currency": host.config.business.currency,
    }


def read_payments(host: Host) -> list[Payment]:
    """All payments of the books."""
    with open_journal_index(host) as (index, _):
        return list(list_payments(index.iter_entries(EntryFilter()), set(ledger_accounts(host.config).values())))


def read_receipt(host: Host, name: str, payments: Sequence[Payment]) -> dict[str, Any]:
    """One receipt: what ``list_receipts`` says of it, and the ``amounts`` and ``days`` that it names. Of ``payments``,
    all of the books: those of its entries (``proved``), those that it is ``likely`` of, and ``others`` without a
    receipt, nearest to its days first.

    Raises ``UsageError`` where there is none of that digest or name.
    """
    receipts = _read_receipts(host)
    receipt, taken = find_receipt(receipts, name), group_by_entry(receipts.values())
    open_payments = [each for each in payments if each.entry_id not in taken]
    today = host.clock.now().date()
    likely = find_likely(receipt, open_payments, today)
    day = receipt.days[0] if receipt.days else today
    others = sorted((each for each in open_payments if each not in likely), key=lambda each: abs((each.day - day).days))
    return {
        **_receipt_data(host, receipt),
        "amounts": [money.format_amount(amount) for amount in receipt.amounts],
        "days": [str(each) for each in receipt.days],
        "proved": [_payment_data(each) for each in payments if each.entry_id in receipt.entries],
        "likely": [_payment_data(each) for each in likely],
        "others": [_payment_data(each) for each in others],
    }


def read_receipt_file(host: Host, name: str) -> tuple[str, bytes]:
    """What a receipt was called, and its content. Raises ``UsageError`` where there is none, or this clone has not got
    it, ``WorkspaceError`` where the file is not the one that was kept."""
    receipt = find_receipt(_read_receipts(host), name)
    path = host.root / receipt.file
    if not path.is_file():
        raise UsageError(f"this clone has not got {receipt.name!r}", remedy="Keep it here: hand it in once more.")
    data, _ = read_stable(path, host.config.receipts.max_bytes, shown=receipt.file)
    if hashlib.sha256(data).hexdigest() != receipt.sha256:
        raise WorkspaceError(
            "the file is not the one that was kept", place=Place(receipt.file), remedy=restore_remedy(receipt.file)
        )
    return receipt.name, data


def _read_receipts(host: Host) -> dict[str, Receipt]:
    with open_committed_books(host) as (_, _snapshot, books, _bank):
        return parse_receipts(books.source.read(books.paths.receipts), books.paths.receipts)


def _payment_data(payment: Payment) -> dict[str, str]:
    return {
        "entry_id": payment.entry_id,
        "date": str(payment.day),
        "amount": money.format_amount(payment.amount),
        "text": payment.text,
    }
