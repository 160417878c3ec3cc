"""Cards that ask about bank lines which are not posted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cleared.base.clock import format_iso
from cleared.books.card_kinds import LINE
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.cards.card import Card, card_id
from cleared.cards.card_draft import VOID
from cleared.primitives.context import Context

_WAITS: Final = ("held", "voided")
"""What a line is of which a person has to say what becomes of it."""


def stage_line_card(ctx: Context, line: BankLine, why: str, *key: str) -> str:
    """A card for a bank line that is not posted, unless one waits; its id. A settled one was about what was then."""
    parts = [LINE.name, line.line_id, *key]
    while (known := ctx.cards.committed_cards.get(card_id(*parts))) is not None and known.status != "open":
        parts.append("again")
    identity = card_id(*parts)
    ctx.cards.add_card(
        Card(
            identity,
            LINE.name,
            f"{line.posted_date} {line.amount} {line.description[:80]}: {why}"[:300],
            format_iso(ctx.now),
            ctx.run_id,
            None,
            ctx.agent,
            {"line": line.line_id, "date": str(line.posted_date), "amount": str(line.amount), "text": line.description},
        )
    )
    return identity


def list_unasked_lines(bank: BankBook, open_cards: Iterable[Card]) -> list[tuple[str, BankLine]]:
    """The bank lines that wait for a person and that no card of ``open_cards`` asks about, behind their accounts."""
    asked = {str(card.details.get("line", "")) for card in open_cards if card.kind == LINE.name}
    waiting = [line_id for line_id, each in bank.read_outcomes().items() if each.outcome in _WAITS]
    found = [bank.find_line(line_id) for line_id in waiting if line_id not in asked]
    return [each for each in found if each is not None and not is_posted(bank, each[1].line_id)]


def settle_posted_lines(context: Context, bank: BankBook) -> None:
    """Settle the open cards of lines that are posted, as git took back what had left them open."""
    for card in context.cards.open_cards(LINE.name):
        if is_posted(bank, str(card.details.get("line", ""))):
            context.cards.resolve_card(card.id, format_iso(context.now), context.agent, VOID)


def is_posted(bank: BankBook, line_id: str) -> bool:
    """Whether a bank line is posted whole: then there is nothing to ask about it."""
    found = bank.find_line(line_id)
    return found is not None and bank.posted_amount(line_id) == found[1].amount
