"""An id of their own for books that were made from others: from a template, or from another client's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

from cleared.base.errors import UsageError
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.gate.proposals.approval import Signer
from cleared.gate.proposals.clone_trust import read_identity
from cleared.git.shared_history import identifying_commits
from cleared.runs.approved_scripts import Scripts
from cleared.trust import trust_store
from cleared.trust.approval_record import CASES, CONFIG, WORKSPACE, ApprovalRecord
from cleared.trust.person_only import refuse_in_job
from cleared.trust.verification import Approvals
from cleared.trust.workspace_pin import new_workspace_id, pin_clone

_NOT_COPIED: Final = {"by", "at", "workspace", "id", "key", "signature"}
_COPIED: Final = tuple(f.name for f in fields(ApprovalRecord) if f.name not in _NOT_COPIED)
"""What a record says again when it is signed for other books."""


@dataclass(frozen=True, slots=True)
class NewBooks:
    """``kept``: what is live and counted in the old ones; it is signed anew for these."""

    id: str
    commit: str
    signed_again: list[str]


def make_new_books(host: Host) -> NewBooks:
    """Give these books another id, in one commit, and take over what is live in them and counts on this machine.

    Raises ``UsageError`` where they have no id yet, ``PolicyError`` where the file was changed beneath the pin, and
    inside a job.
    """
    refuse_in_job()
    old = read_identity(host)
    if old.problem is not None and not old.used_elsewhere:
        raise old.problem
    if not old.id:
        raise UsageError("these books have no id yet: nothing was approved in them", remedy="Go on without one.")
    made: list[Signer] = []

    def stage_new_id(decision_context: DecisionContext) -> Decision:
        new_id = new_workspace_id()
        pin_clone(host.root, old.id, next_workspace=new_id)  # until the commit is made they are the old ones
        approvals = Scripts(host, decision_context.snapshot).approvals
        signer = Signer(host, approvals, decision_context, new_id)
        made.append(signer)
        for record in _live_approvals(decision_context, approvals):
            signer.sign(**{name: getattr(record, name) for name in _COPIED})
        trust = trust_store.load_trust(old.id)
        trust_store.Trust(signer.workspace, trust.keys, trust.withdrawn, trust.barred, runs=trust.runs).save()
        return Decision(commit_messages.new_workspace_id_given(), signer.files)

    commit = commit_decision(host, "trust --new-books", stage_new_id)
    assert commit is not None
    signer = made[-1]
    with host.open_for_reading() as repo:
        pin_clone(host.root, signer.workspace, identifying_commits(repo))
    signer.update_trust()
    return NewBooks(signer.workspace, commit, sorted({p for p in signer.files if p != WORKSPACE}))


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
