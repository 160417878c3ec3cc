"""Whether git took back what a commit of ours wrote, as a person's ``git revert`` does: no decision says so.

The numbers of what was taken back so are free again, and another entry gets them. So what the commit wrote is compared
with what stands: an id alone tells nothing.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from cleared.base.csv_text import split_rows
from cleared.changes.attestation_lines import ORIGIN_TRAILERS, list_shards, split_lines
from cleared.changes.decisions.signatures import read_parents
from cleared.changes.host import Host
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import RecordAudit
from cleared.git import Repository, Snapshot, history
from cleared.git.history import CommitInfo, list_cut_commits


class GitRevert(Struct, frozen=True):
    """What became of a commit of ours that git took back."""

    written: CommitInfo
    """That commit."""
    commit: CommitInfo | None
    """The commit that took it back, where it can be told."""
    is_whole: bool
    """Whether nothing of it stands as it was written."""
    is_sure: bool
    """Whether it was taken back; else somebody may have changed by git what it wrote."""

    @property
    def outcome(self) -> str:
        """What became of it; before it goes ``it was``."""
        done = "taken back already" if self.is_sure else "taken back or changed" + (" in part" * (not self.is_whole))
        return f"{done} by git" + (f", in commit {self.commit.short}" if self.commit is not None else "")

    def __str__(self) -> str:
        """What became of it, and what to do."""
        return f"{self.outcome}. {self.remedy}" if self.remedy else self.outcome

    @property
    def remedy(self) -> str:
        """What to do about what may still be there; empty where nothing is."""
        show = f"git show {self.written.short}"
        return (
            "" if self.is_sure else f"Decide anew about what is there of it ({show}), such as by cleared queue correct."
        )


def find_git_revert(host: Host, repo: Repository, snapshot: Snapshot, commit: CommitInfo) -> GitRevert | None:
    """What took back a commit of a run or decision by the time of ``snapshot``; None where it stands, or where what
    changed it since was a run or a decision itself. ``commit``: with its files."""
    parents = read_parents(repo, commit.id)
    if commit.id == snapshot.commit or len(parents) != 1 or commit.id in list_cut_commits(repo):
        return None
    written = _Written(host, commit, Snapshot(repo, parents[0]), snapshot.at_commit(commit.id))
    missing = written.count_missing(snapshot)
    if not missing:
        return None
    # Rows change by later runs and decisions, too; the attestation goes by git alone, and with all that it attests.
    is_gone = written.lacks_attestation(snapshot)
    by = _find_reverting(host, repo, snapshot, commit, written)
    if by is None and not is_gone:
        return None
    is_whole = is_gone or missing >= written.count
    says_so = by is not None and f"This reverts commit {commit.id}" in by.body
    return GitRevert(commit, by, is_whole, is_sure=is_gone or (is_whole and says_so))


def _find_reverting(
    host: Host, repo: Repository, snapshot: Snapshot, commit: CommitInfo, written: _Written
) -> CommitInfo | None:
    """The newest commit that is no run and no decision, and after which more is missing than before; a merge only
    where nothing that it joins is it."""
    rev, paths = snapshot.commit or "HEAD", list(commit.files or ())
    later = history.read_log(host.root, None, paths, since=commit.id, rev=rev, full_history=True)
    found = [(each, read_parents(repo, each.id)) for each in later if not set(ORIGIN_TRAILERS) & set(each.trailers)]
    for each, parents in sorted(found, key=lambda one: len(one[1]) > 1):
        before = written.count_missing(snapshot.at_commit(parents[0])) if parents else 0
        if written.count_missing(snapshot.at_commit(each.id)) > before:
            return each
    return None


class _Written:
    """What a commit wrote that no run and no decision takes away again: its attestation, and rows of records."""

    def __init__(self, host: Host, commit: CommitInfo, before: Snapshot, after: Snapshot) -> None:
        self._blobs = {path: blob for path, (_, blob) in (commit.changes or {}).items()}
        self._attested: dict[str, set[bytes]] = {}
        self._records: list[_WrittenRows] = []
        managed, shards = ManagedFiles(host.layout), list_shards(after)
        for path in self._blobs:
            old, new = before.read_file(path) or b"", after.read_file(path) or b""
            audit = next((each for each in managed.audits if each.is_record_file(path)), None)
            if path in shards:
                self._attested[path] = set(split_lines(new)) - set(split_lines(old))
            elif audit is not None and path not in managed.shared_files and not managed.is_definition(path):
                self._records.append(_WrittenRows(audit, path, old, new))
        self.count = sum(rows.count for rows in self._records) or 1

    def count_missing(self, snapshot: Snapshot) -> int:
        """How much of it is not in a commit."""
        return self.lacks_attestation(snapshot) + sum(
            rows.count_missing(snapshot.read_file(rows.path) or b"")
            for rows in self._records
            if snapshot.find_blob_id(rows.path) != self._blobs[rows.path]
        )

    def lacks_attestation(self, snapshot: Snapshot) -> bool:
        """Whether what attests the commit is not in another one any more."""
        return any(
            not lines.issubset(split_lines(snapshot.read_file(path) or b""))
            for path, lines in self._attested.items()
            if snapshot.find_blob_id(path) != self._blobs[path]
        )


class _WrittenRows:
    """The rows that a commit wrote into one file: new ones, and the new form of those that it changed where they
    stood."""

    def __init__(self, audit: RecordAudit, path: str, old: bytes, new: bytes) -> None:
        self._audit, self.path = audit, path
        self._added = self._count_rows(new) - self._count_rows(old)
        # What was replaced never comes back by a decision, such as an earlier status; but for rows that are free.
        is_fixed = bool(audit.list_fixed_rows(path, new))
        self._replaced = set(split_rows(old)) - set(split_rows(new)) if is_fixed else set[bytes]()
        self.count = self._added.total() + len(self._replaced)

    def count_missing(self, data: bytes) -> int:
        """How many of them are not in what the file says at another commit."""
        returned = self._replaced.intersection(split_rows(data)) if self._replaced else set[bytes]()
        return (self._added - self._count_rows(data)).total() + len(returned)

    def _count_rows(self, data: bytes) -> Counter[bytes]:
        """The rows without what may change in them; whole, where all may. The header is none, for it comes again with
        any other row."""
        return Counter((self._audit.list_fixed_rows(self.path, data) or split_rows(data))[1:])
