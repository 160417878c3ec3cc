"""Whether the rows of a commit are, one by one, those that its attestations come to; and if not, which commit did it.

This asks nothing of the shape of history. What lies in the commit is summed, and what the lines of attestations in it
say is summed; the two are equal, or something was changed that nobody attests, or attested that nobody did. Only to
name the place is the history searched: what each commit brings beside what it attests.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cleared.base.errors import Place
from cleared.base.json_values import parse_json_object
from cleared.base.multiset_sum import MASK, Element, decode_sum, encode_sum
from cleared.base.short_text import list_first
from cleared.changes.attestation import SUM
from cleared.changes.attested_sums import ACCEPTS, AttestedSums, describe_acceptance, list_changed_months
from cleared.changes.audit.commit_naming import describe_commit, quote_rows
from cleared.changes.audit.commit_origins import CommitOrigins, judge_history
from cleared.changes.audit.own_commits import attests_all, is_carried_on
from cleared.changes.audit.shared_edits import find_shared_doubt
from cleared.changes.change_digests import CountedRows
from cleared.changes.decisions.signatures import find_signing_reviewer, read_parents
from cleared.changes.host import Host
from cleared.changes.line_worth import COUNTING, LineWorth
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import Violation
from cleared.git import Repository, Snapshot, history
from cleared.git.history import CommitInfo
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "state"
_VERSION: Final = b"1"
_DOUBTED: Final = "doubted"
"""A commit that was found wrong last, and what that depends on: each command asks until somebody answers for it."""
_MAX_SHOWN: Final = 3


class AttestedState:
    """Compares the rows of the commits of one workspace with what is attested, as attestations count at one commit."""

    def __init__(self, host: Host, repo: Repository, snapshot: Snapshot, worth: LineWorth) -> None:
        self._host, self._repo, self._snapshot = host, repo, snapshot
        self._rows = CountedRows(ManagedFiles(host.layout))
        self._sums = AttestedSums(worth, host.layout.state_dir)
        self._lines: dict[str, int] = {}
        self._files = SealedFiles(host.layout.state_dir, _VERSION)
        self._context = _describe_context(host, worth)
        now = self._sums.read(snapshot)
        standing = now.list_standing()
        self._accepted: dict[str, set[int]] = {}
        for each in standing:
            if repo.has_in_history(each.commit):
                self._accepted.setdefault(each.commit, set()).add(each.total)
        known = {(commit, total) for commit, totals in self._accepted.items() for total in totals}
        # What is in the history is counted at its commit. What stands no more counts nowhere: where git took back that
        # somebody answered for a commit, nobody does, and who accepts that accepts no more than this.
        self._counted = {(each.commit, each.total) for each in standing} - known
        self._covered = {line for each in standing for line in each.covers}
        self._gone = self._covered.union(*(each.withdraws for each in standing))
        self._attested = now.total(self._covered)

    # -- the state ------------------------------------------------------------------------------------------------

    def find_residue(self) -> int:
        """What the rows come to beside all that is attested, and what was explained before; 0: they are in order."""
        known = _read_record(self._files)
        rows = self._sum_rows(known)
        residue = (rows - self._attested) & MASK
        explained = decode_sum(known.get("residue")) if known.get("context") == self._context else 0
        if residue == 0 or residue == explained:
            self._write_record(rows, residue)
            return 0
        self._files.write(_NAME, json.dumps(known | {_DOUBTED: [self._snapshot.commit, self._context]}).encode("ascii"))
        return residue

    def remember_explained(self) -> None:
        """The rows are as they are to be, though two clones did the same, or somebody else attests some of them."""
        rows = self._sum_rows(_read_record(self._files))
        self._write_record(rows, rows - self._attested)

    def _sum_rows(self, known: Mapping[str, Any]) -> int:
        commit = known.get("commit")
        if known.get("books") != self._host.config.paths.books or not self._repo.objects.has_commit_tree(str(commit)):
            return self._rows.sum_difference(Snapshot(self._repo, None), self._snapshot) & MASK
        before = self._snapshot.at_commit(str(commit))
        return (decode_sum(known["rows"]) + self._rows.sum_difference(before, self._snapshot)) & MASK

    def _write_record(self, rows: int, residue: int) -> None:
        sums = {"rows": encode_sum(rows), "residue": encode_sum(residue)}
        books = self._host.config.paths.books
        made = {"commit": self._snapshot.commit, "books": books, "context": self._context, **sums}
        self._files.write(_NAME, json.dumps(made).encode("ascii"))

    # -- one commit -----------------------------------------------------------------------------------------------

    def measure_commit(self, commit: str) -> int:
        """What a commit brings beside what it attests, and what somebody has answered for: 0 where that is all."""
        parents = read_parents(self._repo, commit)
        total = self._measure_change(parents[0] if parents else None, commit)
        for at, parent in enumerate(parents[1:], 1):
            bases = self._repo.list_merge_bases(parent, parents[:at])
            total -= self._measure_from(bases, parent)
        return (total - sum(self._accepted.get(commit, ()))) & MASK

    def leaves_nothing(self, commit: CommitInfo, origins: CommitOrigins) -> bool:
        """Whether a commit brings just what it attests, by what a key that counts here signed of its files: as
        ``measure_commit`` finds, and need not read them for it."""
        sole, parents = origins.find_sole_line(commit), read_parents(self._repo, commit.id)
        if sole is None or len(parents) != 1 or commit.id in self._accepted:
            return False
        line, said = sole
        if ACCEPTS in said.statement or self._sums.name_line(line, said) in self._gone:
            return False
        snapshots = Snapshot(self._repo, parents[0]), Snapshot(self._repo, commit.id)
        return attests_all(line, said, commit.changes or {}, *snapshots)

    def describe_acceptance(self, commit: str) -> Mapping[str, Any]:
        """What a person attests who answers for a commit; empty where there is nothing to say."""
        before = [Snapshot(self._repo, parent) for parent in read_parents(self._repo, commit)]
        after = Snapshot(self._repo, commit)
        months = list_changed_months(after, *before)
        had = set().union(*(self._sums.list_lines(each, months, counting=True) for each in before))
        covers = {*self._sums.list_lines(after, months, counting=False)}
        for each in before if covers else ():
            covers -= self._sums.list_lines(each, None, counting=False).keys()
        # A copy of a line that counts says nothing new, and what that one attests is there.
        counting = [month.counting for month in self._sums.read(after).months.values()] if covers else []
        covers = {line for line in covers if not any(line in each for each in counting)}
        # Not what somebody has put back since, such as by reverting the commit: what it attests is there, too.
        stands = (self._sums.list_lines(each, months, counting=True) for each in (after, self._snapshot))
        withdraws = had.difference(*stands)
        return describe_acceptance(commit, self.measure_commit(commit), sorted(covers), sorted(withdraws))

    def is_otherwise_attested(self, commit: CommitInfo, total: int) -> bool:
        """Whether what a commit brings is just what lines say that it adds, whose signers do not count here."""
        parents = read_parents(self._repo, commit.id)
        if len(parents) != 1:
            return False
        states = Snapshot(self._repo, parents[0]), Snapshot(self._repo, commit.id)
        after = self._sums.list_lines(states[1], list_changed_months(*states), counting=False)
        before = self._sums.list_lines(states[0], None, counting=False) if after else {}
        new = [said for line, said in after.items() if line not in before]
        return bool(new) and total == sum(decode_sum(said.statement.get(SUM)) for said in new) & MASK

    def is_proposal(self, commit: str) -> bool:
        """Whether all that a commit does to rows is to add the files of proposals, and cards. These are judged by
        themselves: ``doubtful_cards``."""
        parents = read_parents(self._repo, commit)
        queue = f"{self._host.layout.queue_dir}/"
        for changes in self._rows.list_changes(
            Snapshot(self._repo, next(iter(parents), None)), Snapshot(self._repo, commit)
        ):
            if changes.lost or not changes.path.startswith(queue):
                return False
            if not changes.path.startswith(f"{queue}proposals/") and not all(map(_opens_card, changes.gained)):
                return False
        return True

    def is_done_twice(self, merge: str) -> bool:
        """Whether the two sides of a merge did the same with some rows, each by an attestation of its own: git joins
        what is the same. A line that came on both sides attests it once."""
        parents = read_parents(self._repo, merge)
        if len(parents) != 2:
            return False
        bases = self._repo.list_merge_bases(parents[1], parents[:1])
        if len(bases) > 1:
            return False
        base = Snapshot(self._repo, bases[0] if bases else None)
        one, other = (Snapshot(self._repo, parent) for parent in parents)
        months = list_changed_months(base, one, other)
        lines = [self._sums.list_lines(each, months, counting=True).keys() for each in (one, other, base)]
        return not (lines[0] & lines[1]) - lines[2] and self._is_joined(base, one, other, Snapshot(self._repo, merge))

    def _is_joined(self, base: Snapshot, one: Snapshot, other: Snapshot, merge: Snapshot) -> bool:
        """Whether a merge has each row as often as its sides make it of the base, or as one of them where both did the
        same."""
        changes = [_count_changes(self._rows, base, each) for each in (one, other, merge)]
        for row in {*changes[0], *changes[1], *changes[2]}:
            mine, theirs, now = (change[row] for change in changes)
            if now != mine + theirs and not (mine * theirs > 0 and now in (mine, theirs)):
                return False
        return True

    def name_rows(self, commit: str) -> tuple[str, str]:
        """What a commit changed, in words, and in which file."""
        parents = read_parents(self._repo, commit)
        before = Snapshot(self._repo, parents[0] if parents else None)
        said, path = [], ""
        for changes in self._rows.list_changes(before, Snapshot(self._repo, commit)):
            path = path or changes.path
            for what, rows in (("gains", changes.gained), ("loses", changes.lost)):
                if rows:
                    said.append(f"{changes.path} {what} {quote_rows(row[0] for row in rows.elements())}")
        return list_first(said, _MAX_SHOWN, "; "), path

    def _measure_from(self, bases: Sequence[str], commit: str) -> int:
        """As ``_measure_change`` from what several commits are once they are joined."""
        if len(bases) < 2:
            return self._measure_change(bases[0] if bases else None, commit)
        joined = sum(
            self._measure_from(self._repo.list_merge_bases(base, bases[:at]), base)
            for at, base in enumerate(bases[1:], 1)
        )
        return self._measure_change(bases[0], commit) - joined

    def _measure_change(self, before: str | None, after: str) -> int:
        """The rows that one commit has more than another, less what is attested more."""
        rows = self._rows.sum_difference(Snapshot(self._repo, before), Snapshot(self._repo, after))
        return rows - (self._sum_lines(after) - (self._sum_lines(before) if before else 0))

    def _sum_lines(self, commit: str) -> int:
        if commit not in self._lines:
            self._lines[commit] = self._sums.read(Snapshot(self._repo, commit)).total(self._covered, self._counted)
        return self._lines[commit]


def find_doubt(host: Host, repo: Repository, snapshot: Snapshot) -> str:
    """Why nobody should rely on the records of a commit yet, in a sentence; empty where they are what is attested.

    It costs little, and knows less than a check: that says which commit it was, and whether somebody answered for it.
    """
    worth = LineWorth(host, snapshot)
    context, files = _describe_context(host, worth), SealedFiles(host.layout.state_dir, _VERSION)
    known = _read_record(files)
    if known.get(_DOUBTED) != [snapshot.commit, context] and (
        (known.get("context") == context and _is_known(host, repo, snapshot, worth, known))
        or not AttestedState(host, repo, snapshot, worth).find_residue()
    ):
        return find_shared_doubt(host, repo, snapshot, context)
    return "the books are not just what the runs and decisions that count here made of them"


def _read_record(files: SealedFiles) -> dict[str, Any]:
    data = files.read(_NAME)
    return {} if data is None else dict(json.loads(data))


def _is_known(host: Host, repo: Repository, snapshot: Snapshot, worth: LineWorth, known: Mapping[str, Any]) -> bool:
    """Whether this commit was found right already, or one from which plain runs and decisions alone have led here: each
    attests just what it does, so that nothing of the sum is left by them. ``known``: what was found right, with the
    same keys counting."""
    since = str(known.get("commit"))
    if since == snapshot.commit:
        return True
    if not repo.objects.has_commit_tree(since) or not is_carried_on(host, repo, snapshot, worth, since):
        return False
    more = CountedRows(ManagedFiles(host.layout)).sum_difference(Snapshot(repo, since), snapshot)
    now = {"commit": snapshot.commit, "rows": encode_sum((decode_sum(known["rows"]) + more) & MASK)}
    SealedFiles(host.layout.state_dir, _VERSION).write(_NAME, json.dumps({**known, **now}).encode("ascii"))
    return True


def _describe_context(host: Host, worth: LineWorth) -> str:
    return json.dumps([host.config.paths.books, *worth.describe()])


def read_doubt(host: Host) -> str:
    """As ``find_doubt``, of the last commit."""
    with host.open_for_reading() as repo:
        return find_doubt(host, repo, Snapshot(repo, repo.read_head()))


def find_unattested_states(
    host: Host, repo: Repository, snapshot: Snapshot, origins: CommitOrigins, named: Collection[str]
) -> Iterator[tuple[str, Violation]]:
    """The commits that left other rows than what is attested, and that no other check has ``named``."""
    state = AttestedState(host, repo, snapshot, origins.worth)
    residue = state.find_residue()
    if not residue:
        return
    commits, totals = _measure_commits(state, origins)
    if sum(totals.values()) & MASK != residue and origins.since:
        origins = judge_history(host, repo, snapshot)
        commits, totals = _measure_commits(state, origins)
    if sum(totals.values()) & MASK != residue:  # then what was signed is not believed either
        totals = {commit: state.measure_commit(commit) for commit in commits if commit not in origins.cut}
    is_explained, found = True, False
    for commit in commits.values():
        if commit.id in origins.cut:
            is_explained = False
            continue
        total = totals.get(commit.id, 0)
        if not total:
            continue
        found = True
        if commit.id in named:
            is_explained = False
        elif not _is_excused(state, origins, commit, total):
            is_explained = False
            yield commit.id, _describe_commit(state, commit)
    if not found and not origins.cut:
        yield (
            str(snapshot.commit),
            Violation(
                "provenance",
                "the records are not what the attested runs and decisions made of them, and no one commit shows where",
                "Compare them with another clone, or a backup: git log -p.",
            ),
        )
    elif is_explained:
        state.remember_explained()


def _measure_commits(state: AttestedState, origins: CommitOrigins) -> tuple[dict[str, CommitInfo], dict[str, int]]:
    """The commits that may have left other rows than what is attested, and what those bring that may."""
    commits = {commit.id: commit for commit in origins.commits}
    # Also those that took all of one side; after a commit that is known there are none.
    merges = [] if origins.since else history.list_merges(origins.host.root)
    commits |= {merge.id: merge for merge in merges if merge.id not in commits}
    return commits, {
        commit.id: state.measure_commit(commit.id)
        for commit in commits.values()
        if commit.id not in origins.cut and not state.leaves_nothing(commit, origins)
    }


def _opens_card(row: Element) -> bool:
    return parse_json_object(row[0]).get("event") == "open"


def _is_excused(state: AttestedState, origins: CommitOrigins, commit: CommitInfo, total: int) -> bool:
    if state.is_done_twice(commit.id):
        return True
    if origins.find_origin(commit) not in COUNTING or not state.is_otherwise_attested(commit, total):
        return False
    # Anybody can make a key. Where these books are known, a stranger may propose, and a reviewer decide.
    approvals = origins.worth.approvals
    if not approvals.identity.pinned or find_signing_reviewer(approvals, origins.repo, commit.id):
        return True
    return "Proposed" in commit.trailers and state.is_proposal(commit.id)


def _describe_commit(state: AttestedState, commit: CommitInfo) -> Violation:
    what, path = state.name_rows(commit.id)
    did = f"changes records otherwise than runs and decisions attest: {what}"
    if not path:
        did = "brings attestations of runs or decisions without what they did, or takes such away"
    return Violation(
        "provenance",
        f"{describe_commit(commit)} {did}",
        f"Look at it (git show {commit.id}); reverse what is wrong, or say that it is right: cleared "
        f"accept {commit.id[:10]} --reason …",
        Place(path) if path else None,
    )


def _count_changes(rows: CountedRows, before: Snapshot, after: Snapshot) -> Counter[tuple[str, bytes]]:
    """How often each row, by its file, is there more often than before; negative: less often."""
    counts: Counter[tuple[str, bytes]] = Counter()
    for changes in rows.list_changes(before, after):
        for sign, some in ((1, changes.gained), (-1, changes.lost)):
            _add_rows(counts, changes.path, some.items(), sign)
    return counts


def _add_rows(counts: Counter[tuple[str, bytes]], path: str, rows: Iterable[tuple[Element, int]], sign: int) -> None:
    for (row, *_), count in rows:
        counts[path, row] += sign * count
