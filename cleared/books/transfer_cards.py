"""What persons answered about possible transfers."""

from __future__ import annotations

from collections.abc import Iterable

from cleared.books.card_kinds import TRANSFER
from cleared.cards.card import Card


def refused_transfers(cards: Iterable[Card]) -> set[tuple[str, str]]:
    """The bank's texts of what left and what arrived, where somebody said that these are two different things."""
    refused = set()
    for card in cards:
        rows = card.details.get("rows")
        if card.kind == TRANSFER.name and card.resolution == "different" and isinstance(rows, list) and len(rows) == 2:
            out, into = (str(row.get("text", "")) if isinstance(row, dict) else "" for row in rows)
            refused.add((out, into))
    return refused
