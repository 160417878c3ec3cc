"""Voiding an entry, and what becomes of the bank lines that it posted."""

from __future__ import annotations

from cleared.base.clock import format_iso
from cleared.base.errors import Place, PrimitiveError
from cleared.books.card_kinds import ENTRY
from cleared.books.ledger import corrections
from cleared.books.line_cards import stage_line_card
from cleared.books.primitives.book_shapes import EntryRef
from cleared.books.primitives.entry_projection import entry_reference
from cleared.books.staged_books import books_of, charge_entry
from cleared.primitives.context import Context


def void_with_corrections(ctx: Context, entry_id: str, reason: str) -> EntryRef:
    """Void an entry and its corrections, for ``journal_void`` and for a person; the reversing entry.

    Each bank line that the entry posted is open again, and gets a card. Raises ``PrimitiveError`` without a reason, or
    where there is no such entry or it cannot be voided.
    """
    from cleared.books.ledger.voided_lines import unmatch_entries

    if not reason.strip():
        raise PrimitiveError("voiding needs a reason", place=Place(field="reason"), remedy="Say why, in a few words.")
    reason = ctx.env.redactor.redact_text(reason)  # a person's, too
    voided = corrections.void_with_corrections(books_of(ctx).books, books_of(ctx).books.get_entry(entry_id), reason)
    for _, taken_back in voided:
        charge_entry(ctx, taken_back)
    original, reversal = voided[-1]
    freed = unmatch_entries(books_of(ctx).bank, [(original, reversal)], reason)
    ctx.log_action(
        "journal_void", f"{original.entry_id} voided by {reversal.entry_id}: {reason}"[:500], original.entry_id
    )
    for card in ctx.cards.list_about(ENTRY.name, original.entry_id):
        ctx.cards.resolve_card(card, format_iso(ctx.now), ctx.agent, "voided")
    for line in freed:
        stage_line_card(ctx, line, f"its entry {original.entry_id} was voided: {reason}", reversal.entry_id)
    books_of(ctx).last_entry.entry_id = None
    return entry_reference(reversal)
