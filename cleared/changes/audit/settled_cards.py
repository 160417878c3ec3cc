"""Cards that were settled by nobody who may: a line of the queue is quickly written."""

from __future__ import annotations

from cleared.base.errors import Place, WorkspaceError
from cleared.cards import queue_files
from cleared.changes.consumed_events import find_unattested_cards
from cleared.changes.decisions.signatures import read_parents, read_settlements
from cleared.changes.decisions.signed_commits import list_signed_commits
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.record_audit import Violation
from cleared.git import Repository, Snapshot


def check_settled_cards(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    """Cards that neither a run or decision of a machine that counts here has settled, nor a reviewer."""
    try:
        cards = queue_files.load_cards(CommittedSource(snapshot), host.layout.queue_dir)
    except WorkspaceError as error:
        return [Violation("format", error.message, error.remedy or "Restore the file.", error.place)]
    unattested = find_unattested_cards(host, repo, snapshot, cards)
    signed = _find_signed_settlements(host, repo, snapshot) if unattested else set()
    return [
        Violation(
            "provenance",
            f"the card {card.id} ({card.title[:60]!r}) is settled ({card.resolution!r}, {card.resolved_by}), and no "
            "run or decision of a machine that is trusted here did that",
            f"Find the line (git log -S{card.id} -- queue). Where a colleague's machine did it, trust that: cleared "
            "trust. Else take it back with git, and decide again.",
            Place(queue_files.shard_path(host.layout.queue_dir, card.resolved_at or "")),
            card.entry_id,
        )
        for card in unattested
        if (card.id, card.resolved_by, card.resolution) not in signed
    ]


def _find_signed_settlements(host: Host, repo: Repository, snapshot: Snapshot) -> set[tuple[object, object, object]]:
    """Card, by whom, and answer of what reviewers have signed, on machines that may be trusted nowhere."""
    layout = host.layout
    return {
        (event.get("id"), event.get("by"), event.get("resolution"))
        for commit in list_signed_commits(host, repo, snapshot, layout.queue_dir)
        for event in read_settlements(
            layout, commit, Snapshot(repo, read_parents(repo, commit.id)[0]), Snapshot(repo, commit.id)
        )
    }
