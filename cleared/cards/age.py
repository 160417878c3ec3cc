"""How long cards have waited, and which of them a person is to be reminded of. No card expires by its age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cleared.cards.card import Card

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def overdue_cards(cards: Iterable[Card], now: datetime, remind_after: str) -> list[Card]:
    """The open cards that have waited for ``remind_after`` (``review.remind_after``, such as 12h, 3d, 2w) or longer,
    oldest first."""
    limit = _read_limit(remind_after)
    late = [c for c in cards if c.status == "open" and _is_overdue(c.created_at, now, limit)]
    return sorted(late, key=lambda card: card.created_at)


def count_overdue(times: Iterable[str], now: datetime, remind_after: str) -> int:
    """How many of the cards that were opened at these times have waited so long."""
    limit = _read_limit(remind_after)
    return sum(count for time, count in Counter(times).items() if _is_overdue(time, now, limit))


def waiting_time(card: Card, now: datetime) -> timedelta | None:
    """How long the card has been open by ``now``; None where its time is not readable (one made by hand)."""
    return _waiting_since(card.created_at, now)


def _read_limit(remind_after: str) -> timedelta:
    return timedelta(**{_UNITS[remind_after[-1]]: int(remind_after[:-1])})


def _is_overdue(opened: str, now: datetime, limit: timedelta) -> bool:
    waited = _waiting_since(opened, now)
    return waited is not None and waited >= limit


def _waiting_since(opened: str, now: datetime) -> timedelta | None:
    try:
        return now - datetime.fromisoformat(opened)
    except (ValueError, TypeError):
        return None
