"""What the history says was withdrawn: an agent was disabled, a passkey removed, a starter replaced or removed, older
settings replaced.

Whoever can push can bring the records back as they were, and a clone may get both commits at once. So each commit since
the last look counts, and what was withdrawn is kept outside of the repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cleared.base.clock import format_iso
from cleared.base.errors import WorkspaceError
from cleared.changes.attestation import load_approvals
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot, history
from cleared.git.history import CommitInfo, read_recent_commits
from cleared.git.object_reader import is_oid
from cleared.trust import trust_store
from cleared.trust.approval_record import FOLDER, digest_of, try_parse_record
from cleared.trust.passkey_records import FOLDER as PASSKEYS
from cleared.trust.passkey_records import read_passkey
from cleared.trust.trust_store import Trust
from cleared.trust.verification import Approvals
from cleared.workspace.sealed_files import SealedFiles
from cleared.workspace.template import was_path_shipped

_NAME: Final = "noticed"
_VERSION: Final = b"2"
_FOLDERS: Final = ("agents", "scripts")
"""Where scripts lie, and below the first of them the records."""
RecordChange = tuple[str, bytes | None, bytes | None]
"""Path of a record or of a script, and its content before and after."""


def notice_withdrawals(host: Host, snapshot: Snapshot) -> None:
    """Note on this machine what the commits up to this one have withdrawn, as far as they were not looked at before.

    Raises ``WorkspaceError`` where git cannot read them, or the note cannot be kept.
    """
    approvals = load_approvals(host, snapshot)
    seen = read_noticed_commit(host)
    if snapshot.commit is None or snapshot.commit == seen or not approvals.workspace:
        return
    trust = approvals.trust
    if _add_withdrawals(trust, host, approvals, snapshot, seen):
        trust.save()
    _open_note(host).write(_NAME, snapshot.commit.encode("ascii"))


def read_noticed_trust(host: Host, repo: Repository, workspace: str) -> Trust:
    """What this user trusts of these books, without what the commits up to the last one have withdrawn: as a run would
    find it. Nothing is noted, so it may be asked without the writer lock. Raises ``WorkspaceError`` where git cannot
    read the commits."""
    snapshot, seen = Snapshot(repo, repo.find_head()), read_noticed_commit(host)
    if snapshot.commit is not None and snapshot.commit != seen:
        approvals = load_approvals(host, snapshot)
        if workspace and approvals.workspace == workspace:
            _add_withdrawals(approvals.trust, host, approvals, snapshot, seen)
            return approvals.trust
    return trust_store.load_trust(workspace)


def _open_note(host: Host) -> SealedFiles:
    return SealedFiles(host.layout.state_dir, _VERSION)


def read_noticed_commit(host: Host) -> str:
    """The commit up to which this machine looked for what is withdrawn; empty where none was."""
    return (_open_note(host).read(_NAME) or b"").decode("ascii")


def _add_withdrawals(trust: Trust, host: Host, approvals: Approvals, snapshot: Snapshot, seen: str) -> bool:
    """Take out of ``trust``, by which ``approvals`` judges, what the commits from ``seen`` to this one have withdrawn;
    whether there was anything."""
    now, head = format_iso(host.clock.now()), snapshot.commit
    withdrawn, barred = trust.withdrawn, trust.barred
    before_it = (set(withdrawn), dict(barred), dict(trust.newest))
    walked: set[str] = set()
    assert head is not None
    for path, before, after in _iter_changes(host, snapshot.repo, head, seen):
        if not path.startswith(f"{FOLDER}/"):
            if after is None and was_path_shipped(path):
                barred.setdefault(trust_store.starter_key(path), now)
            continue
        if path.startswith(f"{PASSKEYS}/"):
            old, new = try_parse_record(before), try_parse_record(after)
            if old is not None and read_passkey(old) is not None and (new is None or new.id != old.id):
                withdrawn.add(old.id)
            continue
        for data in (before, after):
            record = try_parse_record(data)
            if data is None or record is None or path != record.file:
                continue
            if record.kind in ("script", "quarantine") and was_path_shipped(record.path):
                barred.setdefault(trust_store.starter_key(record.path), now)
            is_known = record.kind != "config" or trust.settings.get("record") == digest_of(data)
            if not is_known and not approvals.find_doubt(record):
                last = trust.newest.get(path, "").partition(" ")[2]
                trust_store.note_newest(trust, record)
                if last not in walked:  # of the same second: this comes to it, if it is the later
                    withdrawn.discard(last)
            walked.add(record.id)
            key = trust_store.disabled_key(record.path)
            if record.kind == "disabled":
                barred[key] = max(barred.get(key, ""), min(record.at, now))
            elif record.kind == "enabled" and not approvals.find_doubt(record) and record.at >= barred.get(key, ""):
                barred.pop(key, None)
    return before_it != (withdrawn, barred, trust.newest)


def _iter_changes(host: Host, repo: Repository, head: str, seen: str) -> Iterator[RecordChange]:
    """The records of approval that each commit after ``seen`` (empty: each at all) changes, and the scripts that it
    removes, oldest first."""
    recent = read_recent_commits(repo, head, seen or None)
    if recent is None:
        for commit in reversed(_read_older(host, seen)):
            for path, (old, new) in (commit.changes or {}).items():
                if _is_looked_at(path, is_gone=not new):
                    before, after = (repo.objects.read_object(blob)[1] if is_oid(blob) else None for blob in (old, new))
                    yield path, before, after
        return
    older = Snapshot(repo, seen or None)
    for commit_id in [each.id for each in reversed(recent)]:
        newer = Snapshot(repo, commit_id)
        for folder in _FOLDERS:
            for path, (_, now) in sorted(newer.list_changes(older, folder).items()):
                if _is_looked_at(path, is_gone=not now):
                    yield path, older.read_file(path), newer.read_file(path)
        older = newer


def _is_looked_at(path: str, *, is_gone: bool) -> bool:
    return path.startswith(f"{FOLDER}/") or (is_gone and path.startswith(_FOLDERS))


def _read_older(host: Host, seen: str) -> list[CommitInfo]:
    if seen:
        try:
            return history.commits_touching(host.root, _FOLDERS, since=seen)
        except WorkspaceError:  # that commit is gone: the history was rewritten
            pass
    return history.commits_touching(host.root, _FOLDERS)
