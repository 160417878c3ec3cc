"""Whether two clones are of the same history. A hint: shallow clones lack commits, and rewriting makes others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cleared.git.git_process import Git
from cleared.git.history import list_ends
from cleared.git.object_reader import is_oid
from cleared.git.repository import Repository


def identifying_commits(repo: Repository) -> list[str]:
    """A few commits that tell a clone from those of other books: its last one and its first ones."""
    head = repo.find_head()
    if head is None:
        return []
    return [head, *list_ends(repo, head)]


def has_commit_of(repo: Repository, git_dir: Path, known: Sequence[str]) -> bool:
    """Whether ``repo`` has a commit in common with the clone in ``git_dir``, which may be gone.

    ``known``: commits that the clone is known to have had.
    """
    own = repo.git
    if any(_has_commit(own, commit) for commit in known):
        return True
    if not git_dir.is_dir():
        return False
    other = Git(git_dir.parent if git_dir.name == ".git" else git_dir)
    head = other.run("rev-parse", "--verify", "--quiet", "HEAD", check=False).decode().strip()
    return _has_commit(own, head) or any(_has_commit(other, commit) for commit in identifying_commits(repo))


def _has_commit(git: Git, commit: str) -> bool:
    return is_oid(commit) and git.run("cat-file", "-t", commit, check=False).strip() == b"commit"
