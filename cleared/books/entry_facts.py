"""Cards about entries, with what the books say of the entry.

A card lies in a tracked file, which whoever can push can write, and what is decided is the entry.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from cleared.base.money import currency_exponent
from cleared.books.card_kinds import ENTRY
from cleared.books.entry_cards import find_asked
from cleared.books.index.entry_lookup import EntryLookup
from cleared.books.index.journal_index import open_index
from cleared.books.ledger.entry import Entry
from cleared.cards.card import Card
from cleared.git import Snapshot
from cleared.workspace.location import Layout


def open_card_facts(layout: Layout, snapshot: Snapshot, stays_open: bool) -> Callable[[Card], Card]:
    """What puts the facts of an entry of this commit into a card. ``stays_open``: see ``open_index``."""
    places = currency_exponent(layout.config.business.currency)
    lookup = EntryLookup(open_index(layout, snapshot, places, stays_open=stays_open))
    return lambda card: show_entry_facts(card, lookup.find)


def show_entry_facts(card: Card, find_entry: Callable[[str], Entry | None]) -> Card:
    """The card with date, amount, text and accounts of its entry; another card as it is. What the script remarked
    stands behind."""
    asked = find_asked(card, find_entry) if card.kind == ENTRY.name else None
    if not asked:
        return card
    entry = asked[0]
    remark = str(card.details.get("description", ""))
    facts = f"{entry.date} {entry.amount} {entry.description[:120]}"
    title = facts if remark in ("", entry.description) else f"{facts} ({remark[:120]})"
    known = {
        "amount": str(entry.amount),
        "evidence": entry.evidence,
        "accounts": [leg.account_id for leg in entry.legs],
    }
    details = {**card.details, **{name: value for name, value in known.items() if name in card.details}}
    return replace(card, title=title, details=details)
