"""Merging a branch that a program left: its files become part of the workspace, or it is said which conflict.

What is merged is read from the branch itself. Its card is a tracked file that anybody with the repository can write.
"""

from __future__ import annotations

import re
from typing import Final

from cleared.base.errors import Place, PolicyError, UsageError
from cleared.cards.card import Card
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.gate.program_changes import find_repositories, is_inside, sort_change
from cleared.git import Snapshot, parse_parents
from cleared.git.side_branch import find_branch

CYCLE_BRANCHES: Final = "cleared-cycle/"
TASK_BRANCHES: Final = "cleared-task/"
_BRANCH: Final = re.compile(rf"(?:{CYCLE_BRANCHES}|{TASK_BRANCHES})[a-z0-9-]{{1,60}}")


def read_branch_files(decision_context: DecisionContext, card: Card) -> dict[str, bytes | None]:
    """The files that the branch of a card changes: path → content, None where it removes the file.

    Raises ``UsageError`` where the branch is gone, ``PolicyError`` where it changes what no program may change, or a
    file that was changed here since.
    """
    branch, commit = str(card.details.get("branch", "")), str(card.details.get("commit", ""))
    tip = find_branch(decision_context.repo, branch) if _BRANCH.fullmatch(branch) else None
    if tip is None or tip != commit:
        raise UsageError(
            f"the branch {branch[:80]!r} is gone, or another commit is on it", remedy="Drop the card, or merge by git."
        )
    parents = parse_parents(decision_context.repo.objects.read_object(tip)[1])
    new, base = Snapshot(decision_context.repo, tip), Snapshot(decision_context.repo, parents[0] if parents else None)
    before, after = base.list_entries(), new.list_entries()
    files: dict[str, bytes | None] = {}
    conflicts = []
    repositories = find_repositories(after) - find_repositories(before)
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path):
            continue
        is_plain = after.get(path, ("100",))[0].startswith("100") and not is_inside(path, repositories)
        if sort_change(decision_context.host, path) != "plain" or not is_plain:
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
            remedy=f"Merge it by hand: git merge {branch}, and then drop the card.",
        )
    return files
