"""Deliveries for agents that listen to events: those of this clone's commits, and of the loop's jobs that ended.

Where the record of earlier deliveries was lost, or never began, it is decided here which past events are delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from cleared.changes.consumed_events import attempted_keys
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot, history
from cleared.sandbox.trigger_kinds import EVENT
from cleared.triggers import service_notices
from cleared.triggers.agent_triggers import TriggeredAgent, TriggerIndex
from cleared.triggers.ended_jobs import CURSOR_KEY as JOBS_CURSOR
from cleared.triggers.ended_jobs import EndedJobs, events_since_script
from cleared.triggers.event_stream import RecordedEvent, read_events_since
from cleared.triggers.pending_deliveries import COMMITS_CURSOR
from cleared.triggers.service_log import ServiceLog
from cleared.triggers.trigger_source import StepTimes
from cleared.triggers.workspace_view import WorkspaceView


class EventSource:
    """Reads events from commits and from ended jobs. The inbox keeps a cursor for each: how far they were read."""

    kind = EVENT

    def __init__(self, log: ServiceLog, now: datetime) -> None:
        self.log = log
        self.jobs = EndedJobs(log, now)

    def set_agents(self, view: WorkspaceView, now: datetime) -> None:
        """Look at the folder of ended jobs only while some agent listens to their events."""
        self.jobs.set_agents(view.host, view.inbox, view.triggers, now)

    def next_look_at(self, view: WorkspaceView) -> datetime | None:
        """When to look for ended jobs. Commits are read whenever there is a new one."""
        return self.jobs.next_scan_at(view.host)

    def handle_clock_set_back(self, now: datetime) -> None:
        self.jobs.look_at = min(self.jobs.look_at, now)

    def add_due_deliveries(self, view: WorkspaceView, times: StepTimes) -> None:
        """Deliver the events of jobs that have ended since the last look."""
        scan = self.jobs.scan_if_due(view.host, view.inbox, times.now)
        if scan is None:
            return
        wanted = None
        if scan.is_first:
            wanted = select_undelivered(
                view.host, view.repo, view.snapshot, view.triggers, scan.events, events_since_script
            )
        self._add_deliveries(view, scan.events, wanted, times.now, JOBS_CURSOR, scan.cursor)

    def add_committed_events(self, view: WorkspaceView, now: datetime) -> None:
        """Deliver the events of this clone's commits since the last call."""
        head = view.repo.read_head()
        cursor = view.inbox.read_cursor(COMMITS_CURSOR)
        if head == cursor:
            return

        def is_listened_to(name: str) -> bool:
            return bool(view.triggers.agents_for_event(name))

        events = read_events_since(view.host, view.repo, head, cursor, is_listened_to, now)
        wanted = None
        if cursor is None:
            snapshot = Snapshot(view.repo, head)
            wanted = select_undelivered(
                view.host, view.repo, snapshot, view.triggers, events, events_since_script_commit
            )
        self._add_deliveries(view, events, wanted, now, COMMITS_CURSOR, head)

    def _add_deliveries(
        self,
        view: WorkspaceView,
        events: list[RecordedEvent],
        wanted: WantedDeliveries | None,
        now: datetime,
        cursor_key: str,
        cursor: str,
    ) -> None:
        """Add a delivery for each event and each agent that listens to it, and move the cursor, in one transaction.

        Only the ``wanted`` ones, if that is given. Events at the end of too long a chain are not delivered.
        """
        max_depth = view.host.config.triggers.max_depth
        for recorded in events:
            if recorded.event.depth > max_depth:  # before the cursor moves: a kill in between repeats it
                self._report_cycle(view, recorded)
        with view.inbox.transaction():
            for recorded in events:
                if recorded.event.depth > max_depth:
                    continue
                for listener in view.triggers.agents_for_event(recorded.event.name):
                    if wanted is not None and (listener.name, recorded.event.key) not in wanted:
                        continue
                    if listener.header.overlap == "skip" and view.inbox.has_deliveries(listener.name):
                        self.log(
                            "event.skipped",
                            f"{listener.name}: skipped {recorded.event.name}, it is busy still",
                            agent=listener.name,
                            key=recorded.event.key,
                        )
                        continue
                    view.inbox.add_delivery(listener.name, recorded.event, now)
            view.inbox.set_cursor(cursor_key, cursor)

    def _report_cycle(self, view: WorkspaceView, recorded: RecordedEvent) -> None:
        names = [listener.name for listener in view.triggers.agents_for_event(recorded.event.name)]
        self.log(
            "event.cycle",
            f"{', '.join(names)}: not started for {recorded.event.name}, the chain of events that "
            "leads to it is too long",
            level="warning",
            key=recorded.event.key,
        )
        service_notices.report_event_cycle(view.host, names, recorded)


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
