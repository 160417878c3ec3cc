"""Deciding about cards: each decision, or batch of them, is one commit with who and when.

The terminal, the page and the command line call these; nothing else settles a card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from cleared.approvals.decision_effects import entry_weight
from cleared.approvals.person_only import refuse_in_job
from cleared.approvals.reviewers import parse_agreements
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import ENTRY, LINE, PROPOSAL, QUESTION, kind_named
from cleared.changes import commit_messages
from cleared.changes.host import Host, current_user
from cleared.clock import format_iso
from cleared.decisions.authorization import AGREES_TRAILER
from cleared.decisions.decision_context import UNDO_TRAILER, Decision, DecisionContext, commit_decision
from cleared.errors import PolicyError, UsageError
from cleared.ledger.corrections import find_corrections, make_leg
from cleared.ledger.entry import ZERO, Entry, Leg
from cleared.ledger.posting import post_entry
from cleared.primitives.journal import stage_line_card
from cleared.review.answers import answer_choices, committed_questions, find_stopped_question
from cleared.review.entry_decisions import (
    Correction,
    checked_lines,
    correct_entry,
    correction_data,
    decidable_entry,
    non_bank_legs,
    posted_line,
    read_correction,
    void_with_corrections,
)
from cleared.review.target_lookup import Target, find_targets
from cleared.runs.question_tickets import Questions
from cleared.schema import money
from cleared.vcs import Snapshot

OWNER_DRAWS_ACCOUNT: Final = 3200
OUTCOMES: Final = ("duplicate", "personal", "suspense")


@dataclass(slots=True)
class DecisionResult:
    """What a decision did. ``siblings``: open cards that look like the corrected one."""

    commit: str = ""
    cards: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    """Entries that were decided about."""
    posted: list[str] = field(default_factory=list)
    similar_cards: list[str] = field(default_factory=list)
    agreed: list[str] = field(default_factory=list)
    """Open cards of which this was the first of two decisions: nothing else has come of it yet."""
    asked_by_run: bool = False
    """Whether a run waited for this answer."""
    ended_questions: list[str] = field(default_factory=list)
    """Questions whose runs do not go on."""
    test_path: str | None = None
    """The regression case that remembers a correction."""
    messages: list[str] = field(default_factory=list)
    corrected_legs: dict[str, tuple[Leg, ...]] = field(default_factory=dict)
    """Entries of which an agent should have known better, and the legs they should have had."""


DecisionData = Mapping[str, Any]
"""A decision as plain data, so that a second person can decide just the same: ``verb``, and what it takes."""


def confirm_entries(host: Host, ids: Sequence[str]) -> DecisionResult:
    """The entries are right: ``user-confirmed``."""
    return _decide_targets(host, "queue approve", ids, lambda *_: {"verb": "confirm"})


def skip_cards(host: Host, ids: Sequence[str]) -> DecisionResult:
    """Put open cards behind all others, for everybody. It decides nothing about them, and is not taken back."""
    refuse_in_job()
    done = DecisionResult()

    def stage_skips(desk: DecisionContext) -> Decision:
        for matter in find_targets(desk, ids):
            if matter.card is None:
                raise UsageError(f"no card waits for {matter.name}", remedy="cleared queue list shows those that do.")
            desk.context.cards.skip_card(matter.card.id, format_iso(desk.context.now), desk.by)
            done.cards.append(matter.card.id)
        return Decision(commit_messages.cards_skipped(done.cards))

    done.commit = commit_decision(host, "queue skip", stage_skips, by=current_user(), gathers=[done]) or ""
    return done


RecordTests = Callable[[DecisionContext, dict[str, tuple[Leg, ...]], DecisionResult], dict[str, bytes | None]]
"""Gives the files of the regression cases that remember corrections: entry id → the legs it should have had."""


def correct_entries(
    host: Host, ids: Sequence[str], correction: Correction, remember: RecordTests | None = None
) -> DecisionResult:
    """The entries should have been otherwise; a held bank line is posted as said."""
    return _decide_targets(
        host, "queue correct", ids, lambda *_: {"verb": "correct", **correction_data(correction)}, remember
    )


def reject_cards(
    host: Host, ids: Sequence[str], reason: str, outcome: str | None = None, of: str | None = None
) -> DecisionResult:
    """The entries should not stand. Of one that posts a bank line an ``outcome`` is asked: ``duplicate`` (of entry
    ``of``), ``personal`` (a draw), ``suspense`` (the line waits for review); any other is voided."""
    if not reason.strip():
        raise UsageError("rejecting needs a reason", remedy='Pass --reason "…".')
    if outcome is not None and outcome not in OUTCOMES:
        raise UsageError(f"{outcome!r} is no outcome", remedy=f"One of {', '.join(OUTCOMES)}.")
    said = " ".join(reason.split())[:500]
    wish = {"verb": "reject", "reason": said, "outcome": outcome, "of": of}
    return _decide_targets(host, "queue reject", ids, lambda *_: wish)


def agree_with_first(host: Host, ids: Sequence[str], remember: RecordTests | None = None) -> DecisionResult:
    """Decide the same as another reviewer has, where it takes two. Raises ``UsageError`` where nobody has."""

    def agreed_decision(desk: DecisionContext, matter: Target) -> DecisionData:
        found = parse_agreements(matter.card.id, matter.card.agreed) if matter.card is not None else []
        first = found[-1] if found else None
        if first is None or first.wish.get("verb") not in _HANDLERS or not first.is_genuine:
            raise UsageError(
                f"nobody has decided about {matter.name} as the first of two", remedy="Decide it: cleared queue show."
            )
        if first.key == desk.authorization.reviewer_key.public:
            raise PolicyError(f"you are the first of two for {matter.name} yourself", remedy="It takes another one.")
        return first.wish

    return _decide_targets(host, "queue agree", ids, agreed_decision, remember)


def answer_card(host: Host, text: str, choice: str) -> DecisionResult:
    """Answer a card that is not about an entry. Raises ``UsageError`` for a choice it does not have."""

    def stopped_question(desk: DecisionContext) -> Card | None:
        return find_stopped_question(desk, text, choice)

    return _decide_targets(
        host, "queue answer", [text], lambda *_: {"verb": "answer", "choice": choice}, stopped=stopped_question
    )


# -- one card or entry ------------------------------------------------------------------------------------------------


def _confirm_target(desk: DecisionContext, matter: Target, wish: DecisionData, done: DecisionResult) -> str:
    entry = decidable_entry(desk.context, _require_entry(matter).entry_id)
    if entry.status in ("user-confirmed", "user-corrected"):
        raise PolicyError(f"{entry.entry_id} is {entry.status} already", remedy="Nothing needs doing.")
    desk.context.books.set_status(entry.entry_id, "user-confirmed")
    desk.context.log_action("confirm", entry.description[:200], entry.entry_id)
    _settle_target(desk, matter, "confirmed", done)
    return f"{entry.entry_id} {entry.description}"


def _correct_target(desk: DecisionContext, matter: Target, wish: DecisionData, done: DecisionResult) -> str:
    correction = read_correction(wish)
    if matter.entry is None:
        return _post_held_line(desk, matter, correction, done)
    entry = matter.entry
    made = correct_entry(desk.context, entry.entry_id, correction, desk.by)
    done.posted += [e.entry_id for e in made.posted]
    desk.context.log_action("correct", entry.description[:200], entry.entry_id)
    _settle_target(desk, matter, f"corrected: {', '.join(done.posted)}"[:300], done)
    if entry.reference and made.reclassified:
        done.corrected_legs[entry.entry_id] = made.legs
    return f"{entry.entry_id} {entry.description}"


def _reject_target(desk: DecisionContext, matter: Target, wish: DecisionData, done: DecisionResult) -> str:
    said = str(wish["reason"])
    if matter.card is not None and matter.card.kind == QUESTION.name:  # its run does not go on
        desk.context.log_action("reject", f"{matter.card.id} {said}")
        done.ended_questions.append(matter.card.id)
        _settle_target(desk, matter, f"rejected: {said}"[:300], done)
        return f"{matter.card.title}: {said}"
    entry = _require_entry(matter)
    _reject_entry(
        desk, matter, decidable_entry(desk.context, entry.entry_id), said, wish.get("outcome"), wish.get("of"), done
    )
    return f"{entry.entry_id}: {said}"


def _answer_target(desk: DecisionContext, matter: Target, wish: DecisionData, done: DecisionResult) -> str:
    card, choice = matter.card, str(wish["choice"])
    choices = answer_choices(card) if card is not None else {}
    if card is None or choice not in choices:
        known = ", ".join(choices) or "approve, correct or reject"
        raise UsageError(f"{choice!r} is no answer to {matter.name}", remedy=f"It takes: {known}.")
    if card.kind == LINE.name:
        desk.context.bank.set_line_aside(str(card.details["line"]), "ignored", f"{choice}, by {desk.by}")
    done.asked_by_run = card.kind == QUESTION.name
    if done.asked_by_run and (held := committed_questions(desk).find_hold_error(card)) is not None:
        raise held
    desk.context.log_action("answer", f"{card.id} {choice}")
    _settle_target(desk, matter, choice, done)
    return f"{card.title}: {choice}"


def _reject_entry(
    desk: DecisionContext,
    matter: Target,
    entry: Entry,
    reason: str,
    outcome: str | None,
    of: str | None,
    done: DecisionResult,
) -> None:
    context = desk.context
    line = posted_line(context, entry)
    if line is not None and outcome is None:
        raise UsageError(
            f"{entry.entry_id} posts a bank line; what is that line then?",
            remedy="--outcome duplicate --of ENTRY, --outcome personal (a draw), or --outcome suspense (it waits).",
        )
    if outcome == "personal":
        done.posted += [
            e.entry_id
            for e in correct_entry(
                context, entry.entry_id, Correction(OWNER_DRAWS_ACCOUNT, note=reason), desk.by
            ).posted
        ]
        context.log_action("reject", f"personal: {reason}", entry.entry_id)
        _settle_target(desk, matter, f"personal: {reason}", done)
        return
    if outcome == "duplicate":
        twin = context.books.find_entry(of or "")
        if twin is None or twin.entry_id == entry.entry_id or twin.status == "voided":
            raise UsageError("a duplicate of which entry?", remedy="--of ENTRY, one that stands.")
        reason = f"duplicate of {twin.entry_id}: {reason}"
    done.posted += [e.entry_id for e in void_with_corrections(context, entry, reason)]
    if line is not None:
        if outcome == "duplicate":
            context.bank.set_line_aside(line.line_id, "ignored", reason)
        else:
            context.bank.set_line_aside(line.line_id, "held", reason)
            stage_line_card(context, line, f"held in suspense: {reason}", entry.entry_id)
    context.log_action("reject", reason, entry.entry_id)
    _settle_target(desk, matter, f"rejected: {reason}"[:300], done)


def _post_held_line(desk: DecisionContext, matter: Target, correction: Correction, done: DecisionResult) -> str:
    """A held line becomes an entry, as the person says."""
    context, card = desk.context, matter.card
    if card is None or card.kind != LINE.name:
        raise UsageError(
            f"{matter.name} is not about an entry or a bank line", remedy="cleared queue answer ID CHOICE."
        )
    found = context.bank.find_line(str(card.details["line"]))
    if found is None:
        raise UsageError(f"the bank line of {card.id} is not known any more", remedy="cleared journal check.")
    bank, line = found
    if line.state == "pending":
        raise PolicyError("the bank has not posted this line yet", remedy="Wait for it.")
    account = context.ledger_accounts.get(bank)
    if account is None:
        raise UsageError(f"the bank account {bank!r} is not in config.yaml any more", remedy="Put it back.")
    left = money.total([line.amount, -context.bank.posted_amount(line.line_id)])
    lines = checked_lines(context, correction)
    if correction.account is not None:
        lines = ((correction.account, -left),)
    if not lines:
        raise UsageError("which account is it?", remedy="--account N, or --line ACCOUNT=AMOUNT for each.")
    legs = [make_leg(account, left), *(make_leg(a, v) for a, v in lines)]
    day = context.books.periods.first_open(correction.day or line.posted_date)
    entry, _ = post_entry(
        context.books, context.bank, context.ledger_accounts, day, line.description, legs, reference=line.line_id,
        status="user-confirmed", counterparty=correction.counterparty or "", confidence="1.00",
        evidence=f"posted by {desk.by}", tags=";".join(correction.tags or ()), notes=correction.note or "",
    )  # fmt: skip
    done.posted.append(entry.entry_id)
    context.log_action("correct", f"posted {line.description}"[:200], entry.entry_id)
    _settle_target(desk, matter, f"posted as {entry.entry_id}", done)
    return f"{entry.entry_id} {entry.description}"


def _similar_cards(desk: DecisionContext, corrected: Sequence[Target]) -> list[str]:
    """Open entry cards with the same text or counterparty, on the same accounts, as one that was corrected."""
    context = desk.context
    wanted = {
        (key, tuple(x.account_id for x in non_bank_legs(context, m.entry.legs)))
        for m in corrected if m.entry is not None
        for key in (m.entry.counterparty, m.entry.description) if key
    }  # fmt: skip
    found = []
    for card in context.cards.open_cards():
        entry = context.books.find_entry(card.entry_id) if card.kind == ENTRY.name and card.entry_id else None
        if entry is not None and entry.entry_id not in {m.name for m in corrected}:
            legs = tuple(x.account_id for x in non_bank_legs(context, entry.legs))
            if any((key, legs) in wanted for key in (entry.counterparty, entry.description) if key):
                found.append(card.id)
    return found


def _require_entry(matter: Target) -> Entry:
    if matter.entry is None:
        card = matter.card
        kind = card.kind if card else ""
        remedy = "cleared agent approve P… decides about proposals." if kind == PROPOSAL.name else (
            f"cleared queue answer {matter.name} {'|'.join(kind_named(kind).answers or ['seen'])}."
        )  # fmt: skip
        raise UsageError(f"{matter.name} is not about an entry ({kind})", remedy=remedy)
    return matter.entry


def _settle_target(desk: DecisionContext, matter: Target, resolution: str, done: DecisionResult) -> None:
    if matter.card is not None:
        desk.context.cards.resolve_card(matter.card.id, format_iso(desk.context.now), desk.by, resolution)
        done.cards.append(matter.card.id)
    if matter.entry is not None:
        done.entries.append(matter.entry.entry_id)


_HANDLERS: Final[dict[str, tuple[str, Callable[[DecisionContext, Target, DecisionData, DecisionResult], str]]]] = {
    "confirm": ("confirm", _confirm_target),
    "correct": ("correct", _correct_target),
    "reject": ("void", _reject_target),
    "answer": ("confirm", _answer_target),
}
"""What is done → the beginning of the commit's first line, and how it is staged."""


def _decide_targets(
    host: Host, what: str, ids: Sequence[str], wish_of: Callable[[DecisionContext, Target], DecisionData],
    remember: RecordTests | None = None, stopped: Callable[[DecisionContext], Card | None] = lambda _: None,
) -> DecisionResult:  # fmt: skip
    """Decide about each as wished, in one commit. What takes two is only recorded where this is the first of them."""
    refuse_in_job()
    done = DecisionResult()

    def stage_decision(desk: DecisionContext) -> Decision | None:
        if (card := stopped(desk)) is not None:
            done.cards, done.asked_by_run = [card.id], True
            return None
        found, names, waiting, subject = find_targets(desk, ids), [], [], None
        for matter in found:
            wish = host.redactor.redact_data(wish_of(desk, matter))
            kind, one = _HANDLERS[str(wish["verb"])]
            name = _stage_or_agree(desk, matter, wish, done, one)
            if name is None:
                waiting.append(matter.name)
            else:
                names.append(name)
                summary = names[0] if len(names) == 1 else f"{len(names)} {_plural_summary(wish)}"
                subject = commit_messages.entries_decided(kind, summary)
        if waiting:
            done.messages.append(_first_of_two_message(waiting))
        done.similar_cards = _similar_cards(desk, found) if what == "queue correct" else []
        files = remember(desk, done.corrected_legs, done) if remember is not None and done.corrected_legs else {}
        settled, agreed = " ".join([*done.cards, *done.entries]), " ".join(done.agreed)
        marks = [(key, value) for key, value in ((UNDO_TRAILER, settled), (AGREES_TRAILER, agreed)) if value]
        return Decision(subject or commit_messages.second_needed(waiting), files, tuple(marks))

    done.commit = commit_decision(host, what, stage_decision, gathers=[done]) or ""
    if done.ended_questions:
        with host.open_for_reading() as repo:
            Questions(host, repo, Snapshot(repo, repo.read_head())).withdraw_answers(done.ended_questions)
    return done


def _plural_summary(wish: DecisionData) -> str:
    return f"entries: {wish['reason']}" if wish["verb"] == "reject" else "entries"


def _first_of_two_message(waiting: Sequence[str]) -> str:
    shown = ", ".join(waiting[:5]) + (" …" if len(waiting) > 5 else "")
    return f"It takes two: you are the first for {shown}. Another reviewer decides the same, or: cleared queue agree"


def _stage_or_agree(
    desk: DecisionContext,
    matter: Target,
    wish: DecisionData,
    done: DecisionResult,
    one: Callable[[DecisionContext, Target, DecisionData, DecisionResult], str],
) -> str | None:
    """Stage one decision; None where it takes two, and only the first of them has agreed by this."""
    right = desk.authorization
    if right.rules.needs_two(_upper_bound(desk, matter, wish)):
        trial = desk.with_empty_draft()
        name = one(trial, matter, wish, DecisionResult())
        effects = right.find_effects(trial.context)
        if right.effects_of_one(effects):
            card = matter.card or _new_entry_card(desk, _require_entry(matter))
            if not right.has_agreement(card, effects):
                right.stage_agreement(desk.context, card, effects, f"{wish['verb']}: {name}", wish)
                done.agreed.append(card.id)
                return None
    return one(desk, matter, wish, done)


def _upper_bound(desk: DecisionContext, matter: Target, wish: DecisionData) -> Decimal:
    """An amount that the decision hardly goes beyond: below it nothing needs trying. (Where it does, the whole takes
    two: what is committed is asked again.)"""
    context = desk.context
    lines = read_correction(wish).lines if wish["verb"] == "correct" else ()
    written = [abs(amount) for _, amount in lines if amount.is_finite()]  # others are refused when they are staged
    if matter.entry is not None:
        corrected = matter.entry.status == "user-corrected"
        known = [matter.entry, *(find_corrections(context.books, matter.entry) if corrected else ())]
        return money.total([*(entry_weight(each, context.books, context.bank) for each in known), *written])
    line = context.bank.find_line(str(matter.card.details.get("line", ""))) if matter.card is not None else None
    return money.total([abs(line[1].amount) if line is not None else ZERO, *written])


def _new_entry_card(desk: DecisionContext, entry: Entry) -> Card:
    """A card for an entry that has no open one: what the first of two has agreed to is told there."""
    return Card(card_id(ENTRY.name, entry.entry_id, "again", desk.context.run_id), ENTRY.name,
                f"{entry.date} {entry.amount} {entry.description[:120]}", format_iso(desk.context.now),
                desk.context.run_id, entry.entry_id,
                details={"description": entry.description, "amount": str(entry.amount)})  # fmt: skip
