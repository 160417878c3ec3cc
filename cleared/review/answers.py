"""What can be answered to cards that are not about an entry, and the questions of runs among them."""

from __future__ import annotations

from cleared.cards.card import Card
from cleared.cards.kinds import QUESTION, kind_named
from cleared.cards.queue_files import find_cards
from cleared.decisions.decision_context import DecisionContext
from cleared.runs.question_tickets import Questions


def answer_choices(card: Card) -> dict[str, str]:
    """What can be answered to a card: choice → what it means."""
    if card.kind == QUESTION.name:
        return {str(c): "" for c in card.details.get("choices", ())}
    return dict(kind_named(card.kind).answers)


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
