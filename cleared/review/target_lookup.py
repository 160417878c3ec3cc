"""What the ids that somebody types mean: open cards, or entries with or without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cleared.base.errors import Place, PolicyError, UsageError
from cleared.books.ledger.entry import Entry
from cleared.books.staged_books import books_of
from cleared.cards.card import Card
from cleared.cards.kinds import ENTRY
from cleared.cards.queue_files import find_cards
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.decisions.shown_cards import digest_card, refuse_changed


@dataclass(frozen=True, slots=True)
class Target:
    """What one id means: a card, an entry, or an entry with its card."""

    card: Card | None
    entry: Entry | None

    @property
    def name(self) -> str:
        return self.entry.entry_id if self.entry else self.card.id if self.card else ""


def find_targets(decision_context: DecisionContext, ids: Sequence[str]) -> list[Target]:
    """The cards and entries that the ids name. Raises ``UsageError`` for an unknown or ambiguous one, ``PolicyError``
    for a card that somebody has settled already, or that is not as it was shown (``shown_cards``)."""
    if not ids:
        raise UsageError("name at least one card", remedy="cleared queue list shows them.")
    targets: list[Target] = []
    for text in ids:
        target = _find_target(decision_context, text)
        if (card := target.card) is not None:
            refuse_changed(card.id, card.title, partial(digest_card, card, target.entry))
        if target.name not in [m.name for m in targets]:
            targets.append(target)
    return targets


def _find_target(decision_context: DecisionContext, text: str) -> Target:
    context = decision_context.context
    all_cards = context.cards.committed_cards.values()
    cards = (
        [c for c in find_cards(all_cards, text) if c.id == text] or list(find_cards(all_cards, text)) if text else []
    )
    open_ = [c for c in cards if c.status == "open"]
    if len(open_) > 1:
        raise UsageError(f"{text!r} is the beginning of {len(open_)} cards", remedy="Write more of the id.")
    if open_:
        card = open_[0]
        return Target(card, books_of(context).books.find_entry(card.entry_id) if card.entry_id else None)
    entry = books_of(context).books.find_entry(text)
    if cards and (entry is None or cards[-1].kind != ENTRY.name):
        card = cards[-1]
        raise PolicyError(
            f"{card.id} is settled: {card.resolution}, by {card.resolved_by} at {card.resolved_at}",
            place=Place(field="card"),
            remedy="Look at it: cleared queue show. To take it back: cleared queue undo.",
        )
    if entry is None:
        raise UsageError(f"there is no card or entry {text!r}", remedy="cleared queue list shows them.")
    return Target(None, entry)
