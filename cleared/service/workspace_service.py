"""What a workspace waits for: schedules, files, events, answers. It takes them in, and has them run one by one.

It knows no signals and no threads: ``loop`` calls ``step`` and sleeps. Runs go the way of ``cleared agent run``.
"""

from __future__ import annotations

import hashlib
import heapq
import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cleared.changes.consumed_events import latest_keys
from cleared.changes.host import Host
from cleared.changes.host_cache import HostCache
from cleared.clock import format_iso
from cleared.errors import ClearedError, Interrupted
from cleared.runs.attempt import Event
from cleared.sandbox.trigger_kinds import EVENT, FILE_WATCH, SCHEDULE
from cleared.service.actions import ServiceActions
from cleared.service.delivery import DeliveryRunner
from cleared.triggers import service_notices
from cleared.triggers.agent_triggers import TriggeredAgent, TriggerIndex
from cleared.triggers.dropped_files import DroppedFiles
from cleared.triggers.ended_jobs import CURSOR_KEY as _JOBS
from cleared.triggers.ended_jobs import EndedJobs, events_since_script
from cleared.triggers.event_baseline import WantedDeliveries, events_since_script_commit, select_undelivered
from cleared.triggers.event_stream import RecordedEvent, read_events_since
from cleared.triggers.pending_deliveries import Inbox
from cleared.triggers.schedule import MAX_SET_BACK, correct_mark, find_due_times, jitter_seconds
from cleared.triggers.service_log import ServiceLog
from cleared.vcs import Repository, Snapshot

MISFIRE_GRACE: Final = timedelta(seconds=60)
"""A schedule that is seen to be due later than this, though nothing was running, was missed: the machine slept."""
MAX_WAIT: Final = timedelta(hours=25)
"""Nothing is put off for longer: a day is the most that a header's jitter can be."""
STARTED_KINDS: Final = (SCHEDULE, FILE_WATCH, EVENT)
"""The kinds of triggers that a service makes deliveries for."""
_CURSOR_KEY: Final = "cursor"
_RETRY_AFTER: Final = timedelta(seconds=30)


class WorkspaceService:
    """One workspace. ``step`` does one thing; False where there is nothing to do before ``wake_at``."""

    def __init__(
        self, root: Path, actions: ServiceActions, log: ServiceLog, on_folders: Callable[[list[Path]], None]
    ) -> None:
        self.root, self.actions, self.log = root, actions, log
        self._on_folders = on_folders
        self._kept = HostCache(actions.open_host)
        self.host = self._kept()
        self.log.redactor = self.host.redactor
        self.on_lost: Callable[[], None] = lambda: None
        """Called where ``.cleared/`` was deleted, and with it what says that this service is up."""
        self.problem: str | None = None
        """Why nothing is run, where the workspace cannot be used as it is."""
        self.roster = TriggerIndex()
        self._repo = Repository.open(root, for_writing=False)
        self.inbox = Inbox(self.host.layout.state_dir)
        self._fresh = self.inbox.read_cursor(_CURSOR_KEY) is None
        self.drops = DroppedFiles(root, log, self.now)
        self.jobs = EndedJobs(log, self.now)
        self.handler = DeliveryRunner(actions, log, self._agent_version)
        self._head = ""
        self._due: list[tuple[datetime, str]] = []
        self._chore_at: datetime | None = self.now
        self._queue: object = None
        self._try_at: datetime | None = None
        self._started = self._last = self.now
        self._worked = False
        self._pruned: datetime | None = None

    @property
    def now(self) -> datetime:
        return self.host.clock.now()

    def close(self) -> None:
        self.inbox.close()
        self._repo.close()
        self._kept.close()

    def hint_files(self) -> None:
        """Something may have changed in a watched folder. Called from another thread."""
        self.drops.hinted = True

    @property
    def confinement_level(self) -> str:
        """The confinement that scripts run under."""
        return self.actions.confinement_level(self.host)

    @property
    def head_folders(self) -> tuple[Path, Path]:
        """Where another branch and a new commit can be seen: the repository's own folder, and that of its branches."""
        return self._repo.git_dir, self._repo.common_dir / "refs" / "heads"

    # --- the loop's side ---------------------------------------------------------------------------------------

    def run_step(self) -> bool:
        """Take in what has come; then do one thing of what waits. Whether anything was done."""
        now = self.now
        if now < self._last:
            self._handle_clock_set_back(now)
        # While a run is on, nothing is looked at: what comes due meanwhile is late, not missed.
        alive_from = self._last if self._worked else max(self._started, now - MISFIRE_GRACE)
        self._last, self._worked = now, False
        if self._try_at is not None and now < self._try_at:
            return False
        try:
            self._refresh_workspace(now)
            self._take_schedules(now, alive_from)
            self.drops.scan_if_due(self.host, self.inbox, self._repo, self._head, self._agent_version, now)
            self._take_jobs(now)
            self._settle_questions(now)
            self._worked = self.handler.run_next(self.host, self.inbox, self.roster)
            if self._worked:
                self._take_events(self.now)
        except Interrupted:
            raise
        except (ClearedError, OSError, sqlite3.Error) as error:
            self._report_problem(error, now)
            return False
        if self.problem is not None:
            self.log("workspace.usable", "the workspace can be used again")
        self.problem, self._try_at = None, None
        return self._worked

    def _handle_clock_set_back(self, now: datetime) -> None:
        """The clock is behind where it was: what is to be done at some time of it would wait for that much longer."""
        self._started = min(self._started, now)
        self.drops.look_at, self._try_at = min(self.drops.look_at, now), None
        self.jobs.look_at = min(self.jobs.look_at, now)
        if self._chore_at is not None:
            self._chore_at = now
        self.inbox.shift_deliveries(self._last - now, now)
        if self._last - now > MAX_SET_BACK:  # it was wrong before: all that was reckoned by it is
            self._head = ""

    def wake_at(self) -> datetime | None:
        """When there may be something to do, if nobody says so before."""
        if self._try_at is not None:
            return self._try_at
        times = [
            self.drops.next_scan_at(self.host),
            self.jobs.next_scan_at(self.host),
            self._chore_at,
            self._due[0][0] if self._due else None,
            self.inbox.next_due_at(),
        ]
        return min((t for t in times if t is not None), default=None)

    def _report_problem(self, error: Exception, now: datetime) -> None:
        """Something is wrong with the workspace itself: nothing is lost by waiting until it is right again."""
        if self.problem != str(error):
            self.log("workspace.trouble", f"nothing is run until this is put right: {error}", level="error")
        self.problem, self._try_at = str(error), now + _RETRY_AFTER
        self._kept.close()  # read the settings again, too

    # --- the workspace -----------------------------------------------------------------------------------------

    def _refresh_workspace(self, now: datetime) -> None:
        """Notice new settings, new approvals, a new commit, a lost ``.cleared/``."""
        host = self._kept()
        if host is not self.host:
            self.host = host
            self.log.redactor = self.host.redactor
            self._head = ""
            self.inbox.release_held(now)
        if not self.inbox.file_exists:
            self.log("inbox.lost", "what was known of the past was deleted; it is read off the history again")
            self.inbox.close()
            self.inbox, self._fresh, self._head = Inbox(self.host.layout.state_dir), True, ""
            self.drops.forget_history()
            self.jobs.look_at = now
            self.on_lost()
        if self._repo.has_switched_branch():
            self._repo.close()
            self._repo = Repository.open(self.root, for_writing=False)
        head = self._repo.read_head()
        if head == self._head:
            return
        self._repo.objects.forget_trees()
        snapshot = Snapshot(self._repo, head)
        if self.roster.read_agents(self.host, snapshot) or not self._head:
            self._update_agents(now, snapshot)
        self._head = head
        self._take_events(now)
        self.inbox.release_held(now)
        queue = snapshot.find_entry(self.host.layout.queue_dir)
        if queue != self._queue:
            self._queue, self._chore_at = queue, now
        if self._pruned is None or now - self._pruned > timedelta(days=1):
            self._pruned = now
            self.inbox.remove_obsolete(now, self.roster.listeners)

    def _update_agents(self, now: datetime, snapshot: Snapshot) -> None:
        """The agents are others than before: reckon anew what comes due, and which folders are watched."""
        marks = self.inbox.schedule_marks()
        past = latest_keys(self.host, self._repo, snapshot, SCHEDULE.name) if self._fresh else {}
        new = []
        self._due = []
        for listener in self.roster.listeners.values():
            if listener.schedule is None:
                continue
            mark = marks.get(listener.name)
            if mark is None:
                mark = _parse_time(past.get(listener.name)) or now
                new.append((listener.name, mark))
            if mark != correct_mark(mark, now):
                mark = correct_mark(mark, now)
                new.append((listener.name, mark))
            at = listener.schedule.next_after(mark)
            if at is not None:
                self._due.append((at, listener.name))
        heapq.heapify(self._due)
        with self.inbox.transaction():
            self.inbox.limit_waiting(now + MAX_WAIT, now)
            self.inbox.set_schedule_marks(new)
            for name in self.roster.changed:
                self.inbox.restart_deliveries(name, now)
                self.handler.reset_agent(name)
            self.jobs.set_agents(self.host, self.inbox, self.roster, now)
        self._on_folders(self.drops.set_agents(self.host, self.roster, now))
        for name, why in self.roster.unreadable.items():
            self.log("agent.unreadable", f"{name} is not started by itself: {why}", level="warning", agent=name)

    # --- taking in ---------------------------------------------------------------------------------------------

    def _take_schedules(self, now: datetime, alive_from: datetime) -> None:
        while self._due and self._due[0][0] <= now:
            _, name = heapq.heappop(self._due)
            listener = self.roster.listeners.get(name)
            if listener is None or listener.schedule is None:
                continue
            header = listener.header
            mark = correct_mark(self.inbox.schedule_mark(name) or now, now)
            found = find_due_times(
                listener.schedule, mark, now, alive_from, header.catch_up or self.host.config.triggers.catch_up
            )
            with self.inbox.transaction():
                self._add_schedule_deliveries(listener, list(found.times), now, alive_from)
                self.inbox.set_schedule_marks([(name, found.mark)])
            if found.missed:
                self.log("schedule.missed", f"{name}: {found.missed} times were missed and are not made up for",
                         agent=name, missed=found.missed)  # fmt: skip
            at = listener.schedule.next_after(found.mark)
            if at is not None:
                heapq.heappush(self._due, (at, name))

    def _add_schedule_deliveries(
        self, listener: TriggeredAgent, times: list[datetime], now: datetime, alive_from: datetime
    ) -> None:
        name, header = listener.name, listener.header
        waits = self.inbox.has_deliveries(name)
        for at in times:
            late = at < alive_from
            if not late and header.overlap != "queue" and (waits or self.handler.was_running(name, at)):
                self.log(
                    "schedule.skipped",
                    f"{name}: skipped {format_iso(at)}, it was running, or waiting to, still",
                    agent=name,
                    due=format_iso(at),
                )
                continue
            event = Event(SCHEDULE.name, header.schedule or "", {"due": format_iso(at)}, format_iso(at))
            delay = timedelta(seconds=jitter_seconds(name, at, header.jitter) if header.jitter else 0)
            self.inbox.add_delivery(name, event, now, not_before=max(now, at + delay))
            waits = waits or not late

    def _take_events(self, now: datetime) -> None:
        """What this clone's commits told since the last look; the cursor moves with what is taken in."""
        head = self._repo.read_head()
        cursor = self.inbox.read_cursor(_CURSOR_KEY)
        if head == cursor:
            return
        found = read_events_since(
            self.host, self._repo, head, cursor, lambda name: bool(self.roster.agents_for_event(name)), now
        )
        wanted = self._select_undelivered(found, head, events_since_script_commit) if self._fresh else None
        self._add_event_deliveries(found, wanted, now, _CURSOR_KEY, head)
        self._fresh = False

    def _take_jobs(self, now: datetime) -> None:
        """What jobs of the loop have ended since the last look."""
        found = self.jobs.scan_if_due(self.host, self.inbox, now)
        if found is not None:
            wanted = self._select_undelivered(found.events, self._head, events_since_script) if found.is_first else None
            self._add_event_deliveries(found.events, wanted, now, _JOBS, found.cursor)

    def _select_undelivered(
        self,
        found: list[RecordedEvent],
        head: str,
        since_script: Callable[[Host, TriggeredAgent, list[RecordedEvent]], list[RecordedEvent]],
    ) -> WantedDeliveries:
        return select_undelivered(self.host, self._repo, Snapshot(self._repo, head), self.roster, found, since_script)

    def _add_event_deliveries(
        self, found: list[RecordedEvent], news: WantedDeliveries | None, now: datetime, cursor: str, value: str
    ) -> None:
        """Take events in for those who listen, and that they are. ``news``: only these, to these agents."""
        most = self.host.config.triggers.max_depth
        for told in found:
            if told.event.depth > most:  # said before the cursor moves on: a kill in between says it again
                self._stop_chain(told)
        with self.inbox.transaction():
            for told in found:
                if told.event.depth > most:
                    continue
                for listener in self.roster.agents_for_event(told.event.name):
                    if news is not None and (listener.name, told.event.key) not in news:
                        continue
                    if listener.header.overlap == "skip" and self.inbox.has_deliveries(listener.name):
                        self.log("event.skipped", f"{listener.name}: skipped {told.event.name}, it is busy still",
                                 agent=listener.name, key=told.event.key)  # fmt: skip
                        continue
                    self.inbox.add_delivery(listener.name, told.event, now)
            self.inbox.set_cursor(cursor, value)

    def _stop_chain(self, told: RecordedEvent) -> None:
        names = [listener.name for listener in self.roster.agents_for_event(told.event.name)]
        self.log("event.cycle", f"{', '.join(names)}: not started for {told.event.name}, the chain of events that "
                 "leads to it is too long", level="warning", key=told.event.key)  # fmt: skip
        service_notices.report_event_cycle(self.host, names, told)

    def _agent_version(self, agent: str) -> str:
        """Changes where a file that an agent could do nothing with may be worth another try."""
        listener = self.roster.listeners.get(agent)
        return hashlib.sha256(f"{listener.blob if listener else ''} {self._kept.stamp}".encode()).hexdigest()[:16]

    def _settle_questions(self, now: datetime) -> None:
        if self._chore_at is not None and now >= self._chore_at:
            self._chore_at = self.actions.settle_questions(self.host, self.log)


def _parse_time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
