"""What can be answered to cards that are not about an entry, and the questions of runs among them."""

from __future__ import annotations

from typing import Final

from cleared.cards.card import Card
from cleared.cards.queue_files import find_cards
from cleared.decisions.decision_context import DecisionContext
from cleared.runs.question_tickets import Questions

ANSWERS: Final = {
    "line": {"ignore": "The line is set aside for good."},
    "near_match": {"different": "Both rows are right.", "seen": "Seen."},
    "revision": {"seen": "Seen."},
    "balance_gap": {"seen": "Seen."},
    "grown_file": {"seen": "Seen."},
    "duplicate_file": {"seen": "Seen."},
    "bad_file": {"seen": "Seen; the file stays where it is."},
    "failed_run": {"seen": "Seen; it is not tried again."},
    "set_aside": {"seen": "Seen; the file stays in import/failed/."},
    "event_cycle": {"seen": "Seen."},
    "damage": {"seen": "Seen; it is not asked again."},
    "agreement": {"withdraw": "Nothing comes of it."},
}
"""What can be answered to each kind of card."""


def answer_choices(card: Card) -> dict[str, str]:
    """What can be answered to a card: choice → what it means."""
    if card.kind == "question":
        return {str(c): "" for c in card.details.get("choices", ())}
    return dict(ANSWERS.get(card.kind, {}))


def committed_questions(desk: DecisionContext) -> Questions:
    """The questions of the commit that a decision is made on."""
    return Questions(desk.host, desk.repo, desk.snapshot, desk.context.cards.committed_cards)


def find_stopped_question(desk: DecisionContext, text: str, choice: str) -> Card | None:
    """The question that has this answer already, but whose run was stopped before it could go on."""
    known = desk.context.cards.committed_cards
    found = list(find_cards(known.values(), text)) if text else []
    if len(found) != 1 or found[0].resolution != choice:
        return None
    return found[0] if committed_questions(desk).find_resumable_ticket(found[0]) is not None else None
