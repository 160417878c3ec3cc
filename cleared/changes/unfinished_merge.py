"""What is said while a merge, a rebase or the like is under way: the same by every command that comes upon it."""

from __future__ import annotations

from typing import Final

from cleared.base.errors import Place, WorkspaceError
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import TWO_CLONES_PAGE
from cleared.git import Repository, history
from cleared.git.repository import unfinished_error
from cleared.workspace.location import Layout

_COLLISION: Final = (
    "two clones have both written here, and git cannot join what they wrote",
    f"Do not join it by hand: git {{}} --abort, then cleared sync ({TWO_CLONES_PAGE}).",
)
_REVERT_COLLISION: Final = (
    "something has written here after the commit that is reverted, and git cannot take that one out alone",
    "Do not do it by hand: git {} --abort. Then have it taken back by one more commit: cleared revert RUN for a run or "
    "an import, cleared queue undo for the last decision, cleared journal void ID for an entry.",
)


def list_unfinished(repo: Repository, layout: Layout) -> list[WorkspaceError]:
    """What git waits for the user to finish: an error for each file that only runs and decisions may change and that it
    could not join, else one for the whole; empty where it waits for nothing."""
    command = repo.find_unfinished()
    if command is None:
        return []
    managed = ManagedFiles(layout)
    message, remedy = _REVERT_COLLISION if command == "revert" else _COLLISION
    paths = filter(managed.has_path, history.list_unmerged_paths(repo.root))
    collisions = [WorkspaceError(message, place=Place(path), remedy=remedy.format(command)) for path in paths]
    return collisions or [unfinished_error(command)]


def explain_unwritable(repo: Repository, layout: Layout) -> WorkspaceError | None:
    """Why nothing can be committed, and what to do, such as while git waits for the user to finish something; ``None``
    where something can."""
    try:
        repo.reopen_for_writing()
    except WorkspaceError as error:
        first, *others = list_unfinished(repo, layout) or [error]
        if first.place is None:
            return first
        more = f" (and {len(others)} more files)" if others else ""
        return WorkspaceError(f"{error.message}: {first.message}{more}", place=first.place, remedy=first.remedy)
    return None
