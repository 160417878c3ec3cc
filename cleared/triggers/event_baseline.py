"""Which past events to deliver to which agents, where the record of earlier deliveries was lost (or never began)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from cleared.changes.consumed_events import attempted_keys
from cleared.changes.host import Host
from cleared.triggers.agent_triggers import TriggeredAgent, TriggerIndex
from cleared.triggers.event_stream import RecordedEvent
from cleared.vcs import Repository, Snapshot, history

WantedDeliveries = set[tuple[str, str | None]]
"""Pairs of an agent and the key of an event to deliver to it."""


def select_undelivered(
    host: Host, repo: Repository, snapshot: Snapshot, triggers: TriggerIndex, found: Collection[RecordedEvent],
    since_script: Callable[[Host, TriggeredAgent, list[RecordedEvent]], list[RecordedEvent]],
) -> WantedDeliveries:  # fmt: skip
    """Choose from ``found`` (oldest first) what each agent has not had: the events after the last one that it had a run
    for. An agent without any such run gets those that ``since_script`` chooses: the ones since its script was last
    changed."""
    wanted: WantedDeliveries = set()
    for listener in {
        heard.name: heard for told in found for heard in triggers.agents_for_event(told.event.name)
    }.values():
        past = attempted_keys(host, repo, snapshot, listener.name)
        mine = [told for told in found if listener.handles_event_name(told.event.name)]
        last = max((i for i, told in enumerate(mine) if told.event.key in past), default=None)
        mine = mine[last + 1 :] if last is not None else since_script(host, listener, mine)
        wanted |= {(listener.name, told.event.key) for told in mine}
    return wanted


def events_since_script_commit(host: Host, listener: TriggeredAgent, mine: list[RecordedEvent]) -> list[RecordedEvent]:
    """The events whose commit already had the present version of the agent's script."""
    script = [host.layout.agent_path(listener.name)]
    newest = [c.id for c in history.read_log(host.root, 1, script)]
    return [told for told in mine if [c.id for c in history.read_log(host.root, 1, script, rev=told.commit)] == newest]
