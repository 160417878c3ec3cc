"""An id of their own for books that were made from others: from a template, or from another client's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from cleared.base.errors import PolicyError, UsageError
from cleared.cards.kinds import QUESTION
from cleared.changes import attestation, commit_messages
from cleared.changes.decisions.decision_context import (
    Decision,
    DecisionContext,
    commit_decision,
    require_commit,
    undo_unless_decided,
)
from cleared.changes.host import Host
from cleared.gate.proposals.clone_trust import read_identity
from cleared.gate.proposals.record_signing import Signer
from cleared.git.shared_history import identifying_commits
from cleared.runs.approved_scripts import Scripts
from cleared.trust import trust_store
from cleared.trust.approval_record import CASES, CONFIG, WORKSPACE, ApprovalRecord
from cleared.trust.person_only import refuse_in_job
from cleared.trust.verification import Approvals
from cleared.trust.workspace_pin import new_workspace_id, pin_clone, remember_pin

_NOT_COPIED: Final = {"by", "at", "workspace", "id", "key", "signature"}
_COPIED: Final = tuple(name for name in ApprovalRecord.__struct_fields__ if name not in _NOT_COPIED)
"""What a record says again when it is signed for other books."""


class NewBooks(Struct, frozen=True):
    """``kept``: what is live and counted in the old ones; it is signed anew for these."""

    id: str
    commit: str
    signed_again: list[str]


def make_new_books(host: Host) -> NewBooks:
    """Give these books another id, in one commit, and take over what is live in them and counts on this machine: what
    was approved is signed anew, and the history goes on counting as it did.

    Raises ``UsageError`` where they have no id yet; ``PolicyError`` where the file was changed beneath the pin, where
    machines that count for nothing here made some of the history, where a run waits for an answer, and inside a job.
    """
    refuse_in_job()
    old = read_identity(host)
    if old.problem is not None and not old.used_elsewhere:
        raise old.problem
    if not old.id:
        raise UsageError("these books have no id yet: nothing was approved in them", remedy="Go on without one.")
    made: list[Signer] = []
    unpin = remember_pin(host.root)

    def stage_new_id(decision_context: DecisionContext) -> Decision:
        new_id = new_workspace_id()
        pin_clone(host.root, old.id, next_workspace=new_id)  # until the commit is made they are the old ones
        approvals = Scripts(host, decision_context.snapshot).approvals
        _refuse_what_would_be_lost(host, decision_context)
        signer = Signer(host, approvals, decision_context, new_id)
        made.append(signer)
        for record in _live_approvals(decision_context, approvals):
            signer.sign(**{name: getattr(record, name) for name in _COPIED})
        trust = trust_store.load_trust(old.id)
        trust_store.Trust(signer.workspace, trust.keys, trust.withdrawn, trust.barred, runs=trust.runs).save()
        return Decision(commit_messages.new_workspace_id_given(), signer.files)

    with undo_unless_decided(unpin):
        commit = require_commit(commit_decision(host, "trust --new-books", stage_new_id))
    signer = made[-1]
    with host.open_for_reading() as repo:
        pin_clone(host.root, signer.workspace, identifying_commits(repo))
    signer.update_trust()
    return NewBooks(signer.workspace, commit, sorted({p for p in signer.files if p != WORKSPACE}))


def _refuse_what_would_be_lost(host: Host, decision_context: DecisionContext) -> None:
    """Raises ``PolicyError`` where something counts in the old books, or might, that cannot count in the new ones."""
    snapshot = decision_context.snapshot
    counting = attestation.find_counting(host, snapshot).keys
    for key, signed in attestation.list_signed(host, snapshot).items():
        if key not in counting:
            whose = signed[0].statement.get("user")
            raise PolicyError(
                f"some of the history was made by a machine of {whose}, which is not trusted here "
                f"({key.removeprefix('ed25519:')[:16]}): in new books it would count for nothing",
                remedy="Look at whose it is, and say whether it counts: cleared trust. Then cleared trust --new-books.",
            )
    waiting = [c.id for c in decision_context.context.cards.open_cards(QUESTION.name)]
    if waiting:
        raise PolicyError(
            f"a run waits for an answer ({waiting[0]}), which would not count in new books",
            remedy=f"Answer it first: cleared queue show {waiting[0]} tells with what.",
        )


def _live_approvals(decision_context: DecisionContext, approvals: Approvals) -> Iterator[ApprovalRecord]:
    """The approvals that count now: of the scripts as they are, of the settings, of the tests."""
    for folder in ("agents", "scripts"):
        for path in sorted(decision_context.snapshot.list_entries(folder)):
            data = decision_context.snapshot.read_file(path) if path.endswith(".py") else None
            standing = approvals.verify_version(path, data) if data is not None else None
            if standing is not None and standing.state == "approved" and standing.record is not None:
                yield standing.record
    for path in (CONFIG, *decision_context.snapshot.list_entries(CASES)):
        record = approvals.read_record(path)
        if record is not None:
            yield record
