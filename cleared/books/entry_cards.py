"""The card that asks about an entry."""

from __future__ import annotations

from cleared.books.card_kinds import ENTRY
from cleared.books.ledger.entry import Entry
from cleared.primitives.context import Context


def stage_entry_card(context: Context, entry: Entry, title: str, description: str, confidence: str) -> str:
    """Stage a card that asks about an entry, unless it was asked about before; its id."""
    return context.stage_card(
        ENTRY.name,
        (entry.entry_id,),
        title,
        record_id=entry.entry_id,
        description=description,
        confidence=confidence,
        amount=str(entry.amount),
        evidence=entry.evidence,
        accounts=[leg.account_id for leg in entry.legs],
    )
