"""What this clone has committed and others have not: read as steps, each of which can be done again elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from msgspec import Struct

from cleared.base.errors import Place
from cleared.changes.attestation import find_counting
from cleared.changes.attestation_lines import ORIGIN_TRAILERS, Attestation, added_lines, has_line, parse_attestation
from cleared.changes.attested_sums import AttestedSums
from cleared.changes.audit.own_commits import attests_all
from cleared.changes.change_digests import CARDS, DECISIONS, CommittedRows, Row
from cleared.changes.decisions.decision_context import REVERTS
from cleared.changes.decisions.signatures import ACCEPTS_TRAILER
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.renamed_records import WorkConflict
from cleared.git import Repository, Snapshot, parse_parents
from cleared.git.commit_text import Author, parse_trailers
from cleared.trust.keys import run_public_key
from cleared.trust.reviewers import KEY, SIGNATURE
from cleared.workspace.location import Layout

BY_HAND: Final = "Join the clones as docs/howto/two-clones.md says, by hand."
_MOST: Final = 5_000
_BY_COMMIT: Final = ("Origin", "Emits", "Resolves", "Depth")
"""Trailers that each commit gets anew."""
_OF_COMMIT: Final = frozenset(
    {"workspace", "by", "at", "subject", "trailers", "user", "changes", "sum", "emits", "opens", "settles", "imports"}
)
"""What each attestation says of its own commit."""


class Step(Struct, frozen=True):
    """One commit. ``said``: its attestation; None where a person made it by hand."""

    before: Snapshot
    after: Snapshot
    subject: str
    header: str
    """The lines of the commit that say who made it, and when."""
    message: str
    said: Attestation | None = None
    is_there: bool = False
    """Others have it, in a commit that git has made anew here, such as an amended one."""
    withheld: str = ""
    """Why it is not done again, whatever others did: it changed records by hand, and a person answered for that here.
    On top of what others did somebody has to look again."""

    @property
    def commit(self) -> str:
        return str(self.after.commit)

    @property
    def kind(self) -> Literal["run", "decision", "proposal", "hand"]:
        """Whose it is."""
        trailers = self.said.trailers if self.said is not None else {}
        if "Run" in trailers:
            return "run"
        return "decision" if "Decision" in trailers else "proposal" if trailers else "hand"

    @property
    def made_by(self) -> str:
        """The run or decision; empty for a commit by hand."""
        return self.said.made_by if self.said is not None else ""

    @property
    def reverts(self) -> str:
        """The run that it takes back; empty where it takes back none."""
        return self.said.trailers.get(REVERTS, "").partition(" ")[0] if self.said is not None else ""

    @property
    def signing_key(self) -> str:
        """The key with which a reviewer has signed it; empty where nobody has."""
        trailers = parse_trailers(self.message)
        return trailers.get(KEY, "") if SIGNATURE in trailers else ""

    @property
    def accepts(self) -> str:
        """The commit for which a person answers with it; empty for none."""
        return self.said.trailers.get(ACCEPTS_TRAILER, "") if self.said is not None else ""

    def read_author(self) -> tuple[Author, datetime]:
        """Who made it, and when."""
        line = next(line for line in self.header.split("\n") if line.startswith("author "))
        who, _, when = line.removeprefix("author ").rpartition("> ")
        name, _, email = who.partition(" <")
        return Author(name, email), datetime.fromtimestamp(int(when.split()[0]), UTC)

    def list_trailers(self) -> list[tuple[str, str]]:
        """Those that say what it was."""
        trailers = self.said.trailers.items() if self.said is not None else ()
        return [(key, value) for key, value in trailers if key not in _BY_COMMIT]

    def list_statements(self) -> dict[str, Any]:
        """What its attestation says beside what every one says of its own commit."""
        statement = self.said.statement if self.said is not None else {}
        return {key: value for key, value in statement.items() if key not in _OF_COMMIT}


def list_steps(host: Host, repo: Repository, theirs: str, own: str) -> Sequence[Step]:
    """The commits up to ``own`` that are not in the history of ``theirs``, oldest first, without merges, which bring
    nothing of their own.

    Raises ``WorkConflict`` for what cannot be told apart into steps, and for what this machine would have to vouch for
    and has not made: whoever can commit may have written it.
    """
    out = repo.git.run("rev-list", "--topo-order", "--reverse", f"--max-count={_MOST + 1}", own, f"^{theirs}")
    commits = out.decode("ascii").split()
    if len(commits) > _MOST:
        raise WorkConflict(f"more than {_MOST:,} commits are not pushed", remedy=BY_HAND)
    reader = _StepReader(host, repo, theirs, own)
    for commit in commits:
        reader.read_commit(commit)
    steps = [step for step in reader.steps if step.accepts not in reader.undone]
    for step in steps:
        if step.withheld and step.commit not in reader.answered:
            raise WorkConflict(
                step.withheld,
                place=_find_place(reader.managed, step.before, step.after),
                remedy=f"Look at it (git show {step.commit[:10]}); if it is right: cleared accept {step.commit[:10]} "
                f"--reason …, then cleared sync. Or: {BY_HAND}",
            )
    return steps


class _StepReader:
    """Reads commits as ``steps``, oldest first. ``answered``: those for which somebody answers; ``undone``: those by
    hand that were taken back by hand, and those that did so; neither is a step."""

    def __init__(self, host: Host, repo: Repository, theirs: str, own: str) -> None:
        self._host, self._repo, self._own = host, repo, Snapshot(repo, own)
        self.managed, self._books = ManagedFiles(host.layout), find_counting(host, self._own).books
        self._there, self._seen = {*added_lines(None, Snapshot(repo, theirs))}, set[bytes]()
        self.answered, self.undone = set[str](), set[str]()
        self.steps: list[Step] = []

    def read_commit(self, commit: str) -> None:
        """Read the next one, which is no step where it is a merge. Raises ``WorkConflict`` as ``list_steps``."""
        text = self._repo.objects.read_object(commit)[1]
        parents = parse_parents(text)
        if len(parents) != 1:
            _refuse_own_content(self._repo, commit, parents, self.managed)
            return
        header, _, message = text.decode("utf-8", "replace").partition("\n\n")
        before, after = Snapshot(self._repo, parents[0]), Snapshot(self._repo, commit)
        if (undone := _find_undone(self.steps, before, after)) is not None:
            self.steps.remove(undone)
            self.undone |= {undone.commit, commit}
            return
        lines, withheld = list(added_lines(before, after)), ""
        said = parse_attestation(lines[0]) if len(lines) == 1 else None
        if said is None:
            withheld = self._find_withheld(before, after, lines, message)
        else:
            self._refuse_unmade(before, after, lines[0], said)
        self._seen.update(lines)
        is_there = said is not None and lines[0] in self._there
        step = Step(before, after, message.split("\n")[0], header, message, said, is_there, withheld)
        if step.accepts and has_line(self._own, lines[0]):  # git may have taken the answer back
            self.answered.add(step.accepts)
        self.steps.append(step)

    def _find_withheld(self, before: Snapshot, after: Snapshot, lines: Sequence[bytes], message: str) -> str:
        """``Step.withheld`` of a commit by hand."""
        short, approvals = str(after.commit)[:10], f"{self._host.layout.approvals_dir}/"
        if lines or not parse_trailers(message).keys().isdisjoint(ORIGIN_TRAILERS):
            doubt = f"nothing vouches for {short}, which says that it was a run or a decision"
        elif any(  # approvals are judged by their signatures
            self.managed.lies_inside(path) and not path.startswith(approvals) for path in after.list_changes(before)
        ):
            doubt = f"{short} changes by hand what only runs and decisions may change"
        else:
            return ""
        if _count_rows(CommittedRows(self._host.layout), before, after):  # later steps may rest on what it adds
            raise WorkConflict(doubt, place=_find_place(self.managed, before, after), remedy=BY_HAND)
        return doubt

    def _refuse_unmade(self, before: Snapshot, after: Snapshot, line: bytes, said: Attestation) -> None:
        """Raises ``WorkConflict`` for a commit that adds the attestation of a run or decision and is not that one, as
        this machine made it."""
        short, place = str(after.commit)[:10], _find_place(self.managed, before, after)
        if said.key != run_public_key(self._host.root) or said.workspace not in self._books:
            raise WorkConflict(
                f"{short} was made on another machine, and is not pushed",
                place=place,
                remedy="Push it from there; or take it back here.",
            )
        if line in self._seen:
            raise WorkConflict(
                f"{short} brings back by git what was taken back by git ({said.subject[:60]})",
                place=place,
                remedy=f"Take it away: git reset --keep {short}~1 (what came since goes with it), then cleared sync; "
                f"and do it anew. Or: {BY_HAND}",
            )
        if not attests_all(line, said, after.list_changes(before), before, after, rebased=True):
            why = f"{short} is not as it was made: somebody has changed what it holds"
            raise WorkConflict(why, place=place, remedy=BY_HAND)


def _find_undone(steps: Sequence[Step], before: Snapshot, after: Snapshot) -> Step | None:
    """The commit by hand that another one takes back whole, as a revert its own revert does, where nothing but answers
    came in between: what is done later may rest on it."""
    last = next((step for step in reversed(steps) if not step.accepts), None)
    if last is None or not last.withheld:
        return None
    paths = last.after.list_changes(last.before).keys()
    is_whole = paths == after.list_changes(before).keys()
    return last if is_whole and all(_takes_back(path, last, before, after) for path in paths) else None


def _takes_back(path: str, step: Step, before: Snapshot, after: Snapshot) -> bool:
    """Whether a commit makes of a file what it was before a step; of one to which answers have added since, whether
    it adds and takes away just the rows that the step took away and added."""
    states = step.before, step.after, before, after
    was, then, now, is_now = (snapshot.find_entry(path) for snapshot in states)
    if then == now:
        return was == is_now
    counts = [Counter((snapshot.read_file(path) or b"").splitlines(keepends=True)) for snapshot in states]
    plain = all(entry is not None and entry.is_file for entry in (was, then, now, is_now))
    return plain and counts[1] - counts[0] == counts[2] - counts[3] and counts[0] - counts[1] == counts[3] - counts[2]


def is_answer_wanted(host: Host, there: Snapshot, step: Step) -> bool:
    """Whether a person answers with a step for a commit that others have, and nobody there answers for it."""
    if not step.accepts:
        return False
    answered = AttestedSums(LineWorth(host, there), host.layout.state_dir).read(there).list_standing()
    return step.accepts not in {each.commit for each in answered}


class Cancelled(Struct):
    """What means nothing without a step that is withheld, and is left out with it."""

    reasons: dict[str, str] = {}
    """Commit → why."""
    emptied: set[str] = set()
    """The commits that are withheld and took nothing else back."""


def find_cancelled(layout: Layout, steps: Sequence[Step]) -> Cancelled:
    """Of steps that are withheld what they took back, as far as nobody else has it, and the answers for them. What a
    commit took back is what its files have no more, whatever its message says.

    Raises ``WorkConflict`` where one that is withheld did something else, too, which would be lost.
    """
    rows, found = CommittedRows(layout), Cancelled()
    managed = ManagedFiles(layout)
    for at, withheld in enumerate(steps):
        if not withheld.withheld:
            continue
        gone, files = _count_records(rows, withheld.after, withheld.before), set[str]()
        for step in reversed(steps[:at]):
            made = _count_records(rows, step.before, step.after)
            if made and made <= gone and step.said is not None and not step.is_there:
                gone -= made
                files.update(step.after.list_changes(step.before))
                found.reasons.setdefault(step.commit, f"{withheld.commit[:10]} took it back by git")
        kept = (path for path in withheld.after.list_changes(withheld.before) if withheld.after.find_entry(path))
        if other := next((path for path in kept if path not in files and not managed.lies_inside(path)), None):
            why = f"{withheld.commit[:10]} changes by hand what only runs and decisions may change, and {other}, too"
            raise WorkConflict(why, place=Place(other), remedy=BY_HAND)
        found.emptied |= set() if gone else {withheld.commit}
        found.reasons |= {
            step.commit: f"it answers for {withheld.commit[:10]}" for step in steps if step.accepts == withheld.commit
        }
    return found


def _count_records(rows: CommittedRows, before: Snapshot, after: Snapshot) -> Counter[Row]:
    """The same of records: git leaves lines of the queue and of attestations where more have come below them."""
    found = _count_rows(rows, before, after).items()
    return Counter({row: count for row, count in found if row[0] not in (CARDS.key, DECISIONS.key)})


def _count_rows(rows: CommittedRows, before: Snapshot, after: Snapshot) -> Counter[Row]:
    """The rows that one commit has more often than another."""
    lost, new = rows.read_differing_rows(before, after, list(rows.list_changed_paths(before, after)))
    return Counter(row for row, _ in new) - Counter(row for row, _ in lost)


def _find_place(managed: ManagedFiles, before: Snapshot, after: Snapshot) -> Place:
    """The first file that a commit changes of those that only runs and decisions may change."""
    return Place(next(filter(managed.lies_inside, after.list_changes(before)), None))


def _refuse_own_content(repo: Repository, commit: str, parents: Sequence[str], managed: ManagedFiles) -> None:
    """Raises ``WorkConflict`` for a merge in which somebody has put what neither side has, or left out a line of one;
    files to which both sides only add are judged by what they hold in the end."""
    merged = Snapshot(repo, commit)
    sides = [Snapshot(repo, parent) for parent in parents]
    if len(sides) < 2:
        raise WorkConflict(f"{commit[:10]} is a second beginning of the books", remedy=BY_HAND)
    base = Snapshot(repo, repo.find_common_ancestor(*parents[:2]))
    for path in merged.list_changes(sides[0]):
        if managed.has_path(path) or merged.find_blob_id(path) in [s.find_blob_id(path) for s in sides]:
            continue
        if not _is_joined(*(each.read_file(path) for each in (base, *sides[:2], merged))):
            why = f"{commit[:10]} merges, and somebody has joined {path} by hand"
            raise WorkConflict(why, place=Place(path), remedy=BY_HAND)


def _is_joined(old: bytes | None, ours: bytes | None, theirs: bytes | None, merged: bytes | None) -> bool:
    """Whether a file has what both sides made of it, line by line, as git joins them; a line that both added, once or
    twice."""
    b, o, t, m = (Counter((data or b"").splitlines()) for data in (old, ours, theirs, merged))
    return all(
        m[line] == o[line] + t[line] - b[line] or (m[line] == max(o[line], t[line]) and min(o[line], t[line]) > b[line])
        for line in {*b, *o, *t, *m}
    )
