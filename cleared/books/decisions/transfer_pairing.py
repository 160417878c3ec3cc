"""Booking two entries as both sides of one transfer between own accounts."""

from __future__ import annotations

from collections.abc import Sequence

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError, UsageError
from cleared.books.card_kinds import ENTRY, TRANSFER
from cleared.books.decisions import book_subjects
from cleared.books.decisions.entry_correction import Correction, correct_entry, decidable_entry
from cleared.books.ledger.booked_lines import DECIDED
from cleared.books.ledger.corrections import find_corrections
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, find_sides
from cleared.books.staged_books import books_of
from cleared.changes.decisions.decision_context import UNDO_TRAILER, Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.review.record_review import DecisionResult
from cleared.trust.person_only import refuse_in_job


def pair_transfer(host: Host, one: str, other: str) -> DecisionResult:
    """Book two entries as both sides of one transfer, in one commit; ``cleared queue undo`` takes it back.

    Raises ``UsageError`` where they cannot be, ``PolicyError`` where they are, and inside a job.
    """
    refuse_in_job()
    result = DecisionResult()

    def stage_pairing(decision_context: DecisionContext) -> Decision:
        pair_entries(decision_context, [one, other], result)
        if not result.records:
            raise PolicyError("both go through the clearing account already", remedy="Nothing needs doing.")
        settle_decided_transfers(decision_context, result)
        settled = " ".join([*result.cards, *result.records])
        subject = book_subjects.transfer_paired([one, other])
        return Decision(subject, trailers=((UNDO_TRAILER, settled),), subject=("transfers pair", one, other))

    result.commit = commit_decision(host, "transfers pair", stage_pairing, collects=[result]) or ""
    return result


def pair_entries(decision_context: DecisionContext, ids: Sequence[str], result: DecisionResult) -> None:
    """Book two entries as both sides of one transfer: what does not go through the clearing account is corrected.

    Raises ``UsageError`` where they are not one amount that leaves one bank account and reaches another.
    """
    context = decision_context.context
    entries = [decidable_entry(context, entry_id) for entry_id in dict.fromkeys(ids)]
    known = [e for entry in entries for e in (entry, *find_corrections(books_of(context).books, entry))]
    sides = find_sides(known, set(books_of(context).ledger_accounts.values()))
    if len(sides) != 2 or sides[0].account == sides[1].account or sides[0].amount != -sides[1].amount:
        raise UsageError(
            f"{' and '.join(ids)[:80]} are not both sides of one transfer",
            remedy="They move the same amount, one out of a bank account, the other into another one.",
        )
    for side, entry in zip(sides, sorted(entries, key=lambda e: (e.date, e.entry_id)), strict=True):
        if not side.is_cleared:
            made = correct_entry(context, entry.entry_id, Correction(account=CLEARING_ACCOUNT), decision_context.by)
            result.added += [e.entry_id for e in made.posted]
            context.log_action("correct", f"one side of a transfer: {entry.description}"[:200], entry.entry_id)
            outcome = f"corrected: {', '.join(result.added)}"[:300]
        elif entry.status == "pending-review":  # who says what it is has decided about it
            books_of(context).books.set_status(entry.entry_id, "user-confirmed")
            context.log_action("confirm", f"one side of a transfer: {entry.description}"[:200], entry.entry_id)
            outcome = "confirmed"
        else:
            continue
        result.records.append(entry.entry_id)
        for card in context.cards.list_about(ENTRY.name, entry.entry_id):
            context.cards.resolve_card(card, format_iso(context.now), decision_context.by, outcome)
            result.cards.append(card)


def settle_decided_transfers(decision_context: DecisionContext, result: DecisionResult) -> None:
    """Settle the cards of possible transfers that the decisions so far have answered: one side is voided, or both are
    decided."""
    context = decision_context.context
    for card in context.cards.open_cards(TRANSFER.name) if result.records else ():
        ids = card.details.get("entries")
        if not isinstance(ids, list) or set(result.records).isdisjoint(ids):
            continue
        statuses = [e.status if (e := books_of(context).books.find_entry(str(each))) else "voided" for each in ids]
        if "voided" in statuses:
            answer = "one of its entries is voided"
        elif all(status in DECIDED for status in statuses):
            answer = "both entries are decided"
        else:
            continue
        context.cards.resolve_card(card.id, format_iso(context.now), decision_context.by, answer)
        result.cards.append(card.id)
