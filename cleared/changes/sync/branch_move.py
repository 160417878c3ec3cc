"""Moving the branch of this clone to a commit that was made elsewhere, or beside it."""

from __future__ import annotations

from cleared.base.errors import Place, WorkspaceError
from cleared.changes.host import Host
from cleared.git import CommitHeader, HeadMoved, Repository, Snapshot, commit_changes


def move_branch(host: Host, repo: Repository, own: str, result: str, subject: str) -> None:
    """Let the branch, git's index and the files be as ``result`` has them; they are as ``own`` has them now. The caller
    holds the writer lock. ``subject``: what is done, for whoever waits.

    Raises ``WorkspaceError`` where a file that somebody has edited is in the way; nothing is changed then.
    """
    before, after = Snapshot(repo, own), Snapshot(repo, result)
    changed = after.list_changes(before)
    for path in changed:
        if any(entry is not None and not entry.is_file for entry in (before.find_entry(path), after.find_entry(path))):
            raise WorkspaceError(
                "a symbolic link or a submodule came or went, and plain files only are brought",
                place=Place(path),
                remedy="Look at it; then take it over by git: git merge --ff-only.",
            )
    header = CommitHeader(subject, (), host.author, host.clock.now(), made=result)
    try:
        commit_changes(
            repo,
            own,
            {path: after.read_file(path) for path in changed},
            header,
            on_step=host.on_step,
            state_dir=host.layout.state_dir,
            wait_seconds=host.config.lock.wait_seconds,
        )
    except HeadMoved as error:
        raise WorkspaceError(f"{error.message}; nothing was changed", remedy="Say it again.") from None
