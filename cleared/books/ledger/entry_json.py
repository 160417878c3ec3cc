"""An entry as plain data."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from cleared.base import money
from cleared.books.ledger.entry import ZERO, Entry, leg_suffix


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """An entry for people and ``--json``: numbers as their digits."""
    return entry_dict(entry, money.format_amount)


@lru_cache(maxsize=1_000)
def parse_number(text: str) -> Decimal:
    """A number as a journal has it, such as a confidence; zero where it is none."""
    try:
        return Decimal(text or "0")
    except ArithmeticError:
        return ZERO


def entry_dict(entry: Entry, number: Callable[[Decimal], Any]) -> dict[str, Any]:
    """An entry with its numbers as ``number`` makes them."""
    return {
        "entry_id": entry.entry_id,
        "date": entry.date.isoformat(),
        "description": entry.description,
        "amount": number(entry.amount),
        "status": entry.status,
        "counterparty": entry.counterparty,
        "reference": entry.reference,
        "confidence": number(parse_number(entry.confidence)),
        "evidence": entry.evidence,
        "tags": entry.tags.split(";") if entry.tags else [],
        "notes": entry.notes,
        "lines": [
            {
                "leg_id": entry.entry_id + leg_suffix(i),
                "account_id": leg.account_id,
                # The empty side has the places of the other: 0.00, not 0.
                "debit": number(leg.debit or leg.credit * 0),
                "credit": number(leg.credit or leg.debit * 0),
            }
            for i, leg in enumerate(entry.legs)
        ],
    }
