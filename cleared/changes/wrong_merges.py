"""What git has joined and no clone would have written: two histories are each in order, and what a merge made of them
is not, such as an entry in a month that the other side had closed."""

from __future__ import annotations

from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import Violation
from cleared.git import Repository, Snapshot, parse_parents
from cleared.workspace.location import Layout

_MOST: Final = 1_000
"""How many commits back a merge is looked for; where more came at once, the records are judged anyway."""


def find_wrong_merge(layout: Layout, repo: Repository, seen: str, snapshot: Snapshot) -> Violation | None:
    """What is wrong with the records of a commit, and was not at ``seen``, where a merge or a rebase has come since;
    None where nothing is."""
    try:
        return (
            find_new_violation(layout, repo, seen, snapshot) if _is_joined(repo, seen, str(snapshot.commit)) else None
        )
    except WorkspaceError:  # what cannot be read at all is said where it is read
        return None


def find_new_violation(layout: Layout, repo: Repository, seen: str, snapshot: Snapshot) -> Violation | None:
    """What is wrong with the records of a commit, and was not at ``seen``. Raises ``WorkspaceError`` where they cannot
    be read."""
    audits, before = ManagedFiles(layout).audits, Snapshot(repo, seen)
    found = [each for audit in audits for each in audit.check_records(CommittedSource(snapshot), snapshot)]
    known = {v.message for a in audits for v in a.check_records(CommittedSource(before), before)} if found else set()
    return next((each for each in found if each.message not in known), None)


def _is_joined(repo: Repository, seen: str, commit: str) -> bool:
    """Whether a commit follows on ``seen`` otherwise than one by one: by a merge, or as commits that were made anew."""
    for _ in range(_MOST):
        if commit == seen:
            return False
        parents = parse_parents(repo.objects.read_object(commit)[1])
        if len(parents) != 1:
            return True
        commit = parents[0]
    return True
