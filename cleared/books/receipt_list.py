"""Which receipts are kept, which entries they prove, and which payments have none."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cleared.base import money
from cleared.base.errors import UsageError
from cleared.books.index.journal_index import EntryFilter
from cleared.books.ledger.receipts import Receipt, list_inbox, list_payments, parse_receipts
from cleared.books.ledger.transfers import find_sides
from cleared.books.queries import make_report_books, open_journal_index
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
        "payments": [
            {"entry_id": p.entry_id, "date": str(p.day), "amount": money.format_amount(p.amount), "text": p.text}
            for p in payments
        ],
        "total": money.format_amount(money.total([p.amount for p in payments])),
        "currency": host.config.business.currency,
    }
