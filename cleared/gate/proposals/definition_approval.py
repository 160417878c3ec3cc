"""Approving a definition: what a table's columns are, or whatever else says what a domain's records are."""

from __future__ import annotations

from msgspec import Struct

from cleared.base.errors import Place, UsageError, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.base.safe_names import resolve_inside
from cleared.changes import commit_messages
from cleared.changes.attestation import load_approvals
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.decisions.shown_cards import require_shown
from cleared.changes.definitions import find_definition_doubt, list_definitions
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import RecordAudit
from cleared.gate.proposals.record_signing import Signer
from cleared.git import Snapshot, history
from cleared.trust import trust_store
from cleared.trust.approval_record import (
    ApprovalRecord,
    canonical_digest,
    definition_record_path,
    digest_of,
    try_parse_record,
)
from cleared.trust.person_only import refuse_in_job

_MAX_BYTES = 1 << 20


class WaitingDefinition(Struct, frozen=True):
    """A definition as it lies in the working tree. ``before``: the text that was approved last."""

    path: str
    before: bytes | None
    after: bytes | None
    lines: tuple[str, ...]
    """What approving it does."""

    @property
    def digest(self) -> str:
        """Of all that a person is shown."""
        texts = [None if text is None else text.decode("utf-8", "replace") for text in (self.before, self.after)]
        return canonical_digest([self.path, *texts, *self.lines]).removeprefix("sha256:")


def list_known_definitions(host: Host) -> list[tuple[str, str]]:
    """The definitions of the last commit, each with why it does not count; empty where it does."""
    with host.open_last_commit() as snapshot:
        source = CommittedSource(snapshot)
        return [(path, find_definition_doubt(host, source, path)) for path in list_definitions(host, source)]


def read_definition(host: Host, path: str) -> WaitingDefinition:
    """What a person is shown before a definition is approved. Raises ``UsageError`` where it is none, or cannot be."""
    with host.open_last_commit() as snapshot:
        return _read_waiting(host, snapshot, path)


def approve_definition(host: Host, path: str) -> str | None:
    """Approve a definition as it lies in the working tree, in one commit with what follows from it; None where it was
    approved before. Raises ``PolicyError`` where it is not what a person was shown, and inside a job."""
    refuse_in_job()
    signed: list[ApprovalRecord] = []

    def stage_approval(decision_context: DecisionContext) -> Decision | None:
        approvals = load_approvals(host, decision_context.snapshot)
        source = approvals.source
        waiting = _read_waiting(host, decision_context.snapshot, path)
        committed = source.read(path)
        if waiting.after == committed and not find_definition_doubt(host, source, path):
            record = approvals.read_record(definition_record_path(path))
            if record is not None:  # a command that was killed after its commit may not have come to this
                signed.append(record)
            return None
        require_shown(path, path, waiting.digest, f"cleared definition approve {path}")
        signer = Signer(host, approvals, decision_context)
        earlier = try_parse_record(source.read(definition_record_path(path)))
        signed.append(
            signer.sign(
                kind="definition",
                path=path,
                digest=digest_of(waiting.after) if waiting.after is not None else "",
                previous=earlier.digest if earlier is not None else "",
                serial=earlier.serial + 1 if earlier is not None else 1,
            )
        )
        change = _audit_of(host, path).describe_definition(path, waiting.before, waiting.after, source)
        files = {**signer.files, **change.files}
        if waiting.after != committed:
            files[path] = waiting.after
        return Decision(commit_messages.definition_approved(path), files, subject=("definition", path, waiting.digest))

    commit = commit_decision(host, f"definition approve {path}", stage_approval, collects=[signed])
    for record in signed:
        trust_store.remember_newest(record)
    return commit


def _audit_of(host: Host, path: str) -> RecordAudit:
    for audit in ManagedFiles(host.layout).audits:
        if audit.is_definition(path):
            return audit
    raise UsageError(f"{path[:200]!r} says nothing about records", remedy="cleared definition list shows what does.")


def _read_waiting(host: Host, snapshot: Snapshot, path: str) -> WaitingDefinition:
    audit = _audit_of(host, path)
    full, source = host.root / path, CommittedSource(snapshot)
    after: bytes | None = None
    if full.is_symlink() or full.exists():
        resolve_inside(host.root, path)
        after = read_stable(full, _MAX_BYTES, shown=path)[0]
    before = _find_approved_text(host, snapshot, path)
    if after is None and before is None:
        raise UsageError(f"there is no file {path}", place=Place(path), remedy="Write it, then approve it.")
    change = audit.describe_definition(path, before, after, source)
    return WaitingDefinition(path, before, after, tuple(change.lines))


def _find_approved_text(host: Host, snapshot: Snapshot, path: str) -> bytes | None:
    """The text that counts: of the last commit, else the one before that the record names, from history."""
    approvals = load_approvals(host, snapshot)
    record = approvals.read_record(definition_record_path(path))
    if record is None or record.kind != "definition" or record.path != path or not record.digest:
        return None
    data = approvals.source.read(path)
    if data is not None and digest_of(data) == record.digest:
        return data
    for commit in history.commits_touching(host.root, [path]):
        data = snapshot.at_commit(commit.id).read_file(path)
        if data is not None and digest_of(data) == record.digest:
            return data
    raise WorkspaceError(
        f"the text of {path} that {record.by} approved is not in this clone",
        place=Place(path),
        remedy="Fetch the rest of the history: git fetch --unshallow.",
    )
