"""What the ids that somebody types mean: open cards, or records with or without one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from cleared.base.errors import Place, PolicyError, UsageError
from cleared.cards.card import Card
from cleared.cards.queue_files import find_cards
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.decisions.shown_cards import digest_card, refuse_changed
from cleared.domains.installed_domains import load_domains
from cleared.primitives.context import Context
from cleared.review.record_review import RecordReview, Target, load_reviews


def find_targets(decision_context: DecisionContext, ids: Sequence[str]) -> list[Target]:
    """The cards and records that the ids name. Raises ``UsageError`` for an unknown or ambiguous one, ``PolicyError``
    for a card that somebody has settled already, or that is not as it was shown (``shown_cards``)."""
    if not ids:
        raise UsageError("name at least one card", remedy="cleared queue list shows them.")
    targets: list[Target] = []
    reviews = load_reviews()
    for text in ids:
        target = _find_target(decision_context.context, reviews.values(), text)
        if (card := target.card) is not None:
            record = target.record.value if target.record is not None else None
            refuse_changed(card.id, card.title, partial(digest_card, card, record))
        if target.name not in [m.name for m in targets]:
            targets.append(target)
    return targets


def _find_target(context: Context, reviews: Collection[RecordReview], text: str) -> Target:
    all_cards = context.cards.committed_cards.values()
    cards = (
        [c for c in find_cards(all_cards, text) if c.id == text] or list(find_cards(all_cards, text)) if text else []
    )
    open_ = [c for c in cards if c.status == "open"]
    if len(open_) > 1:
        raise UsageError(f"{text!r} is the beginning of {len(open_)} cards", remedy="Write more of the id.")
    if open_:
        card = open_[0]
        return _find_record(context, reviews, card.entry_id, card) or Target(card, None, _choose_review(reviews, card))
    target = _find_record(context, reviews, text)
    if cards and (target is None or cards[-1].kind != target.review.record_kind):
        card = cards[-1]
        raise PolicyError(
            f"{card.id} is settled: {card.resolution}, by {card.resolved_by} at {card.resolved_at}",
            place=Place(field="card"),
            remedy="Look at it: cleared queue show. To take it back: cleared queue undo.",
        )
    if target is None:
        nouns = " or ".join(("card", *(domain.record_noun[0] for domain in load_domains())))
        raise UsageError(f"there is no {nouns} {text!r}", remedy="cleared queue list shows them.")
    return target


def _find_record(
    context: Context, reviews: Iterable[RecordReview], name: str | None, card: Card | None = None
) -> Target | None:
    """The record of this id, with the card; None where no domain has one."""
    for review in reviews if name else ():
        if (record := review.find_record(context, name or "")) is not None:
            return Target(card, record, review)
    return None


def _choose_review(reviews: Collection[RecordReview], card: Card) -> RecordReview:
    """Whose a card is that names no record. One of no domain is refused in the words of the first."""
    owners = (review for review in reviews if card.kind in review.card_kinds)
    return next(owners, next(iter(reviews)))
