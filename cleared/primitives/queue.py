"""``queue_*``: what a human should look at."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

from msgspec import Struct

from cleared.base.clock import check_deadline
from cleared.base.errors import Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.registry.dict_shapes import CardInfo
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Line, Text

_TIMEOUT_PATTERN: Final = r"(?a)([1-9][0-9]{0,5})([smhdw])"
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


class Unanswered(PrimitiveError):
    """The run stops here until a person has answered ``question``."""

    def __init__(self, question: Question) -> None:
        super().__init__(f"it waits for an answer to: {question.text}", remedy="cleared queue answer CARD CHOICE.")
        self.question = question


class Question(Struct, frozen=True, eq=False):
    """``key`` names it within the run: which question it is, and what it asks."""

    key: str
    text: str
    choices: tuple[str, ...]
    default: str | None
    on_timeout: str
    seconds: int


@primitive(effect=Effect.STAGE, grant="queue.ask")
def queue_ask(
    ctx: Context,
    question: Text,
    choices: list[Line],
    default: Line | None = None,
    on_timeout: Line = "escalate",
    timeout: Line = "7d",
) -> str:
    """Ask a human, and go on with the choice. Until there is an answer the run stops here and nothing of it is kept;
    then it is run again from its first line.

    ``on_timeout``: ``default`` takes the default after ``timeout`` (such as 30m, 12h, 7d), ``reject`` ends the run,
    ``escalate`` goes on asking. In a dry run the default, else the first choice, is taken.
    """
    card = _make_question(ctx, question, choices, default, on_timeout, timeout)
    ctx.questions.asked_keys.append(card.key)
    ctx.log_action("queue_ask", question[:500])
    if card.key in ctx.questions.answers:
        return ctx.questions.answers[card.key]
    if ctx.questions.stops_to_ask:
        raise Unanswered(card)
    # So does a rehearsal, also of a past run that was really answered otherwise: answers belong to that run alone.
    return default if default is not None else card.choices[0]


def _make_question(
    ctx: Context, text: str, choices: list[str], default: str | None, on_timeout: str, timeout: str
) -> Question:
    if not 2 <= len(choices) <= 20 or len(set(choices)) < len(choices) or not all(c.strip() for c in choices):
        raise PrimitiveError(
            "a question needs two to twenty choices, none empty, none twice",
            place=Place(field="choices"),
            remedy='Such as ["business", "private"].',
        )
    if default is not None and default not in choices:
        raise PrimitiveError(f"{default!r} is not one of the choices", place=Place(field="default"), remedy="Name one.")
    if on_timeout not in ("default", "reject", "escalate") or (on_timeout == "default" and default is None):
        raise PrimitiveError(
            "on_timeout is default (with a default), reject or escalate",
            place=Place(field="on_timeout"),
            remedy="Choose one.",
        )
    seconds = read_timeout(timeout)
    digest = hashlib.sha256(json.dumps([text, choices]).encode()).hexdigest()[:12]
    return Question(f"{len(ctx.questions.asked_keys)}:{digest}", text, tuple(choices), default, on_timeout, seconds)


def read_timeout(text: str) -> int:
    """``30m`` → 1,800: the seconds that somebody has to answer. Raises ``PrimitiveError`` for anything else."""
    match = re.fullmatch(_TIMEOUT_PATTERN, text)
    if not match:
        raise PrimitiveError(f"{text!r} is no time", place=Place(field="timeout"), remedy="Such as 30m, 12h or 7d.")
    return int(match[1]) * _UNIT_SECONDS[match[2]]


@primitive(effect=Effect.READ, grant="queue.read")
def queue_pending(ctx: Context) -> list[CardInfo]:
    """The open cards, oldest first, this run's included."""
    return [
        {"id": c.id, "kind": c.kind, "entry_id": c.record_id, "title": c.title, "created_at": c.created_at}
        for c in check_deadline(ctx.cards.open_cards())
    ]
