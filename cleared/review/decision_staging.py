"""Staging what a person decided about one target: what is the same for all domains, and the question to its own.

Each function takes a case, stages the changes, and returns what it was about, for the commit's subject.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cleared.base.errors import UsageError
from cleared.cards.kinds import BRANCH, QUESTION
from cleared.review.answers import answer_choices, committed_questions
from cleared.review.branch_merge import read_branch_files
from cleared.review.record_review import DecisionCase


def _confirm_target(case: DecisionCase) -> str:
    return case.target.review.stage_confirmation(case)


def _correct_target(case: DecisionCase) -> str:
    return case.target.review.stage_correction(case)


def _reject_target(case: DecisionCase) -> str:
    card, reason = case.target.card, str(case.request["reason"])
    if card is None or card.kind != QUESTION.name:
        return case.target.review.stage_rejection(case)
    case.context.log_action("reject", f"{card.id} {reason}")
    case.result.ended_questions.append(card.id)  # its run does not go on
    case.settle(f"rejected: {reason}"[:300])
    return f"{card.title}: {reason}"


def _answer_target(case: DecisionCase) -> str:
    card, choice, result = case.target.card, str(case.request["choice"]), case.result
    choices = answer_choices(card) if card is not None else {}
    if card is None or choice not in choices:
        choice_list = ", ".join(choices) or "approve, correct or reject"
        raise UsageError(f"{choice!r} is no answer to {case.target.name}", remedy=f"It takes: {choice_list}.")
    case.target.review.stage_answer(case)
    if card.kind == BRANCH.name and choice == "merge":
        result.files |= read_branch_files(case.decision_context, card)
    result.asked_by_run = card.kind == QUESTION.name
    if result.asked_by_run:
        hold_error = committed_questions(case.decision_context).find_hold_error(card)
        if hold_error is not None:
            raise hold_error
    case.context.log_action("answer", f"{card.id} {choice}")
    case.settle(choice)
    return f"{card.title}: {choice}"


STAGE_BY_VERB: Final[dict[str, tuple[str, Callable[[DecisionCase], str]]]] = {
    "confirm": ("confirm", _confirm_target),
    "correct": ("correct", _correct_target),
    "reject": ("void", _reject_target),
    "answer": ("confirm", _answer_target),
}
"""Verb → the beginning of the commit's first line, and the function that stages the decision."""
