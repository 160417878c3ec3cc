"""After cloning: which books these are, and whose approvals count on this machine. A human looks, and says yes."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from cleared.approvals import trust_store
from cleared.approvals.approval_record import FOLDER, QUARANTINED, ApprovalRecord, try_parse_record
from cleared.approvals.keys import own_key, unlock_own_key
from cleared.approvals.person_only import refuse_in_job
from cleared.approvals.verification import Approvals
from cleared.approvals.workspace_pin import WorkspaceIdentity, pin_clone, pins_of_workspace
from cleared.changes.attestation import list_signing_keys
from cleared.changes.book_sources import CommittedSource
from cleared.changes.host import Host
from cleared.errors import PolicyError, UsageError
from cleared.ledger.source import Source
from cleared.light_dataclass import dataclass
from cleared.runs.question_tickets import Questions
from cleared.vcs import Repository, Snapshot
from cleared.vcs.shared_history import has_commit_of, identifying_commits


@dataclass(slots=True)
class Signatory:
    """One key, and what was approved with it. ``names``: what its records say of who that is. ``runs``: it is that of a
    machine's runs, which attests what they did, asks and answers, and approves nothing."""

    key: str
    trusted: bool
    is_run_key: bool = False
    names: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    first: str = ""
    last: str = ""

    def add_signature(self, by: str, path: str, at: str) -> None:
        """Something else that was signed with it."""
        self.names = sorted({*self.names, by})
        self.paths = sorted({*self.paths, path})
        self.first, self.last = min(self.first or at, at), max(self.last, at)


def read_identity(host: Host) -> WorkspaceIdentity:
    """Which books this clone holds, or says that it holds."""
    with host.open_for_reading() as repo:
        return Approvals(CommittedSource(Snapshot(repo, repo.read_head())), host.root, {}).identity


def list_signatories(host: Host) -> list[Signatory]:
    """Everyone who approved something in this workspace, and the machines that ran agents and decided in it, with
    genuine signatures; people before machines, oldest first."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        approvals = Approvals(CommittedSource(snapshot), host.root, {})
        workspace, pinned = approvals.workspace, approvals.identity.pinned
        trusted_keys = trust_store.load_trust(workspace).keys
        own = own_key(host.root)
        signatories: dict[str, Signatory] = {}
        for record in _approval_records(approvals.source):
            if record.workspace != workspace or not record.is_genuine:
                continue
            mine = own is not None and record.key == own.public
            who = signatories.setdefault(
                record.key, Signatory(record.key, pinned and (mine or record.key in trusted_keys))
            )
            who.add_signature(record.by, record.path, record.at)
        questions = Questions(host, repo, snapshot)
        machines: dict[str, Signatory] = {}
        for key, by, at in questions.list_signers():
            trusted = questions.approvals.trusts_run(key)
            machines.setdefault(key, Signatory(key, trusted, is_run_key=True)).add_signature(
                by, "questions of runs", at
            )
        for key, by, at in list_signing_keys(host, snapshot):
            trusted = questions.approvals.trusts_run(key)
            machines.setdefault(key, Signatory(key, trusted, is_run_key=True)).add_signature(
                by, "runs and decisions", at
            )
        return sorted([*signatories.values(), *machines.values()], key=lambda s: (s.is_run_key, s.first, s.key))


def trust_keys(host: Host, keys: list[str], *, same_books: bool = False) -> None:
    """Take this clone for the books that it says it holds, and trust these keys in them, on this machine, each for what
    was signed with it: a machine's key of runs approves nothing.

    ``same_books``: also where that is doubtful. Raises ``PolicyError`` where it is and nobody said so, or the key's
    passphrase was not typed, ``UsageError``
    for a key that signed nothing here.
    """
    refuse_in_job()
    unlock_own_key(host.root)  # whoever trusts a key decides whose approvals count
    with host.open_for_reading() as repo:
        identity = Approvals(CommittedSource(Snapshot(repo, repo.read_head())), host.root, {}).identity
        workspace = identity.claimed if identity.problem is not None and same_books else identity.id
        if identity.problem is not None and (not same_books or not trust_store.is_workspace_id(workspace)):
            raise identity.problem
        if not identity.pinned and not same_books:
            _refuse_unrelated(repo, workspace)
        if workspace and (not identity.pinned or identity.problem is not None):
            pin_clone(host.root, workspace, identifying_commits(repo))
    signatories = [s for s in list_signatories(host) if s.key in keys]
    for key in keys:  # under another id, others signed; whoever did there was not shown yet
        if key not in {s.key for s in signatories} and identity.problem is None:
            raise UsageError(f"{key} signed nothing here", remedy="cleared trust shows who did.")
    strangers = [s for s in signatories if not s.trusted]
    if strangers:
        mine = trust_store.load_trust(workspace)
        mine.keys |= {s.key: ", ".join(s.names) for s in strangers if not s.is_run_key}
        mine.runs |= {s.key: ", ".join(s.names) for s in strangers if s.is_run_key}
        mine.save()


def _refuse_unrelated(repo: Repository, workspace: str) -> None:
    """Raises ``PolicyError`` where this machine knows these books, and they were others."""
    elsewhere = pins_of_workspace(workspace)
    if not elsewhere or any(has_commit_of(repo, Path(each.git_dir), each.commits) for each in elsewhere):
        return
    raise PolicyError(
        f"this machine knows the books {workspace[:12]} as {Path(elsewhere[0].git_dir).parent}, and this clone has no "
        "commit in common with them",
        remedy="If they are the same books (a shallow clone, or a history that was rewritten): cleared trust "
        "--same-books. If they are others that were made from them: cleared trust --new-books. Else somebody put "
        "approvals of other books here.",
    )


def _approval_records(source: Source) -> list[ApprovalRecord]:
    paths = [p for p in source.list_paths(FOLDER) if p.endswith(".json") and not p.endswith(QUARANTINED)]
    return [record for record in (try_parse_record(source.read(path)) for path in paths) if record is not None]
