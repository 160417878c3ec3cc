"""Merging a branch that a program left: its files become part of the workspace, or it is said which conflict.

What is merged is read from the branch itself. Its card is a tracked file that anybody with the repository can write.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, UsageError
from cleared.cards.card import Card
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.gate.program_changes import find_repositories, is_inside, sort_change
from cleared.git import Repository, Snapshot, parse_parents
from cleared.git.side_branch import find_branch

CYCLE_BRANCHES: Final = "cleared-cycle/"
TASK_BRANCHES: Final = "cleared-task/"
_BRANCH: Final = re.compile(rf"(?:{CYCLE_BRANCHES}|{TASK_BRANCHES})[a-z0-9-]{{1,60}}")


class BranchCommit(Struct, frozen=True):
    """The one commit of a branch, and that before it."""

    base: Snapshot
    new: Snapshot
    before: Mapping[str, tuple[str, str]]
    after: Mapping[str, tuple[str, str]]

    @property
    def changed(self) -> list[str]:
        """The paths that differ, sorted."""
        paths = self.before.keys() | self.after.keys()
        return sorted(path for path in paths if self.before.get(path) != self.after.get(path))


def read_branch(repo: Repository, details: Mapping[str, Any]) -> BranchCommit:
    """The branch that a card's details name. Raises ``UsageError`` where it is gone, or another commit is on it."""
    branch, commit = str(details.get("branch", "")), str(details.get("commit", ""))
    tip = find_branch(repo, branch) if _BRANCH.fullmatch(branch) else None
    if tip is None or tip != commit:
        raise UsageError(
            f"the branch {branch[:80]!r} is gone, or another commit is on it", remedy="Drop the card, or merge by git."
        )
    parents = parse_parents(repo.objects.read_object(tip)[1])
    new, base = Snapshot(repo, tip), Snapshot(repo, parents[0] if parents else None)
    return BranchCommit(base, new, base.list_entries(), new.list_entries())


def _find_made_repositories(decision_context: DecisionContext, found: BranchCommit) -> frozenset[str]:
    """The folders that git would take for a repository once the branch is merged: with what is here, ignored or not.
    Two branches may bring one half each."""
    root = decision_context.host.root
    folders = {parent for path in found.changed for parent in PurePosixPath(path).parents}
    here = [path.relative_to(root).as_posix() for folder in folders for path in (root / folder).glob("*")]
    return find_repositories([*decision_context.snapshot.list_entries(), *found.after, *here])


def read_branch_files(
    decision_context: DecisionContext, card: Card, without: Collection[str] = ()
) -> dict[str, bytes | None]:
    """The files that the branch of a card changes, but for those ``without`` names and what is for the gate: path →
    content, None where it removes the file.

    Raises ``UsageError`` where the branch is gone or nothing is left of it, ``PolicyError`` where it changes what no
    program may change, or a file that was changed here since.
    """
    found = read_branch(decision_context.repo, card.details)
    branch, new, base, after = str(card.details["branch"]), found.new, found.base, found.after
    files: dict[str, bytes | None] = {}
    conflicts = []
    repositories = _find_made_repositories(decision_context, found)
    for path in without:
        if path not in found.changed:
            raise UsageError("the branch does not change it", place=Place(path), remedy="cleared queue show CARD.")
    fates = {path: sort_change(decision_context.host, path) for path in found.changed}
    merged = [path for path in found.changed if path not in without and fates[path] != "proposable"]
    if not merged:
        raise UsageError("nothing is left to merge", remedy="Drop the card.")
    for path in merged:
        is_plain = after.get(path, ("100",))[0].startswith("100") and not is_inside(path, repositories)
        if fates[path] != "plain" or not is_plain:
            raise PolicyError("no branch of a program may change it", place=Place(path), remedy="Drop the card.")
        current = decision_context.snapshot.find_blob_id(path)
        theirs = new.find_blob_id(path)
        if current != theirs and current != base.find_blob_id(path):
            conflicts.append(path)
        elif current != theirs:
            files[path] = new.read_file(path)
    if conflicts:
        raise PolicyError(
            f"changed here since, too: {', '.join(conflicts[:10])}; nothing was merged",
            remedy=f"Leave them out (--without PATH), or merge by hand: git merge {branch}, and then drop the card.",
        )
    return files
