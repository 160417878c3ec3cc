"""``queue_*``: what a human should look at."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from cleared.cards.kinds import ENTRY
from cleared.deadline import check_deadline
from cleared.errors import Place, PrimitiveError
from cleared.ledger.bank_lines import LINE_ID_PREFIX
from cleared.ledger.corrections import effective_legs
from cleared.ledger.entry import ZERO, Leg
from cleared.light_dataclass import dataclass
from cleared.primitives.context import Context
from cleared.primitives.voiding import stage_line_card
from cleared.registry.dict_shapes import CardInfo, DecisionInfo, LegInfo
from cleared.registry.primitive import Effect, primitive
from cleared.registry.vocabulary import Confidence, Date, Line, Text

_TIMEOUT_PATTERN: Final = re.compile(r"([1-9][0-9]{0,5})([smhdw])", re.ASCII)
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@primitive(effect=Effect.STAGE, grant="queue.write")
def queue_add_review(ctx: Context, entry_id: Line, description: Text, confidence: Confidence = ZERO) -> str | None:
    """Ask a human about an entry; gives the card's id.

    ``"pending"`` means the entry this run staged last, and does nothing right after a duplicate. The reference of a
    bank line holds that line for review instead of posting it. Asking twice makes one card.
    """
    if entry_id == "pending":
        if ctx.last_entry.entry_id is None:
            if ctx.last_entry.was_duplicate:
                return None
            raise PrimitiveError(
                "this run has not staged an entry yet", place=Place(field="entry_id"), remedy="Post it first."
            )
        entry_id = ctx.last_entry.entry_id
    if entry_id.startswith(LINE_ID_PREFIX):
        return _hold_line(ctx, entry_id, description)
    entry = ctx.books.get_entry(entry_id)
    ctx.log_action("queue_add_review", description[:500], entry.entry_id)
    return ctx.stage_entry_card(
        entry, f"{entry.date} {entry.amount} {description[:120]}", description, _format_number(confidence)
    )


def _hold_line(ctx: Context, reference: str, description: str) -> str:
    line = ctx.bank.resolve_reference(reference)
    if line is None or ctx.bank.posted_amount(reference):
        raise PrimitiveError(
            f"the line {reference} is posted already", place=Place(field="entry_id"), remedy="Pass its entry's id."
        )
    ctx.bank.set_line_aside(reference, "held", description[:500])
    ctx.log_action("queue_add_review", f"held {reference}: {description}"[:500])
    account, fact = line
    undone = sum(each.account == account for each in ctx.bank.undone_imports)
    again = (f"after {undone} undone",) if reference in ctx.bank.released_line_ids else ()  # it was asked before that
    return stage_line_card(ctx, fact, description, *again)


def _format_number(value: Decimal) -> str:
    return format(value, "f")


class Unanswered(PrimitiveError):
    """The run stops here until a person has answered ``question``."""

    def __init__(self, question: Question) -> None:
        super().__init__(f"it waits for an answer to: {question.text}", remedy="cleared queue answer CARD CHOICE.")
        self.question = question


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Question:
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
) -> Question:  # fmt: skip
    if not 2 <= len(choices) <= 20 or len(set(choices)) < len(choices) or not all(c.strip() for c in choices):
        raise PrimitiveError(
            "a question needs two to twenty choices, none empty, none twice", place=Place(field="choices"),
            remedy='Such as ["business", "private"].',
        )  # fmt: skip
    if default is not None and default not in choices:
        raise PrimitiveError(f"{default!r} is not one of the choices", place=Place(field="default"), remedy="Name one.")
    if on_timeout not in ("default", "reject", "escalate") or (on_timeout == "default" and default is None):
        raise PrimitiveError(
            "on_timeout is default (with a default), reject or escalate", place=Place(field="on_timeout"),
            remedy="Choose one.",
        )  # fmt: skip
    seconds = read_timeout(timeout)
    digest = hashlib.sha256(json.dumps([text, choices]).encode()).hexdigest()[:12]
    return Question(f"{len(ctx.questions.asked_keys)}:{digest}", text, tuple(choices), default, on_timeout,
                    seconds)  # fmt: skip


def read_timeout(text: str) -> int:
    """``30m`` → 1,800: the seconds that somebody has to answer. Raises ``PrimitiveError`` for anything else."""
    match = _TIMEOUT_PATTERN.fullmatch(text)
    if not match:
        raise PrimitiveError(f"{text!r} is no time", place=Place(field="timeout"), remedy="Such as 30m, 12h or 7d.")
    return int(match[1]) * _UNIT_SECONDS[match[2]]


@primitive(effect=Effect.READ, grant="queue.read")
def queue_pending(ctx: Context) -> list[CardInfo]:
    """The open cards, oldest first, this run's included."""
    return [
        {"id": c.id, "kind": c.kind, "entry_id": c.entry_id, "title": c.title, "created_at": c.created_at}
        for c in check_deadline(ctx.cards.open_cards())
    ]


@primitive(effect=Effect.READ, grant="queue.read")
def queue_decisions(ctx: Context, since: Date | None = None) -> list[DecisionInfo]:
    """What people decided about entries, oldest first: confirmed, corrected, rejected; with before and after.

    ``since``: from that day (UTC) on. What an agent can learn from.
    """
    decisions: list[DecisionInfo] = []
    for card in check_deadline(sorted(ctx.cards.committed_cards.values(), key=lambda c: c.resolved_at or "")):
        at, by = card.resolved_at or "", card.resolved_by or ""
        entry = ctx.books.find_entry(card.entry_id) if card.kind == ENTRY.name and card.entry_id and at else None
        if entry is None or by == card.agent or (since is not None and at[:10] < since.isoformat()):
            continue
        decisions.append(
            {
                "card_id": card.id, "entry_id": entry.entry_id, "decision": (card.resolution or "").split(":")[0],
                "by": by, "at": at, "description": entry.description, "counterparty": entry.counterparty,
                "reference": entry.reference, "status": entry.status, "before": _signed_legs(entry.legs),
                "after": [] if entry.status == "voided" else _signed_legs(effective_legs(ctx.books, entry)),
            }
        )  # fmt: skip
    return decisions


def _signed_legs(legs: Iterable[Leg]) -> list[LegInfo]:
    return [{"account_id": leg.account_id, "amount": leg.amount} for leg in legs]
