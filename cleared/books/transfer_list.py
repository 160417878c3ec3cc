"""Transfers between own accounts: which are in the books from both sides, and which are not."""

from __future__ import annotations

from typing import Any

from cleared.books.index.journal_index import EntryFilter
from cleared.books.ledger.transfers import TransferPair, TransferSide, find_sides, find_transfers
from cleared.books.queries import open_journal_index
from cleared.books.staged_books import ledger_accounts
from cleared.changes.host import Host


def read_transfers(host: Host) -> dict[str, Any]:
    """``{pairs, unpaired, proposed, balance}``: both sides are in; one is; they look like both sides and are booked
    otherwise. Amounts are digits."""
    with open_journal_index(host) as (index, _):
        sides = find_sides(index.iter_entries(EntryFilter()), set(ledger_accounts(host.config).values()))
    found = find_transfers(sides)
    return {
        "pairs": [_pair_data(pair) for pair in found.pairs],
        "unpaired": [_side_data(side) for side in found.unpaired],
        "proposed": [_pair_data(pair) for pair in found.proposed],
    }


def _pair_data(pair: TransferPair) -> dict[str, Any]:
    return {"out": _side_data(pair.out), "in": _side_data(pair.into), "days": pair.days}


def _side_data(side: TransferSide) -> dict[str, Any]:
    return {
        "entry_id": side.entry_id,
        "date": side.day.isoformat(),
        "account_id": side.account,
        "amount": str(side.amount),
        "text": side.text,
        "status": side.status,
    }
