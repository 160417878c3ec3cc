"""Staging what a person decided about an entry, a held bank line or an adjusting entry."""

from __future__ import annotations

from typing import Final, cast

from cleared.base import money
from cleared.base.clock import format_iso
from cleared.base.errors import Place, PolicyError, UsageError
from cleared.books.card_kinds import ADJUSTMENT, LINE
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
from cleared.books.decisions.split_parts import refuse_odd_parts
from cleared.books.entry_comparison import EntryComparison
from cleared.books.importing.bank_file import find_entry_day
from cleared.books.ledger.bank_lines import why_not_postable
from cleared.books.ledger.booked_lines import DECIDED
from cleared.books.ledger.chains import date_tags
from cleared.books.ledger.chart import OWNER_DRAWS
from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import Entry, Leg
from cleared.books.ledger.posting import post_entry
from cleared.books.line_cards import stage_line_card
from cleared.books.met_balances import move_by_correction
from cleared.books.staged_books import books_of
from cleared.primitives.context import Context
from cleared.review.answers import name_commands
from cleared.review.record_review import CorrectedRecord, DecisionCase, Target

OUTCOMES: Final = ("duplicate", "personal", "suspense")
"""What the bank line of a rejected entry is."""


def entry_of(target: Target) -> Entry | None:
    """The entry that a target is, or has a card of."""
    return cast(Entry, target.record.value) if target.record is not None else None


def confirm_target(case: DecisionCase) -> str:
    """Stage that an entry is right, or post an adjusting entry; what it was about."""
    card, context = case.target.card, case.context
    if card is not None and card.kind == ADJUSTMENT.name:
        posted = post_adjustment(context, card, case.by)
        case.result.added.append(posted.entry_id)
        case.settle(f"posted as {posted.entry_id}")
        return f"{posted.entry_id} {posted.description}"
    entry = decidable_entry(context, _require_entry(case.target).entry_id)
    if entry.status not in DECIDED:
        books_of(context).books.set_status(entry.entry_id, "user-confirmed")
    elif card is None:  # one that waits is settled: the entry was changed by hand, and that was accepted
        raise PolicyError(f"{entry.entry_id} is {entry.status} already", remedy="Nothing needs doing.")
    context.log_action("confirm", entry.description[:200], entry.entry_id)
    case.settle("confirmed")
    return f"{entry.entry_id} {entry.description}"


def correct_target(case: DecisionCase) -> str:
    """Stage the correction of an entry, or post a held line; what it was about."""
    correction, entry, result = read_correction(case.request), entry_of(case.target), case.result
    if entry is None:
        return _post_held_line(case, correction)
    made = correct_entry(case.context, entry.entry_id, correction, case.by)
    result.added += [e.entry_id for e in made.posted]
    case.context.log_action("correct", entry.description[:200], entry.entry_id)
    case.settle(f"corrected: {', '.join([*result.added, *made.amended])}"[:300])
    if entry.reference and made.reclassified:
        _note_lesson(case, entry, made.legs)
    return f"{entry.entry_id} {entry.description}"


def _note_lesson(case: DecisionCase, entry: Entry, legs: tuple[Leg, ...]) -> None:
    assert case.target.record is not None
    line = books_of(case.context).bank.find_line(entry.reference)
    case.result.corrected[entry.entry_id] = CorrectedRecord(
        case.target.review,
        case.target.record,
        f"{line[1].posted_date if line is not None else entry.date:%Y-%m}",
        {entry.reference: [_leg_data(leg) for leg in legs]},
        EntryComparison.correction_key,
    )


def _leg_data(leg: Leg) -> list[object]:
    return [leg.account_id, money.format_amount(leg.debit), money.format_amount(leg.credit)]


def reject_target(case: DecisionCase) -> str:
    """Stage that an entry should not stand, or that an adjusting entry is not posted; what it was about."""
    card, reason, outcome = case.target.card, str(case.request["reason"]), case.request.get("outcome")
    if outcome is not None and outcome not in OUTCOMES:
        raise UsageError(f"{outcome!r} is no outcome", remedy=f"One of {', '.join(OUTCOMES)}.")
    if card is not None and card.kind == ADJUSTMENT.name:
        case.context.log_action("reject", f"{card.id} {reason}")
        case.settle(f"rejected: {reason}"[:300])
        return f"{card.title}: {reason}"
    entry = _require_entry(case.target)
    _reject_entry(case, decidable_entry(case.context, entry.entry_id), reason, outcome)
    return f"{entry.entry_id}: {reason}"


def _reject_entry(case: DecisionCase, entry: Entry, reason: str, outcome: str | None) -> None:
    context, result = case.context, case.result
    line = posted_line(context, entry)
    if line is not None and outcome is None:
        raise UsageError(
            f"{entry.entry_id} posts a bank line; what is that line then?",
            remedy="--outcome duplicate --of ENTRY, --outcome personal (a draw), or --outcome suspense (it waits).",
        )
    if outcome == "personal":
        corrected = correct_entry(context, entry.entry_id, Correction(OWNER_DRAWS, note=reason), case.by)
        if not corrected.reclassified and entry.status != "pending-review":
            raise UsageError(f"{entry.entry_id} is personal already", remedy=f"See it: cleared why {entry.entry_id}.")
        result.added += [e.entry_id for e in corrected.posted]
        context.log_action("reject", f"personal: {reason}", entry.entry_id)
        case.settle(f"personal: {reason}")
        return
    counts = ""
    if outcome == "duplicate":
        twin = books_of(context).books.find_entry(case.request.get("of") or "")
        if twin is None or twin.entry_id == entry.entry_id or twin.status == "voided":
            raise UsageError("a duplicate of which entry?", remedy="--of ENTRY, one that stands.")
        _require_same_money(context, entry, twin)
        reason = f"duplicate of {twin.entry_id}: {reason}"
        counts = twin.reference
    result.added += [e.entry_id for e in void_with_corrections(context, entry, reason)]
    if line is not None:
        if outcome == "duplicate":
            books_of(context).bank.set_line_aside(line.line_id, "ignored", reason, counts)
        else:
            books_of(context).bank.set_line_aside(line.line_id, "held", reason)
            stage_line_card(context, line, f"held in suspense: {reason}", entry.entry_id)
    context.log_action("reject", reason, entry.entry_id)
    case.settle(f"rejected: {reason}"[:300])


def count_one_line(case: DecisionCase, *, keeps_earlier: bool) -> None:
    """Stage that only one of two lines counts, which the bank reported under one id: what books the other is voided.
    It is the one that came later, or, where that is of an older file (``keeps_earlier``), the one that was there.

    Raises ``PolicyError`` where the one that is to count is set aside, as then neither would be booked.
    """
    card, context = case.target.card, case.context
    books, bank = books_of(context).books, books_of(context).bank
    names = ("line", "earlier") if keeps_earlier else ("earlier", "line")
    other, counts = (str(card.details.get(each, "")) if card is not None else "" for each in names)
    found, wrong = bank.find_line(counts), bank.find_line(other)
    if found is None or wrong is None:
        raise UsageError(
            f"{case.target.name} does not say which two lines it is about",
            remedy="Void the entry of the one that is wrong (cleared journal void), then answer both.",
        )
    if bank.is_ignored(counts) and not bank.posted_amount(counts):
        raise PolicyError(
            f"the line of {found[1].amount} on {found[1].posted_date} is set aside: nothing would be booked",
            remedy=f"Answer {'replace' if keeps_earlier else 'keep'} where the other amount is right, or take back "
            "what set it aside: cleared queue undo.",
        )
    reason = f"the bank reports {found[1].amount} instead"
    entries = [books.get_entry(each) for each in bank.list_entry_ids(other)]
    for entry in [each for each in entries if each.status != "voided"]:
        case.result.added += [e.entry_id for e in void_with_corrections(context, entry, reason)]
        case.result.records.append(entry.entry_id)
        context.log_action("reject", reason, entry.entry_id)
    bank.set_line_aside(other, "ignored", reason, counts)
    if not keeps_earlier:
        move_by_correction(books_of(context), wrong[1], found[1], format_iso(context.now))
    for each in context.cards.open_cards():
        line = each.details.get("line") if each.kind == LINE.name else None
        if each.record_id in case.result.records or line == other:
            context.cards.resolve_card(each.id, format_iso(context.now), case.by, reason)
            case.result.cards.append(each.id)
        elif line == counts:
            waits = f"the line of {found[1].amount} on {found[1].posted_date}, which counts now, is not booked yet"
            case.result.messages.append(f"{waits}: cleared queue show {each.id}")


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


def _post_held_line(case: DecisionCase, correction: Correction) -> str:
    """Post a held line as the entry that the person names."""
    context, card = case.context, case.target.card
    if card is None or card.kind != LINE.name:
        raise UsageError(f"{case.target.name} is not about an entry or a bank line", remedy=name_commands(card))
    account_line = books_of(context).bank.find_line(str(card.details["line"]))
    if account_line is None:
        raise UsageError(f"the bank line of {card.id} is not known any more", remedy="cleared check.")
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
        evidence=f"posted by {case.by}",
        notes=correction.note or "",
        tags=";".join([*(correction.tags or ()), *date_tags(day, meant)]),
    )
    case.result.added.append(entry.entry_id)
    context.log_action("correct", f"posted {line.description}"[:200], entry.entry_id)
    case.settle(f"posted as {entry.entry_id}")
    return f"{entry.entry_id} {entry.description}"


def _require_entry(target: Target) -> Entry:
    entry = entry_of(target)
    if entry is None:
        card = target.card
        kind = card.kind if card is not None else ""
        raise UsageError(f"{target.name} is not about an entry ({kind})", remedy=name_commands(card))
    return entry
