"""The two-person rule (``thresholds.two_person``) for scripts: an entry above it waits for review, with a card."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from cleared.base import money
from cleared.books.entry_cards import stage_entry_card
from cleared.books.ledger.bank_lines import LINE_ID_PREFIX
from cleared.books.ledger.entry import ZERO, Entry, Leg
from cleared.books.staged_books import books_of
from cleared.primitives.context import Context


def needs_two_people(ctx: Context, amount: Decimal) -> bool:
    """Whether two reviewers must agree to what is done about such an amount."""
    limit = ctx.config.thresholds.two_person
    return limit is not None and amount >= limit


def is_change_for_two(ctx: Context, entry: Entry) -> bool:
    """Whether two reviewers must agree to a change of what this entry says."""
    if ctx.config.thresholds.two_person is None:
        return False
    from cleared.books.decision_effects import entry_weight  # late: few books have the rule

    return needs_two_people(ctx, entry_weight(entry, books_of(ctx).books, books_of(ctx).bank))


def entry_amount(ctx: Context, legs: Sequence[Leg], reference: str) -> Decimal:
    """What an entry would be about: its own amount, or that of the bank line of which it posts a part."""
    line = books_of(ctx).bank.find_line(reference) if reference.startswith(LINE_ID_PREFIX) else None
    return max(money.total([leg.debit for leg in legs]), abs(line[1].amount) if line else ZERO)


def stage_confirmation_card(ctx: Context, entry: Entry) -> None:
    """A card for an entry that the script was sure of."""
    reason = f"from {ctx.config.thresholds.two_person} on it takes two reviewers, whatever the script is sure of"
    stage_entry_card(ctx, entry, f"{entry.date} {entry.amount} {entry.description[:80]}", reason, entry.confidence)
    ctx.log_action("queue_add_review", reason, entry.entry_id)
