"""Whether a history went on by nothing but plain runs and decisions of machines that count here.

Such a commit changes just the files, from just these contents to just those, that the one line which it adds attests
under a key that counts. Where a check found all right before the first of them, with the same keys and settings, it
need not judge again what was there: so a check of old books costs what came since the last. A commit by hand that is
about no managed file is passed over, as the judgement of a whole history does. Whatever is otherwise in any way (a
merge, a rebase, a commit by a reviewer or about approvals, an answer for another one) is judged with that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Final

from cleared.base.file_source import find_whole
from cleared.changes.attestation import SUM, digest_data
from cleared.changes.attestation_lines import (
    Attestation,
    added_lines,
    list_shards,
    name_shard,
    new_lines,
)
from cleared.changes.attested_sums import ACCEPTS, AttestedSums, mark_line
from cleared.changes.audit.commit_origins import matches_trailers, printable_text
from cleared.changes.change_digests import digest_blobs, digest_lines, is_attestation
from cleared.changes.decisions.signatures import ACCEPTS_TRAILER
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.changes.taken_over import TAKES_OVER
from cleared.domains.installed_domains import ManagedFiles
from cleared.git import RecentCommit, Repository, Snapshot, read_recent_commits
from cleared.trust.checkpoint import read_forgotten
from cleared.trust.reviewers import KEY

_MOST: Final = 20_000
"""Commits; of more, all of the history is judged."""


def is_carried_on(host: Host, repo: Repository, snapshot: Snapshot, worth: LineWorth, since: str) -> bool:
    """Whether every commit after ``since`` up to that of ``snapshot`` is such a one. ``worth``: as of the latter."""
    if snapshot.commit == since:
        return True
    commits = read_recent_commits(repo, str(snapshot.commit), since, _MOST)
    if commits is None:
        return False
    forgotten, managed, after = read_forgotten(host.root), ManagedFiles(host.layout), snapshot
    for commit, parent in zip(commits, [*(each.id for each in commits[1:]), since], strict=True):
        before = Snapshot(repo, parent)
        changes = after.list_changes(before)
        if {KEY, ACCEPTS_TRAILER} & commit.trailers.keys():
            return False
        if any(map(managed.lies_inside, changes)) and not _is_plain(
            host, commit, changes, before, after, worth, forgotten
        ):
            return False
        after = before
    return True


def can_be_judged_apart(host: Host, repo: Repository, snapshot: Snapshot, worth: LineWorth, since: str) -> bool:
    """Whether none of the commits after ``since`` has a bearing on how those before are judged, and none of those on
    these: they are a straight line, nobody decides in it with a key or answers for one from before, approvals stay as
    they are, and of attestations there are only more, none of which was there before."""
    commits = read_recent_commits(repo, str(snapshot.commit), since, _MOST)
    if commits is None or any(KEY in commit.trailers for commit in commits):
        return False
    states = [Snapshot(repo, commit) for commit in (*(each.id for each in commits), since)]
    if not _have_same_approvals(host, states):
        return False
    if not all(_only_attests_more(before, after) for after, before in pairwise(states)):
        return False
    new, first = {commit.id for commit in commits}, states[-1]
    if not new.issuperset(each for commit in commits for each in _list_answered(commit)):
        return False
    known = AttestedSums(worth, host.layout.state_dir).read(first).months.values()
    gone = {line for month in known for line in month.withdrawn}
    for line in added_lines(first, snapshot):
        said = worth.parse(line)
        if said is not None and (TAKES_OVER in said.statement or digest_data([said.key, said.statement]) in gone):
            return False
        if said is not None and ACCEPTS in said.statement and not _accepts_rows(said.statement[ACCEPTS], new):
            return False
        if any(mark_line(line) in month.marks for month in known):
            return False
    return True


def keeps_approvals(host: Host, repo: Repository, snapshot: Snapshot, since: str) -> bool:
    """Whether those after ``since`` are a straight line up to that of ``snapshot``, and none changes approvals."""
    commits = read_recent_commits(repo, str(snapshot.commit), since, _MOST)
    states = [Snapshot(repo, commit) for commit in (*(each.id for each in commits or ()), since)]
    return commits is not None and _have_same_approvals(host, states)


def _have_same_approvals(host: Host, states: Iterable[Snapshot]) -> bool:
    return len({state.find_entry(host.layout.approvals_dir) for state in states}) == 1


def _list_answered(commit: RecentCommit) -> list[str]:
    return commit.trailers[ACCEPTS_TRAILER].split("\n") if ACCEPTS_TRAILER in commit.trailers else []


def _accepts_rows(accepts: object, commits: Collection[str]) -> bool:
    """Whether an acceptance is of the rows of one of these commits alone, and says nothing of other lines."""
    return isinstance(accepts, dict) and accepts.get("commit") in commits and accepts.keys() <= {"commit", SUM}


def _only_attests_more(before: Snapshot, after: Snapshot) -> bool:
    old, new = list_shards(before), list_shards(after)
    return all(
        path in new and (after.read_file(path) or b"").startswith(before.read_file(path) or b"")
        for path, blob in old.items()
        if new.get(path) != blob
    )


def _is_plain(
    host: Host,
    commit: RecentCommit,
    changes: Mapping[str, tuple[str, str]],
    before: Snapshot,
    after: Snapshot,
    worth: LineWorth,
    forgotten: frozenset[str],
) -> bool:
    if any(path.startswith(f"{host.layout.approvals_dir}/") for path in changes):
        return False
    lines = new_lines([before], after)
    judged = worth.read(lines[0]) if len(lines) == 1 else None
    if judged is None or judged[1] != "ours":
        return False
    said = judged[0]
    return (
        attests_all(lines[0], said, changes, before, after)
        and said.made_by not in forgotten
        and printable_text(said.subject) == printable_text(commit.subject)
        and matches_trailers(said, commit.trailers)
    )


def attests_all(
    line: bytes,
    said: Attestation,
    changes: Mapping[str, tuple[str, str]],
    before: Snapshot,
    after: Snapshot,
    *,
    rebased: bool = False,
) -> bool:
    """Whether a commit changes just what this line attests, and beside that adds just the line to attestations: what it
    says about other files does not cover those. ``changes``: path → the blob ids before and after. ``rebased``: the
    same lines in the same places will do, too."""
    digests, paths = said.statement.get("changes"), [path for path in changes if is_attestation(path)]
    if not isinstance(digests, dict) or TAKES_OVER in said.statement:
        return False
    blobs = [(path, *each) for path, each in changes.items()]
    if digests.get("blobs") != digest_blobs(blobs):
        contents = {path: after.read_file(path) for path in changes} if rebased else {}
        if not rebased or digests.get("lines") != digest_lines(before, contents, blobs):
            return False
    if len(paths) != 1 or find_whole(paths[0]) != name_shard(said.at):
        return False
    old = before.read_file(paths[0]) or b""
    return (old == b"" or old.endswith(b"\n")) and after.read_file(paths[0]) == old + line + b"\n"
