"""How long cards have waited, and which of them a person is to be reminded of. No card expires by its age."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from cleared.cards.card import Card

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def overdue_cards(cards: Iterable[Card], now: datetime, remind_after: str) -> list[Card]:
    """The open cards that have waited for ``remind_after`` (``review.remind_after``, such as 12h, 3d, 2w) or longer,
    oldest first."""
    after = timedelta(**{_UNITS[remind_after[-1]]: int(remind_after[:-1])})
    late = [c for c in cards if c.status == "open" and (w := waiting_time(c, now)) is not None and w >= after]
    return sorted(late, key=lambda card: card.created_at)


def waiting_time(card: Card, now: datetime) -> timedelta | None:
    """How long the card has been open by ``now``; None where its time is not readable (one made by hand)."""
    try:
        return now - datetime.fromisoformat(card.created_at)
    except (ValueError, TypeError):
        return None
