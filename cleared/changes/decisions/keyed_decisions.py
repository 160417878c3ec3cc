"""Decisions that are made once: the commit of the one that was made with a key."""

from __future__ import annotations

from typing import Final

from cleared.base.errors import PolicyError
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.consumed_events import find_keyed_decision
from cleared.changes.decisions.decision_context import UNDO_TRAILER
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.renamed_records import KeyedRecord
from cleared.git import Repository, Snapshot, history
from cleared.git.history import CommitInfo

OTHER_KEY: Final = "Give another entry another key."


def find_keyed_commit(host: Host, repo: Repository, snapshot: Snapshot, key: str) -> CommitInfo | None:
    """The commit of the decision that was made with this key, as of the snapshot's commit; ``None`` where none was.
    Raises ``PolicyError`` where it cannot be found."""
    decision = find_keyed_decision(host, repo, snapshot, key)
    if decision is None:
        return None
    origins = CommitOrigins(host, repo, snapshot)
    for found in history.find_by_trailer(host.root, "Decision", decision, rev=str(snapshot.commit)):
        commit = history.read_commit(host.root, found.id)
        if origins.is_ours(commit):  # whoever can push claims to be a decision
            return commit
    raise PolicyError(f"an entry was posted with the key {key}, and is not in this history", remedy=OTHER_KEY)


def find_keyed_record(host: Host, repo: Repository, snapshot: Snapshot, key: str) -> KeyedRecord | None:
    """What that decision has made. Raises ``PolicyError`` where it cannot be found."""
    made = find_keyed_commit(host, repo, snapshot, key)
    if made is None:
        return None
    return KeyedRecord(key, made.trailers.get(UNDO_TRAILER, ""), CommittedSource(Snapshot(repo, made.id)))
