"""What is said while a merge, a rebase or the like is under way: the same by every command that comes upon it."""

from __future__ import annotations

from pathlib import Path

from cleared.base.errors import Place, WorkspaceError
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import TWO_CLONES_PAGE
from cleared.git import Repository, history
from cleared.workspace.location import Layout

_GIVE_UP = f"Do not join it by hand: git merge --abort (or git rebase --abort), then cleared sync ({TWO_CLONES_PAGE})."


def find_collisions(root: Path, layout: Layout) -> list[WorkspaceError]:
    """The files that only runs and decisions may change, and that a merge under way could not join; an error each."""
    message = "two clones have both written here, and git cannot join what they wrote"
    paths, managed = history.list_unmerged_paths(root), ManagedFiles(layout)
    return [WorkspaceError(message, place=Place(path), remedy=_GIVE_UP) for path in paths if managed.has_path(path)]


def explain_unfinished(repo: Repository, layout: Layout) -> WorkspaceError | None:
    """Why nothing can be committed while git waits for the user to finish something, and what to do; ``None`` where it
    waits for nothing."""
    try:
        repo.refuse_unfinished()
    except WorkspaceError as error:
        collisions = find_collisions(repo.root, layout)
        if not collisions:
            return error
        more = f" (and {len(collisions) - 1} more files)" if len(collisions) > 1 else ""
        first = collisions[0]
        return WorkspaceError(f"{error.message}: {first.message}{more}", place=first.place, remedy=first.remedy)
    return None
