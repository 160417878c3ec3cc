"""Whether two clones are of the same history. A hint: shallow clones lack commits, and rewriting makes others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cleared.git.commit_text import parse_parents
from cleared.git.git_process import Git
from cleared.git.history import read_recent_commits
from cleared.git.object_reader import is_oid
from cleared.git.repository import Repository


def identifying_commits(repo: Repository) -> list[str]:
    """A few commits that tell a clone from those of other books: its last one and its first ones."""
    head = repo.find_head()
    if head is None:
        return []
    return [head, *_list_ends(repo, head)]


def list_beginnings(repo: Repository, head: str, known: str | None) -> list[str]:
    """The commits without a parent that are in the history of ``head`` and not in that of ``known``; the ends of a
    shallow clone are none."""
    recent = read_recent_commits(repo, head, known)
    if recent is not None:  # a straight line
        return [recent[-1].id] if recent and known is None else []
    return [each for each in _list_ends(repo, head, known) if not parse_parents(repo.objects.read_object(each)[1])]


def list_cut_commits(repo: Repository) -> frozenset[str]:
    """Where a shallow clone ends: of these commits it is not known what was before."""
    try:
        return frozenset((repo.common_dir / "shallow").read_text(encoding="ascii", errors="replace").split())
    except FileNotFoundError:
        return frozenset()


def _list_ends(repo: Repository, head: str, known: str | None = None) -> list[str]:
    without = [f"^{known}"] if known is not None else []
    return repo.git.run("log", "--max-parents=0", "--format=%H", head, *without).decode("ascii").split()


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
