"""How a run that a person asked for has ended, where a worker pushed it and was killed before it wrote that down."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cleared.cards.kinds import QUESTION
from cleared.changes.committed_cards import read_cards
from cleared.changes.consumed_events import is_consumed
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.service.fleet.fleet_records import Request
from cleared.triggers.event_stream import RUN_FAILED, read_events_since


def find_question(host: Host, commit: str, request: Request) -> str | None:
    """What it asks at this commit; None where it does not wait for an answer."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, commit)
        if is_consumed(host, repo, snapshot, request.agent, request.id, asking=False):
            return None
        for card in read_cards(host, snapshot).list_open():
            event = card.details.get("event") if (card.kind, card.agent) == (QUESTION.name, request.agent) else None
            if isinstance(event, Mapping) and event.get("id") == request.id:
                return card.title
    return None


def find_failure(host: Host, commit: str, request: Request, now: datetime) -> Mapping[str, Any] | None:
    """The event of its failed run, up to this commit; None where there is none."""
    if not request.commit:  # it was not begun
        return None
    with host.open_for_reading() as repo:
        failed = read_events_since(host, repo, commit, request.commit, lambda name: name == RUN_FAILED, now)
    for about in (each.event.payload for each in failed):
        if about["agent"] == request.agent and str(about["event"]).partition(" ")[2] == request.id:
            return dict(about)
    return None
