"""Taking a decision back: one more commit that restores what was before. No row is ever removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.base.short_text import list_lines
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import QUESTION
from cleared.changes import commit_messages
from cleared.changes.attestation import load_approvals
from cleared.changes.consumed_events import has_committed
from cleared.changes.decisions.authorization import AGREES_TRAILER, SecondNeeded
from cleared.changes.decisions.decision_context import (
    LATER_TRAILER,
    UNDO_TRAILER,
    Decision,
    DecisionContext,
    commit_decision,
)
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.domains.renamed_records import WORDS, RenamedRecords
from cleared.gate.file_kinds import CASES_DIR
from cleared.gate.past_runs import parent_commit
from cleared.gate.proposals.record_signing import Signer, sign_tests
from cleared.gate.proposals.rollback import roll_back_script
from cleared.git import Snapshot, history
from cleared.review.answers import committed_questions
from cleared.review.last_act import UNDOES, LastAct, iter_last_acts
from cleared.review.record_review import TAKEN_BACK, DecisionResult, UndoCase, load_reviews
from cleared.runs.suspended_runs import reissue_question
from cleared.trust.approval_record import digest_of
from cleared.trust.person_only import refuse_in_job

RENAMED: Final = "settled: what it asks about came back under another id"
ABOUT = "About"
"""The trailer that names the records a decision was taken back of."""
_MOST_PASSED: Final = 5


def undo_decision(host: Host, *, dry_run: bool = False, act: str | None = None, older: bool = False) -> DecisionResult:
    """Take back the last act that stands, by whichever command: a decision about the books, a card that was put off, or
    an approval, whose script is rolled back. ``dry_run``: only say which, with ``act`` of the result.

    ``act``: the id of the act that the person was shown; where it is not the last one any more, nothing is taken back.
    ``older``: the last that can be taken back, though something beside the books was done since; so is an ``act``.

    Raises ``PolicyError`` where there is none, where somebody has acted since, where it was pushed, where it is of a
    sort that cannot be taken back, where an entry would move to another period, and inside a job.
    """
    refuse_in_job()
    result, taken_back = DecisionResult(), list[Callable[[], None]]()
    approved: list[tuple[LastAct, str]] = []

    def stage_undo(decision_context: DecisionContext) -> Decision | None:
        last, passed = _require_last_act(host, decision_context, act, older=older)
        commit = last.commit
        result.act, result.subject = last.id, commit.subject
        result.messages[:] = [f"{'it would take' if dry_run else 'took'} back: {last.name}", *passed]
        if last.rolled_back:
            made = decision_context.snapshot.at_commit(commit.id).read_file(last.rolled_back)
            approved[:] = [(last, digest_of(made or b""))]
            return None
        names, decision_id = commit.trailers.get(UNDO_TRAILER, "").split(), commit.trailers["Decision"]
        if LATER_TRAILER in commit.trailers:
            _bring_forward(decision_context, commit, result)
            marks = ((UNDOES, decision_id),)
            return None if dry_run else Decision(commit_messages.decision_undone(commit.subject), trailers=marks)
        parent = parent_commit(decision_context.repo, commit.id)
        if parent is None:
            raise PolicyError("what was there before the last decision is not in this clone", remedy="Correct it anew.")
        earlier, later = Snapshot(decision_context.repo, parent), Snapshot(decision_context.repo, commit.id)
        _refuse_continued_runs(host, decision_context, names)
        for card in commit.trailers.get(AGREES_TRAILER, "").split():
            decision_context.context.cards.withdraw_agreement(
                card, format_iso(decision_context.context.now), decision_context.by, decision_id
            )
        files: dict[str, bytes | None] = {}
        for review in load_reviews().values():
            files |= review.take_back(UndoCase(decision_context, commit, earlier, later, result))
        _reopen_cards(decision_context, names, decision_id, result)
        questions = committed_questions(decision_context)
        taken_back.append(lambda: questions.withdraw_answers(names))
        if dry_run:
            return None
        files |= _restore_tests(host, decision_context, commit, earlier)
        about = ((ABOUT, " ".join(result.records)),) if result.records else ()
        marks = ((UNDOES, decision_id), *about)
        return Decision(commit_messages.decision_undone(commit.subject), files, marks, subject=("undo", decision_id))

    try:
        commit = commit_decision(host, "queue undo", stage_undo, collects=[result])
    except SecondNeeded as first:  # what was staged has come to nothing
        return DecisionResult(first.commit, agreed=[first.card], messages=[f"I{first.message[1:]}. {first.remedy}"])
    if dry_run:
        return result
    if approved:
        return _roll_back_approval(host, *approved[0], result)
    assert commit is not None
    result.commit = commit
    for withdraw_answers in taken_back[-1:]:
        withdraw_answers()
    return result


def _require_last_act(
    host: Host, decision_context: DecisionContext, act: str | None, *, older: bool
) -> tuple[LastAct, list[str]]:
    """The last act, and a line for each newer one that is passed over as git took it back. Raises ``PolicyError`` where
    it is not ``act``, or cannot be taken back."""
    acts = iter_last_acts(host, decision_context.snapshot, decision_context.context.cards.open_cards())
    last, passed = next(acts, None), list[str]()
    # With ``act`` it was shown beside the last.
    while last is not None and last.is_beside and (older or act not in (None, last.id)):
        passed += [f"passed over: {last.name}, which was {last.git_revert}"] if last.git_revert else []
        last = next(acts, None)
    passed = list_lines(passed, _MOST_PASSED, "… and {} more that git took back")
    if last is None:
        raise PolicyError(
            "; ".join(["there is no decision to take back", *passed]), remedy="cleared queue list shows what waits."
        )
    if act is not None and act != last.id:
        raise PolicyError(
            f"the last decision is another one by now: {last.name}; nothing was taken back",
            remedy="Look at the queue again; undo then takes back that one.",
        )
    last.require_undoable(host)
    return last, passed


def _roll_back_approval(host: Host, last: LastAct, digest: str, result: DecisionResult) -> DecisionResult:
    """Roll back the script that was approved, if it is still the one with this digest."""
    path = last.rolled_back
    folder, _, stem = path.removesuffix(".py").rpartition("/")
    with expecting({path: digest}):
        name = stem if folder == host.layout.agents_dir else path
        done = roll_back_script(host, name, f"undo: {last.commit.subject}")
    result.commit = done.commit
    result.messages.append(f"{path} is {'the version before' if done.restored else 'gone'} again")
    return result


def _bring_forward(decision_context: DecisionContext, commit: history.CommitInfo, result: DecisionResult) -> None:
    """Put cards back to where they were before somebody put them behind the others."""
    cards, now = decision_context.context.cards, format_iso(decision_context.context.now)
    for card in commit.trailers[LATER_TRAILER].split():
        cards.bring_forward(card, now, decision_context.by, commit.trailers.get("Clock", ""))
        result.cards.append(card)


def _restore_tests(
    host: Host, decision_context: DecisionContext, commit: history.CommitInfo, earlier: Snapshot
) -> dict[str, bytes | None]:
    """The tests that recorded the decision, as they were before it."""
    made = Snapshot(decision_context.repo, commit.id)
    texts = {
        path: earlier.read_file(path)
        for path in commit.files or ()
        if path.startswith(f"{CASES_DIR}/") and decision_context.snapshot.read_file(path) == made.read_file(path)
    }
    if not texts:
        return {}
    approvals = load_approvals(host, decision_context.snapshot)
    signer = Signer(host, approvals, decision_context)
    sign_tests(signer, texts)
    return signer.files


def _refuse_continued_runs(host: Host, decision_context: DecisionContext, names: list[str]) -> None:
    """Raises ``PolicyError`` for an answer that its run has gone on with: it is part of what that run did."""
    for name in names:
        card = decision_context.context.cards.committed_cards.get(name)
        if card is None or card.kind != QUESTION.name:
            continue
        run = str(card.details.get("run"))
        if card.gone_on is not None or has_committed(host, decision_context.repo, decision_context.snapshot, run):
            raise PolicyError(
                f"the run of {card.id} has gone on with the answer",
                remedy="Correct or reject what it posted: cleared run show lists it.",
            )


def _reopen_cards(
    decision_context: DecisionContext, names: list[str], decision_id: str, result: DecisionResult
) -> None:
    """Open the decided cards again, under the records' new ids; settle cards that the decision opened."""
    context, reviews = decision_context.context, load_reviews().values()
    restored = {old: new for review in reviews for old, new in review.list_restored(context).items()}
    naming, renamed = {kind for review in reviews for kind in review.card_kinds}, RenamedRecords()
    for old, new in restored.items():
        renamed.note(old, new)
    runs = []

    def reopen_card(card: Card, identity: str, details: Mapping[str, Any]) -> None:
        record = restored.get(card.record_id or "", card.record_id)
        now = format_iso(context.now)
        context.cards.add_card(Card(identity, card.kind, card.title, now, card.run_id, record, card.agent, details))
        result.cards.append(identity)

    def rename_records(card: Card) -> Mapping[str, Any]:
        return dict(renamed.rename_all(card.details, texts=WORDS)) if card.kind in naming else card.details

    for name in names:
        card = context.cards.committed_cards.get(name)
        if card is None:
            continue
        context.cards.refuse_doubtful(card)  # what is opened again is attested as it says
        own_ways = (review.reopen_card(decision_context, card) for review in reviews)
        if (reopened := next((each for each in own_ways if each is not None), None)) is not None:
            result.cards.append(reopened)
            continue
        if card.kind == QUESTION.name:
            runs.append(card.details.get("run"))
        identity = card_id(card.kind, card.id, "again", context.run_id)
        details = (
            reissue_question(committed_questions(decision_context), card, identity)
            if card.kind == QUESTION.name
            else rename_records(card)
        )
        reopen_card(card, identity, details)
    for card in context.cards.open_cards():
        follows = card.kind == QUESTION.name and card.details.get("run") in runs  # asked because of that answer
        if (card.run_id == decision_id or follows) and card.id not in result.cards:
            context.cards.resolve_card(card.id, format_iso(context.now), decision_context.by, TAKEN_BACK)
    for card in context.cards.open_cards(*naming) if restored else ():  # that wait, and name what came back
        details = rename_records(card)
        is_told = card.id in context.cards.added or context.cards.find_doubt(card) is not None
        if not is_told and (details != card.details or card.record_id in restored):
            context.cards.resolve_card(card.id, format_iso(context.now), decision_context.by, RENAMED)
            reopen_card(card, card_id(card.kind, card.id, "again", context.run_id), details)
