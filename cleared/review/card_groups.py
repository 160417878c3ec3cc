"""What is like a card: earlier entries of its vendor, open cards that one decision could cover, possible duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from cleared.base import money
from cleared.books.ledger.entry import Entry
from cleared.cards.card import Card
from cleared.cards.kinds import ENTRY
from cleared.review.queue_snapshot import QueueRow, QueueSnapshot

SIMILAR: Final = 5
"""Earlier entries that are shown."""
DUPLICATES: Final = 8
"""Possible duplicates that are offered."""


@dataclass(frozen=True, slots=True)
class CardGroup:
    """Open cards of one vendor on the same accounts: what one decision would cover."""

    vendor: str
    accounts: str
    kind: str
    rows: tuple[QueueRow, ...]
    total: str

    @property
    def ids(self) -> list[str]:
        return [row.id for row in self.rows]


def similar_entries(queue: QueueSnapshot, card: Card) -> list[Entry]:
    """The newest entries of the same vendor or text from before this one; none that came later."""
    entry, line = queue.entry_of(card), queue.line_of(card)
    alike = queue.entries_like(card)
    if entry is not None:
        limit = (entry.date, entry.month, entry.number)
        return [e for e in alike if (e.date, e.month, e.number) < limit][:SIMILAR]
    return [e for e in alike if line is None or e.date <= line[1].posted_date][:SIMILAR]


def card_group(queue: QueueSnapshot, card_id: str) -> CardGroup | None:
    """The open cards that one decision could cover; None where the kind of card has no groups."""
    card = queue.cards.get(card_id)
    key = queue.group_key(card) if card is not None else None
    if card is None or key is None:
        return None
    kind, vendor, accounts = key
    rows = tuple(queue.row_of(queue.cards[i]) for i in queue.cards_by_group[key] if i in queue.cards)
    labels = ", ".join(queue.account_label(int(a)) for a in accounts) if kind == ENTRY.name else str(accounts[0])
    entry = queue.entry_of(card)
    total = money.format_amount(money.total([Decimal(row.amount) for row in rows]))
    return CardGroup((entry.counterparty if entry is not None else "") or vendor, labels, kind, rows, total)


def possible_duplicates(queue: QueueSnapshot, card: Card) -> list[Entry]:
    """Entries that this one may be a duplicate of: of the same amount, the nearest day first."""
    entry = queue.entry_of(card)
    if entry is None:
        return []
    same = [
        e
        for e in queue.entries.values()
        if e.amount == entry.amount
        and e.status != "voided"
        and e.entry_id != entry.entry_id
        and not queue.corrected_entry_id(e)
    ]
    return sorted(same, key=lambda e: abs((e.date - entry.date).days))[:DUPLICATES]
