"""One key, one meaning: the same letters on the screen and at the prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cleared.books.card_kinds import LINE, RECEIPT, TRANSFER
from cleared.cards.kinds import QUESTION
from cleared.review.card_facts import CardChoice
from cleared.review.card_view import CardView, group_suggestion
from cleared.review.queue_snapshot import QueueSnapshot

KEYS: Final = (
    ("a", "approve", "Approve: confirm the entry, take the proposal, or give the card's first answer"),
    ("c", "correct", "Correct: another account, or several; posts a bank line that is on hold"),
    ("y", "yes", "Yes: take what is suggested: an account, a split, a transfer, a receipt"),
    ("v", "always", "Always: this account for this card and, from now on, for all lines of the vendor"),
    ("r", "reject", "Reject, with a reason; of a bank line it is asked what it is then"),
    ("s", "skip", "Skip: the card goes to the end of the list"),
    ("g", "group", "Group: one decision for all cards of this vendor and account, after showing them"),
    ("1-9", "answer", "Give the answer of that number"),
    ("w", "agree", "Agree with the first of two reviewers: decide just the same"),
    ("t", "retry", "Try again: run a failed agent once more"),
    ("o", "code", "Code: the script at the line that made the entry, or a proposal's changes"),
    ("f", "file", "File: the bank file, at its row"),
    ("=", "same", "The same correction for the others like the one just corrected"),
    ("u", "undo", "Undo the last act, which is named first; as often as you like"),
    ("?", "help", "This help"),
    ("q", "quit", "Quit; nothing is lost, what is left waits"),
)

BINDINGS: Final[Sequence[tuple[str, str, str]]] = (
    *((k, f"choose('{k}')", "") for k in "acyvrtw123456789"),
    ("s", "skip", ""),
    ("g", "group", ""),
    ("o", "code", ""),
    ("f", "file", ""),
    ("u", "undo", ""),
    ("equals_sign", "same", ""),
    ("question_mark", "help", ""),
    ("q", "leave", ""),
    ("down,j", "move(1)", ""),
    ("up,k", "move(-1)", ""),
    ("home", "move(-1000000)", ""),
    ("end", "move(1000000)", ""),
    ("pagedown,space", "page(1)", ""),
    ("pageup", "page(-1)", ""),
)
"""Each key of the main screen, the action that it starts, and no description: the screen shows its own."""

ALWAYS: Final = CardChoice("always", "Always: teach the vendor")

_VERBS: Final = {
    "a": ("confirm", "approve"),
    "c": ("correct",),
    "r": ("reject", "decline"),
    "t": ("retry",),
    "w": ("agree",),
    "y": ("suggested",),
}


_GROUP_VERBS: Final = ("confirm", "correct", "reject")


def choice_for_key(card: CardView, key: str) -> CardChoice | None:
    """What a key decides about this card; None where it does nothing."""
    answers = [c for c in card.choices if c.verb == "answer"]
    if key == "v":
        offered = next((c for c in card.choices if c.verb == ALWAYS.verb), None)
        if offered is not None:
            return offered
        return ALWAYS if any(c.verb == "correct" for c in card.choices) else None
    if key.isdecimal():
        return answers[int(key) - 1] if 0 < int(key) <= len(answers) else None
    verbs = _VERBS.get(key, ())
    for choice in card.choices:
        if choice.verb in verbs:
            return choice
    # ``a`` gives the first answer of a card that only has answers. A question's answers are never given by ``a``.
    if key == "y" and answers and card.kind in (TRANSFER.name, RECEIPT.name):
        return answers[0]
    if key == "a" and answers and card.kind not in (LINE.name, QUESTION.name):
        return answers[0]
    return answers[0] if key == "r" and card.kind == LINE.name and answers else None


def group_choices(queue: QueueSnapshot, card: CardView, ids: Sequence[str]) -> dict[str, CardChoice]:
    """Key → what it decides about all cards of a group, of which ``card`` is one."""
    choices = {key: choice for key in "acr" if (choice := choice_for_key(card, key)) and choice.verb in _GROUP_VERBS}
    suggested = group_suggestion(queue, ids)
    return {**choices, "y": suggested} if suggested is not None else choices


def available_keys(card: CardView) -> list[tuple[str, str]]:
    """The keys that do something for this card, each with its label, in the order in which they are shown."""
    keys: list[tuple[str, str]] = []
    for key in "acyvrwt":
        choice = choice_for_key(card, key)
        if choice is not None:
            keys.append((key, choice.label))
    labels = {label for _, label in keys}
    number = 0
    for choice in card.choices:
        if choice.verb == "answer":
            number += 1
            if choice.label not in labels:
                keys.append((str(number), choice.label))
    if card.group > 1:
        keys.append(("g", f"all {card.group} of this kind"))
    return keys


_SHORT: Final = {
    "Confirm as it is": "approve",
    "Correct the account": "correct",
    "Post it to an account": "post",
    "Approve: it becomes live": "approve",
    "Reject": "reject",
    "Run it again now": "try again",
    ALWAYS.label: "always",
}


def short_label(key: str, label: str) -> str:
    """A word for the line of keys."""
    if key == "g":
        return label.removesuffix(" of this kind")
    return _SHORT.get(label) or label.split(":", maxsplit=1)[0]
