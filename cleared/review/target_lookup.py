"""What the ids that somebody types mean: open cards, or records with or without one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from cleared.base.errors import Place, PolicyError, UsageError
from cleared.base.short_text import join_words
from cleared.cards.card import Card
from cleared.cards.queue_files import find_cards
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.decisions.shown_cards import digest_card, refuse_changed
from cleared.domains.domain import Domain
from cleared.domains.installed_domains import load_domains
from cleared.primitives.context import Context
from cleared.review.record_review import RecordReview, Target, load_review

Reviews: TypeAlias = Sequence[tuple[Domain, RecordReview]]


def find_targets(decision_context: DecisionContext, ids: Sequence[str], *, decides: bool = True) -> list[Target]:
    """The cards and records that the ids name. Raises ``UsageError`` for an unknown or ambiguous one, ``PolicyError``
    for a card that somebody has settled already, or that is not as it was shown (``shown_cards``); and where somebody
    ``decides`` about them, for one that nothing vouches for (``changes.doubtful_cards``)."""
    if not ids:
        raise UsageError("name at least one card", remedy="cleared queue list shows them.")
    targets: list[Target] = []
    reviews = [(domain, load_review(domain)) for domain in load_domains()]
    for text in ids:
        target = _find_target(decision_context.context, reviews, text)
        if (card := target.card) is not None:
            record = target.record.value if target.record is not None else None
            refuse_changed(card.id, card.title, partial(digest_card, card, record))
            if decides:
                decision_context.context.cards.refuse_doubtful(card)
        if target.name not in [m.name for m in targets]:
            targets.append(target)
    return targets


def _find_target(context: Context, reviews: Reviews, text: str) -> Target:
    all_cards, record = context.cards.committed_cards.values(), _find_record(context, reviews, text)
    cards = list(find_cards(all_cards, text)) if text else []
    if record is not None:  # the record is meant: a card by its id, or of another saying, is somebody's trick
        doubtful = context.cards.doubtful_cards
        cards = [c for c in cards if c.entry_id == text and c.id not in doubtful]
    else:
        cards = [c for c in cards if c.id == text] or cards
    open_ = [c for c in cards if c.status == "open"]
    if len(open_) > 1:
        raise UsageError(f"{text!r} is the beginning of {len(open_)} cards", remedy="Write more of the id.")
    if open_:
        card = open_[0]
        return _find_record(context, reviews, card.entry_id, card) or Target(card, None, *_choose_review(reviews, card))
    if cards and (record is None or cards[-1].kind != record.review.record_kind):
        card = cards[-1]
        raise PolicyError(
            f"{card.id} is settled: {card.resolution}, by {card.resolved_by} at {card.resolved_at}",
            place=Place(field="card"),
            remedy="Look at it: cleared queue show. To take it back: cleared queue undo.",
        )
    if record is None:
        nouns = ["card", *(domain.record_noun[0] for domain, _ in reviews if domain.review is not None)]
        raise UsageError(f"there is no {join_words(nouns, 'or')} {text!r}", remedy="cleared queue list shows them.")
    return record


def _find_record(context: Context, reviews: Reviews, name: str | None, card: Card | None = None) -> Target | None:
    """The record of this id, with the card; None where no domain has one."""
    for domain, review in reviews if name else ():
        if (record := review.find_record(context, name or "")) is not None:
            return Target(card, record, domain, review)
    return None


def _choose_review(reviews: Reviews, card: Card) -> tuple[Domain, RecordReview]:
    """Whose a card is that names no record. One of no domain is refused in the words of the first."""
    owners = (each for each in reviews if card.kind in each[1].card_kinds)
    return next(owners, reviews[0])
