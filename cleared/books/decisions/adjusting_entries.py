"""Adjusting entries: what an accountant sends back waits as cards, and is posted when a person approves it.

Until then nothing of it is in the books. A card holds the whole entry as it is shown; what is posted is read from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from cleared.base import money
from cleared.base.clock import format_iso
from cleared.base.errors import Place, PolicyError
from cleared.books.card_kinds import ADJUSTMENT
from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import ZERO, Entry
from cleared.books.ledger.staged_journal import Books
from cleared.books.staged_books import books_of
from cleared.cards.card import Card, card_id
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.primitives.context import Context
from cleared.trust.person_only import refuse_in_job

TAG: Final = "@kind=adjusting"


class AdjustingEntry(Struct, frozen=True):
    """One entry that somebody proposes. ``lines``: account and amount, positive is a debit; they sum to zero."""

    day: date
    description: str
    lines: tuple[tuple[int, Decimal], ...]
    source: str
    """File and line."""

    @property
    def amount(self) -> Decimal:
        """The sum of its debits."""
        return money.total([amount for _, amount in self.lines if amount > 0])


class ProposedAdjustments(Struct):
    """What became of them: ids of the cards that were made, and how many had come before."""

    cards: list[str]
    known: list[str]
    """Cards of the same entries, open or decided."""


def propose_adjustments(host: Host, entries: Sequence[AdjustingEntry]) -> tuple[ProposedAdjustments, str | None]:
    """Make a card of each entry, in one commit; None where all have come before.

    Raises ``PrimitiveError`` for an entry that could not be posted as it is, but for its period.
    """
    refuse_in_job()
    result = ProposedAdjustments([], [])

    def stage_cards(decision_context: DecisionContext) -> Decision | None:
        context = decision_context.context
        titles: list[str] = []
        counts: dict[tuple[object, ...], int] = {}
        for entry in entries:
            _refuse_faults(books_of(context).books, entry)
            key = (entry.day, entry.description, entry.lines)
            counts[key] = counts.get(key, 0) + 1
            card = _make_card(entry, counts[key], context)
            if context.cards.add_card(card):
                result.cards.append(card.id)
                titles.append(card.title)
            else:
                result.known.append(card.id)
        return Decision(commit_messages.cards_opened(titles)) if titles else None

    commit = commit_decision(host, "journal adjust", stage_cards, collects=[result.cards, result.known])
    return result, commit


def _refuse_faults(books: Books, entry: AdjustingEntry) -> None:
    """A closed period is told when it is posted: reopening it is a decision of its own."""
    legs = [make_leg(account, amount) for account, amount in entry.lines]
    for fault in books.find_faults(books.periods.first_open(entry.day), legs, "lines"):
        raise type(fault)(f"{entry.source}: {fault.message}", place=fault.place, remedy=fault.remedy)


def _make_card(entry: AdjustingEntry, number: int, context: Context) -> Card:
    """``number``: counts equal entries of one file, from 1. The same entry again is the same card."""
    names = books_of(context).books.chart
    rows = []
    for account, amount in entry.lines:
        known = names.find_account(account)
        side = "debit" if amount > 0 else "credit"
        rows.append(
            {"account": account, "name": known.account_name if known else "", side: money.format_amount(abs(amount))}
        )
    key = [f"{account}={money.format_amount(amount)}" for account, amount in entry.lines]
    return Card(
        card_id(ADJUSTMENT.name, entry.day.isoformat(), entry.description, *key, str(number)),
        ADJUSTMENT.name,
        f"{entry.day} {money.format_amount(entry.amount)} {entry.description}"[:300],
        format_iso(context.now),
        context.run_id,
        details={
            "date": entry.day.isoformat(),
            "description": entry.description,
            "lines": rows,
            "source": entry.source,
        },
    )


def read_adjustment(card: Card, places: int) -> AdjustingEntry:
    """The entry that a card proposes. Raises ``PolicyError`` where the card was damaged."""
    try:
        return _decode_entry(card.details, places)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise PolicyError(
            f"the entry in card {card.id} cannot be read: somebody changed the queue's files by hand",
            place=Place(field="card"),
            remedy=f"Reject it (cleared queue reject {card.id}), and take the file again.",
        ) from None


def _decode_entry(details: Mapping[str, Any], places: int) -> AdjustingEntry:
    lines = []
    for row in details["lines"]:
        sides = [(1, row["debit"])] if "debit" in row else []
        sides += [(-1, row["credit"])] if "credit" in row else []
        ((sign, text),) = sides
        account = row["account"]
        if type(account) is not int or not isinstance(text, str):
            raise ValueError("not an account and an amount")
        amount = money.decode(text, places)
        if amount <= ZERO:
            raise ValueError("not a positive amount")
        lines.append((account, sign * amount))
    description, source = details["description"], details["source"]
    if not (isinstance(description, str) and isinstance(source, str)):
        raise ValueError("not a text")
    return AdjustingEntry(date.fromisoformat(details["date"]), description, tuple(lines), source)


def post_adjustment(context: Context, card: Card, by: str) -> Entry:
    """Stage the entry that a card proposes. Raises ``PolicyError`` for a damaged card, ``PrimitiveError`` where it
    cannot be posted, such as in a closed period."""
    proposed = read_adjustment(card, books_of(context).books.bounds.places)
    entry = books_of(context).books.add_entry(
        proposed.day,
        proposed.description,
        [make_leg(account, amount) for account, amount in proposed.lines],
        status="user-confirmed",
        confidence="1.00",
        evidence=f"{proposed.source}; approved by {by}",
        tags=TAG,
    )
    context.log_action("journal_adjust", f"{entry.date} {entry.amount} {entry.description}"[:200], entry.entry_id)
    return entry
