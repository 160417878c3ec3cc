"""What the history says was withdrawn: an agent was disabled, a passkey removed.

Whoever can push can bring the records back as they were, and a clone may get both commits at once. So each commit since
the last look counts, and what was withdrawn is kept outside of the repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cleared.approvals import trust_store
from cleared.approvals.approval_record import FOLDER, switch_path, try_parse_record
from cleared.approvals.passkey_records import FOLDER as PASSKEYS
from cleared.approvals.passkey_records import read_passkey
from cleared.approvals.verification import Approvals
from cleared.books_index.sealed_files import SealedFiles
from cleared.changes.book_sources import CommittedSource
from cleared.changes.host import Host
from cleared.clock import format_iso
from cleared.errors import WorkspaceError
from cleared.vcs import Repository, Snapshot
from cleared.vcs.recent_commits import read_recent_commits

if TYPE_CHECKING:
    from cleared.vcs.history import CommitInfo

_NAME: Final = "noticed"
_VERSION: Final = b"1"
RecordChange = tuple[str, bytes | None, bytes | None]
"""Path of a record, and its content before and after."""


def notice_withdrawals(host: Host, repo: Repository, snapshot: Snapshot) -> None:
    """Note on this machine what the commits up to this one have withdrawn, as far as they were not looked at before.

    Raises ``WorkspaceError`` where git cannot read them, or the note cannot be kept.
    """
    files = SealedFiles(host.layout.state_dir, _VERSION)
    seen, head = (files.read(_NAME) or b"").decode("ascii"), snapshot.commit
    approvals = Approvals(CommittedSource(snapshot), host.root, {})
    if head is None or head == seen or not approvals.workspace:
        return
    trust, now = trust_store.load_trust(approvals.workspace), format_iso(host.clock.now())
    withdrawn, barred = set(trust.withdrawn), dict(trust.barred)
    for path, before, after in _iter_record_changes(host, repo, head, seen):
        if path.startswith(f"{PASSKEYS}/"):
            old, new = try_parse_record(before), try_parse_record(after)
            if old is not None and read_passkey(old) is not None and (new is None or new.id != old.id):
                withdrawn.add(old.id)
            continue
        for record in map(try_parse_record, (before, after)):
            if record is None or path != switch_path(record.path):
                continue
            key = trust_store.disabled_key(record.path)
            if record.kind == "disabled":
                barred[key] = max(barred.get(key, ""), min(record.at, now))
            elif record.kind == "enabled" and not approvals.find_doubt(record) and record.at >= barred.get(key, ""):
                barred.pop(key, None)
    if (withdrawn, barred) != (trust.withdrawn, trust.barred):
        trust.withdrawn, trust.barred = withdrawn, barred
        trust.save()
    files.write(_NAME, head.encode("ascii"))


def _iter_record_changes(host: Host, repo: Repository, head: str, seen: str) -> Iterator[RecordChange]:
    """The records of approval that each commit after ``seen`` (empty: each at all) changes, oldest first."""
    recent = read_recent_commits(repo, head, seen or None)
    if recent is None:
        for commit in reversed(_read_older(host, seen)):
            for path, blobs in (commit.changes or {}).items():
                if path.startswith(f"{FOLDER}/"):
                    before, after = (repo.objects.read_object(blob)[1] if blob else None for blob in blobs)
                    yield path, before, after
        return
    older = Snapshot(repo, seen or None)
    for commit_id in [each.id for each in reversed(recent)]:
        newer = Snapshot(repo, commit_id)
        if older.find_entry(FOLDER) != newer.find_entry(FOLDER):
            old, new = older.list_entries(FOLDER), newer.list_entries(FOLDER)
            for path in sorted(old.keys() | new.keys()):
                if old.get(path) != new.get(path):
                    yield path, older.read_file(path), newer.read_file(path)
        older = newer


def _read_older(host: Host, seen: str) -> list[CommitInfo]:
    from cleared.vcs import history  # on demand: importing GitPython takes longer than a whole run

    if seen:
        try:
            return history.commits_touching(host.root, [FOLDER], since=seen)
        except WorkspaceError:  # that commit is gone: the history was rewritten
            pass
    return history.commits_touching(host.root, [FOLDER])
