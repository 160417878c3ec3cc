"""A branch whose file a power cut left empty: which commit it was at, and how to put that back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cleared.errors import WorkspaceError
from cleared.vcs.git_process import GitFailed
from cleared.vcs.remembered_commit import read_remembered_commit
from cleared.vcs.repository import Repository, is_oid


def damaged_branch_error(repo: Repository, file: Path) -> WorkspaceError:
    """What is wrong, with the commit that the branch was at: the newest that the reflog or our own memory has, and
    the repository still holds."""
    message = f"{file} is empty, as a power cut can leave it: git does not know the commit of {repo.branch}"
    found = _find_last_commit(repo)
    if found is None:
        return WorkspaceError(message, remedy="Fetch from a clone, or restore .git from a backup; git fsck --full.")
    commit, source = found
    return WorkspaceError(
        message,
        remedy=f"By {source} it was {commit}. Put it back: echo {commit} > '{file}'. Then: cleared journal check.",
    )


def _find_last_commit(repo: Repository) -> tuple[str, str] | None:
    logged = next(_reflog_commits(repo), None)
    sealed = read_remembered_commit(repo)
    if sealed is None:
        return (logged, "the reflog") if logged is not None else None
    if logged is not None and logged != sealed:
        try:
            repo.git.run("merge-base", "--is-ancestor", sealed, logged)
        except GitFailed:
            pass
        else:
            return logged, "the reflog"
    return sealed, "what cleared has committed"


def _reflog_commits(repo: Repository) -> Iterator[str]:
    """Commits that the branch was at, newest first, as far as they can be read."""
    try:
        lines = (repo.common_dir / "logs" / repo.branch).read_bytes().splitlines()
    except OSError:
        return
    for line in reversed(lines):
        commit = line.decode("utf-8", "replace").partition(" ")[2].partition(" ")[0]
        if is_oid(commit):
            try:
                repo.read_tree(repo.find_tree_id(commit))
            except WorkspaceError:
                continue
            yield commit
