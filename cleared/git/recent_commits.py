"""The newest commits of a line of history, read without starting a git: needed after every run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cleared.base.errors import WorkspaceError
from cleared.git.commit_text import parse_parents, parse_trailers
from cleared.git.repository import Repository


@dataclass(frozen=True, slots=True)
class RecentCommit:
    """One commit: its id, the first line of its message, and its trailers."""

    id: str
    subject: str
    trailers: Mapping[str, str] = field(default_factory=dict)


def read_recent_commits(
    repo: Repository, commit: str, after: str | None, limit: int = 200
) -> list[RecentCommit] | None:
    """The commits after ``after`` (None: all) up to ``commit``, newest first.

    None where that is not a straight line of at most ``limit`` commits (a merge, another history, a shallow clone's
    end): use ``history.read_log`` then.
    """
    commits: list[RecentCommit] = []
    at: str | None = commit
    while at is not None and at != after:
        if len(commits) >= limit:
            return None
        try:
            kind, data = repo.objects.read_object(at)
        except WorkspaceError:
            return None
        parents = parse_parents(data)
        if kind != "commit" or len(parents) > 1 or (not parents and after is not None):
            return None
        message = data.partition(b"\n\n")[2].decode("utf-8", "replace")
        commits.append(RecentCommit(at, message.partition("\n")[0], parse_trailers(message)))
        at = parents[0] if parents else None
    return commits


def find_ancestor(repo: Repository, commit: str, steps: int) -> str | None:
    """The commit that many steps before ``commit``, by first parents; ``None`` where the history is shorter.

    Where a shallow clone ends before that, the oldest commit that is there.
    """
    at = commit
    for _ in range(steps):
        try:
            parents = parse_parents(repo.objects.read_object(at)[1])
            if not parents:
                return None
            repo.objects.find_tree_id(parents[0])
        except WorkspaceError:  # a shallow clone ends here
            return at
        at = parents[0]
    return at
