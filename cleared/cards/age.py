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
    waiting = [card for card in cards if card.status == "open"]
    late = find_overdue({card.created_at for card in waiting}, now, remind_after)
    return sorted((card for card in waiting if card.created_at in late), key=lambda card: card.created_at)


def count_overdue(times: Iterable[str], now: datetime, remind_after: str) -> int:
    """How many of the cards that were opened at these times have waited so long."""
    counts = Counter(times)
    return sum(counts[time] for time in find_overdue(counts, now, remind_after))


def find_overdue(times: Iterable[str], now: datetime, remind_after: str) -> set[str]:
    """Those of these times since which a card has waited so long."""
    limit = _read_limit(remind_after)
    return {time for time in times if _is_overdue(time, now, limit)}


def _read_limit(remind_after: str) -> timedelta:
    return timedelta(**{_UNITS[remind_after[-1]]: int(remind_after[:-1])})


def _is_overdue(opened: str, now: datetime, limit: timedelta) -> bool:
    waited = waiting_time(opened, now)
    return waited is not None and waited >= limit


def waiting_time(opened: str, now: datetime) -> timedelta | None:
    """How long a card that was opened then has waited by ``now``; None for a time that is none (made by hand)."""
    try:
        return now - datetime.fromisoformat(opened)
    except (ValueError, TypeError):
        return None
