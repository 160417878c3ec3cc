"""Whether a commit really comes from a run or a decision: then it adds a signed attestation that says so."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal

from cleared.approvals.reviewers import KEY
from cleared.approvals.verification import Approvals
from cleared.changes import attestation
from cleared.changes.attestation import Attestation
from cleared.changes.book_sources import CommittedSource
from cleared.changes.host import Host
from cleared.decisions.decision_context import ORIGIN_TRAILERS
from cleared.decisions.signatures import ACCEPTS_TRAILER, find_signing_reviewer, read_parents
from cleared.errors import WorkspaceError
from cleared.light_dataclass import dataclass
from cleared.vcs import Repository, Snapshot, history

if TYPE_CHECKING:
    from cleared.vcs.history import CommitInfo

Origin = Literal["ours", "genuine", "untrusted", "none"]
"""Of a commit: a run or decision by a key that counts here (or older than attestations); with a genuine signature that
nothing here speaks against; with one that does not count; neither."""
_BEST_FIRST: Final[tuple[Origin, ...]] = ("ours", "genuine", "untrusted")
_STATUS_COLUMN: Final = 9
"""The column of a journal that may change."""
_CLONE_PREFIX: Final = "clone "


@dataclass(frozen=True, slots=True)
class _CommitAttestations:
    is_first: bool
    """No commit before this one has attestations, and this one has."""
    attestations: Sequence[tuple[Attestation, Origin]]
    """What it adds, and that is genuine."""


@dataclass(slots=True)
class CommitOrigins:
    """Judges the commits of one history; ``commits``: those that touch the books."""

    host: Host
    repo: Repository
    snapshot: Snapshot
    commits: Sequence[CommitInfo]
    _trusted_keys: frozenset[str] = frozenset()
    _workspace_names: frozenset[str] = frozenset()
    _workspace_id: str = ""
    _pinned: bool = False
    _attestations: dict[str, _CommitAttestations] = field(default_factory=dict)
    _before_attestations: frozenset[str] | None = frozenset()
    """Commits from before there were attestations; None: all are."""

    def __post_init__(self) -> None:
        books = Approvals(CommittedSource(self.snapshot), self.host.root, {}).identity
        self._trusted_keys = attestation.trusted_signers(self.host, self.snapshot)
        self._workspace_names = attestation.accepted_workspaces(self.host, self.snapshot)
        self._workspace_id, self._pinned = books.id, books.pinned
        begun = [commit.id for commit in self.commits if self._read_attestations(commit).is_first]
        believed = [
            c for c in begun if any(o in ("ours", "genuine") for _, o in self._attestations[c].attestations)
        ] or begun
        before = {c.id for each in believed for c in history.read_log(self.host.root, None, rev=each)} - set(begun)
        self._before_attestations = frozenset(before) if begun else None

    def find_origin(self, commit: CommitInfo) -> Origin:
        """What a commit is that calls itself a run or a decision; ``none`` for all others."""
        if not any(mark in commit.trailers for mark in ORIGIN_TRAILERS):
            return "none"
        if (
            self._before_attestations is None
            or commit.id in self._before_attestations
            or commit.id not in self._attestations
        ):
            return "ours"
        attestations = self._attestations[commit.id].attestations
        subjects = {_printable_text(line.subject) for line, _ in attestations}
        agreeing = {origin for line, origin in attestations if _matches_commit(line, commit)}
        if _printable_text(commit.subject) not in subjects:
            return "none"
        best: Origin = next((origin for origin in _BEST_FIRST if origin in agreeing), "none")
        if best != "untrusted":
            return best
        if KEY in commit.trailers and find_signing_reviewer(self.host, self.repo, commit.id):
            return "genuine"  # a reviewer decided it, on a machine of theirs
        return "untrusted" if self.touches_books(commit) or ACCEPTS_TRAILER in commit.trailers else "genuine"

    def touches_books(self, commit: CommitInfo) -> bool:
        """Whether it changes more than queue and logs, whose contents are judged by themselves."""
        layout = self.host.layout
        return any(
            path.startswith(f"{layout.books_dir}/") or layout.journal_month(path) is not None
            for path in commit.files or ()
        )

    def find_altered_rows(self, commit: CommitInfo, parent: str) -> list[tuple[str, list[bytes]]]:
        """Rows that the commit removes, or in which it changes more than an entry's status; by file."""
        if commit.id not in self._attestations:  # a shallow clone ends here
            return []
        before, after, layout = Snapshot(self.repo, parent), Snapshot(self.repo, commit.id), self.host.layout
        altered = []
        for path in commit.files or ():
            old = before.read_file(path)
            if old is None or not layout.is_managed_file(path):
                continue
            new, journal = after.read_file(path) or b"", layout.journal_month(path) is not None
            if new.startswith(old):
                continue
            lost = _count_rows(old, journal) - _count_rows(new, journal)
            if lost:
                altered.append((path, list(lost)))
        return altered

    def _read_attestations(self, commit: CommitInfo) -> _CommitAttestations:
        folder = f"{self.host.layout.logs_dir}/"
        try:
            before = [Snapshot(self.repo, parent) for parent in read_parents(self.repo, commit.id)]
        except WorkspaceError:  # a shallow clone ends here; what was before is not known
            return _CommitAttestations(is_first=False, attestations=())
        touched = len(before) != 1 or any(path.startswith(folder) for path in commit.files or ())
        attestations: list[tuple[Attestation, Origin]] = []
        begins = False
        if touched:
            layout, after = self.host.layout, Snapshot(self.repo, commit.id)
            begins = bool(attestation.list_shards(layout, after)) and not any(
                attestation.list_shards(layout, b) for b in before
            )
            for line in attestation.new_lines(layout, before, after):
                parsed = attestation.parse_attestation(line)
                if parsed is not None:
                    attestations.append((parsed, self._judge_attestation(parsed)))
        self._attestations[commit.id] = made = _CommitAttestations(begins, attestations)
        return made

    def _judge_attestation(self, line: Attestation) -> Origin:
        if line.key in self._trusted_keys and line.workspace in self._workspace_names:
            return "ours"
        if line.workspace != self._workspace_id and not line.workspace.startswith(_CLONE_PREFIX):
            return "none"
        return "genuine" if line.key in self._trusted_keys or not self._pinned else "untrusted"


def _matches_commit(line: Attestation, commit: CommitInfo) -> bool:
    trailers = commit.trailers
    if any(trailers.get(mark) != line.trailers.get(mark) for mark in (*ORIGIN_TRAILERS, ACCEPTS_TRAILER)):
        return False
    if line.made_by not in (trailers.get(mark) for mark in ORIGIN_TRAILERS):
        return False
    return all(
        _printable_text(value) in map(_printable_text, (trailers.get(key, ""), *trailers.get(key, "").split("\n")))
        for key, value in line.trailers.items()
    )


def _printable_text(text: str) -> str:
    """Without what a commit message does not keep as it was: white space, control characters."""
    return "".join(c for c in text if c.isprintable() and not c.isspace())


def _count_rows(data: bytes, journal: bool) -> Counter[bytes]:
    if not journal:
        return Counter(data.splitlines())
    rows: Iterable[list[str]] = csv.reader(io.StringIO(data.decode("utf-8", "surrogateescape"), newline=""))
    try:
        return Counter(
            ",".join(row[:_STATUS_COLUMN] + row[_STATUS_COLUMN + 1 :]).encode("utf-8", "surrogateescape")
            for row in rows
        )
    except csv.Error:
        return Counter(data.splitlines())
