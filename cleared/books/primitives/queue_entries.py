"""``queue_*`` about entries: asking a person about one, and reading what people decided."""

# Without annotations from __future__: each type would be a text, compiled when what a primitive takes is read.

from collections.abc import Iterable
from decimal import Decimal

from cleared.base.clock import check_deadline
from cleared.base.errors import Place, PrimitiveError
from cleared.books.card_kinds import ENTRY
from cleared.books.entry_cards import WAITING, find_asked, stage_entry_card
from cleared.books.ledger.bank_lines import LINE_ID_PREFIX
from cleared.books.ledger.corrections import effective_legs
from cleared.books.ledger.entry import ZERO, Leg
from cleared.books.line_cards import stage_line_card
from cleared.books.primitives.book_shapes import DecisionInfo, LegInfo
from cleared.books.staged_books import books_of
from cleared.cards.card_draft import VOID
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Confidence, Date, Line, Text


@primitive(effect=Effect.STAGE, grant="queue.write")
def queue_add_review(ctx: Context, entry_id: Line, description: Text, confidence: Confidence = ZERO) -> str | None:
    """Ask a human about an entry; gives the card's id.

    ``"pending"`` means the entry this run staged last, and does nothing right after a duplicate. The reference of a
    bank line holds that line for review instead of posting it. Asking twice makes one card.
    """
    if entry_id == "pending":
        last = books_of(ctx).last_entry
        if last.entry_id is None:
            if last.was_duplicate:
                return None
            raise PrimitiveError(
                "this run has not staged an entry yet", place=Place(field="entry_id"), remedy="Post it first."
            )
        entry_id = last.entry_id
    if entry_id.startswith(LINE_ID_PREFIX):
        return _hold_line(ctx, entry_id, description)
    entry = books_of(ctx).books.get_entry(entry_id)
    ctx.log_action("queue_add_review", description[:500], entry.entry_id)
    return stage_entry_card(
        ctx, entry, f"{entry.date} {entry.amount} {description[:120]}", description, _format_number(confidence)
    )


def _hold_line(ctx: Context, reference: str, description: str) -> str:
    line = books_of(ctx).bank.resolve_reference(reference)
    if line is None or books_of(ctx).bank.posted_amount(reference):
        raise PrimitiveError(
            f"the line {reference} is posted already", place=Place(field="entry_id"), remedy="Pass its entry's id."
        )
    books_of(ctx).bank.set_line_aside(reference, "held", description[:500])
    ctx.log_action("queue_add_review", f"held {reference}: {description}"[:500])
    return stage_line_card(ctx, line[1], description)


def _format_number(value: Decimal) -> str:
    return format(value, "f")


@primitive(effect=Effect.READ, grant="queue.read")
def queue_decisions(ctx: Context, since: Date | None = None) -> list[DecisionInfo]:
    """What people decided about entries, oldest first: confirmed, corrected, rejected; with before and after.

    ``since``: from that day (UTC) on. What an agent can learn from.
    """
    decisions: list[DecisionInfo] = []
    for card in check_deadline(sorted(ctx.cards.committed_cards.values(), key=lambda c: c.resolved_at or "")):
        at, by = card.resolved_at or "", card.resolved_by or ""
        asked = find_asked(card, books_of(ctx).books.find_entry) if card.kind == ENTRY.name and at else None
        if not asked or by == card.agent or (since is not None and at[:10] < since.isoformat()):
            continue
        entry = asked[0]
        if entry.status == WAITING or card.resolution == VOID:  # git took the decision back, or what it was about
            continue
        decisions.append(
            {
                "card_id": card.id,
                "entry_id": entry.entry_id,
                "decision": (card.resolution or "").split(":")[0],
                "by": by,
                "at": at,
                "description": entry.description,
                "counterparty": entry.counterparty,
                "reference": entry.reference,
                "status": entry.status,
                "before": _signed_legs(entry.legs),
                "after": [] if entry.status == "voided" else _signed_legs(effective_legs(books_of(ctx).books, entry)),
            }
        )
    return decisions


def _signed_legs(legs: Iterable[Leg]) -> list[LegInfo]:
    return [{"account_id": leg.account_id, "amount": leg.amount} for leg in legs]
