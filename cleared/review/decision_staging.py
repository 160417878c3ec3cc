"""Staging what a person decided about one card or entry.

Each function takes a target and a request, stages the changes, and returns what it was about, for the commit's subject.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cleared.base import money
from cleared.base.clock import format_iso
from cleared.base.errors import Place, PolicyError, UsageError
from cleared.books.decisions.adjusting_entries import post_adjustment
from cleared.books.decisions.entry_correction import (
    Correction,
    checked_lines,
    correct_entry,
    decidable_entry,
    posted_line,
    read_correction,
    void_with_corrections,
)
from cleared.books.decisions.receipt_filing import link_proposed
from cleared.books.decisions.split_parts import refuse_odd_parts
from cleared.books.importing.bank_file import find_entry_day
from cleared.books.ledger.bank_lines import why_not_postable
from cleared.books.ledger.booked_lines import DECIDED
from cleared.books.ledger.chains import date_tags
from cleared.books.ledger.corrections import find_corrections, make_leg
from cleared.books.ledger.entry import Entry, Leg
from cleared.books.ledger.posting import post_entry
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, find_sides
from cleared.books.primitives.voiding import stage_line_card
from cleared.books.staged_books import books_of
from cleared.cards.kinds import ADJUSTMENT, BRANCH, ENTRY, LINE, PROPOSAL, QUESTION, RECEIPT, TRANSFER, kind_named
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.primitives.context import Context
from cleared.review.answers import answer_choices, committed_questions
from cleared.review.branch_merge import read_branch_files
from cleared.review.target_lookup import Target

OWNER_DRAWS_ACCOUNT: Final = 3200


@dataclass(slots=True)
class DecisionResult:
    """What a decision did."""

    commit: str = ""
    act: str = ""
    """Of an undo: the id of the act that it takes back."""
    cards: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    """Entries that were decided about."""
    posted: list[str] = field(default_factory=list)
    similar_cards: list[str] = field(default_factory=list)
    """Open cards that look like the corrected one."""
    agreed: list[str] = field(default_factory=list)
    """Open cards of which this was the first of two decisions: nothing else has come of it yet."""
    asked_by_run: bool = False
    """Whether a run waited for this answer."""
    ended_questions: list[str] = field(default_factory=list)
    """Questions whose runs do not go on."""
    test_path: str | None = None
    """The file of the test that records a correction."""
    messages: list[str] = field(default_factory=list)
    corrected_legs: dict[str, tuple[Leg, ...]] = field(default_factory=dict)
    """Entries that an agent got wrong → the legs they should have had."""
    merged_files: dict[str, bytes | None] = field(default_factory=dict)
    """Files that a branch brings, and the record of receipts: path → content, None where a file is removed."""


DecisionData = Mapping[str, Any]
"""A decision as plain data, so that a second person can make the same one: its ``verb`` and arguments."""


def _confirm_target(
    decision_context: DecisionContext, target: Target, request: DecisionData, result: DecisionResult
) -> str:
    if target.card is not None and target.card.kind == ADJUSTMENT.name:
        posted = post_adjustment(decision_context.context, target.card, decision_context.by)
        result.posted.append(posted.entry_id)
        _settle_target(decision_context, target, f"posted as {posted.entry_id}", result)
        return f"{posted.entry_id} {posted.description}"
    entry = decidable_entry(decision_context.context, require_entry(target).entry_id)
    if entry.status in DECIDED:
        raise PolicyError(f"{entry.entry_id} is {entry.status} already", remedy="Nothing needs doing.")
    books_of(decision_context.context).books.set_status(entry.entry_id, "user-confirmed")
    decision_context.context.log_action("confirm", entry.description[:200], entry.entry_id)
    _settle_target(decision_context, target, "confirmed", result)
    return f"{entry.entry_id} {entry.description}"


def _correct_target(
    decision_context: DecisionContext, target: Target, request: DecisionData, result: DecisionResult
) -> str:
    correction = read_correction(request)
    if target.entry is None:
        return _post_held_line(decision_context, target, correction, result)
    entry = target.entry
    made = correct_entry(decision_context.context, entry.entry_id, correction, decision_context.by)
    result.posted += [e.entry_id for e in made.posted]
    decision_context.context.log_action("correct", entry.description[:200], entry.entry_id)
    _settle_target(decision_context, target, f"corrected: {', '.join([*result.posted, *made.amended])}"[:300], result)
    if entry.reference and made.reclassified:
        result.corrected_legs[entry.entry_id] = made.legs
    return f"{entry.entry_id} {entry.description}"


def _reject_target(
    decision_context: DecisionContext, target: Target, request: DecisionData, result: DecisionResult
) -> str:
    reason = str(request["reason"])
    if target.card is not None and target.card.kind == QUESTION.name:  # its run does not go on
        decision_context.context.log_action("reject", f"{target.card.id} {reason}")
        result.ended_questions.append(target.card.id)
        _settle_target(decision_context, target, f"rejected: {reason}"[:300], result)
        return f"{target.card.title}: {reason}"
    if target.card is not None and target.card.kind == ADJUSTMENT.name:
        decision_context.context.log_action("reject", f"{target.card.id} {reason}")
        _settle_target(decision_context, target, f"rejected: {reason}"[:300], result)
        return f"{target.card.title}: {reason}"
    entry = require_entry(target)
    _reject_entry(
        decision_context,
        target,
        decidable_entry(decision_context.context, entry.entry_id),
        reason,
        request.get("outcome"),
        request.get("of"),
        result,
    )
    return f"{entry.entry_id}: {reason}"


def _answer_target(
    decision_context: DecisionContext, target: Target, request: DecisionData, result: DecisionResult
) -> str:
    card, choice = target.card, str(request["choice"])
    choices = answer_choices(card) if card is not None else {}
    if card is None or choice not in choices:
        choice_list = ", ".join(choices) or "approve, correct or reject"
        raise UsageError(f"{choice!r} is no answer to {target.name}", remedy=f"It takes: {choice_list}.")
    if card.kind == LINE.name:
        books_of(decision_context.context).bank.set_line_aside(
            str(card.details["line"]), "ignored", f"{choice}, by {decision_context.by}"
        )
    if card.kind == TRANSFER.name and choice == "pair":
        entries = card.details.get("entries")
        pair_entries(decision_context, [str(each) for each in entries] if isinstance(entries, list) else [], result)
    if card.kind == RECEIPT.name and choice == "link":
        result.merged_files |= link_proposed(decision_context, card, result.merged_files)
    if card.kind == BRANCH.name and choice == "merge":
        result.merged_files |= read_branch_files(decision_context, card)
    result.asked_by_run = card.kind == QUESTION.name
    if result.asked_by_run and (hold_error := committed_questions(decision_context).find_hold_error(card)) is not None:
        raise hold_error
    decision_context.context.log_action("answer", f"{card.id} {choice}")
    _settle_target(decision_context, target, choice, result)
    return f"{card.title}: {choice}"


def _reject_entry(
    decision_context: DecisionContext,
    target: Target,
    entry: Entry,
    reason: str,
    outcome: str | None,
    of: str | None,
    result: DecisionResult,
) -> None:
    context = decision_context.context
    line = posted_line(context, entry)
    if line is not None and outcome is None:
        raise UsageError(
            f"{entry.entry_id} posts a bank line; what is that line then?",
            remedy="--outcome duplicate --of ENTRY, --outcome personal (a draw), or --outcome suspense (it waits).",
        )
    if outcome == "personal":
        result.posted += [
            e.entry_id
            for e in correct_entry(
                context, entry.entry_id, Correction(OWNER_DRAWS_ACCOUNT, note=reason), decision_context.by
            ).posted
        ]
        context.log_action("reject", f"personal: {reason}", entry.entry_id)
        _settle_target(decision_context, target, f"personal: {reason}", result)
        return
    if outcome == "duplicate":
        twin = books_of(context).books.find_entry(of or "")
        if twin is None or twin.entry_id == entry.entry_id or twin.status == "voided":
            raise UsageError("a duplicate of which entry?", remedy="--of ENTRY, one that stands.")
        _require_same_money(context, entry, twin)
        reason = f"duplicate of {twin.entry_id}: {reason}"
    result.posted += [e.entry_id for e in void_with_corrections(context, entry, reason)]
    if line is not None:
        if outcome == "duplicate":
            books_of(context).bank.set_line_aside(line.line_id, "ignored", reason)
        else:
            books_of(context).bank.set_line_aside(line.line_id, "held", reason)
            stage_line_card(context, line, f"held in suspense: {reason}", entry.entry_id)
    context.log_action("reject", reason, entry.entry_id)
    _settle_target(decision_context, target, f"rejected: {reason}"[:300], result)


def _require_same_money(context: Context, entry: Entry, twin: Entry) -> None:
    """Raises ``UsageError`` where both entries do not move the same bank accounts by the same amounts."""
    banks = set(books_of(context).ledger_accounts.values())
    moved, other = ([(x.account_id, x.amount) for x in e.legs if x.account_id in banks] for e in (entry, twin))
    if sorted(moved) == sorted(other) and (moved or entry.amount == twin.amount):
        return
    shown = (" and ".join(f"{amount:f} on {account}" for account, amount in legs) for legs in (moved, other))
    mine, theirs = (text or f"{e.amount:f}" for text, e in zip(shown, (entry, twin), strict=True))
    raise UsageError(
        f"{entry.entry_id} is no duplicate of {twin.entry_id}: it is {mine}, and that one {theirs}",
        remedy="Name the entry with the same money. Else say what the bank line is: --outcome personal (a draw) or "
        "suspense (it waits).",
    )


def _post_held_line(
    decision_context: DecisionContext, target: Target, correction: Correction, result: DecisionResult
) -> str:
    """Post a held line as the entry that the person names."""
    context, card = decision_context.context, target.card
    if card is None or card.kind != LINE.name:
        raise UsageError(
            f"{target.name} is not about an entry or a bank line", remedy="cleared queue answer ID CHOICE."
        )
    account_line = books_of(context).bank.find_line(str(card.details["line"]))
    if account_line is None:
        raise UsageError(f"the bank line of {card.id} is not known any more", remedy="cleared journal check.")
    bank, line = account_line
    if (why := why_not_postable(line)) is not None:
        raise PolicyError(f"this bank line is {why[0]}", place=Place(field="line"), remedy=why[1])
    bank_account = next((each for each in context.config.bank_accounts if each.id == bank), None)
    if bank_account is None:
        raise UsageError(f"the bank account {bank!r} is not in config.yaml any more", remedy="Put it back.")
    account = bank_account.ledger_account
    rest = money.total([line.amount, -books_of(context).bank.posted_amount(line.line_id)])
    lines = checked_lines(context, correction, {account})
    if correction.account is not None:
        lines = ((correction.account, -rest),)
    refuse_odd_parts(-rest, lines, is_meant=correction.mixed)
    if not lines:
        raise UsageError("which account is it?", remedy="--account N, or --line ACCOUNT=AMOUNT for each.")
    legs = [make_leg(account, rest), *(make_leg(a, v) for a, v in lines)]
    meant = correction.day or find_entry_day(bank_account, line)
    day = books_of(context).books.date_change(books_of(context).bank.list_entry_ids(line.line_id), meant)
    entry, _ = post_entry(
        books_of(context).books,
        books_of(context).bank,
        books_of(context).ledger_accounts,
        day,
        line.description,
        legs,
        reference=line.line_id,
        status="user-confirmed",
        counterparty=correction.counterparty or "",
        confidence="1.00",
        evidence=f"posted by {decision_context.by}",
        notes=correction.note or "",
        tags=";".join([*(correction.tags or ()), *date_tags(day, meant)]),
    )
    result.posted.append(entry.entry_id)
    context.log_action("correct", f"posted {line.description}"[:200], entry.entry_id)
    _settle_target(decision_context, target, f"posted as {entry.entry_id}", result)
    return f"{entry.entry_id} {entry.description}"


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
            result.posted += [e.entry_id for e in made.posted]
            context.log_action("correct", f"one side of a transfer: {entry.description}"[:200], entry.entry_id)
            outcome = f"corrected: {', '.join(result.posted)}"[:300]
        elif entry.status == "pending-review":  # who says what it is has decided about it
            books_of(context).books.set_status(entry.entry_id, "user-confirmed")
            context.log_action("confirm", f"one side of a transfer: {entry.description}"[:200], entry.entry_id)
            outcome = "confirmed"
        else:
            continue
        result.entries.append(entry.entry_id)
        for card in context.cards.list_about(ENTRY.name, entry.entry_id):
            context.cards.resolve_card(card, format_iso(context.now), decision_context.by, outcome)
            result.cards.append(card)


def settle_decided_transfers(decision_context: DecisionContext, result: DecisionResult) -> None:
    """Settle the cards of possible transfers that the decisions so far have answered: one side is voided, or both are
    decided."""
    context = decision_context.context
    for card in context.cards.open_cards() if result.entries else ():
        ids = card.details.get("entries")
        if card.kind != TRANSFER.name or not isinstance(ids, list) or set(result.entries).isdisjoint(ids):
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


def require_entry(target: Target) -> Entry:
    if target.entry is None:
        card = target.card
        kind = card.kind if card else ""
        remedy = (
            "cleared agent approve P… decides about proposals."
            if kind == PROPOSAL.name
            else (f"cleared queue answer {target.name} {'|'.join(kind_named(kind).answers or ['seen'])}.")
        )
        raise UsageError(f"{target.name} is not about an entry ({kind})", remedy=remedy)
    return target.entry


def _settle_target(decision_context: DecisionContext, target: Target, resolution: str, result: DecisionResult) -> None:
    if target.card is not None:
        decision_context.context.cards.resolve_card(
            target.card.id, format_iso(decision_context.context.now), decision_context.by, resolution
        )
        result.cards.append(target.card.id)
    if target.entry is not None:
        result.entries.append(target.entry.entry_id)


STAGE_BY_VERB: Final[dict[str, tuple[str, Callable[[DecisionContext, Target, DecisionData, DecisionResult], str]]]] = {
    "confirm": ("confirm", _confirm_target),
    "correct": ("correct", _correct_target),
    "reject": ("void", _reject_target),
    "answer": ("confirm", _answer_target),
}
"""Verb → the beginning of the commit's first line, and the function that stages the decision."""
