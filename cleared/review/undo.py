"""Taking a decision back: one more commit that restores what was before. No row is ever removed."""

from __future__ import annotations

from collections.abc import Callable

from cleared.approvals.approval_record import CASES
from cleared.approvals.person_only import refuse_in_job
from cleared.approvals.verification import Approvals
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import LINE, QUESTION
from cleared.changes import commit_messages
from cleared.changes.book_sources import CommittedSource
from cleared.changes.consumed_events import has_committed
from cleared.changes.host import Host
from cleared.changes.session import open_books
from cleared.clock import format_iso
from cleared.decisions.authorization import AGREES_TRAILER, SecondNeeded
from cleared.decisions.decision_context import UNDO_TRAILER, Decision, DecisionContext, commit_decision
from cleared.decisions.receipt_filing import take_back_links
from cleared.errors import PolicyError
from cleared.gate.past_runs import parent_commit
from cleared.gate.regression_tests import CASES_DIR
from cleared.ledger.corrections import CORRECTS
from cleared.ledger.entry import Entry
from cleared.ledger.posting import post_entry
from cleared.ledger.staged_journal import Books
from cleared.primitives.voiding import stage_line_card
from cleared.proposals.approval import Signer, sign_tests
from cleared.review.answers import committed_questions
from cleared.review.decision_staging import DecisionResult
from cleared.review.entry_decisions import void_with_corrections
from cleared.runs.suspended_runs import reissue_question
from cleared.vcs import Snapshot, history
from cleared.vcs.object_reader import OID_PATTERN

UNDOES = "Undoes"
ABOUT = "About"
"""The trailer that names the entries a decision was taken back of."""
RESTORES = "@restores="


def undo_decision(host: Host, *, dry_run: bool = False, seen: str | None = None) -> DecisionResult:
    """Take back the newest decision about the books that stands, by whichever command. ``dry_run``: only say which.
    ``seen``: the commit that the person saw the books at; what was decided since is not taken back.

    Raises ``PolicyError`` where there is none, where somebody has decided since ``seen``, where it was pushed, where it
    is of a sort that cannot be taken back, where an entry would move to another period, and inside a job.
    """
    refuse_in_job()
    result, taken_back = DecisionResult(), list[Callable[[], None]]()

    def stage_undo(decision_context: DecisionContext) -> Decision | None:
        commit = _last_decision(host, decision_context)
        if seen is not None:
            _refuse_unseen(host, decision_context, seen)
        by, at = commit.trailers.get("By", ""), commit.trailers.get("Clock", "")
        result.messages[:] = [
            f"{'it would take' if dry_run else 'took'} back: {commit.subject} ({by}, {at}, {commit.short})"
        ]
        parent = parent_commit(decision_context.repo, commit.id)
        if parent is None:
            raise PolicyError("what was there before the last decision is not in this clone", remedy="Correct it anew.")
        earlier = Snapshot(decision_context.repo, parent)
        before, _ = open_books(host, CommittedSource(earlier))
        after, _ = open_books(host, CommittedSource(Snapshot(decision_context.repo, commit.id)))
        names, decision_id = commit.trailers.get(UNDO_TRAILER, "").split(), commit.trailers["Decision"]
        months = [m for m in map(host.layout.journal_month, commit.files or ()) if m is not None]
        _refuse_continued_runs(host, decision_context, names)
        for card in commit.trailers.get(AGREES_TRAILER, "").split():
            decision_context.context.cards.withdraw_agreement(
                card, format_iso(decision_context.context.now), decision_context.by, decision_id
            )
        _restore_entries(decision_context, before, after, months, result)
        _reopen_cards(decision_context, names, decision_id, result)
        questions = committed_questions(decision_context)
        taken_back.append(lambda: questions.withdraw_answers(names))
        if dry_run:
            return None
        files = _restore_tests(host, decision_context, commit, earlier)
        files |= take_back_links(decision_context, earlier, Snapshot(decision_context.repo, commit.id))
        about = ((ABOUT, " ".join(result.entries)),) if result.entries else ()
        marks = ((UNDOES, decision_id), *about)
        return Decision(
            commit_messages.decision_undone(commit.subject), files, marks, subject=("undo", decision_id)
        )  # fmt: skip

    try:
        commit = commit_decision(host, "queue undo", stage_undo, collects=[result])
    except SecondNeeded as first:  # what was staged has come to nothing
        return DecisionResult(first.commit, agreed=[first.card], messages=[f"I{first.message[1:]}. {first.remedy}"])
    if dry_run:
        return result
    assert commit is not None
    result.commit = commit
    taken_back[-1]()
    return result


def _restore_tests(
    host: Host, decision_context: DecisionContext, commit: history.CommitInfo, earlier: Snapshot
) -> dict[str, bytes | None]:  # fmt: skip
    """The tests that recorded the decision, as they were before it."""
    made = Snapshot(decision_context.repo, commit.id)
    texts = {
        path: earlier.read_file(path) for path in commit.files or ()
        if path.startswith(f"{CASES_DIR}/") and decision_context.snapshot.read_file(path) == made.read_file(path)
    }  # fmt: skip
    if not texts:
        return {}
    approvals = Approvals(CommittedSource(decision_context.snapshot), host.root, {})
    if approvals.read_record(CASES) is None:
        return {}
    signer = Signer(host, approvals, decision_context)
    sign_tests(signer, approvals, texts)
    return signer.files


def _last_decision(host: Host, decision_context: DecisionContext) -> history.CommitInfo:
    """The newest decision about the books. Raises ``PolicyError`` where it cannot be taken back; an older one is never
    taken back instead."""
    waiting = {card.id for card in decision_context.context.cards.open_cards() if card.agreed}
    undone: set[str] = set()
    for commit in history.read_log(host.root, 2_000, grep="Decision: ", files=True):
        undone |= set(commit.trailers.get(UNDOES, "").split("\n"))
        # That the first of two had agreed is past, once the second has.
        decides = UNDO_TRAILER in commit.trailers or waiting & set(commit.trailers.get(AGREES_TRAILER, "").split())
        if decides and commit.trailers.get("Decision") not in undone:
            if history.is_pushed(host.root, commit.id):
                raise PolicyError(
                    f"the last decision ({commit.subject}) was pushed already",
                    remedy="Others may build on it: correct it with a new decision.",
                )
            return commit
        if UNDOES not in commit.trailers and commit.trailers.get("Decision") not in undone:
            _refuse_unsupported(host, decision_context, commit)
    raise PolicyError("there is no decision to take back", remedy="cleared queue list shows what waits.")


def _refuse_unseen(host: Host, decision_context: DecisionContext, seen: str) -> None:
    """Raises ``PolicyError`` where there was a decision after the commit ``seen``: it is not what the person means."""
    remedy = "Look at the queue again; undo then takes back what is the last decision by now."
    if not OID_PATTERN.fullmatch(seen) or not decision_context.repo.has_in_history(seen):
        raise PolicyError("what you saw is not in the history of these books any more", remedy=remedy)
    for commit in history.read_log(host.root, 100, grep="Decision: ", rev=f"{seen}..HEAD"):
        if UNDO_TRAILER in commit.trailers or UNDOES in commit.trailers:
            by = commit.trailers.get("By", "somebody")
            raise PolicyError(f"{by} has decided since you looked ({commit.subject})", remedy=remedy)


def _refuse_unsupported(host: Host, decision_context: DecisionContext, commit: history.CommitInfo) -> None:
    """Raises ``PolicyError`` for a decision about the books that undo does not take back."""
    files, periods = commit.files or (), host.layout.periods
    remedy = ""
    if periods in files:
        closed = decision_context.context.books.periods.closed_through
        then, _ = open_books(host, CommittedSource(decision_context.snapshot.at_commit(commit.id)))
        through = then.periods.closed_through
        if closed is not None and through is not None and through <= closed:
            remedy = "Reopen it first: cleared period reopen DATE --reason …"
    elif host.layout.undone in files:
        remedy = "Import the file again: cleared import FILE."
    elif any(host.layout.journal_month(path) for path in files):
        remedy = "Void what it posted: cleared journal list, cleared journal void ID --reason …"
    if remedy:
        raise PolicyError(
            f"the last decision was {commit.short} ({commit.subject}), which is not taken back here", remedy=remedy
        )


def _refuse_closed_period(books: Books, entries: list[Entry]) -> None:
    """Raises ``PolicyError`` for entries of a closed period: taken back, they would be dated after it."""
    for entry in entries:
        if books.periods.is_closed(entry.date):
            raise PolicyError(
                f"{entry.entry_id} of {entry.date} lies in a period that is closed; taken back, it would be dated "
                f"{books.periods.first_open(entry.date)}",
                remedy="Decide anew (cleared queue correct), or reopen it: cleared period reopen DATE --reason …",
            )


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


def _restore_entries(
    decision_context: DecisionContext,
    before: Books,
    after: Books,
    months: list[tuple[int, int]],
    result: DecisionResult,
) -> None:
    """Post again what the decision voided or changed, and void what it posted."""
    context = decision_context.context
    old = {e.entry_id: e for m in months for e in before.iter_entries(*m)}
    new = {e.entry_id: e for m in months for e in after.iter_entries(*m)}
    heirs = _restorations_by_entry(context.books)
    changed = [e for i, e in old.items() if new[i].status != e.status]
    added = [e for i, e in new.items() if i not in old and e.status != "voided"]
    _refuse_closed_period(context.books, [*changed, *(e for i, e in new.items() if i not in old)])
    # What restores an entry takes its place: of two decisions about it the second may have been taken back before.
    standing = [
        _standing_entry(context.books, heirs, e.entry_id) for e in changed if new[e.entry_id].status != "voided"
    ]
    for now in [*standing, *(_standing_entry(context.books, heirs, e.entry_id) for e in added)]:
        if context.books.get_entry(now.entry_id).status != "voided":
            result.posted += [
                e.entry_id for e in void_with_corrections(context, now, f"undone by {decision_context.by}")
            ]
    again: dict[str, str] = {}
    for entry in sorted(changed, key=lambda e: CORRECTS in e.tags):  # what a correction corrects is there by then
        tags = [t for t in entry.tags.split(";") if t and not t.startswith(RESTORES)]
        tags = [_renamed_tag(t, again) for t in tags]
        restored, duplicate = post_entry(
            context.books, context.bank, context.ledger_accounts, context.books.periods.first_open(entry.date),
            entry.description, entry.legs, reference=entry.reference, status=entry.status,
            counterparty=entry.counterparty, confidence=entry.confidence, evidence=entry.evidence,
            tags=";".join([*tags, f"{RESTORES}{entry.entry_id}"]), notes=entry.notes,
        )  # fmt: skip
        if duplicate:
            raise PolicyError(
                f"the bank line of {entry.entry_id} was posted since, as {restored.entry_id}",
                remedy="Correct that one, or reject it first.",
            )
        again[entry.entry_id] = restored.entry_id
        context.log_action("undo", f"restored as {restored.entry_id}", entry.entry_id)
        result.entries.append(entry.entry_id)
        result.posted.append(restored.entry_id)


def _restorations_by_entry(books: Books) -> dict[str, list[Entry]]:
    """Entry id → the entries that were posted to restore it, oldest first."""
    restorations: dict[str, list[Entry]] = {}
    for entry in books.iter_entries():
        if RESTORES in entry.tags:
            for tag in entry.tags.split(";"):
                if tag.startswith(RESTORES):
                    restorations.setdefault(tag.removeprefix(RESTORES), []).append(entry)
    return restorations


def _standing_entry(books: Books, heirs: dict[str, list[Entry]], entry_id: str) -> Entry:
    """The entry, or what restored it. Raises ``PolicyError`` where it was voided since by something else."""
    waiting = [books.get_entry(entry_id)]
    while waiting:
        entry = waiting.pop()
        if entry.status != "voided":
            return entry
        waiting += heirs.get(entry.entry_id, ())
    raise PolicyError(
        f"{entry_id} was voided since, by something that cannot be taken back",
        remedy="The decision before that stays; decide anew about what is there now.",
    )


def _renamed_tag(tag: str, again: dict[str, str]) -> str:
    """The tag; one that says ``@corrects=`` names the restored entry, where the corrected one was restored, too."""
    target = tag.removeprefix(CORRECTS)
    return f"{CORRECTS}{again[target]}" if tag.startswith(CORRECTS) and target in again else tag


def _reopen_cards(
    decision_context: DecisionContext, names: list[str], decision_id: str, result: DecisionResult
) -> None:
    """Open the decided cards again, under the entries' new ids; settle cards that the decision opened."""
    context = decision_context.context
    restored = {
        tag.removeprefix(RESTORES): entry
        for entries in context.books.staged.values() for entry in entries
        for tag in entry.tags.split(";") if tag.startswith(RESTORES)
    }  # fmt: skip
    runs = set()
    for name in names:
        card = context.cards.committed_cards.get(name)
        if card is None:
            continue
        line = str(card.details.get("line", ""))
        if (
            card.kind == LINE.name
            and (bank_line := context.bank.find_line(line))
            and not context.bank.posted_amount(line)
        ):
            context.bank.set_line_aside(line, "held", f"undone by {decision_context.by}")
            result.cards.append(stage_line_card(context, bank_line[1], "the decision was taken back", context.run_id))
            continue
        if card.kind == QUESTION.name:
            runs.add(card.details.get("run"))
        entry = restored.get(card.entry_id or "")
        identity = card_id(card.kind, card.id, "again", context.run_id)
        details = (
            reissue_question(committed_questions(decision_context), card, identity)
            if card.kind == QUESTION.name
            else card.details
        )
        again = Card(identity, card.kind, card.title, format_iso(context.now), card.run_id,
                     entry.entry_id if entry else card.entry_id, card.agent, details)  # fmt: skip
        context.cards.add_card(again)
        result.cards.append(again.id)
    for card in context.cards.open_cards():
        follows = card.kind == QUESTION.name and card.details.get("run") in runs  # asked because of that answer
        posted = card.kind == LINE.name and context.bank.posted_amount(str(card.details.get("line", ""))) != 0
        if (card.run_id == decision_id or follows or posted) and card.id not in result.cards:
            context.cards.resolve_card(
                card.id, format_iso(context.now), decision_context.by, "settled: the decision before it was taken back"
            )
