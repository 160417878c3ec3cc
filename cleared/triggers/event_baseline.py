"""Which past events to deliver to which agents, where the record of earlier deliveries was lost (or never began)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from cleared.changes.consumed_events import attempted_keys
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot, history
from cleared.triggers.agent_triggers import TriggeredAgent, TriggerIndex
from cleared.triggers.event_stream import RecordedEvent

WantedDeliveries = set[tuple[str, str | None]]
"""Pairs of an agent and the key of an event to deliver to it."""


def select_undelivered(
    host: Host,
    repo: Repository,
    snapshot: Snapshot,
    triggers: TriggerIndex,
    events: Collection[RecordedEvent],
    since_script: Callable[[Host, TriggeredAgent, list[RecordedEvent]], list[RecordedEvent]],
) -> WantedDeliveries:
    """Choose from ``events`` (oldest first) what each agent has not had: those after the last event that it had a run
    for. An agent without any such run gets those that ``since_script`` chooses: the ones since its script was last
    changed."""
    wanted: WantedDeliveries = set()
    for listener in {
        listener.name: listener for recorded in events for listener in triggers.agents_for_event(recorded.event.name)
    }.values():
        past = attempted_keys(host, repo, snapshot, listener.name)
        mine = [recorded for recorded in events if listener.handles_event_name(recorded.event.name)]
        last = max((i for i, recorded in enumerate(mine) if recorded.event.key in past), default=None)
        mine = mine[last + 1 :] if last is not None else since_script(host, listener, mine)
        wanted |= {(listener.name, recorded.event.key) for recorded in mine}
    return wanted


def events_since_script_commit(host: Host, listener: TriggeredAgent, mine: list[RecordedEvent]) -> list[RecordedEvent]:
    """The events whose commit already had the present version of the agent's script."""
    script = [host.layout.agent_path(listener.name)]
    newest = [c.id for c in history.read_log(host.root, 1, script)]
    return [
        recorded
        for recorded in mine
        if [c.id for c in history.read_log(host.root, 1, script, rev=recorded.commit)] == newest
    ]
