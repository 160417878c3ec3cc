"""Taking a decision back: one more commit that posts what restores the state. No row is ever removed."""

from __future__ import annotations

from cleared.approvals.record import CASES
from cleared.approvals.standing import Approvals
from cleared.cards.model import Card, card_id
from cleared.clock import iso
from cleared.errors import PolicyError
from cleared.gate.approve import Signer, sign_cases
from cleared.gate.cases import CASES_DIR
from cleared.gate.history import parent_of
from cleared.gate.surface import refuse_in_job
from cleared.ledger.books import Books
from cleared.ledger.entry import Entry
from cleared.ledger.posting import post
from cleared.primitives.journal import hold
from cleared.review.decisions import UNDOABLE, Done
from cleared.review.entries import withdraw
from cleared.runs.desk import Decided, Desk, decide
from cleared.runs.host import Host
from cleared.runs.session import open_books
from cleared.runs.source import CommittedSource
from cleared.vcs import Snapshot, history

UNDOES = "Undoes"


def undo(host: Host) -> Done:
    """Take back the newest decision that was not taken back yet.

    Raises ``PolicyError`` where there is none, or where a remote has it already, and inside a job.
    """
    refuse_in_job()
    done = Done()

    def act(desk: Desk) -> Decided:
        commit = _last(host)
        parent = parent_of(desk.repo, commit.id)
        if parent is None:
            raise PolicyError("what was there before the last decision is not in this clone", remedy="Correct it anew.")
        earlier = Snapshot(desk.repo, parent)
        before, _ = open_books(host, CommittedSource(earlier))
        after, _ = open_books(host, CommittedSource(Snapshot(desk.repo, commit.id)))
        months = [m for m in map(host.layout.journal_month, commit.files or ()) if m is not None]
        _restore(desk, before, after, months, done)
        _reopen(desk, commit.trailers[UNDOABLE].split(), commit.trailers["Decision"], done)
        files = _forget(host, desk, commit, earlier)
        said = f"correct: undo: {commit.subject}"[:200]
        return Decided(said, files, ((UNDOES, commit.trailers["Decision"]),))

    commit = decide(host, "queue undo", act)
    assert commit is not None
    done.commit = commit
    return done


def _forget(
    host: Host, desk: Desk, commit: history.CommitInfo, earlier: Snapshot
) -> dict[str, bytes | None]:  # fmt: skip
    """The regression cases that remembered the decision, as they were before it."""
    made = Snapshot(desk.repo, commit.id)
    texts = {
        path: earlier.read(path) for path in commit.files or ()
        if path.startswith(f"{CASES_DIR}/") and desk.snapshot.read(path) == made.read(path)
    }  # fmt: skip
    if not texts:
        return {}
    approvals = Approvals(CommittedSource(desk.snapshot), host.root, {})
    if approvals.read(CASES) is None:
        return {}
    signer = Signer(host, approvals, desk)
    signer.files |= texts
    sign_cases(signer, approvals, texts, {})
    return signer.files


def _last(host: Host) -> history.CommitInfo:
    """The newest decision that can be taken back. Raises ``PolicyError``."""
    undone: set[str] = set()
    for commit in history.log(host.root, 2_000, grep="Decision: ", files=True):
        undone |= set(commit.trailers.get(UNDOES, "").split("\n"))
        if UNDOABLE in commit.trailers and commit.trailers.get("Decision") not in undone:
            if history.is_pushed(host.root, commit.id):
                raise PolicyError(
                    f"the last decision ({commit.subject}) was pushed already",
                    remedy="Others may build on it: correct it with a new decision.",
                )
            return commit
    raise PolicyError("there is no decision to take back", remedy="cleared queue list shows what waits.")


def _restore(desk: Desk, before: Books, after: Books, months: list[tuple[int, int]], done: Done) -> None:
    """Bring back what the decision changed, and withdraw what it posted."""
    context = desk.context
    old = {e.entry_id: e for m in months for e in before.entries(*m)}
    new = {e.entry_id: e for m in months for e in after.entries(*m)}
    changed = [e for i, e in old.items() if new[i].status != e.status]
    for entry in (e for i, e in new.items() if i not in old and e.status != "voided"):
        now = context.books.entry(entry.entry_id)
        if now is not None and now.status != "voided" and not _corrects(now, changed):
            done.posted += [e.entry_id for e in withdraw(context, now, f"undone by {desk.by}")]
    for entry in changed:
        now = context.books.entry(entry.entry_id)
        if now is None:
            continue
        if now.status != "voided":
            done.posted += [e.entry_id for e in withdraw(context, now, f"undone by {desk.by}")]
        tags = [t for t in entry.tags.split(";") if t and not t.startswith("@restores=")]
        restored, _ = post(
            context.books, context.bank, context.ledger_accounts, context.books.periods.first_open(entry.date),
            entry.description, entry.legs, reference=entry.reference, status=entry.status,
            counterparty=entry.counterparty, confidence=entry.confidence, evidence=entry.evidence,
            tags=";".join([*tags, f"@restores={entry.entry_id}"]), notes=entry.notes,
        )  # fmt: skip
        context.note("undo", f"restored as {restored.entry_id}", entry.entry_id)
        done.entries.append(entry.entry_id)
        done.posted.append(restored.entry_id)


def _corrects(entry: Entry, changed: list[Entry]) -> bool:
    """A reclassification goes with the entry that it corrects."""
    marks = {f"@corrects={e.entry_id}" for e in changed}
    return bool(marks & set(entry.tags.split(";"))) and not entry.reference


def _reopen(desk: Desk, names: list[str], decision: str, done: Done) -> None:
    """The decided cards are asked again, under the entries' new ids; cards that the decision opened are settled."""
    context = desk.context
    restored = {
        tag.removeprefix("@restores="): entry
        for entries in context.books.staged.values() for entry in entries
        for tag in entry.tags.split(";") if tag.startswith("@restores=")
    }  # fmt: skip
    for name in names:
        card = context.cards.known.get(name)
        if card is None:
            continue
        line = str(card.details.get("line", ""))
        if card.kind == "line" and (found := context.bank.find(line)) and not context.bank.posted(line):
            context.bank.set_aside(line, "held", f"undone by {desk.by}")
            done.cards.append(hold(context, found[1], "the decision was taken back", context.run_id))
            continue
        entry = restored.get(card.entry_id or "")
        identity = card_id(card.kind, card.id, "again", context.run_id)
        again = Card(identity, card.kind, card.title, iso(context.now), card.run_id,
                     entry.entry_id if entry else card.entry_id, card.agent, card.details)  # fmt: skip
        context.cards.add(again)
        done.cards.append(again.id)
    for card in context.cards.open_cards():
        if card.run_id == decision and card.id not in done.cards:
            context.cards.resolve(card.id, iso(context.now), desk.by, "undone")
