"""Jobs that runs of this clone ask the loop for, read from their commits."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from cleared.changes.consumed_events import event_depth
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot
from cleared.primitives.ctx import LOOP_ENQUEUE_EVENT
from cleared.triggers.event_stream import read_events_since

_RUN: Final = "run:"


class CommittedJobRequest(Struct, frozen=True):
    """A job that a run asked for."""

    run: str
    key: str
    """Run and ordinal: names it for ever."""
    kind: str
    target: str
    commit: str
    depth: int
    """How many events led to it, including itself."""

    @property
    def requested_by(self) -> str:
        return f"{_RUN}{self.run}"


def read_job_requests(
    host: Host, repo: Repository, head: str, cursor: str | None, now: datetime
) -> list[CommittedJobRequest]:
    """What the commits of this clone after ``cursor``, up to ``head``, ask the loop for; oldest first.

    Each is returned once, if the cursor is stored together with what is made of it. Without a cursor, or where it is in
    another history by now: what was asked for in the last seven days. Whether a job of that kind may be run is not
    looked at.
    """
    if head == cursor:
        return []
    requests = []
    for recorded in read_events_since(host, repo, head, cursor, lambda name: name == LOOP_ENQUEUE_EVENT, now):
        payload = recorded.event.payload
        kind, target = (payload.get("kind"), payload.get("target")) if isinstance(payload, dict) else (None, None)
        if isinstance(kind, str) and isinstance(target, str):
            requests.append(
                CommittedJobRequest(
                    recorded.made_by, str(recorded.event.key), kind, target, recorded.commit, recorded.event.depth
                )
            )
    return requests


def event_depth_after(host: Host, by: str) -> int:
    """How many events led to one that comes of what ``by`` asked for (``run:<id>``; else nothing led to it)."""
    if not by.startswith(_RUN):
        return 1
    with host.open_for_reading() as repo:
        return event_depth(host, repo, Snapshot(repo, repo.read_head()), by.removeprefix(_RUN)) + 1
