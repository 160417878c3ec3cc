"""Taking a decision back: one more commit that restores what was before. No row is ever removed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.books.decisions.entry_amending import restore_amended
from cleared.books.decisions.entry_correction import void_with_corrections
from cleared.books.decisions.receipt_filing import take_back_links
from cleared.books.ledger.chains import CORRECTS, ORIGINAL_DATE, RESTORES, REVERSES, date_tags, list_links
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.posting import post_entry
from cleared.books.ledger.staged_journal import Books
from cleared.books.opened_books import open_books
from cleared.books.primitives.voiding import stage_line_card
from cleared.books.staged_books import books_of
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import LINE, QUESTION
from cleared.changes import commit_messages
from cleared.changes.book_sources import CommittedSource
from cleared.changes.consumed_events import has_committed
from cleared.changes.decisions.authorization import AGREES_TRAILER, SecondNeeded
from cleared.changes.decisions.decision_context import UNDO_TRAILER, Decision, DecisionContext, commit_decision
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.gate.past_runs import parent_commit
from cleared.gate.proposals.approval import Signer, sign_tests
from cleared.gate.proposals.rollback import roll_back_script
from cleared.gate.regression_tests import CASES_DIR
from cleared.git import Snapshot, history
from cleared.review.answers import committed_questions
from cleared.review.decision_staging import DecisionResult
from cleared.review.last_act import LATER_TRAILER, UNDOES, LastAct, find_last_act
from cleared.runs.suspended_runs import reissue_question
from cleared.trust.approval_record import digest_of
from cleared.trust.person_only import refuse_in_job
from cleared.trust.verification import Approvals

ABOUT = "About"
"""The trailer that names the entries a decision was taken back of."""


def undo_decision(host: Host, *, dry_run: bool = False, act: str | None = None, older: bool = False) -> DecisionResult:
    """Take back the last act that stands, by whichever command: a decision about the books, a card that was put off, or
    an approval, whose script is rolled back. ``dry_run``: only say which, with ``act`` of the result.

    ``act``: the id of the act that the person was shown; where it is not the last one any more, nothing is taken back.
    ``older``: the last that can be taken back, though something beside the books was done since.

    Raises ``PolicyError`` where there is none, where somebody has acted since, where it was pushed, where it is of a
    sort that cannot be taken back, where an entry would move to another period, and inside a job.
    """
    refuse_in_job()
    result, taken_back = DecisionResult(), list[Callable[[], None]]()
    approved: list[tuple[LastAct, str]] = []

    def stage_undo(decision_context: DecisionContext) -> Decision | None:
        last = _require_last_act(host, decision_context, act, older=older)
        commit = last.commit
        result.act = last.id
        result.messages[:] = [f"{'it would take' if dry_run else 'took'} back: {last.name}"]
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
        earlier = Snapshot(decision_context.repo, parent)
        before, _ = open_books(host.layout, CommittedSource(earlier))
        after, _ = open_books(host.layout, CommittedSource(Snapshot(decision_context.repo, commit.id)))
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


def _require_last_act(host: Host, decision_context: DecisionContext, act: str | None, *, older: bool) -> LastAct:
    """The last act. Raises ``PolicyError`` where it is not ``act``, or cannot be taken back."""
    cards = decision_context.context.cards.open_cards()
    last = find_last_act(host, decision_context.snapshot, cards, older=older)
    if last is None:
        raise PolicyError("there is no decision to take back", remedy="cleared queue list shows what waits.")
    if act is not None and act != last.id:
        raise PolicyError(
            f"the last decision is another one by now: {last.name}; nothing was taken back",
            remedy="Look at the queue again; undo then takes back that one.",
        )
    last.require_undoable(host)
    return last


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
    approvals = Approvals(CommittedSource(decision_context.snapshot), host.root, {})
    signer = Signer(host, approvals, decision_context)
    sign_tests(signer, texts)
    return signer.files


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
    """Post again what the decision voided or changed, void what it posted, and write what it amended as it was."""
    context = decision_context.context
    old = {e.entry_id: e for m in months for e in before.iter_entries(*m)}
    new = {e.entry_id: e for m in months for e in after.iter_entries(*m)}
    heirs = _restorations_by_entry(books_of(context).books)
    changed = [e for i, e in old.items() if new[i].status != e.status]
    added = [e for i, e in new.items() if i not in old and e.status != "voided"]
    _refuse_closed_period(books_of(context).books, [*changed, *(e for i, e in new.items() if i not in old)])
    # What restores an entry takes its place: of two decisions about it the second may have been taken back before.
    standing = [
        _standing_entry(books_of(context).books, heirs, e.entry_id)
        for e in changed
        if new[e.entry_id].status != "voided"
    ]
    for now in [*standing, *(_standing_entry(books_of(context).books, heirs, e.entry_id) for e in added)]:
        if books_of(context).books.get_entry(now.entry_id).status != "voided":
            # On no day before its own: where what it replaced cancels with it there, the chain counts as unmoved since
            # an earlier day, and only a part of that is taken back here.
            reversals = void_with_corrections(context, now, f"undone by {decision_context.by}", now.date)
            result.posted += [each.entry_id for each in reversals]
    result.entries += restore_amended(books_of(context).books, old, new)
    again: dict[str, str] = {}
    for entry in sorted(changed, key=lambda e: CORRECTS in e.tags):  # what a correction corrects is there by then
        tags = [t for t in entry.tags.split(";") if t and not t.startswith((RESTORES, ORIGINAL_DATE))]
        tags = [_rename_corrected(t, books_of(context).books, heirs, again) for t in tags]
        day = _date_restoration(books_of(context).books, entry, tags)
        tags += [f"{RESTORES}{entry.entry_id}", *date_tags(day, entry.date)]
        restored, duplicate = post_entry(
            books_of(context).books,
            books_of(context).bank,
            books_of(context).ledger_accounts,
            day,
            entry.description,
            entry.legs,
            reference=entry.reference,
            status=entry.status,
            counterparty=entry.counterparty,
            confidence=entry.confidence,
            evidence=entry.evidence,
            tags=";".join(tags),
            notes=entry.notes,
        )
        if duplicate:
            raise PolicyError(
                f"the bank line of {entry.entry_id} was posted since, as {restored.entry_id}",
                remedy="Correct that one, or reject it first.",
            )
        again[entry.entry_id] = restored.entry_id
        context.log_action("undo", f"restored as {restored.entry_id}", entry.entry_id)
        result.entries = list(dict.fromkeys([*result.entries, entry.entry_id]))
        result.posted.append(restored.entry_id)


def _date_restoration(books: Books, entry: Entry, tags: list[str]) -> date:
    """The day on which an entry comes back: that of what took it away, so that it counts on each day or on none.
    ``tags``: its new ones, which name what it corrects."""
    taken = [books.get_entry(entry_id).date for entry_id in books.chains.find_linked(entry.entry_id, REVERSES)]
    corrected = [target for _, target in list_links(";".join(tags))]
    return books.date_change([entry.entry_id, *corrected], max(taken, default=entry.date))


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


def _rename_corrected(tag: str, books: Books, heirs: dict[str, list[Entry]], again: dict[str, str]) -> str:
    """The tag; one that says ``@corrects=`` names what stands for the corrected entry now: what this undo restored
    (``again``), or an earlier one did.

    With the id of a voided one, the entry that stands would have no correction, and the next would be added to this.
    """
    target = tag.removeprefix(CORRECTS)
    if not tag.startswith(CORRECTS):
        return tag
    return f"{CORRECTS}{again.get(target) or _standing_entry(books, heirs, target).entry_id}"


def _reopen_cards(
    decision_context: DecisionContext, names: list[str], decision_id: str, result: DecisionResult
) -> None:
    """Open the decided cards again, under the entries' new ids; settle cards that the decision opened."""
    context = decision_context.context
    restored = {
        tag.removeprefix(RESTORES): entry
        for entries in books_of(context).books.staged.values()
        for entry in entries
        for tag in entry.tags.split(";")
        if tag.startswith(RESTORES)
    }
    runs = set()
    for name in names:
        card = context.cards.committed_cards.get(name)
        if card is None:
            continue
        line = str(card.details.get("line", ""))
        if (
            card.kind == LINE.name
            and (bank_line := books_of(context).bank.find_line(line))
            and not books_of(context).bank.posted_amount(line)
        ):
            books_of(context).bank.set_line_aside(line, "held", f"undone by {decision_context.by}")
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
        again = Card(
            identity,
            card.kind,
            card.title,
            format_iso(context.now),
            card.run_id,
            entry.entry_id if entry else card.entry_id,
            card.agent,
            details,
        )
        context.cards.add_card(again)
        result.cards.append(again.id)
    for card in context.cards.open_cards():
        follows = card.kind == QUESTION.name and card.details.get("run") in runs  # asked because of that answer
        posted = card.kind == LINE.name and books_of(context).bank.posted_amount(str(card.details.get("line", ""))) != 0
        if (card.run_id == decision_id or follows or posted) and card.id not in result.cards:
            context.cards.resolve_card(
                card.id, format_iso(context.now), decision_context.by, "settled: the decision before it was taken back"
            )
