"""Deliveries for agents with a schedule: one for each time that is due."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta

from cleared.base.clock import format_iso
from cleared.changes.consumed_events import latest_keys
from cleared.runs.attempt import Event
from cleared.sandbox.schedule import correct_mark, find_due_times, jitter_seconds
from cleared.sandbox.trigger_kinds import SCHEDULE
from cleared.triggers.agent_triggers import TriggeredAgent
from cleared.triggers.service_log import ServiceLog
from cleared.triggers.trigger_source import StepTimes
from cleared.triggers.workspace_view import WorkspaceView


class ScheduleSource:
    """The next due time of each schedule. The inbox keeps each agent's mark: the time up to which it is decided."""

    kind = SCHEDULE

    def __init__(self, log: ServiceLog, was_running: Callable[[str, datetime], bool]) -> None:
        """``was_running(agent, time)``: whether a run of the agent was on at that time."""
        self.log, self._was_running = log, was_running
        self._next_times: list[tuple[datetime, str]] = []
        """A heap of (next due time, agent)."""

    def set_agents(self, view: WorkspaceView, now: datetime) -> None:
        """Find the next due time of each schedule. An agent without a mark gets one: the time of its last run in the
        history where the inbox is new, else ``now``."""
        marks = view.inbox.schedule_marks()
        last_keys = latest_keys(view.host, view.repo, view.snapshot, SCHEDULE.name) if view.inbox.is_new else {}
        changed_marks = []
        self._next_times = []
        for listener in view.triggers.listeners.values():
            if listener.schedule is None:
                continue
            mark = marks.get(listener.name)
            if mark is None:
                mark = _parse_time(last_keys.get(listener.name)) or now
                changed_marks.append((listener.name, mark))
            if mark != correct_mark(mark, now):
                mark = correct_mark(mark, now)
                changed_marks.append((listener.name, mark))
            due = listener.schedule.next_after(mark)
            if due is not None:
                self._next_times.append((due, listener.name))
        heapq.heapify(self._next_times)
        view.inbox.set_schedule_marks(changed_marks)

    def next_look_at(self, view: WorkspaceView) -> datetime | None:
        """The earliest time at which a schedule is due."""
        return self._next_times[0][0] if self._next_times else None

    def handle_clock_set_back(self, now: datetime) -> None:
        """Due times stay: they do not come twice (``correct_mark``)."""

    def add_due_deliveries(self, view: WorkspaceView, times: StepTimes) -> None:
        """Decide all times up to now: each becomes a delivery, is skipped, or counts as missed."""
        now = times.now
        while self._next_times and self._next_times[0][0] <= now:
            _, name = heapq.heappop(self._next_times)
            listener = view.triggers.listeners.get(name)
            if listener is None or listener.schedule is None:
                continue
            mark = correct_mark(view.inbox.schedule_mark(name) or now, now)
            catch_up = listener.header.catch_up or view.host.config.triggers.catch_up
            due = find_due_times(listener.schedule, mark, now, times.awake_since, catch_up)
            with view.inbox.transaction():
                self._add_deliveries(view, listener, due.times, times)
                view.inbox.set_schedule_marks([(name, due.mark)])
            if due.missed:
                self.log(
                    "schedule.missed",
                    f"{name}: {due.missed} times were missed and are not made up for",
                    agent=name,
                    missed=due.missed,
                )
            following = listener.schedule.next_after(due.mark)
            if following is not None:
                heapq.heappush(self._next_times, (following, name))

    def _add_deliveries(
        self, view: WorkspaceView, listener: TriggeredAgent, due_times: tuple[datetime, ...], times: StepTimes
    ) -> None:
        name, header, inbox = listener.name, listener.header, view.inbox
        is_waiting = inbox.has_deliveries(name)
        for due in due_times:
            is_late = due < times.awake_since
            if not is_late and header.overlap != "queue" and (is_waiting or self._was_running(name, due)):
                self.log(
                    "schedule.skipped",
                    f"{name}: skipped {format_iso(due)}, it was running, or waiting to, still",
                    agent=name,
                    due=format_iso(due),
                )
                continue
            event = Event(SCHEDULE.name, header.schedule or "", {"due": format_iso(due)}, format_iso(due))
            delay = timedelta(seconds=jitter_seconds(name, due, header.jitter) if header.jitter else 0)
            inbox.add_delivery(name, event, times.now, not_before=max(times.now, due + delay))
            is_waiting = is_waiting or not is_late


def _parse_time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
