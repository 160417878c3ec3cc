"""Open cards that one decision could cover."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from cleared.base import money
from cleared.cards.card import Card
from cleared.review.card_facts import QueueRow
from cleared.review.queue_snapshot import QueueSnapshot


class CardGroup(Struct, frozen=True):
    """Open cards of one theme, such as those of one vendor on the same accounts: what one decision would cover."""

    name: str
    """What they have in common, in words: the vendor."""
    detail: str
    """What else is the same: the accounts."""
    rows: tuple[QueueRow, ...]
    total: str
    """The sum of their amounts, in digits; empty where they have none."""
    left: tuple[str, ...] = ()
    """Cards of the same theme that are left for another decision."""

    @property
    def ids(self) -> list[str]:
        return [row.id for row in self.rows]


def count_group(queue: QueueSnapshot, card_id: str) -> int:
    """How many open cards one decision could cover, without a look at each."""
    return len(queue.list_alike(queue.cards[card_id]))


def card_group(queue: QueueSnapshot, card_id: str, most: int | None = None) -> CardGroup | None:
    """The open cards that one decision could cover; None where the kind of card has no groups. ``most``: at most so
    many, from this one on."""
    card = queue.cards.get(card_id)
    theme = queue.theme_of(card) if card is not None else None
    if card is None or theme is None:
        return None
    alike, left = list(queue.list_alike(card)), list[Card]()
    if most is not None and len(alike) > most:
        at = alike.index(card)
        alike = [*alike[at:], *alike[:at]]
        alike, left = alike[:most], alike[most:]
    rows = tuple(map(queue.row_of, alike))
    amounts = [Decimal(row.amount) for row in rows if row.amount]
    total = money.format_amount(money.total(amounts)) if amounts else ""
    return CardGroup(theme.name, theme.detail, rows, total, tuple(each.id for each in left))
