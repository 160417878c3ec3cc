"""What can be answered to cards that are not about a record, and the questions of runs among them."""

from __future__ import annotations

import shlex
from typing import Final

from cleared.cards.card import Card, list_texts
from cleared.cards.kinds import QUESTION, kind_named
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.runs.question_tickets import Questions


def answer_choices(card: Card) -> dict[str, str]:
    """What can be answered to a card: choice → what it means."""
    if card.kind == QUESTION.name:
        return dict.fromkeys(list_texts(card.details, "choices"), "")
    return dict(kind_named(card.kind).answers)


_COMMANDS: Final = {
    "confirm": "cleared queue approve CARD",
    "correct": "cleared queue correct CARD --account …",
    "reject": "cleared queue reject CARD --reason …",
    "approve": "cleared agent approve P…",
}
"""What else can be done about a card (``CardKind.actions``) → the command."""


def name_commands(card: Card | None) -> str:
    """The commands that decide about a card, for a refusal of another one; where none was named, what lists them."""
    if card is None:
        return "Name its card: cleared queue list."
    commands = [_COMMANDS[verb] for verb in kind_named(card.kind).actions if verb in _COMMANDS]
    if choices := answer_choices(card):
        commands.append(f"cleared queue answer CARD {'|'.join(map(shlex.quote, choices))}")
    return f"Say {' or '.join(commands or ['cleared queue show CARD'])}.".replace("CARD", card.id)


def committed_questions(decision_context: DecisionContext) -> Questions:
    """The questions of the commit that a decision is made on."""
    return Questions(
        decision_context.host,
        decision_context.repo,
        decision_context.snapshot,
        decision_context.context.cards.committed_cards,
    )


def find_stopped_question(decision_context: DecisionContext, text: str, choice: str) -> Card | None:
    """The question that already has this answer, but whose run was interrupted before it could go on."""
    cards = decision_context.context.cards.committed_cards
    matches = cards.find(text) if text else []
    if len(matches) != 1 or matches[0].resolution != choice:
        return None
    return matches[0] if committed_questions(decision_context).find_resumable_ticket(matches[0]) is not None else None
