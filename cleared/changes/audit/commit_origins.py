"""Whether a commit really comes from a run or a decision: then it adds a signed attestation that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from cleared.base.csv_text import split_rows
from cleared.base.row_order import find_moved
from cleared.changes import attestation
from cleared.changes.attestation import ORIGIN_TRAILERS
from cleared.changes.attestation_lines import Attestation, new_lines, parse_attestation
from cleared.changes.book_sources import CommittedSource
from cleared.changes.change_digests import digest_blobs, digest_lines
from cleared.changes.decisions.signatures import ACCEPTS_TRAILER, find_signing_reviewer, read_parents
from cleared.changes.host import Host
from cleared.changes.taken_over import find_takeovers, list_taken_over
from cleared.domains.managed_files import ManagedFiles
from cleared.domains.record_audit import SharedFile
from cleared.git import Repository, Snapshot, history
from cleared.git.shared_history import list_cut_commits
from cleared.trust.reviewers import KEY
from cleared.trust.verification import Approvals

if TYPE_CHECKING:
    from cleared.git.history import CommitInfo

Origin = Literal["ours", "genuine", "untrusted", "none"]
"""Of a commit: a run or decision by a key that counts here; with a genuine signature that nothing here speaks against;
with one that does not count; neither."""
_BEST_FIRST: Final[tuple[Origin, ...]] = ("ours", "genuine", "untrusted")
_CLONE_PREFIX: Final = "clone "


_Attested = tuple[bytes, Attestation, Origin]
"""A line of attestations, what it says, and what it is worth here."""


@dataclass(slots=True)
class CommitOrigins:
    """Judges the commits of one history; ``commits``: those that touch the books."""

    host: Host
    repo: Repository
    snapshot: Snapshot
    commits: Sequence[CommitInfo]
    _approvals: Approvals = field(init=False)
    _trusted_keys: frozenset[str] = frozenset()
    _workspace_names: frozenset[str] = frozenset()
    _attestations: dict[str, Sequence[_Attested]] = field(default_factory=dict)
    """Commit → the genuine lines that it adds."""
    _commits_of_line: dict[bytes, list[str]] = field(default_factory=dict)
    """The commits that add an attestation, newest first: whoever can write to the repository can add it once more."""
    _taken_over: dict[bytes, Origin] | None = None
    """What a line of the books that these were made from is worth: as much as what takes it over. Read when asked."""

    _managed: ManagedFiles = field(init=False)
    shared_files: Mapping[str, SharedFile] = field(default_factory=dict)
    """The files of records to which people add by hand, by their paths."""
    cut: frozenset[str] = frozenset()
    """Where a shallow clone ends: what these changed cannot be told."""

    def __post_init__(self) -> None:
        self._approvals = Approvals(CommittedSource(self.snapshot), self.host.root, {})
        self._managed = ManagedFiles(self.host.layout)
        self.shared_files = {shared.path: shared for audit in self._managed.audits for shared in audit.shared_files}
        self.cut = list_cut_commits(self.repo)
        self._trusted_keys = attestation.trusted_signers(self.host, self.snapshot)
        self._workspace_names = attestation.accepted_workspaces(self.host, self.snapshot)
        for commit in self.commits:
            self._read_attestations(commit)

    def find_origin(self, commit: CommitInfo) -> Origin:
        """What a commit is that calls itself a run or a decision; ``none`` for all others, and where a shallow clone
        ends."""
        if commit.id in self.cut or not any(mark in commit.trailers for mark in ORIGIN_TRAILERS):
            return "none"
        attestations = self._attestations[commit.id]
        subjects = {_printable_text(said.subject) for _, said, _ in attestations}
        agreeing = {
            origin
            for line, said, origin in attestations
            if _matches_commit(said, commit) and self._covers_changes(line, said, commit)
        }
        if _printable_text(commit.subject) not in subjects:
            return "none"
        best: Origin = next((origin for origin in _BEST_FIRST if origin in agreeing), "none")
        if best != "untrusted":
            return best
        if KEY in commit.trailers and find_signing_reviewer(self._approvals, self.repo, commit.id):
            return "genuine"  # a reviewer decided it, on a machine of theirs
        return "untrusted" if self.touches_records(commit) or ACCEPTS_TRAILER in commit.trailers else "genuine"

    def list_attested(self, commit: CommitInfo) -> set[str]:
        """The ids of the runs and decisions whose attestations a commit adds, whoever signed them."""
        return {said.made_by for _, said, _ in self._attestations[commit.id]}

    def _covers_changes(self, line: bytes, said: Attestation, commit: CommitInfo) -> bool:
        """Whether the commit changes just what it is attested to change: the same files, or after a rebase the same
        lines. Of an attestation that several commits add only the first counts, and only with the same files: nobody
        knows which was meant."""
        digests, is_repeated = said.statement.get("changes"), len(self._commits_of_line[line]) > 1
        if not isinstance(digests, dict) or (is_repeated and self._find_first(line) != commit.id):
            return False
        changes = [(path, *blobs) for path, blobs in (commit.changes or {}).items()]
        if digests.get("blobs") == digest_blobs(changes):
            return True
        parents = read_parents(self.repo, commit.id)
        if is_repeated or not parents:
            return False
        before, after = Snapshot(self.repo, parents[0]), Snapshot(self.repo, commit.id)
        contents = {path: after.read_file(path) for path, *_ in changes}
        return bool(digests.get("lines") == digest_lines(before, contents, changes))

    def _find_first(self, line: bytes) -> str:
        """The one of the commits that add an attestation for which it counts: none of the others came before it. Once
        it was taken back, a copy would do again what it did."""
        *others, first = self._commits_of_line[line]
        for other in others:
            if history.find_merge_base(self.host.root, [first, other]) == other:
                first = other
        return first

    def touches_records(self, commit: CommitInfo) -> bool:
        """Whether it changes more than queue and logs, whose contents are judged by themselves."""
        paths = filter(self._managed.has_path, commit.files or ())
        return any(audit.is_record_file(path) for path in paths for audit in self._managed.audits)

    def touches_more_than_shared(self, commit: CommitInfo) -> bool:
        """Whether it changes managed files beside those to which people add by hand."""
        paths, approvals = filter(self._managed.has_path, commit.files or ()), f"{self.host.layout.approvals_dir}/"
        return any(path not in self.shared_files and not path.startswith(approvals) for path in paths)

    def find_altered_rows(self, commit: CommitInfo, parent: str) -> list[tuple[str, list[bytes]]]:
        """Rows that the commit removes, in which it changes more than what may change, or that it puts elsewhere; by
        file."""
        before, after = Snapshot(self.repo, parent), Snapshot(self.repo, commit.id)
        altered = []
        for path in commit.files or ():
            old = before.read_file(path)
            if old is None or not self._managed.has_row_file(path) or path in self.shared_files:
                continue
            new = after.read_file(path) or b""
            if new.startswith(old):
                continue
            then, now = self._list_fixed_rows(path, old), self._list_fixed_rows(path, new)
            rows = list(Counter(then) - Counter(now)) or find_moved(then, now)
            if rows:
                altered.append((path, rows))
        return altered

    def _list_fixed_rows(self, path: str, data: bytes) -> list[bytes]:
        audit = next((audit for audit in self._managed.audits if audit.is_record_file(path)), None)
        return split_rows(data) if audit is None else audit.list_fixed_rows(path, data)

    def _read_attestations(self, commit: CommitInfo) -> None:
        layout, folder = self.host.layout, f"{self.host.layout.logs_dir}/"
        parents = [] if commit.id in self.cut else read_parents(self.repo, commit.id)
        before = [Snapshot(self.repo, parent) for parent in parents]
        lines: Sequence[bytes] = ()
        if len(before) != 1 or any(path.startswith(folder) for path in commit.files or ()):
            lines = new_lines(layout, before, Snapshot(self.repo, commit.id))
        parsed = [(line, parse_attestation(line)) for line in lines]
        genuine = [(line, said, self._judge_line(line, said)) for line, said in parsed if said is not None]
        for line, *_ in genuine:
            self._commits_of_line.setdefault(line, []).append(commit.id)
        self._attestations[commit.id] = genuine

    def _judge_line(self, line: bytes, said: Attestation) -> Origin:
        origin = self._judge_attestation(said)
        if origin == "ours":
            return origin
        if self._taken_over is None:
            self._taken_over = self._read_takeovers()
        return self._taken_over.get(line, origin)

    def _read_takeovers(self) -> dict[bytes, Origin]:
        taken: dict[bytes, Origin] = {}
        for takeover in find_takeovers(self.host.layout, self.snapshot):
            origin = self._judge_attestation(takeover)
            if origin in ("ours", "genuine"):
                for line, _ in list_taken_over(self.snapshot, takeover):
                    if taken.get(line) != "ours":
                        taken[line] = origin
        return taken

    def _judge_attestation(self, line: Attestation) -> Origin:
        if line.key in self._trusted_keys and line.workspace in self._workspace_names:
            return "ours"
        if line.workspace != self._approvals.workspace and not line.workspace.startswith(_CLONE_PREFIX):
            return "none"
        return "genuine" if line.key in self._trusted_keys or not self._approvals.identity.pinned else "untrusted"


def is_of_ours(host: Host, repo: Repository, snapshot: Snapshot, commit: CommitInfo) -> bool:
    """Whether a run or decision of a machine that counts here made the commit, or a reviewer, and it joins nothing.
    ``commit``: with its files."""
    if len(read_parents(repo, commit.id)) > 1:
        return False
    if CommitOrigins(host, repo, snapshot, [commit]).find_origin(commit) == "ours":
        return True
    approvals = Approvals(CommittedSource(snapshot), host.root, {})
    return KEY in commit.trailers and bool(find_signing_reviewer(approvals, repo, commit.id))


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
    """Without what a commit message does not keep as it was: white space, control and format characters."""
    joined = "".join(text.replace("\N{REPLACEMENT CHARACTER}", "").split())
    return joined if joined.isprintable() else "".join(c for c in joined if c.isprintable())
