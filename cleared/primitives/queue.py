"""``queue_*``: what a human should look at."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from cleared.errors import Place, PrimitiveError
from cleared.ledger.bank import VERSION
from cleared.ledger.corrections import effective
from cleared.ledger.entry import ZERO, Leg
from cleared.primitives.context import Context
from cleared.primitives.journal import hold
from cleared.registry.primitive import Effect, primitive
from cleared.registry.shapes import CardInfo, DecisionInfo, LegInfo
from cleared.registry.vocabulary import Confidence, Date, Line, Text


@primitive(effect=Effect.STAGE, grant="queue.write")
def queue_add_review(ctx: Context, entry_id: Line, description: Text, confidence: Confidence = ZERO) -> str | None:
    """Ask a human about an entry; gives the card's id.

    ``"pending"`` means the entry this run staged last, and does nothing right after a duplicate. The reference of a
    bank line holds that line for review instead of posting it. Asking twice makes one card.
    """
    if entry_id == "pending":
        if ctx.last_entry is None:
            if ctx.last_was_duplicate:
                return None
            raise PrimitiveError(
                "this run has not staged an entry yet", place=Place(field="entry_id"), remedy="Post it first."
            )
        entry_id = ctx.last_entry
    if entry_id.startswith(VERSION):
        return _hold(ctx, entry_id, description)
    entry = ctx.books.existing(entry_id)
    ctx.note("queue_add_review", description[:500], entry.entry_id)
    title = f"{entry.date} {entry.amount} {description[:120]}"
    return ctx.card(
        "entry", (entry.entry_id,), title, entry_id=entry.entry_id, description=description,
        confidence=_plain(confidence), amount=str(entry.amount), evidence=entry.evidence,
        accounts=[leg.account_id for leg in entry.legs],
    )  # fmt: skip


def _hold(ctx: Context, reference: str, description: str) -> str:
    found = ctx.bank.resolve(reference)
    if found is None or ctx.bank.posted(reference):
        raise PrimitiveError(
            f"the line {reference} is posted already", place=Place(field="entry_id"), remedy="Pass its entry's id."
        )
    ctx.bank.set_aside(reference, "held", description[:500])
    ctx.note("queue_add_review", f"held {reference}: {description}"[:500])
    return hold(ctx, found[1], description)


def _plain(value: Decimal) -> str:
    return format(value, "f")


@primitive(effect=Effect.READ, grant="queue.read")
def queue_pending(ctx: Context) -> list[CardInfo]:
    """The open cards, oldest first, this run's included."""
    return [
        {"id": c.id, "kind": c.kind, "entry_id": c.entry_id, "title": c.title, "created_at": c.created_at}
        for c in ctx.cards.open_cards()
    ]


@primitive(effect=Effect.READ, grant="queue.read")
def queue_decisions(ctx: Context, since: Date | None = None) -> list[DecisionInfo]:
    """What people decided about entries, oldest first: confirmed, corrected, rejected; with before and after.

    ``since``: from that day (UTC) on. What an agent can learn from.
    """
    found: list[DecisionInfo] = []
    for card in sorted(ctx.cards.known.values(), key=lambda c: c.resolved_at or ""):
        at, by = card.resolved_at or "", card.resolved_by or ""
        entry = ctx.books.entry(card.entry_id) if card.kind == "entry" and card.entry_id and at else None
        if entry is None or by == card.agent or (since is not None and at[:10] < since.isoformat()):
            continue
        found.append(
            {
                "card_id": card.id, "entry_id": entry.entry_id, "decision": (card.resolution or "").split(":")[0],
                "by": by, "at": at, "description": entry.description, "counterparty": entry.counterparty,
                "reference": entry.reference, "status": entry.status, "before": _moved(entry.legs),
                "after": [] if entry.status == "voided" else _moved(effective(ctx.books, entry)),
            }
        )  # fmt: skip
    return found


def _moved(legs: Iterable[Leg]) -> list[LegInfo]:
    return [{"account_id": leg.account_id, "amount": leg.amount} for leg in legs]
