"""What is said while a merge, a rebase or the like is under way, and of what git could not join without one, such as a
``git stash pop``: the same by every command that comes upon it."""

from __future__ import annotations

from typing import Final

from cleared.base.errors import Place, WorkspaceError, quote_path
from cleared.base.terminal import count_noun
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import TWO_CLONES_PAGE
from cleared.git import Repository, Snapshot
from cleared.git.index import list_unmerged_paths
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
_UNJOINED: Final = "git could not join what was changed here with what is committed, as by git stash pop"


def list_unfinished(repo: Repository, layout: Layout, *, everywhere: bool = False) -> list[WorkspaceError]:
    """What git waits for the user to finish: an error for each file that only runs and decisions may change and that it
    could not join, else one for the whole; empty where it waits for nothing.

    Where no merge or the like is under way, other files hold up nobody: they are named where ``everywhere`` is asked.
    """
    command, unmerged = repo.find_unfinished(), list_unmerged_paths(repo)
    managed = list(filter(ManagedFiles(layout).has_path, unmerged))
    if command is None:
        return _list_unjoined(repo, managed, unmerged if everywhere else managed)
    message, remedy = _REVERT_COLLISION if command == "revert" else _COLLISION
    collisions = [WorkspaceError(message, place=Place(path), remedy=remedy.format(command)) for path in managed]
    return collisions or [unfinished_error(repo, command)]


def _list_unjoined(repo: Repository, managed: list[str], unmerged: list[str]) -> list[WorkspaceError]:
    """As ``list_unfinished``, where no merge or the like is under way."""
    if not unmerged:
        return []
    committed = Snapshot(repo, repo.find_head())

    def name_command(path: str) -> str:
        return f"git {'checkout HEAD' if committed.find_entry(path) else 'rm -f'} -- {quote_path(path)}"

    if managed:
        remedy = "Do not join it by hand. Have what is committed: {} (what git stash had put away stays there)."
        return [
            WorkspaceError(_UNJOINED, place=Place(path), remedy=remedy.format(name_command(path))) for path in managed
        ]
    first, *others = unmerged
    more = f", and so {count_noun(len(others), 'more file')} (git status)" if others else ""
    remedy = f"Put it right, then: git add {quote_path(first)}; or have what is committed: {name_command(first)}."
    return [WorkspaceError(f"{_UNJOINED}{more}", place=Place(first), remedy=remedy)]


def explain_unwritable(repo: Repository, layout: Layout) -> WorkspaceError | None:
    """Why nothing can be committed, and what to do, such as while git waits for the user to finish something; ``None``
    where something can."""
    try:
        repo.reopen_for_writing()
    except WorkspaceError as error:
        if repo.find_unfinished() is None:
            return error
        first, *others = list_unfinished(repo, layout) or [error]
        if first.place is None:
            return first
        more = f" (and {count_noun(len(others), 'more file')})" if others else ""
        return WorkspaceError(f"{error.message}: {first.message}{more}", place=first.place, remedy=first.remedy)
    return None
