"""Rolling back: the version before comes back, the live one is quarantined. Its entries stay, and are listed."""

from __future__ import annotations

import contextlib
from typing import Any

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import UsageError
from cleared.changes import commit_messages
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.audit.git_reverts import find_git_revert
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, undo_unless_decided
from cleared.changes.decisions.shown_cards import refuse_changed, refuse_changed_record
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_comparisons
from cleared.gate.past_runs import parent_commit
from cleared.gate.proposals.approval import is_edited
from cleared.gate.proposals.proposal_history import script_path
from cleared.gate.proposals.record_signing import Signer, sign_script
from cleared.gate.proposals.shown_proposal import diff_texts
from cleared.git import Repository, Snapshot, blob_id, history
from cleared.runs.approved_scripts import Scripts
from cleared.trust import trust_store
from cleared.trust.approval_record import digest_of, parse_record, record_path, short_digest, text_path
from cleared.trust.person_only import refuse_in_job
from cleared.workspace.template import was_shipped


class RolledBack(Struct, frozen=True):
    """``to`` is empty where there was no version before: the file is gone then, its text kept among the records.
    ``edited``: the working copy is somebody's edit, and stays."""

    path: str
    quarantined: str
    restored: str
    commit: str
    kept_text: str
    entries: list[dict[str, Any]]
    edited: bool


class ShownRollback(Struct, frozen=True):
    """What rolling back would change, as a unified diff. ``before``: the digest of what would be live, which
    ``expecting`` it gives for ``name_before`` the path."""

    code: str
    before: str


def show_rollback(host: Host, name: str) -> ShownRollback | None:
    """What ``roll_back_script`` would do now; None where there is nothing to roll back."""
    path = script_path(host, name)
    with host.open_last_commit() as snapshot:
        live = snapshot.read_file(path)
        target = _version_before(Scripts(host, snapshot), path, live) if live is not None else None
    if live is None:
        return None
    return ShownRollback(diff_texts(live, target, f"live/{path}", f"before/{path}"), _digest_before(target))


def name_before(path: str) -> str:
    """What ``expecting`` calls the version that comes back."""
    return f"before {path}"


def _digest_before(target: bytes | None) -> str:
    return digest_of(target) if target is not None else "none"


def roll_back_script(host: Host, name: str, reason: str = "") -> RolledBack:
    """Bring back the approved version before the committed one, which may not run until it is approved again.

    ``name``: an agent's, or ``scripts/NAME.py`` (whose entries are not told: runs keep the agent's version only).
    A working copy that somebody edits stays as it is. Raises ``UsageError`` where there is no such agent,
    ``PolicyError`` inside a job.
    """
    refuse_in_job()
    path, reason = script_path(host, name), host.redactor.redact_text(reason)
    done: list[tuple[str, bytes | None, bytes]] = []
    before: list[trust_store.Trust] = []

    def stage_rollback(decision_context: DecisionContext) -> Decision:
        scripts = Scripts(host, decision_context.snapshot)
        approvals = scripts.approvals
        live = decision_context.snapshot.read_file(path)
        if live is None:
            raise UsageError(f"there is no agent {name!r} to roll back", remedy="cleared agent list shows them.")
        digest = digest_of(live)
        target = _version_before(scripts, path, live)
        refuse_changed(path, name, lambda: digest)
        refuse_changed_record(name_before(path), name, lambda: _digest_before(target))
        signer = Signer(host, approvals, decision_context)
        reason_line = " ".join(reason.split()) or "rolled back"
        signer.sign(
            kind="quarantine",
            path=path,
            digest=digest,
            reason=reason_line[:2_000],
            previous=digest_of(target) if target is not None else "",
        )
        if target is not None and approvals.source.read(record_path(path, digest_of(target))) is None:
            grants = sorted(scripts.find_script_grants(target.decode("utf-8", "replace"), path))
            sign_script(signer, approvals, path, target, grants)  # a starter, which counts no more by itself
        withdrawn: list[str] = []
        record = decision_context.snapshot.read_file(record_path(path, digest))
        if record is not None:
            signer.files[record_path(path, digest)] = None
            with contextlib.suppress(ValueError):
                theirs = parse_record(record)
                # Whoever signed it: trusting them later must not bring it back. But a forged one names any other.
                if (theirs.path, theirs.digest) == (path, digest) and theirs.is_genuine:
                    withdrawn.append(theirs.id)
        signer.files[text_path(path, digest)] = live
        signer.files[path] = target
        done.append((digest, target, live))
        version = short_digest(digest_of(target)) if target is not None else None
        marks = (("Quarantined", digest), ("Approved-by", decision_context.by))
        # Bringing the old commit back with plain git must not bring its approval back on this machine. Said before
        # the commit: killed in between, the version is refused, and not forgotten.
        barred = trust_store.version_key(path, digest)
        before.append(
            trust_store.withdraw_approvals(
                signer.workspace, withdrawn, barred, format_iso(decision_context.context.now)
            )
        )
        return Decision(commit_messages.agent_rolled_back(name, version), signer.files, marks, edited_files=(path,))

    with undo_unless_decided(lambda: trust_store.restore_trust(before)):
        commit = commit_decision(host, f"agent rollback {name}", stage_rollback)
    assert commit is not None
    digest, target, live = done[0]
    return RolledBack(
        path,
        digest,
        digest_of(target) if target is not None else "",
        commit,
        text_path(path, digest),
        entries_posted_by(host, path, live),
        is_edited(host, path, target),
    )


def _version_before(scripts: Scripts, path: str, live: bytes) -> bytes | None:
    """The approved version before this one; the last that was, where this one never was."""
    approvals, digest = scripts.approvals, digest_of(live)
    versions = approvals.list_versions(path)
    own = next((r for r in reversed(versions) if r.digest == digest), None)
    for record in reversed(versions):
        if record.digest != digest and (own is None or record.serial < own.serial):
            text = approvals.version_text(record)
            if text is not None:
                return text
    starter = scripts.find_earlier_starter(path, but=live, digest=own.previous if own is not None else "")
    if starter is None and not was_shipped(path, live):  # a clone without its history
        starter = approvals.starters.get(path)
    return starter if starter is not None and not approvals.is_taken_back(path, digest_of(starter)) else None


def entries_posted_by(host: Host, path: str, data: bytes) -> list[dict[str, Any]]:
    """The records that runs of this version made and that still stand, oldest first."""
    with host.open_for_reading() as repo:
        records = list_standing_records(host, repo, Snapshot(repo, repo.read_head()), path, data)
        return [{name: value for name, value in record.items() if name != "at"} for record in records]


def list_standing_records(
    host: Host, repo: Repository, snapshot: Snapshot, path: str, data: bytes
) -> list[dict[str, Any]]:
    """The same, with the time of the run ``at`` which it was made."""
    now, origins = CommittedSource(snapshot), CommitOrigins(host, repo, snapshot)
    made: dict[str, dict[str, str]] = {name: {} for name in load_comparisons()}
    for found in history.find_by_trailer(host.root, "Script", f"{path}@{blob_id(data, 'sha1')}"):
        commit, parent = history.read_commit(host.root, found.id), parent_commit(repo, found.id)
        if "Event" not in commit.trailers or parent is None or not origins.is_ours(commit):
            continue  # whoever can push claims to be a run
        reverted = find_git_revert(host, repo, snapshot, commit)
        if reverted is not None and reverted.is_whole:
            continue  # what has the ids of its records now is something else
        before, after = CommittedSource(Snapshot(repo, parent)), CommittedSource(Snapshot(repo, commit.id))
        files = commit.files or ()
        for name, comparison in load_comparisons().items():
            added = comparison.read_added(host.layout, before, after, files)
            made[name] |= dict.fromkeys(added, commit.trailers.get("Clock", ""))
    records = []
    for name, comparison in load_comparisons().items():
        for record_id, record in comparison.read_standing(host.layout, now, sorted(made[name])).items():
            summary = comparison.summarise(record)
            records.append(
                {"entry_id": record_id, **summary.heading, "status": summary.status, "at": made[name][record_id]}
            )
    return records
