"""After cloning: which books these are, and whose approvals count on this machine. A human looks, and says yes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import PolicyError, UsageError, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.base.short_text import shorten_line
from cleared.cards.card import Card
from cleared.cards.kinds import QUESTION
from cleared.cards.queue_files import load_cards
from cleared.changes.attestation import load_approvals, summarize_signed
from cleared.changes.committed_cards import read_cards
from cleared.changes.decisions.shown_cards import digest_shown, require_shown
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot
from cleared.git.shared_history import has_commit_of, identifying_commits
from cleared.runs.question_tickets import Questions
from cleared.trust import trust_store
from cleared.trust.approval_record import FOLDER, QUARANTINED, ApprovalRecord, try_parse_record
from cleared.trust.checkpoint import begin_checkpoint
from cleared.trust.keys import unlock_own_key
from cleared.trust.person_only import refuse_in_job
from cleared.trust.verification import BY_BOOKKEEPER
from cleared.trust.workspace_pin import WorkspaceIdentity, pin_clone, pins_of_workspace

_MAX_SUBJECT: Final = 60
SHOWN: Final = "trust"
"""As ``changes.decisions.shown_cards`` names who signed."""


class Signatory(Struct):
    """One key, and what was approved with it. ``names``: what its records say of who that is. ``runs``: it is that of a
    machine's runs, which attests what they did, asks and answers, and approves nothing."""

    key: str
    trusted: bool
    is_run_key: bool = False
    is_bookkeeper: bool = False
    """What it approved counts nowhere, and so it waits for nobody's trust."""
    names: list[str] = []
    paths: list[str] = []
    first: str = ""
    last: str = ""

    @property
    def awaits_trust(self) -> bool:
        return not self.trusted and not self.is_bookkeeper

    def add_signature(self, by: str, path: str, at: str) -> None:
        """Something else that was signed with it."""
        self.names = sorted({*self.names, by})
        self.paths = sorted({*self.paths, path})
        self.first, self.last = min(self.first or at, at), max(self.last, at)


def read_identity(host: Host) -> WorkspaceIdentity:
    """Which books this clone holds, or says that it holds."""
    with host.open_last_commit() as snapshot:
        return load_approvals(host, snapshot).identity


def list_signatories(host: Host) -> list[Signatory]:
    """Everyone who approved something in this workspace, and the machines that ran agents and decided in it, with
    genuine signatures; people before machines, oldest first."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        approvals = load_approvals(host, snapshot)
        workspace, pinned = approvals.workspace, approvals.identity.pinned
        signatories: dict[str, Signatory] = {}
        for record in _approval_records(approvals.source):
            if record.workspace != workspace or not record.is_genuine:
                continue
            doubt = approvals.find_approver_doubt(record.key)
            who = signatories.setdefault(
                record.key, Signatory(record.key, pinned and not doubt, is_bookkeeper=doubt == BY_BOOKKEEPER)
            )
            who.add_signature(record.by, record.path, record.at)
        try:
            asked: Iterable[Card] = read_cards(host, snapshot).list_kind(QUESTION.name)
        except WorkspaceError:  # others say what is damaged
            asked = load_cards(approvals.source, host.layout.queue_dir, readable_only=True).values()
        questions = Questions(host, repo, snapshot, {card.id: card for card in asked})
        machines: dict[str, Signatory] = {}
        for key, by, at in questions.list_signers():
            trusted = questions.approvals.trusts_run(key)
            machines.setdefault(key, Signatory(key, trusted, is_run_key=True)).add_signature(
                by, "questions of runs", at
            )
        for key, signed in summarize_signed(host, snapshot).items():
            machine = machines.setdefault(key, Signatory(key, questions.approvals.trusts_run(key), is_run_key=True))
            count = "one run or decision" if signed.count == 1 else f"{signed.count} runs and decisions"
            what = f"{count}, the last: {shorten_line(signed.subject, _MAX_SUBJECT)}"
            machine.add_signature(signed.user, what, signed.first)
            machine.last = max(machine.last, signed.last)
        return sorted([*signatories.values(), *machines.values()], key=lambda s: (s.is_run_key, s.first, s.key))


def select_signatories(signatories: Iterable[Signatory], keys: Sequence[str]) -> list[Signatory]:
    """Those who are not trusted yet, of these keys alone where some are given; each by its beginning.

    Raises ``UsageError`` where a key is nobody's.
    """
    waiting = [s for s in signatories if s.awaits_trust]
    begins = [key.removeprefix("ed25519:") for key in keys]
    for each in begins:
        if not each or not any(s.key.removeprefix("ed25519:").startswith(each) for s in waiting):
            raise UsageError(f"no key that waits for trust begins with {each!r}", remedy="See: cleared trust --list.")
    return [s for s in waiting if not begins or s.key.removeprefix("ed25519:").startswith(tuple(begins))]


def digest_signatories(identity: WorkspaceIdentity, signatories: Iterable[Signatory]) -> str:
    """The digest of what is shown before anybody is trusted: which books these say they are, who signed what."""
    whose = [[s.key, s.names, s.paths, s.first, s.last, s.is_run_key] for s in signatories if not s.trusted]
    doubt = identity.problem.message if identity.problem is not None else ""
    return digest_shown([identity.id, identity.claimed, identity.copy_of, doubt, whose])


def trust_signatories(host: Host, *, same_books: bool = False, keys: Sequence[str] = ()) -> None:
    """Take this clone for the books that it says it holds, and trust everyone who signed something in them, on this
    machine, each for what was signed with it: a machine's key of runs approves nothing.

    ``same_books``: also where that is doubtful. ``keys``: only who has one of these. Raises ``PolicyError`` where it is
    doubtful and nobody said so, where they are not those that a person was shown, or the key's passphrase was not
    typed.
    """
    refuse_in_job()
    signatories = select_signatories(list_signatories(host), keys)
    require_shown(SHOWN, "who signed here", digest_signatories(read_identity(host), signatories), "cleared trust")
    unlock_own_key(host.root)  # whoever trusts a key decides whose approvals count
    with host.open_for_reading() as repo:
        identity = load_approvals(host, Snapshot(repo, repo.read_head())).identity
        doubt = identity.problem if not identity.used_elsewhere else None
        workspace = identity.claimed if doubt is not None and same_books else identity.id
        if doubt is not None and not (same_books and trust_store.is_workspace_id(workspace)):
            raise doubt
        if not identity.pinned and not same_books:
            _refuse_unrelated(repo, workspace)
        if workspace and (not identity.pinned or identity.problem is not None):
            pin_clone(host.root, workspace, identifying_commits(repo))
            begin_checkpoint(host.root)
    shown = {s.key for s in signatories}  # under another id, others signed; whoever did there was not shown yet
    strangers = [s for s in list_signatories(host) if s.key in shown and not s.trusted]
    if strangers:
        mine = trust_store.load_trust(workspace)
        mine.keys |= {s.key: ", ".join(s.names) for s in strangers if not s.is_run_key}
        mine.runs |= {s.key: ", ".join(s.names) for s in strangers if s.is_run_key}
        mine.save()


def forget_key(host: Host, text: str) -> tuple[str, str]:
    """Trust a key no more on this machine; the key, and whose it was said to be. ``text``: how it begins.

    History stays as it was judged; what it approved counts no more. Raises ``UsageError`` where no key, or more than
    one, that is trusted here begins so; ``PolicyError`` inside a job.
    """
    refuse_in_job()
    trust = trust_store.load_trust(read_identity(host).id)
    known = {**trust.keys, **trust.runs}
    found = [key for key in known if text and key.removeprefix("ed25519:").startswith(text.removeprefix("ed25519:"))]
    if len(found) != 1:
        what = "several keys begin" if found else "no key that is trusted here begins"
        raise UsageError(f"{what} with {text!r}", remedy="cleared trust --list shows them.")
    unlock_own_key(host.root)
    trust.keys.pop(found[0], None)
    trust.runs.pop(found[0], None)
    trust.settings = {}  # they may have been approved with it: they are verified again
    trust.save()
    return found[0], known[found[0]]


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


def _approval_records(source: FileSource) -> list[ApprovalRecord]:
    paths = [p for p in source.list_paths(FOLDER) if p.endswith(".json") and not p.endswith(QUARANTINED)]
    return [record for record in (try_parse_record(source.read(path)) for path in paths) if record is not None]
