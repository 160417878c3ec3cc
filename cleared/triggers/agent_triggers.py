"""Which agents have triggers, and which: read from the last commit, never from the working tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from cleared.changes.host import Host
from cleared.domains.installed_domains import parse_header
from cleared.git import Snapshot
from cleared.runs.approved_scripts import MAX_SCRIPT_BYTES
from cleared.runs.attempt import Event
from cleared.sandbox.header import Header
from cleared.sandbox.schedule import Schedule
from cleared.sandbox.trigger_kinds import EVENT, FILE_WATCH, ON_DEMAND, SCHEDULE

_DOCSTRING: Final = re.compile(rb'(?:[ \t]*(?:#[^\n]*)?\r?\n)*"""(?:[^"\\]|"(?!""))*"""[ \t]*(?:\r?\n|$)')


class TriggeredAgent(Struct, frozen=True):
    """An agent with a trigger other than ``on_demand``."""

    name: str
    blob: str
    """The git blob of its committed script."""
    header: Header
    schedule: Schedule | None = None

    def handles_event_name(self, event: str) -> bool:
        """Whether one of its ``event:`` patterns matches this name."""
        return EVENT.name in self.header.triggers and any(fnmatchcase(event, glob) for glob in self.header.event)

    def is_triggered_by(self, event: Event) -> bool:
        """Whether this event still starts it, by the header it has now."""
        return self.handles_event_name(event.name) if event.kind == EVENT.name else event.kind in self.header.triggers

    @property
    def watched_paths(self) -> tuple[str, ...]:
        return self.header.watch if FILE_WATCH.name in self.header.triggers else ()


class TriggerIndex:
    """All agents of one commit that have triggers. The header of an unchanged script is not read again."""

    def __init__(self) -> None:
        self.listeners: dict[str, TriggeredAgent] = {}
        self.unreadable: dict[str, str] = {}
        """Agents whose header cannot be read → why: they are not started."""
        self.changed: set[str] = set()
        """Agents that were added, changed or removed by the last ``read_agents``."""
        self._event_listeners: list[TriggeredAgent] = []
        """The agents with an ``event`` trigger; kept apart, as they are looked through after every run."""
        self._tree: str | None = None
        self._timezone = ""

    def read_agents(self, host: Host, snapshot: Snapshot) -> bool:
        """Read the agents of this commit; returns whether any differs from before."""
        folder = snapshot.find_entry(host.layout.agents_dir)
        tree = folder.oid if folder is not None and folder.is_tree else None
        timezone = host.config.business.timezone
        if tree is not None and tree == self._tree and timezone == self._timezone:
            self.changed = set()
            return False
        first = not self._timezone
        earlier = self.listeners if timezone == self._timezone else {}
        before = dict(self.listeners)
        self.listeners, self.unreadable = {}, {}
        new: list[tuple[str, str]] = []
        for name, blob in self._list_scripts(host, snapshot):
            if name in earlier and earlier[name].blob == blob:
                self.listeners[name] = earlier[name]
            else:
                new.append((name, blob))
        for (name, blob), data in zip(new, snapshot.read_blobs([blob for _, blob in new]), strict=True):
            header, problem = read_header(data, f"{host.layout.agents_dir}/{name}.py")
            if header is None:
                self.unreadable[name] = problem
            elif set(header.triggers) - {ON_DEMAND.name}:
                schedule = (
                    Schedule(header.schedule, header.timezone or timezone)
                    if header.schedule is not None and SCHEDULE.name in header.triggers
                    else None
                )
                self.listeners[name] = TriggeredAgent(name, blob, header, schedule)
        self.listeners = dict(sorted(self.listeners.items()))
        self._event_listeners = [each for each in self.listeners.values() if EVENT.name in each.header.triggers]
        self._tree, self._timezone = tree, timezone
        both = before.keys() | self.listeners.keys()
        self.changed = {name for name in both if not first and before.get(name) != self.listeners.get(name)}
        return first or bool(self.changed)

    def _list_scripts(self, host: Host, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
        """Name and blob of each agent."""
        for name, entry in snapshot.list_folder(host.layout.agents_dir).items():
            if name.endswith(".py") and not name.startswith(".") and entry.is_file:
                yield name.removesuffix(".py"), entry.oid

    def agents_for_event(self, event: str) -> list[TriggeredAgent]:
        """The agents that an event of this name starts, sorted by name."""
        return [listener for listener in self._event_listeners if listener.handles_event_name(event)]


def read_header(data: bytes, file: str) -> tuple[Header | None, str]:
    """The header of a script, and why it has none. Only the docstring is parsed: there may be thousands."""
    if len(data) > MAX_SCRIPT_BYTES:
        return None, "the script is too large"
    docstring = _DOCSTRING.match(data)
    try:
        text = (docstring[0] if docstring else data).decode("utf-8")
    except UnicodeDecodeError:
        return None, "the script is not UTF-8"
    header, findings = parse_header(text, file)
    return header, str(findings[0].message) if findings else ""
