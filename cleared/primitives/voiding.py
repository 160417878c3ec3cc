"""Voiding an entry, and what becomes of the bank lines that it posted."""

from __future__ import annotations

from cleared.cards.card import Card, card_id
from cleared.cards.kinds import ENTRY, LINE
from cleared.clock import format_iso
from cleared.errors import Place, PrimitiveError
from cleared.ledger.bank_lines import BankLine
from cleared.ledger.corrections import find_corrections
from cleared.primitives.context import Context
from cleared.primitives.entry_projection import entry_reference
from cleared.registry.dict_shapes import EntryRef


def void_with_corrections(ctx: Context, entry_id: str, reason: str) -> EntryRef:
    """Void an entry and its corrections, for ``journal_void`` and for a person; the reversing entry.

    Each bank line that the entry posted is open again, and gets a card. Raises ``PrimitiveError`` without a reason, or
    where there is no such entry or it cannot be voided.
    """
    if not reason.strip():
        raise PrimitiveError("voiding needs a reason", place=Place(field="reason"), remedy="Say why, in a few words.")
    reason = ctx.env.redactor.redact_text(reason)  # a person's, too
    for correction in reversed(
        find_corrections(ctx.books, ctx.books.get_entry(entry_id))
    ):  # it amends nothing any more
        _, taken_back = ctx.books.void_entry(correction.entry_id, reason)
        ctx.permissions.budget.charge_entry(taken_back)
    original, reversal = ctx.books.void_entry(entry_id, reason)
    ctx.permissions.budget.charge_entry(reversal)
    freed = ctx.bank.unmatch_entry(original, reversal, reason)
    ctx.log_action(
        "journal_void", f"{original.entry_id} voided by {reversal.entry_id}: {reason}"[:500], original.entry_id
    )
    ctx.cards.resolve_card(card_id(ENTRY.name, original.entry_id), format_iso(ctx.now), ctx.agent, "voided")
    for line in freed:
        stage_line_card(ctx, line, f"its entry {original.entry_id} was voided: {reason}", reversal.entry_id)
    ctx.last_entry.entry_id = None
    return entry_reference(reversal)


def stage_line_card(ctx: Context, line: BankLine, why: str, *key: str) -> str:
    """A card for a bank line that is not posted; its id."""
    identity = card_id(LINE.name, line.line_id, *key)
    ctx.cards.add_card(
        Card(
            identity, LINE.name, f"{line.posted_date} {line.amount} {line.description[:80]}: {why}"[:300],
            format_iso(ctx.now), ctx.run_id, None, ctx.agent,
            {"line": line.line_id, "date": str(line.posted_date), "amount": str(line.amount), "text": line.description},
        )
    )  # fmt: skip
    return identity
