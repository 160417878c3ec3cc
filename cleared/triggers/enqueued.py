"""Jobs that the runs of this clone ask for: read off their commits, for the loop."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cleared.primitives.ctx import LOOP_ENQUEUE
from cleared.runs.emitted import DEPTH
from cleared.runs.host import Host
from cleared.triggers.stream import number, told_since
from cleared.vcs import Repository

_RUN: Final = "run:"


@dataclass(frozen=True, slots=True)
class Asked:
    """A job that a run asked for."""

    run: str
    key: str
    """Run and ordinal: names it for ever."""
    kind: str
    target: str
    commit: str
    depth: int
    """How many events led to it, itself included."""

    @property
    def by(self) -> str:
        return f"{_RUN}{self.run}"


def asked_since(host: Host, repo: Repository, head: str, cursor: str | None, now: datetime) -> list[Asked]:
    """What the commits of this clone after ``cursor``, up to ``head``, ask the loop for; oldest first.

    Each is told once if the cursor is kept together with what is made of it. Without a cursor, or where it is in
    another history by now: what was asked for in the last seven days. Whether a job of that kind may be run is not
    looked at.
    """
    if head == cursor:
        return []
    found = []
    for told in told_since(host, repo, head, cursor, lambda name: name == LOOP_ENQUEUE, now):
        payload = told.event.payload
        kind, target = (payload.get("kind"), payload.get("target")) if isinstance(payload, dict) else (None, None)
        if isinstance(kind, str) and isinstance(target, str):
            found.append(Asked(told.by, str(told.event.key), kind, target, told.commit, told.event.depth))
    return found


def depth_after(root: Path, by: str) -> int:
    """How many events led to one that comes of what ``by`` asked for (``run:<id>``; else nothing led to it)."""
    if not by.startswith(_RUN):
        return 1
    from cleared.vcs import history

    commits = history.find_by_trailer(root, "Run", by.removeprefix(_RUN))
    return number(commits[0].trailers, DEPTH) + 1 if commits else 1
