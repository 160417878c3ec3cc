"""Entries like the one that a card is about: earlier ones of its vendor, and what it may be a duplicate of."""

from __future__ import annotations

from itertools import islice
from typing import Final

from cleared.books.ledger.amount_matches import find_days_around
from cleared.books.ledger.entry import Entry
from cleared.books.review.book_facts import BookFacts
from cleared.cards.card import Card

SIMILAR: Final = 5
"""Earlier entries that are shown."""
DUPLICATES: Final = 8
"""Possible duplicates that are offered."""
_NEAR_DAYS: Final = 92
"""No bank and nobody who books brings the same money again a quarter later."""


def list_similar_entries(books: BookFacts, card: Card) -> list[Entry]:
    """The newest entries of the same vendor or text from before this one; none that came later."""
    entry, line = books.entry_of(card), books.line_of(card)
    alike = books.iter_earlier_like(card)
    if entry is not None:
        earlier = (e for e in alike if _is_before(e, entry))
    else:
        earlier = (e for e in alike if line is None or e.date <= line[1].posted_date)
    return list(islice(earlier, SIMILAR))


def _is_before(one: Entry, other: Entry) -> bool:
    if one.date != other.date:
        return one.date < other.date
    return (one.month, one.number) < (other.month, other.number)


def list_possible_duplicates(books: BookFacts, card: Card) -> list[Entry]:
    """Entries that this one may be a duplicate of: of the same amount in the months around, the nearest day first."""
    entry = books.entry_of(card)
    if entry is None:
        return []
    days = find_days_around(entry.date, _NEAR_DAYS, _NEAR_DAYS)
    same = (each for each in books.iter_of_amount(entry.amount, *days) if each.entry_id != entry.entry_id)
    return sorted(same, key=lambda e: abs((e.date - entry.date).days))[:DUPLICATES]
