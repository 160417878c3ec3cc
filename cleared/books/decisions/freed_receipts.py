"""Receipts of entries that git took back: the number of such an entry is given again, and its receipts do not go with
it."""

from __future__ import annotations

import re
from typing import Final

from cleared.base.clock import format_iso
from cleared.books.ledger.receipts import UNLINKED, append_receipt_rows, parse_receipts
from cleared.books.staged_books import books_of
from cleared.primitives.context import Context

_LINKED: Final = rb",([0-9]{4}-[0-9]{2}-[0-9]+),linked,"


def free_receipts(context: Context, data: bytes) -> bytes:
    """The record of receipts, without the links to numbers that this draft gives to entries of its own. ``data``: as it
    was committed, and just that where there are none."""
    books, path, at = books_of(context).books, books_of(context).bank.paths.receipts, format_iso(context.now)
    new = {entry.entry_id for entry in books.list_staged()}
    if new.isdisjoint(entry_id.decode() for entry_id in re.findall(_LINKED, data)):  # as nearly always: it may be long
        return data
    rows = [
        receipt.format_row(UNLINKED, context.agent, at, entry_id)
        for receipt in parse_receipts(data, path).values()
        for entry_id in new.intersection(receipt.entries)
    ]
    return append_receipt_rows(data, sorted(rows)) if rows else data
