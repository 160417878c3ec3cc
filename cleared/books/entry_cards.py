"""The card that asks about an entry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cleared.base.clock import check_deadline
from cleared.books.card_kinds import ENTRY
from cleared.books.ledger.entry import Entry
from cleared.primitives.context import Context

_UNASKED: Final = "the script left it for a person to confirm"


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


def stage_unasked_cards(context: Context, waiting: Iterable[Entry]) -> None:
    """Stage the card of each of these entries that no open card asks about."""
    asked = {card.record_id for card in context.cards.open_cards(ENTRY.name)}
    for entry in check_deadline(waiting):
        if entry.entry_id not in asked:
            title = f"{entry.date} {entry.amount} {entry.description[:120]}"
            stage_entry_card(context, entry, title, _UNASKED, entry.confidence)
            context.log_action("queue_add_review", _UNASKED, entry.entry_id)
