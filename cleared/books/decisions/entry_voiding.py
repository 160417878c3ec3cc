"""What people decide of the books: voiding an entry."""

from __future__ import annotations

from cleared.books.card_kinds import ENTRY
from cleared.books.decisions import book_subjects
from cleared.books.decisions.entry_correction import refuse_changed_entry
from cleared.books.decisions.transfer_pairing import settle_decided_transfers
from cleared.books.primitives.voiding import void_with_corrections
from cleared.books.staged_books import books_of
from cleared.changes.decisions.decision_context import (
    UNDO_TRAILER,
    Decision,
    DecisionContext,
    commit_decision,
    require_commit,
)
from cleared.changes.host import Host


def void_entry(host: Host, entry_id: str, reason: str) -> tuple[str, str, str]:
    """Void an entry; ``(entry id, reversal's id, commit)``."""
    ids: list[str] = []

    def stage_void(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        original = books_of(context).books.get_entry(entry_id)
        refuse_changed_entry(books_of(context).books, original)
        about = [*context.cards.list_about(ENTRY.name, original.entry_id), original.entry_id]
        reversal = void_with_corrections(context, entry_id, reason)
        ids.extend((original.entry_id, reversal["entry_id"]))
        about += settle_decided_transfers(decision_context, [original.entry_id])
        subject = book_subjects.entry_voided(original.entry_id, reason)
        return Decision(subject, trailers=((UNDO_TRAILER, " ".join(about)),))

    commit = require_commit(commit_decision(host, f"journal void {entry_id}", stage_void, collects=[ids]))
    return ids[0], ids[1], commit
