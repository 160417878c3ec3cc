"""What is to be told to whom, when nothing is known of what was told before."""

from __future__ import annotations

from collections.abc import Callable, Collection

from cleared.changes.consumed_events import attempted_keys
from cleared.changes.host import Host
from cleared.triggers.agent_triggers import Listener, Roster
from cleared.triggers.event_stream import Told
from cleared.vcs import Repository, Snapshot, history

News = set[tuple[str, str | None]]
"""Agents, and the keys of events that are to be delivered to them."""


def news(
    host: Host, repo: Repository, snapshot: Snapshot, roster: Roster, found: Collection[Told],
    since_script: Callable[[Host, Listener, list[Told]], list[Told]],
) -> News:  # fmt: skip
    """Of these events, oldest first: those after the last that an agent had a run for; where there is none, those
    that have come to be since its script is as it is."""
    wanted: News = set()
    for listener in {heard.name: heard for told in found for heard in roster.of_event(told.event.name)}.values():
        past = attempted_keys(host, repo, snapshot, listener.name)
        mine = [told for told in found if listener.hears(told.event.name)]
        last = max((i for i, told in enumerate(mine) if told.event.key in past), default=None)
        mine = mine[last + 1 :] if last is not None else since_script(host, listener, mine)
        wanted |= {(listener.name, told.event.key) for told in mine}
    return wanted


def by_commit(host: Host, listener: Listener, mine: list[Told]) -> list[Told]:
    """For events of commits: those whose commit has the script as it is."""
    script = [host.layout.agent_path(listener.name)]
    newest = [c.id for c in history.read_log(host.root, 1, script)]
    return [told for told in mine if [c.id for c in history.read_log(host.root, 1, script, rev=told.commit)] == newest]
