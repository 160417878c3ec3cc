"""Runs, decisions and rows that a history took back itself: whoever lacks them has let nothing go."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.changes.attestation_lines import ORIGIN_TRAILERS, added_lines
from cleared.changes.change_digests import CommittedRows, Row
from cleared.git import Repository, Snapshot, history, parse_parents

_REVERTS: Final = r"This reverts commit ([0-9a-f]{40,64})"


def leave_out_reverted(repo: Repository, snapshot: Snapshot, lost: Collection[str]) -> tuple[str, ...]:
    """Of lost runs and decisions those that no commit in the history of ``snapshot`` attests. What one attests others
    took back there, and a merge of git had brought it back here."""
    gone, found = {*lost}, set[str]()
    for commit in history.read_log(repo.root, None, rev=str(snapshot.commit)) if gone else ():
        called = gone.intersection(commit.trailers.get(mark, "") for mark in ORIGIN_TRAILERS)
        parents = parse_parents(repo.objects.read_object(commit.id)[1]) if called else ()
        if len(parents) == 1:  # anybody can write a message: its lines say it
            lines = b"\n".join(added_lines(Snapshot(repo, parents[0]), Snapshot(repo, commit.id)))
            found |= {each for each in called if f'"by":"{each}"'.encode() in lines}
    return tuple(each for each in lost if each not in found)


def count_reverted_rows(rows: CommittedRows, repo: Repository, tip: str, head: str, paths: list[str]) -> Counter[Row]:
    """The rows of commits that somebody took back by ``git revert``. That a message says so is not enough: only what
    the commit itself has taken out counts, and so came into this history before, where ``check`` sees who took
    it."""
    reverted: dict[str, Counter[Row]] = {}
    for commit in history.read_log(repo.root, None, grep="This reverts commit ", since=tip, rev=head):
        for name in re.findall(_REVERTS, commit.body):
            with suppress(WorkspaceError):  # no commit has this id here
                _, taken = _count_changes(rows, repo, commit.id, paths)
                added, _ = _count_changes(rows, repo, name, paths)
                reverted[name] = reverted.get(name, Counter()) | (taken & added)
    return sum(reverted.values(), Counter())


def _count_changes(
    rows: CommittedRows, repo: Repository, commit: str, paths: list[str]
) -> tuple[Counter[Row], Counter[Row]]:
    """The rows that a commit has more often than its first parent, and those that it has less often."""
    parents = parse_parents(repo.objects.read_object(commit)[1])
    states = (Snapshot(repo, each) for each in (parents[0] if parents else None, commit))
    before, after = (Counter(row for row, _ in rows.read_rows(state, paths)) for state in states)
    return after - before, before - after
