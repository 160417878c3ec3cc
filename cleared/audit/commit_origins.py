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
from cleared.changes.change_digests import digest_blobs, digest_rows
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
    attestations: Sequence[tuple[bytes, Attestation, Origin]]
    """The lines that it adds, and that are genuine."""


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
    _commits_of_line: Counter[bytes] = field(default_factory=Counter)
    """How many commits add an attestation: whoever can write to the repository can add it once more."""
    _before_attestations: frozenset[str] | None = frozenset()
    """Commits from before there were attestations; None: all are."""

    def __post_init__(self) -> None:
        books = Approvals(CommittedSource(self.snapshot), self.host.root, {}).identity
        self._trusted_keys = attestation.trusted_signers(self.host, self.snapshot)
        self._workspace_names = attestation.accepted_workspaces(self.host, self.snapshot)
        self._workspace_id, self._pinned = books.id, books.pinned
        begun = [commit.id for commit in self.commits if self._read_attestations(commit).is_first]
        believed = [
            c for c in begun if any(o in ("ours", "genuine") for *_, o in self._attestations[c].attestations)
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
        subjects = {_printable_text(said.subject) for _, said, _ in attestations}
        agreeing = {
            origin for line, said, origin in attestations
            if _matches_commit(said, commit) and self._covers_changes(line, said, commit)
        }  # fmt: skip
        if _printable_text(commit.subject) not in subjects:
            return "none"
        best: Origin = next((origin for origin in _BEST_FIRST if origin in agreeing), "none")
        if best != "untrusted":
            return best
        if KEY in commit.trailers and find_signing_reviewer(self.host, self.repo, commit.id):
            return "genuine"  # a reviewer decided it, on a machine of theirs
        return "untrusted" if self.touches_books(commit) or ACCEPTS_TRAILER in commit.trailers else "genuine"

    def _covers_changes(self, line: bytes, said: Attestation, commit: CommitInfo) -> bool:
        """Whether the commit changes just what it is attested to change: the same files, or after a rebase the same
        lines. Older attestations do not say what that is. Of those that several commits add, only the same files count:
        nobody can tell which commit was meant."""
        digests, is_repeated = said.statement.get("changes"), self._commits_of_line[line] > 1
        if not isinstance(digests, dict):
            return not is_repeated
        changes = [(path, *blobs) for path, blobs in (commit.changes or {}).items()]
        if digests.get("blobs") == digest_blobs(changes):
            return True
        parents = read_parents(self.repo, commit.id)
        if is_repeated or not parents:
            return False
        before, after = Snapshot(self.repo, parents[0]), Snapshot(self.repo, commit.id)
        contents = {path: after.read_file(path) for path, *_ in changes}
        return bool(digests.get("rows") == digest_rows(before, contents, changes))

    def touches_books(self, commit: CommitInfo) -> bool:
        """Whether it changes more than queue and logs, whose contents are judged by themselves."""
        layout = self.host.layout
        return any(
            path == layout.chart or path.startswith(f"{layout.books_dir}/") or layout.journal_month(path) is not None
            for path in commit.files or ()
        )

    def touches_more_than_chart(self, commit: CommitInfo) -> bool:
        """Whether it changes managed files beside the chart of accounts, to which people add accounts by hand."""
        layout = self.host.layout
        paths = [path for path in commit.files or () if layout.is_managed(path)]
        return any(path != layout.chart and not path.startswith(f"{layout.approvals_dir}/") for path in paths)

    def find_altered_rows(self, commit: CommitInfo, parent: str) -> list[tuple[str, list[bytes]]]:
        """Rows that the commit removes, or in which it changes more than an entry's status; by file."""
        if commit.id not in self._attestations:  # a shallow clone ends here
            return []
        before, after, layout = Snapshot(self.repo, parent), Snapshot(self.repo, commit.id), self.host.layout
        altered = []
        for path in commit.files or ():
            old = before.read_file(path)
            if old is None or not layout.is_managed_file(path) or path == layout.chart:
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
        attestations: list[tuple[bytes, Attestation, Origin]] = []
        begins = False
        if touched:
            layout, after = self.host.layout, Snapshot(self.repo, commit.id)
            begins = bool(attestation.list_shards(layout, after)) and not any(
                attestation.list_shards(layout, b) for b in before
            )
            for line in attestation.new_lines(layout, before, after):
                parsed = attestation.parse_attestation(line)
                if parsed is not None:
                    self._commits_of_line[line] += 1
                    attestations.append((line, parsed, self._judge_attestation(parsed)))
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
