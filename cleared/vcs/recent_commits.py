"""The newest commits of a line of history, read without starting a git: what is asked after every run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cleared.errors import WorkspaceError
from cleared.vcs.object_writer import parse_trailers
from cleared.vcs.repository import Repository


@dataclass(frozen=True, slots=True)
class RecentCommit:
    """One commit."""

    id: str
    subject: str
    trailers: Mapping[str, str] = field(default_factory=dict)


def parse_parents(data: bytes) -> list[str]:
    """The parents that a commit object names."""
    fields = data.partition(b"\n\n")[0].split(b"\n")
    return [field[7:].decode("ascii") for field in fields if field.startswith(b"parent ")]


def read_recent_commits(repo: Repository, commit: str, after: str, limit: int = 200) -> list[RecentCommit] | None:
    """The commits after ``after`` up to ``commit``, newest first.

    None where that is not a straight line of at most ``limit`` commits (a merge, another history, a shallow clone's
    end): ``history.log`` knows then.
    """
    found: list[RecentCommit] = []
    at = commit
    while at != after:
        if len(found) >= limit:
            return None
        try:
            kind, data = repo.read_object(at)
        except WorkspaceError:
            return None
        text = data.partition(b"\n\n")[2]
        parents = parse_parents(data)
        if kind != "commit" or len(parents) != 1:
            return None
        message = text.decode("utf-8", "replace")
        found.append(RecentCommit(at, message.partition("\n")[0], parse_trailers(message)))
        at = parents[0]
    return found
