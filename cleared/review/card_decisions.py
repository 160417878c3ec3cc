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
    """What a decision did."""

    commit: str = ""
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


DecisionData = Mapping[str, Any]
"""A decision as plain data, so that a second person can make the same one: its ``verb`` and arguments."""


def confirm_entries(host: Host, ids: Sequence[str]) -> DecisionResult:
    """The entries are right: ``user-confirmed``."""
    return _decide_targets(host, "queue approve", ids, lambda *_: {"verb": "confirm"})


def skip_cards(host: Host, ids: Sequence[str]) -> DecisionResult:
    """Put open cards behind all others, for everybody. It decides nothing about them, and is not taken back."""
    refuse_in_job()
    result = DecisionResult()

    def stage_skips(decision: DecisionContext) -> Decision:
        for target in find_targets(decision, ids):
            if target.card is None:
                raise UsageError(f"no card waits for {target.name}", remedy="cleared queue list shows those that do.")
            decision.context.cards.skip_card(target.card.id, format_iso(decision.context.now), decision.by)
            result.cards.append(target.card.id)
        return Decision(commit_messages.cards_skipped(result.cards))

    result.commit = commit_decision(host, "queue skip", stage_skips, by=current_user(), gathers=[result]) or ""
    return result


RecordTests = Callable[[DecisionContext, dict[str, tuple[Leg, ...]], DecisionResult], dict[str, bytes | None]]
"""Makes the files of the tests that record corrections; it gets entry id → the legs it should have had."""


def correct_entries(
    host: Host, ids: Sequence[str], correction: Correction, remember: RecordTests | None = None
) -> DecisionResult:
    """Correct entries; a held bank line is posted as the correction says."""
    return _decide_targets(
        host, "queue correct", ids, lambda *_: {"verb": "correct", **correction_data(correction)}, remember
    )


def reject_cards(
    host: Host, ids: Sequence[str], reason: str, outcome: str | None = None, of: str | None = None
) -> DecisionResult:
    """Reject entries: they are voided. One that posts a bank line needs an ``outcome`` for the line: ``duplicate`` (of
    entry ``of``), ``personal`` (a draw) or ``suspense`` (the line waits for review)."""
    if not reason.strip():
        raise UsageError("rejecting needs a reason", remedy='Pass --reason "…".')
    if outcome is not None and outcome not in OUTCOMES:
        raise UsageError(f"{outcome!r} is no outcome", remedy=f"One of {', '.join(OUTCOMES)}.")
    one_line = " ".join(reason.split())[:500]
    data = {"verb": "reject", "reason": one_line, "outcome": outcome, "of": of}
    return _decide_targets(host, "queue reject", ids, lambda *_: data)


def agree_with_first(host: Host, ids: Sequence[str], remember: RecordTests | None = None) -> DecisionResult:
    """Make the same decision as the first reviewer did, where it takes two. Raises ``UsageError`` where nobody did."""

    def agreed_decision(decision: DecisionContext, target: Target) -> DecisionData:
        agreements = parse_agreements(target.card.id, target.card.agreed) if target.card is not None else []
        first = agreements[-1] if agreements else None
        if first is None or first.wish.get("verb") not in _HANDLERS or not first.is_genuine:
            raise UsageError(
                f"nobody has decided about {target.name} as the first of two", remedy="Decide it: cleared queue show."
            )
        if first.key == decision.authorization.reviewer_key.public:
            raise PolicyError(f"you are the first of two for {target.name} yourself", remedy="It takes another one.")
        return first.wish

    return _decide_targets(host, "queue agree", ids, agreed_decision, remember)


def answer_card(host: Host, text: str, choice: str) -> DecisionResult:
    """Answer a card that is not about an entry. Raises ``UsageError`` for a choice it does not have."""

    def stopped_question(decision: DecisionContext) -> Card | None:
        return find_stopped_question(decision, text, choice)

    return _decide_targets(
        host, "queue answer", [text], lambda *_: {"verb": "answer", "choice": choice}, stopped=stopped_question
    )


# -- one card or entry ------------------------------------------------------------------------------------------------


def _confirm_target(decision: DecisionContext, target: Target, request: DecisionData, result: DecisionResult) -> str:
    entry = decidable_entry(decision.context, _require_entry(target).entry_id)
    if entry.status in ("user-confirmed", "user-corrected"):
        raise PolicyError(f"{entry.entry_id} is {entry.status} already", remedy="Nothing needs doing.")
    decision.context.books.set_status(entry.entry_id, "user-confirmed")
    decision.context.log_action("confirm", entry.description[:200], entry.entry_id)
    _settle_target(decision, target, "confirmed", result)
    return f"{entry.entry_id} {entry.description}"


def _correct_target(decision: DecisionContext, target: Target, request: DecisionData, result: DecisionResult) -> str:
    correction = read_correction(request)
    if target.entry is None:
        return _post_held_line(decision, target, correction, result)
    entry = target.entry
    made = correct_entry(decision.context, entry.entry_id, correction, decision.by)
    result.posted += [e.entry_id for e in made.posted]
    decision.context.log_action("correct", entry.description[:200], entry.entry_id)
    _settle_target(decision, target, f"corrected: {', '.join(result.posted)}"[:300], result)
    if entry.reference and made.reclassified:
        result.corrected_legs[entry.entry_id] = made.legs
    return f"{entry.entry_id} {entry.description}"


def _reject_target(decision: DecisionContext, target: Target, request: DecisionData, result: DecisionResult) -> str:
    reason = str(request["reason"])
    if target.card is not None and target.card.kind == QUESTION.name:  # its run does not go on
        decision.context.log_action("reject", f"{target.card.id} {reason}")
        result.ended_questions.append(target.card.id)
        _settle_target(decision, target, f"rejected: {reason}"[:300], result)
        return f"{target.card.title}: {reason}"
    entry = _require_entry(target)
    _reject_entry(
        decision,
        target,
        decidable_entry(decision.context, entry.entry_id),
        reason,
        request.get("outcome"),
        request.get("of"),
        result,
    )
    return f"{entry.entry_id}: {reason}"


def _answer_target(decision: DecisionContext, target: Target, request: DecisionData, result: DecisionResult) -> str:
    card, choice = target.card, str(request["choice"])
    choices = answer_choices(card) if card is not None else {}
    if card is None or choice not in choices:
        known = ", ".join(choices) or "approve, correct or reject"
        raise UsageError(f"{choice!r} is no answer to {target.name}", remedy=f"It takes: {known}.")
    if card.kind == LINE.name:
        decision.context.bank.set_line_aside(str(card.details["line"]), "ignored", f"{choice}, by {decision.by}")
    result.asked_by_run = card.kind == QUESTION.name
    if result.asked_by_run and (held := committed_questions(decision).find_hold_error(card)) is not None:
        raise held
    decision.context.log_action("answer", f"{card.id} {choice}")
    _settle_target(decision, target, choice, result)
    return f"{card.title}: {choice}"


def _reject_entry(
    decision: DecisionContext,
    target: Target,
    entry: Entry,
    reason: str,
    outcome: str | None,
    of: str | None,
    result: DecisionResult,
) -> None:
    context = decision.context
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
                context, entry.entry_id, Correction(OWNER_DRAWS_ACCOUNT, note=reason), decision.by
            ).posted
        ]
        context.log_action("reject", f"personal: {reason}", entry.entry_id)
        _settle_target(decision, target, f"personal: {reason}", result)
        return
    if outcome == "duplicate":
        twin = context.books.find_entry(of or "")
        if twin is None or twin.entry_id == entry.entry_id or twin.status == "voided":
            raise UsageError("a duplicate of which entry?", remedy="--of ENTRY, one that stands.")
        reason = f"duplicate of {twin.entry_id}: {reason}"
    result.posted += [e.entry_id for e in void_with_corrections(context, entry, reason)]
    if line is not None:
        if outcome == "duplicate":
            context.bank.set_line_aside(line.line_id, "ignored", reason)
        else:
            context.bank.set_line_aside(line.line_id, "held", reason)
            stage_line_card(context, line, f"held in suspense: {reason}", entry.entry_id)
    context.log_action("reject", reason, entry.entry_id)
    _settle_target(decision, target, f"rejected: {reason}"[:300], result)


def _post_held_line(decision: DecisionContext, target: Target, correction: Correction, result: DecisionResult) -> str:
    """Post a held line as the entry that the person names."""
    context, card = decision.context, target.card
    if card is None or card.kind != LINE.name:
        raise UsageError(
            f"{target.name} is not about an entry or a bank line", remedy="cleared queue answer ID CHOICE."
        )
    account_line = context.bank.find_line(str(card.details["line"]))
    if account_line is None:
        raise UsageError(f"the bank line of {card.id} is not known any more", remedy="cleared journal check.")
    bank, line = account_line
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
        evidence=f"posted by {decision.by}", tags=";".join(correction.tags or ()), notes=correction.note or "",
    )  # fmt: skip
    result.posted.append(entry.entry_id)
    context.log_action("correct", f"posted {line.description}"[:200], entry.entry_id)
    _settle_target(decision, target, f"posted as {entry.entry_id}", result)
    return f"{entry.entry_id} {entry.description}"


def _similar_cards(decision: DecisionContext, corrected: Sequence[Target]) -> list[str]:
    """Open entry cards with the same text or counterparty, on the same accounts, as one that was corrected."""
    context = decision.context
    wanted = {
        (key, tuple(x.account_id for x in non_bank_legs(context, t.entry.legs)))
        for t in corrected if t.entry is not None
        for key in (t.entry.counterparty, t.entry.description) if key
    }  # fmt: skip
    similar = []
    for card in context.cards.open_cards():
        entry = context.books.find_entry(card.entry_id) if card.kind == ENTRY.name and card.entry_id else None
        if entry is not None and entry.entry_id not in {t.name for t in corrected}:
            legs = tuple(x.account_id for x in non_bank_legs(context, entry.legs))
            if any((key, legs) in wanted for key in (entry.counterparty, entry.description) if key):
                similar.append(card.id)
    return similar


def _require_entry(target: Target) -> Entry:
    if target.entry is None:
        card = target.card
        kind = card.kind if card else ""
        remedy = "cleared agent approve P… decides about proposals." if kind == PROPOSAL.name else (
            f"cleared queue answer {target.name} {'|'.join(kind_named(kind).answers or ['seen'])}."
        )  # fmt: skip
        raise UsageError(f"{target.name} is not about an entry ({kind})", remedy=remedy)
    return target.entry


def _settle_target(decision: DecisionContext, target: Target, resolution: str, result: DecisionResult) -> None:
    if target.card is not None:
        decision.context.cards.resolve_card(target.card.id, format_iso(decision.context.now), decision.by, resolution)
        result.cards.append(target.card.id)
    if target.entry is not None:
        result.entries.append(target.entry.entry_id)


_HANDLERS: Final[dict[str, tuple[str, Callable[[DecisionContext, Target, DecisionData, DecisionResult], str]]]] = {
    "confirm": ("confirm", _confirm_target),
    "correct": ("correct", _correct_target),
    "reject": ("void", _reject_target),
    "answer": ("confirm", _answer_target),
}
"""Verb → the beginning of the commit's first line, and the function that stages the decision."""


def _decide_targets(
    host: Host, command: str, ids: Sequence[str], request_of: Callable[[DecisionContext, Target], DecisionData],
    remember: RecordTests | None = None, stopped: Callable[[DecisionContext], Card | None] = lambda _: None,
) -> DecisionResult:  # fmt: skip
    """Decide about each target, in one commit. Where a decision takes two and this is the first, only that is recorded.

    ``request_of`` gives what to decide about a target; ``stopped`` gives a question that has its answer already.
    """
    refuse_in_job()
    result = DecisionResult()

    def stage_decision(decision: DecisionContext) -> Decision | None:
        if (card := stopped(decision)) is not None:
            result.cards, result.asked_by_run = [card.id], True
            return None
        targets, names, waiting, subject = find_targets(decision, ids), [], [], None
        for target in targets:
            request = host.redactor.redact_data(request_of(decision, target))
            kind, stage = _HANDLERS[str(request["verb"])]
            name = _stage_or_agree(decision, target, request, result, stage)
            if name is None:
                waiting.append(target.name)
            else:
                names.append(name)
                summary = names[0] if len(names) == 1 else f"{len(names)} {_plural_summary(request)}"
                subject = commit_messages.entries_decided(kind, summary)
        if waiting:
            result.messages.append(_first_of_two_message(waiting))
        result.similar_cards = _similar_cards(decision, targets) if command == "queue correct" else []
        files = (
            remember(decision, result.corrected_legs, result) if remember is not None and result.corrected_legs else {}
        )
        settled, agreed = " ".join([*result.cards, *result.entries]), " ".join(result.agreed)
        marks = [(key, value) for key, value in ((UNDO_TRAILER, settled), (AGREES_TRAILER, agreed)) if value]
        return Decision(subject or commit_messages.second_needed(waiting), files, tuple(marks))

    result.commit = commit_decision(host, command, stage_decision, gathers=[result]) or ""
    if result.ended_questions:
        with host.open_for_reading() as repo:
            Questions(host, repo, Snapshot(repo, repo.read_head())).withdraw_answers(result.ended_questions)
    return result


def _plural_summary(request: DecisionData) -> str:
    return f"entries: {request['reason']}" if request["verb"] == "reject" else "entries"


def _first_of_two_message(waiting: Sequence[str]) -> str:
    shown = ", ".join(waiting[:5]) + (" …" if len(waiting) > 5 else "")
    return f"It takes two: you are the first for {shown}. Another reviewer decides the same, or: cleared queue agree"


def _stage_or_agree(
    decision: DecisionContext,
    target: Target,
    request: DecisionData,
    result: DecisionResult,
    stage: Callable[[DecisionContext, Target, DecisionData, DecisionResult], str],
) -> str | None:
    """Stage one decision, and return what it was about. None where it takes two and this is the first: then only the
    agreement is staged."""
    right = decision.authorization
    if right.rules.needs_two(_upper_bound(decision, target, request)):
        trial = decision.with_empty_draft()
        name = stage(trial, target, request, DecisionResult())
        effects = right.find_effects(trial.context)
        if right.effects_of_one(effects):
            card = target.card or _new_entry_card(decision, _require_entry(target))
            if not right.has_agreement(card, effects):
                right.stage_agreement(decision.context, card, effects, f"{request['verb']}: {name}", request)
                result.agreed.append(card.id)
                return None
    return stage(decision, target, request, result)


def _upper_bound(decision: DecisionContext, target: Target, request: DecisionData) -> Decimal:
    """An amount that the decision hardly exceeds. Below the two-person threshold nothing needs to be tried out. (Where
    it is exceeded, the commit itself asks for the second reviewer.)"""
    context = decision.context
    lines = read_correction(request).lines if request["verb"] == "correct" else ()
    written = [abs(amount) for _, amount in lines if amount.is_finite()]  # others are refused when they are staged
    if target.entry is not None:
        corrected = target.entry.status == "user-corrected"
        known = [target.entry, *(find_corrections(context.books, target.entry) if corrected else ())]
        return money.total([*(entry_weight(each, context.books, context.bank) for each in known), *written])
    line = context.bank.find_line(str(target.card.details.get("line", ""))) if target.card is not None else None
    return money.total([abs(line[1].amount) if line is not None else ZERO, *written])


def _new_entry_card(decision: DecisionContext, entry: Entry) -> Card:
    """A card for an entry that has no open one, to record there what the first of two has decided."""
    return Card(card_id(ENTRY.name, entry.entry_id, "again", decision.context.run_id), ENTRY.name,
                f"{entry.date} {entry.amount} {entry.description[:120]}", format_iso(decision.context.now),
                decision.context.run_id, entry.entry_id,
                details={"description": entry.description, "amount": str(entry.amount)})  # fmt: skip
