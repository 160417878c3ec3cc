"""Whether a commit really comes from a run or a decision: then it adds a signed attestation that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cleared.base.csv_text import split_rows
from cleared.base.multiset_sum import find_moved
from cleared.changes.attestation_lines import ORIGIN_TRAILERS, Attestation, has_line, new_lines
from cleared.changes.audit.commit_marks import CommitMarks
from cleared.changes.change_digests import digest_blobs, digest_lines
from cleared.changes.decisions.signatures import ACCEPTS_TRAILER, find_signing_reviewer, read_parents
from cleared.changes.host import Host
from cleared.changes.line_worth import COUNTING, LineWorth, Origin
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import SharedFile
from cleared.git import Repository, Snapshot, history
from cleared.git.history import CommitInfo, list_cut_commits
from cleared.trust.reviewers import KEY

_BEST_FIRST: Final[tuple[Origin, ...]] = ("ours", "genuine", "untrusted")
_Attested = tuple[bytes, Attestation, Origin]
"""A line of attestations, what it says, and what it is worth here."""


@dataclass(slots=True)
class CommitOrigins:
    """Judges the commits of one history; ``commits``: those that touch the books, where all of them are judged, or all
    after ``since``."""

    host: Host
    repo: Repository
    snapshot: Snapshot
    commits: Sequence[CommitInfo] = ()
    since: str | None = None
    worth: LineWorth = field(init=False)
    _attestations: dict[str, Sequence[_Attested]] = field(default_factory=dict)
    """Commit → the genuine lines that it adds."""
    _commits_of_line: dict[bytes, list[str]] = field(default_factory=dict)
    """The commits that add an attestation, newest first: whoever can write to the repository can add it once more."""
    _marks: CommitMarks | None = None
    """What the commits of the history call themselves; read when asked."""
    _managed: ManagedFiles = field(init=False)
    shared_files: Mapping[str, SharedFile] = field(default_factory=dict)
    """The files of records to which people add by hand, by their paths."""
    cut: frozenset[str] = frozenset()
    """Where a shallow clone ends: what these changed cannot be told."""

    def __post_init__(self) -> None:
        self.worth = LineWorth(self.host, self.snapshot)
        self._managed = ManagedFiles(self.host.layout)
        self.shared_files = self._managed.shared_files
        self.cut = list_cut_commits(self.repo)
        for commit in self.commits:
            self._read_attestations(commit)

    def find_origin(self, commit: CommitInfo) -> Origin:
        """What a commit is that calls itself a run or a decision; ``none`` for all others, and where a shallow clone
        ends."""
        if commit.id in self.cut or not any(mark in commit.trailers for mark in ORIGIN_TRAILERS):
            return "none"
        attestations = self._attestations.get(commit.id, ())
        subjects = {printable_text(said.subject) for _, said, _ in attestations}
        agreeing = {
            origin
            for line, said, origin in attestations
            if matches_trailers(said, commit.trailers) and self._covers_changes(line, said, commit)
        }
        if printable_text(commit.subject) not in subjects:
            return "none"
        best: Origin = next((origin for origin in _BEST_FIRST if origin in agreeing), "none")
        if best != "untrusted":
            return best
        if KEY in commit.trailers and find_signing_reviewer(self.worth.approvals, self.repo, commit.id):
            return "genuine"  # a reviewer decided it, on a machine of theirs
        return "untrusted" if self.touches_records(commit) or ACCEPTS_TRAILER in commit.trailers else "genuine"

    def is_ours(self, commit: CommitInfo) -> bool:
        """Whether a run or decision of a machine that counts here made the commit, or a reviewer, and it joins nothing.
        ``commit``: with its files."""
        if len(read_parents(self.repo, commit.id)) > 1:
            return False
        if self.judge_alone(commit) == "ours":
            return True
        return KEY in commit.trailers and bool(find_signing_reviewer(self.worth.approvals, self.repo, commit.id))

    def judge_alone(self, commit: CommitInfo) -> Origin:
        """As ``find_origin``, for a commit that need not be one of ``commits``."""
        for each in self._list_alike(commit):
            if each.id not in self._attestations:
                self._read_attestations(each)
        return self.find_origin(commit)

    def _list_alike(self, commit: CommitInfo) -> list[CommitInfo]:
        """The commits that call themselves what this one does, newest first: a copy adds the same attestation."""
        if self._marks is None:
            self._marks = CommitMarks(self.host, self.repo, str(self.snapshot.commit))
        ids = self._marks.list_alike(commit)
        return [commit if each == commit.id else history.read_commit(self.host.root, each) for each in ids]

    def list_attested(self, commit: CommitInfo) -> set[str]:
        """The ids of the runs and decisions whose attestations a commit adds, whoever signed them."""
        return {said.made_by for _, said, _ in self._attestations.get(commit.id, ())}

    def list_counting(self, commit: CommitInfo) -> set[str]:
        """The same, of those attestations that count here."""
        return {said.made_by for _, said, origin in self._attestations.get(commit.id, ()) if origin in COUNTING}

    def find_sole_line(self, commit: CommitInfo) -> tuple[bytes, Attestation] | None:
        """The line of a key that counts here, where a commit adds that one alone, and no other commit adds it."""
        match self._attestations.get(commit.id, ()):
            case [(line, said, "ours")] if len(self._commits_of_line[line]) == 1:
                return line, said
        return None

    def list_answered(self, commit: CommitInfo) -> list[str]:
        """The commits for which a person answers with this one; none, where git took back that they do. ``commit``:
        one that was judged."""
        named = commit.trailers.get(ACCEPTS_TRAILER, "").split("\n") if ACCEPTS_TRAILER in commit.trailers else []
        return named if any(has_line(self.snapshot, line) for line in self.list_lines(commit) if named) else []

    def list_answers(self, commit: CommitInfo, also: Collection[Origin] = ()) -> list[bytes]:
        """The attestations of those who answer for a commit: of machines that count here and of reviewers, and of those
        whose commits are ``also`` enough."""
        found = history.find_by_trailer(self.host.root, ACCEPTS_TRAILER, commit.id)
        named = [history.read_commit(self.host.root, each.id) for each in found]
        return [
            line
            for each in named
            if (self.is_ours(each) or self.judge_alone(each) in also) and self.list_answered(each)
            for line in self.list_lines(each)
        ]

    def list_lines(self, commit: CommitInfo) -> list[bytes]:
        """The attestations that a commit adds, whoever signed them. ``commit``: one that was judged."""
        return [line for line, *_ in self._attestations.get(commit.id, ())]

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
        folder = f"{self.host.layout.logs_dir}/"
        parents = [] if commit.id in self.cut else read_parents(self.repo, commit.id)
        before = [Snapshot(self.repo, parent) for parent in parents]
        lines: Sequence[bytes] = ()
        if len(before) != 1 or any(path.startswith(folder) for path in commit.files or ()):
            lines = new_lines(before, Snapshot(self.repo, commit.id))
        judged = [(line, self.worth.read(line)) for line in lines]
        genuine = [(line, *said) for line, said in judged if said is not None]
        for line, *_ in genuine:
            self._commits_of_line.setdefault(line, []).append(commit.id)
        self._attestations[commit.id] = genuine


def judge_history(host: Host, repo: Repository, snapshot: Snapshot, since: str | None = None) -> CommitOrigins:
    """With all commits of HEAD that touch the books, or with those after ``since``."""
    commits = history.commits_touching(host.root, ManagedFiles(host.layout).audited_folders, since)
    return CommitOrigins(host, repo, snapshot, commits, since)


def matches_trailers(line: Attestation, trailers: Mapping[str, str]) -> bool:
    """Whether an attestation is that of the run or decision which a commit's trailers call it."""
    if any(trailers.get(mark) != line.trailers.get(mark) for mark in (*ORIGIN_TRAILERS, ACCEPTS_TRAILER)):
        return False
    if line.made_by not in (trailers.get(mark) for mark in ORIGIN_TRAILERS):
        return False
    return all(
        printable_text(value) in map(printable_text, (trailers.get(key, ""), *trailers.get(key, "").split("\n")))
        for key, value in line.trailers.items()
    )


def printable_text(text: str) -> str:
    """Without what a commit message does not keep as it was: white space, control and format characters."""
    joined = "".join(text.replace("\N{REPLACEMENT CHARACTER}", "").split())
    return joined if joined.isprintable() else "".join(c for c in joined if c.isprintable())
