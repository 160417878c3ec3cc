"""Booking two entries as both sides of one transfer between own accounts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from typing import Final

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError, UsageError
from cleared.books.card_kinds import ENTRY, TRANSFER
from cleared.books.decisions import book_subjects
from cleared.books.decisions.entry_correction import Correction, correct_entry, decidable_entry
from cleared.books.ledger.booked_lines import DECIDED
from cleared.books.ledger.corrections import find_corrections
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, MAX_DAYS, TransferSide, find_sides, pair_sides
from cleared.books.staged_books import books_of
from cleared.cards.card import list_texts
from cleared.changes.decisions.decision_context import UNDO_TRAILER, Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.primitives.context import Context
from cleared.review.record_review import DecisionResult
from cleared.trust.person_only import refuse_in_job

_NEAR: Final = timedelta(days=3 * MAX_DAYS)
"""How far around two sides others are looked at: what is paired with one of them may be so for want of a third."""


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
        result.cards += settle_decided_transfers(decision_context, result.records)
        settled = " ".join([*result.cards, *result.records])
        subject = book_subjects.transfer_paired([one, other])
        return Decision(subject, trailers=((UNDO_TRAILER, settled),), subject=("transfers pair", one, other))

    result.commit = commit_decision(host, "transfers pair", stage_pairing, collects=[result]) or ""
    return result


def pair_entries(decision_context: DecisionContext, ids: Sequence[str], result: DecisionResult) -> None:
    """Book two entries as both sides of one transfer: what does not go through the clearing account is corrected.

    Raises ``UsageError`` where they are not one amount that leaves one bank account and reaches another,
    ``PolicyError`` where one of them is a side of another transfer.
    """
    context = decision_context.context
    entries = [decidable_entry(context, entry_id) for entry_id in dict.fromkeys(ids)]
    sides = _find_sides(context, entries)
    if len(sides) != 2 or sides[0].account == sides[1].account or sides[0].amount != -sides[1].amount:
        raise UsageError(
            f"{' and '.join(ids)[:80]} are not both sides of one transfer",
            remedy="They move the same amount, one out of a bank account, the other into another one.",
        )
    if (pair := _find_other_pair(context, sides)) is not None:
        side, other = pair
        raise PolicyError(
            f"{side.entry_id} is one side of a transfer already, with {other.entry_id}",
            remedy=f"If that is wrong, take {other.entry_id} out of it: cleared queue correct {other.entry_id} "
            "--account N, or cleared queue undo where it was decided last.",
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


def _find_sides(context: Context, entries: Sequence[Entry]) -> list[TransferSide]:
    known = {e.entry_id: e for each in entries for e in (each, *find_corrections(books_of(context).books, each))}
    return find_sides(known.values(), set(books_of(context).ledger_accounts.values()))


def _find_other_pair(context: Context, sides: Sequence[TransferSide]) -> tuple[TransferSide, TransferSide] | None:
    """One of two sides that has another partner already, and that one; None where both may be one transfer.

    Of equal amounts any may be the other's partner: it matters where one would be left alone.
    """
    cleared = [side for side in _list_sides_near(context, sides) if side.is_cleared]
    pairs = list(pair_sides(cleared))
    new = [side for side in sides if not side.is_cleared]
    if len(list(pair_sides(sorted([*cleared, *new], key=lambda each: (each.day, each.entry_id))))) > len(pairs):
        return None
    partners = {one.entry_id: other for pair in pairs for one, other in ((pair.out, pair.into), (pair.into, pair.out))}
    for side, meant in (sides, sides[::-1]):
        partner = partners.get(side.entry_id)
        if partner is not None and partner.entry_id != meant.entry_id and meant.entry_id not in partners:
            return side, partner
    return None


def _list_sides_near(context: Context, sides: Sequence[TransferSide]) -> list[TransferSide]:
    """The sides of the same amount in the months around these."""
    books, amount = books_of(context).books, abs(sides[0].amount)
    days = [side.day for side in sides]
    first = min(days) - min(_NEAR, min(days) - date.min)
    last = max(days) + min(_NEAR, date.max - max(days))
    months = [month for month in books.list_months() if (first.year, first.month) <= month <= (last.year, last.month)]
    entries = [entry for month in months for entry in books.iter_entries(*month)]
    alike = [entry for entry in entries if any(abs(leg.amount) == amount for leg in entry.legs)]
    return _find_sides(context, alike)


def settle_decided_transfers(decision_context: DecisionContext, records: Collection[str]) -> list[str]:
    """Settle the cards of possible transfers that decisions about these entries have answered: one side is voided or is
    one of another transfer, or both are decided. The ids of the cards."""
    context, settled = decision_context.context, []
    for card in context.cards.open_cards(TRANSFER.name) if records else ():
        ids = list_texts(card.details, "entries")
        if set(records).isdisjoint(ids):
            continue
        found = [books_of(context).books.find_entry(each) for each in ids]
        entries = [entry for entry in found if entry is not None and entry.status != "voided"]
        if len(entries) < len(ids):
            answer = "one of its entries is voided"
        elif all(entry.status in DECIDED for entry in entries):
            answer = "both entries are decided"
        elif len(sides := _find_sides(context, entries)) == 2 and (pair := _find_other_pair(context, sides)):
            answer = f"{pair[0].entry_id} is one side of a transfer with {pair[1].entry_id}"
        else:
            continue
        context.cards.resolve_card(card.id, format_iso(context.now), decision_context.by, answer)
        settled.append(card.id)
    return settled
