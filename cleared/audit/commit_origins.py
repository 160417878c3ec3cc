"""Whether a commit that calls itself a run or a decision is one: it adds an attestation that says so."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from cleared.approvals.reviewers import KEY
from cleared.approvals.verification import Approvals
from cleared.changes import attestation
from cleared.changes.attestation import Attestation
from cleared.changes.book_sources import CommittedSource
from cleared.changes.host import Host
from cleared.decisions.decision_context import ORIGINS
from cleared.decisions.signatures import ACCEPTS, parents, signed_by
from cleared.errors import WorkspaceError
from cleared.vcs import Repository, Snapshot, history

if TYPE_CHECKING:
    from cleared.vcs.history import CommitInfo

Origin = Literal["ours", "genuine", "untrusted", "none"]
"""Of a commit: a run or decision by a key that counts here (or older than attestations); with a genuine signature that
nothing here speaks against; with one that does not count; neither."""
_BEST_FIRST: Final[tuple[Origin, ...]] = ("ours", "genuine", "untrusted")
_STATUS: Final = 9
"""The column of a journal that may change."""
_CLONE: Final = "clone "


@dataclass(frozen=True, slots=True)
class _Lines:
    begins: bool
    """No commit before this one has attestations, and this one has."""
    found: Sequence[tuple[Attestation, Origin]]
    """What it adds, and that is genuine."""


@dataclass(slots=True)
class Origins:
    """Judges the commits of one history; ``commits``: those that touch the books."""

    host: Host
    repo: Repository
    snapshot: Snapshot
    commits: Sequence[CommitInfo]
    _keys: frozenset[str] = frozenset()
    _names: frozenset[str] = frozenset()
    _books: str = ""
    _pinned: bool = False
    _lines: dict[str, _Lines] = field(default_factory=dict)
    _old: frozenset[str] | None = frozenset()
    """Commits from before there were attestations; None: all are."""

    def __post_init__(self) -> None:
        books = Approvals(CommittedSource(self.snapshot), self.host.root, {}).identity
        self._keys = attestation.signers(self.host, self.snapshot)
        self._names = attestation.named_here(self.host, self.snapshot)
        self._books, self._pinned = books.id, books.pinned
        begun = [commit.id for commit in self.commits if self._look(commit).begins]
        believed = [c for c in begun if any(o in ("ours", "genuine") for _, o in self._lines[c].found)] or begun
        before = {c.id for each in believed for c in history.log(self.host.root, None, rev=each)} - set(begun)
        self._old = frozenset(before) if begun else None

    def of(self, commit: CommitInfo) -> Origin:
        """What a commit is that calls itself a run or a decision; ``none`` for all others."""
        if not any(mark in commit.trailers for mark in ORIGINS):
            return "none"
        if self._old is None or commit.id in self._old or commit.id not in self._lines:
            return "ours"
        found = self._lines[commit.id].found
        subjects = {_plain(line.subject) for line, _ in found}
        agreeing = {origin for line, origin in found if _agrees(line, commit)}
        if _plain(commit.subject) not in subjects:
            return "none"
        best: Origin = next((origin for origin in _BEST_FIRST if origin in agreeing), "none")
        if best != "untrusted":
            return best
        if KEY in commit.trailers and signed_by(self.host, self.repo, commit.id):
            return "genuine"  # a reviewer decided it, on a machine of theirs
        return "untrusted" if self.touches_books(commit) or ACCEPTS in commit.trailers else "genuine"

    def touches_books(self, commit: CommitInfo) -> bool:
        """Whether it changes more than queue and logs, whose contents are judged by themselves."""
        layout = self.host.layout
        return any(
            path.startswith(f"{layout.books_dir}/") or layout.journal_month(path) is not None
            for path in commit.files or ()
        )

    def altered(self, commit: CommitInfo, parent: str) -> list[tuple[str, list[bytes]]]:
        """Rows that the commit removes, or in which it changes more than an entry's status; by file."""
        if commit.id not in self._lines:  # a shallow clone ends here
            return []
        before, after, layout = Snapshot(self.repo, parent), Snapshot(self.repo, commit.id), self.host.layout
        found = []
        for path in commit.files or ():
            old = before.read(path)
            if old is None or not layout.is_managed_file(path):
                continue
            new, journal = after.read(path) or b"", layout.journal_month(path) is not None
            if new.startswith(old):
                continue
            lost = _rows(old, journal) - _rows(new, journal)
            if lost:
                found.append((path, list(lost)))
        return found

    def _look(self, commit: CommitInfo) -> _Lines:
        folder = f"{self.host.layout.logs_dir}/"
        try:
            before = [Snapshot(self.repo, parent) for parent in parents(self.repo, commit.id)]
        except WorkspaceError:  # a shallow clone ends here; what was before is not known
            return _Lines(begins=False, found=())
        touched = len(before) != 1 or any(path.startswith(folder) for path in commit.files or ())
        found: list[tuple[Attestation, Origin]] = []
        begins = False
        if touched:
            layout, after = self.host.layout, Snapshot(self.repo, commit.id)
            begins = bool(attestation.shards(layout, after)) and not any(attestation.shards(layout, b) for b in before)
            for line in attestation.newly(layout, before, after):
                parsed = attestation.parse(line)
                if parsed is not None:
                    found.append((parsed, self._worth(parsed)))
        self._lines[commit.id] = made = _Lines(begins, found)
        return made

    def _worth(self, line: Attestation) -> Origin:
        if line.key in self._keys and line.workspace in self._names:
            return "ours"
        if line.workspace != self._books and not line.workspace.startswith(_CLONE):
            return "none"
        return "genuine" if line.key in self._keys or not self._pinned else "untrusted"


def _agrees(line: Attestation, commit: CommitInfo) -> bool:
    said = commit.trailers
    if any(said.get(mark) != line.trailers.get(mark) for mark in (*ORIGINS, ACCEPTS)):
        return False
    if line.by not in (said.get(mark) for mark in ORIGINS):
        return False
    return all(_plain(value) in map(_plain, (said.get(key, ""), *said.get(key, "").split("\n")))
               for key, value in line.trailers.items())  # fmt: skip


def _plain(text: str) -> str:
    """Without what a commit message does not keep as it was: white space, control characters."""
    return "".join(c for c in text if c.isprintable() and not c.isspace())


def _rows(data: bytes, journal: bool) -> Counter[bytes]:
    if not journal:
        return Counter(data.splitlines())
    rows: Iterable[list[str]] = csv.reader(io.StringIO(data.decode("utf-8", "surrogateescape"), newline=""))
    try:
        return Counter(",".join(row[:_STATUS] + row[_STATUS + 1 :]).encode("utf-8", "surrogateescape") for row in rows)
    except csv.Error:
        return Counter(data.splitlines())
