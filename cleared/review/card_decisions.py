"""Deciding about cards: each decision, or batch of them, is one commit with who and when.

The terminal, the page and the command line call these; nothing else settles a card. What the ids mean that somebody
types, open cards or records with or without one, is looked up here, and what was decided about each is staged: what is
the same for all domains, and the question to its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from cleared.base.clock import format_iso
from cleared.base.errors import Place, PolicyError, UsageError
from cleared.base.short_text import join_words, list_first
from cleared.cards.card import Card
from cleared.cards.card_draft import VOID
from cleared.cards.kinds import BRANCH, QUESTION
from cleared.changes import commit_messages
from cleared.changes.decisions.authorization import AGREES_TRAILER
from cleared.changes.decisions.decision_context import (
    LATER_TRAILER,
    UNDO_TRAILER,
    Decision,
    DecisionContext,
    commit_decision,
)
from cleared.changes.decisions.shown_cards import digest_card, refuse_changed
from cleared.changes.host import Host, current_user
from cleared.domains.domain import Domain
from cleared.domains.installed_domains import load_domains
from cleared.git import Snapshot
from cleared.primitives.context import Context
from cleared.review.action_request import CorrectionWish
from cleared.review.answers import answer_choices, committed_questions, find_stopped_question, name_commands
from cleared.review.branch_merge import read_branch_files
from cleared.review.record_review import (
    DecisionCase,
    DecisionData,
    DecisionResult,
    RecordReview,
    Target,
    load_review,
    load_reviews,
)
from cleared.runs.question_tickets import Questions
from cleared.trust.person_only import refuse_in_job
from cleared.trust.reviewers import parse_agreements

OUTCOMES: Final = ("duplicate", "personal", "suspense")


def confirm_records(host: Host, ids: Sequence[str]) -> DecisionResult:
    """The records are right as they are."""
    return _decide_targets(host, "queue approve", ids, lambda *_: {"verb": "confirm"})


def skip_cards(host: Host, ids: Sequence[str]) -> DecisionResult:
    """Put open cards behind all others, for everybody. It decides nothing about them; undo takes it back."""
    refuse_in_job()
    result = DecisionResult()

    def stage_skips(decision_context: DecisionContext) -> Decision:
        for target in find_targets(decision_context, ids, decides=False):
            if target.card is None:
                raise UsageError(f"no card waits for {target.name}", remedy="cleared queue list shows those that do.")
            decision_context.context.cards.skip_card(
                target.card.id, format_iso(decision_context.context.now), decision_context.by
            )
            result.cards.append(target.card.id)
        trailers = ((LATER_TRAILER, " ".join(result.cards)),)
        return Decision(commit_messages.cards_skipped(result.cards), trailers=trailers)

    result.commit = commit_decision(host, "queue skip", stage_skips, by=current_user(), collects=[result]) or ""
    return result


RecordTests = Callable[[DecisionContext, DecisionResult], dict[str, bytes | None]]
"""Makes the files of the tests that record the corrections of a result."""


def correct_records(
    host: Host,
    ids: Sequence[str],
    wish_of: Callable[[Target], CorrectionWish],
    remember: RecordTests | None = None,
) -> DecisionResult:
    """Correct records; what is none yet, such as a held bank line, becomes one as the correction says.

    ``wish_of`` gives what a target should have been.
    """

    def request_of(_: DecisionContext, target: Target) -> DecisionData:
        return {"verb": "correct", **wish_of(target).to_data()}

    return _decide_targets(host, "queue correct", ids, request_of, remember)


def reject_cards(
    host: Host, ids: Sequence[str], reason: str, outcome: str | None = None, of: str | None = None
) -> DecisionResult:
    """Records should not stand. ``outcome``: what then becomes of what one was made of, in its domain's word; an entry
    that posts a bank line needs one: ``duplicate`` (of entry ``of``), ``personal`` (a draw) or ``suspense`` (it waits).
    """
    if not reason.strip():
        raise UsageError("rejecting needs a reason", remedy="Pass --reason ….")
    if outcome is not None and outcome not in OUTCOMES:
        raise UsageError(f"{outcome!r} is no outcome", remedy=f"One of {', '.join(OUTCOMES)}.")
    one_line = " ".join(reason.split())[:500]
    data = {"verb": "reject", "reason": one_line, "outcome": outcome, "of": of}
    return _decide_targets(host, "queue reject", ids, lambda *_: data)


def agree_with_first(host: Host, ids: Sequence[str], remember: RecordTests | None = None) -> DecisionResult:
    """Make the same decision as the first reviewer did, where it takes two. Raises ``UsageError`` where nobody did."""

    def agreed_decision(decision_context: DecisionContext, target: Target) -> DecisionData:
        agreements = parse_agreements(target.card.id, target.card.agreed) if target.card is not None else []
        first = agreements[-1] if agreements else None
        if first is None or first.wish.get("verb") not in STAGE_BY_VERB or not first.is_genuine:
            raise UsageError(
                f"nobody has decided about {target.name} as the first of two", remedy="Decide it: cleared queue show."
            )
        right = decision_context.authorization
        if right.rules.person_of(first.key) == right.rules.person_of(right.reviewer_key.public):
            raise PolicyError(f"you are the first of two for {target.name} yourself", remedy="It takes another one.")
        return first.wish

    return _decide_targets(host, "queue agree", ids, agreed_decision, remember)


def answer_card(host: Host, text: str, choice: str, without: Sequence[str] = ()) -> DecisionResult:
    """Answer a card that is not about a record. ``without``: with ``merge``, the files that are left out. Raises
    ``UsageError`` for a choice it does not have."""
    data = {"verb": "answer", "choice": choice} | ({"without": sorted(without)} if without else {})

    def stopped_question(decision_context: DecisionContext) -> Card | None:
        return find_stopped_question(decision_context, text, choice)

    return _decide_targets(host, "queue answer", [text], lambda *_: data, stopped=stopped_question)


def _similar_cards(context: Context, corrected: Sequence[Target]) -> list[str]:
    """Open cards that look like those of one that was corrected."""
    found: list[str] = []
    for review in dict.fromkeys(target.review for target in corrected):
        found += review.list_similar_cards(context, [target for target in corrected if target.review is review])
    return found


def _decide_targets(
    host: Host,
    command: str,
    ids: Sequence[str],
    request_of: Callable[[DecisionContext, Target], DecisionData],
    remember: RecordTests | None = None,
    stopped: Callable[[DecisionContext], Card | None] = lambda _: None,
) -> DecisionResult:
    """Decide about each target, in one commit. Where a decision takes two and this is the first, only that is recorded.

    ``request_of`` gives what to decide about a target; ``stopped`` gives a question that has its answer already.
    """
    refuse_in_job()
    result = DecisionResult()

    def stage_decision(decision_context: DecisionContext) -> Decision | None:
        if (card := stopped(decision_context)) is not None:
            result.cards, result.asked_by_run = [card.id], True
            return None
        targets, names, waiting, subject = find_targets(decision_context, ids), [], [], None
        for target in targets:
            request: DecisionData = {}
            name: str | None
            if target.card is not None and target.review.is_void(decision_context.context, target.card):
                kind, name = "void", _settle_void_card(DecisionCase(decision_context, target, request, result))
            else:
                request = host.redactor.redact_data(request_of(decision_context, target))
                kind, stage = STAGE_BY_VERB[str(request["verb"])]
                name = _stage_or_agree(decision_context, target, request, result, stage)
            if name is None:
                waiting.append(target.name)
            else:
                names.append(name)
                summary = names[0] if len(names) == 1 else f"{len(names)} {_plural_summary(targets, request)}"
                subject = commit_messages.entries_decided(kind, summary)
        for review in load_reviews().values():
            review.settle_followers(decision_context, result)
        if waiting:
            result.messages.append(_first_of_two_message(waiting))
        result.similar_cards = _similar_cards(decision_context.context, targets) if command == "queue correct" else []
        files = remember(decision_context, result) if remember is not None and result.corrected else {}
        settled, agreed = " ".join([*result.cards, *result.records]), " ".join(result.agreed)
        marks = [(key, value) for key, value in ((UNDO_TRAILER, settled), (AGREES_TRAILER, agreed)) if value]
        files = {**files, **result.files}
        return Decision(subject or commit_messages.second_needed(waiting), files, tuple(marks))

    result.commit = commit_decision(host, command, stage_decision, collects=[result]) or ""
    if result.ended_questions:
        with host.open_for_reading() as repo:
            Questions(host, repo, Snapshot(repo, repo.read_head())).withdraw_answers(result.ended_questions)
    return result


def _plural_summary(targets: Sequence[Target], request: DecisionData) -> str:
    nouns = " and ".join(dict.fromkeys(target.domain.record_noun[1] for target in targets))
    return f"{nouns}: {request['reason']}" if request.get("verb") == "reject" else nouns


def _first_of_two_message(waiting: Sequence[str]) -> str:
    shown = list_first(waiting, 5)
    return f"It takes two: you are the first for {shown}. Another reviewer agrees: cleared queue agree"


def _stage_or_agree(
    decision_context: DecisionContext,
    target: Target,
    request: DecisionData,
    result: DecisionResult,
    stage: Callable[[DecisionCase], str],
) -> str | None:
    """Stage one decision, and return what it was about. None where it takes two and this is the first: then only the
    agreement is staged."""
    right = decision_context.authorization
    if right.rules.needs_two(target.review.weigh_decision(decision_context.context, target, request)):
        trial = decision_context.with_empty_draft()
        name = stage(DecisionCase(trial, target, request, DecisionResult()))
        effects = right.find_effects(trial.context)
        if right.effects_of_one(effects):
            card = target.card or _make_card(decision_context.context, target)
            if not right.has_agreement(card, effects):
                right.stage_agreement(decision_context.context, card, effects, f"{request['verb']}: {name}", request)
                result.agreed.append(card.id)
                return None
    return stage(DecisionCase(decision_context, target, request, result))


def _make_card(context: Context, target: Target) -> Card:
    assert target.record is not None, "what is named without a card is a record"
    return target.review.make_card(context, target.record)


def _settle_void_card(case: DecisionCase) -> str:
    """Stage that only a card is settled, as what it asks about is gone, and say so; what it was about."""
    name = case.target.name
    what = f"What the card {name} asks about is gone, as git took it back or changed it."
    case.result.messages.append(f"{what} Only the card is settled.")
    case.settle(VOID)
    return f"card {name}"


def _confirm_target(case: DecisionCase) -> str:
    return case.target.review.stage_confirmation(case)


def _correct_target(case: DecisionCase) -> str:
    return case.target.review.stage_correction(case)


def _reject_target(case: DecisionCase) -> str:
    card, reason = case.target.card, str(case.request["reason"])
    if card is None or card.kind != QUESTION.name:
        return case.target.review.stage_rejection(case)
    case.context.log_action("reject", f"{card.id} {reason}")
    case.result.ended_questions.append(card.id)  # its run does not go on
    case.settle(f"rejected: {reason}"[:300])
    return f"{card.title}: {reason}"


def _answer_target(case: DecisionCase) -> str:
    card, choice, result = case.target.card, str(case.request["choice"]), case.result
    choices = answer_choices(card) if card is not None else {}
    if card is None or choice not in choices:
        remedy = "Decide it: cleared queue approve, correct or reject." if card is None else name_commands(card)
        raise UsageError(f"{choice!r} is no answer to {case.target.name}", remedy=remedy)
    case.target.review.stage_answer(case)
    without = [str(path) for path in case.request.get("without", ())]
    if card.kind == BRANCH.name and choice == "merge":
        result.files |= read_branch_files(case.decision_context, card, without)
    elif without:
        raise UsageError("only a merge leaves files out", remedy="Answer merge, or leave out --without.")
    result.asked_by_run = card.kind == QUESTION.name
    if result.asked_by_run:
        hold_error = committed_questions(case.decision_context).find_hold_error(card)
        if hold_error is not None:
            raise hold_error
    said = f"{choice}, without {', '.join(without)}" if without else choice
    case.context.log_action("answer", f"{card.id} {said}"[:1_000])
    case.settle(choice)
    return f"{card.title}: {said}"


STAGE_BY_VERB: Final[dict[str, tuple[str, Callable[[DecisionCase], str]]]] = {
    "confirm": ("confirm", _confirm_target),
    "correct": ("correct", _correct_target),
    "reject": ("void", _reject_target),
    "answer": ("confirm", _answer_target),
}
"""Verb → the beginning of the commit's first line, and the function that stages the decision."""


Reviews: TypeAlias = Sequence[tuple[Domain, RecordReview]]


def find_targets(decision_context: DecisionContext, ids: Sequence[str], *, decides: bool = True) -> list[Target]:
    """The cards and records that the ids name. Raises ``UsageError`` for an unknown or ambiguous one, ``PolicyError``
    for a card that somebody has settled already, or that is not as it was shown (``shown_cards``); and where somebody
    ``decides`` about them, for one that nothing vouches for (``changes.doubtful_cards``)."""
    if not ids:
        raise UsageError("name at least one card", remedy="cleared queue list shows them.")
    targets: list[Target] = []
    reviews = [(domain, load_review(domain)) for domain in load_domains()]
    for text in ids:
        target = _find_target(decision_context.context, reviews, text)
        if (card := target.card) is not None:
            record = target.record.value if target.record is not None else None
            refuse_changed(card.id, card.title, partial(digest_card, card, record))
            if decides:
                decision_context.context.cards.refuse_doubtful(card)
        # A row has as many cards as it was asked about; named twice, one counts once.
        if (card.id if card is not None else target.name) not in [m.card.id if m.card else m.name for m in targets]:
            targets.append(target)
    return targets


def _find_target(context: Context, reviews: Reviews, text: str) -> Target:
    record = _find_record(context, reviews, text)
    cards = list(context.cards.committed_cards.find(text)) if text else []
    if record is not None:  # the record is meant: a card by its id, or of another saying, is somebody's trick
        is_void = record.review.is_void
        cards = [
            c for c in cards if c.record_id == text and not is_void(context, c) and context.cards.find_doubt(c) is None
        ]
    else:
        cards = [c for c in cards if c.id == text] or cards
    open_ = [c for c in cards if c.status == "open"]
    if len(open_) > 1 and record is not None:
        shown = list_first([card.id for card in open_], 5)
        raise UsageError(f"{len(open_)} cards wait for {text}", remedy=f"Name the one that you mean: {shown}.")
    if len(open_) > 1:
        raise UsageError(f"{text!r} is the beginning of {len(open_)} cards", remedy="Write more of the id.")
    if open_:
        card = open_[0]
        domain, review = _choose_review(reviews, card)
        named = None if review.is_void(context, card) else card.record_id
        return _find_record(context, reviews, named, card) or Target(card, None, domain, review)
    if cards and (record is None or cards[-1].kind != record.review.record_kind):
        card = cards[-1]
        raise PolicyError(
            f"{card.id} is settled: {card.resolution}, by {card.resolved_by} at {card.resolved_at}",
            place=Place(field="card"),
            remedy=f"Look at it: cleared queue show {card.id}. To take it back: cleared queue undo.",
        )
    if record is None:
        nouns = ["card", *(domain.record_noun[0] for domain, review in reviews if review.maker_primitives)]
        raise UsageError(f"there is no {join_words(nouns, 'or')} {text!r}", remedy="cleared queue list shows them.")
    return record


def _find_record(context: Context, reviews: Reviews, name: str | None, card: Card | None = None) -> Target | None:
    """The record of this id, with the card; None where no domain has one."""
    for domain, review in reviews if name else ():
        if (record := review.find_record(context, name or "")) is not None:
            return Target(card, record, domain, review)
    return None


def _choose_review(reviews: Reviews, card: Card) -> tuple[Domain, RecordReview]:
    """Whose a card is that names no record. One of no domain is refused in the words of the first."""
    owners = (each for each in reviews if card.kind in each[1].card_kinds)
    return next(owners, reviews[0])
