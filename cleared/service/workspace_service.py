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
from cleared.service.actions import Actions
from cleared.service.delivery import Handler
from cleared.triggers import service_notices
from cleared.triggers.agent_triggers import Listener, Roster
from cleared.triggers.dropped_files import Drops
from cleared.triggers.ended_jobs import CURSOR as _JOBS
from cleared.triggers.ended_jobs import Jobs, by_time
from cleared.triggers.event_baseline import News, by_commit, news
from cleared.triggers.event_stream import Told, told_since
from cleared.triggers.pending_deliveries import Inbox
from cleared.triggers.schedule import SET_BACK, corrected, due, jitter
from cleared.triggers.service_log import Logbook
from cleared.vcs import Repository, Snapshot

GRACE: Final = timedelta(seconds=60)
"""A schedule that is seen to be due later than this, though nothing was running, was missed: the machine slept."""
LONGEST_WAIT: Final = timedelta(hours=25)
"""Nothing is put off for longer: a day is the most that a header's jitter can be."""
_CURSOR: Final = "cursor"
_RETRY: Final = timedelta(seconds=30)


class Service:
    """One workspace. ``step`` does one thing; False where there is nothing to do before ``wake_at``."""

    def __init__(self, root: Path, actions: Actions, log: Logbook, on_folders: Callable[[list[Path]], None]) -> None:
        self.root, self.actions, self.log = root, actions, log
        self._on_folders = on_folders
        self._kept = HostCache(actions.open)
        self.host = self._kept()
        self.log.redactor = self.host.redactor
        self.on_lost: Callable[[], None] = lambda: None
        """Called where ``.cleared/`` was deleted, and with it what says that this service is up."""
        self.problem: str | None = None
        """Why nothing is run, where the workspace cannot be used as it is."""
        self.roster = Roster()
        self._repo = Repository.open(root, for_writing=False)
        self.inbox = Inbox(self.host.layout.state_dir)
        self._fresh = self.inbox.get(_CURSOR) is None
        self.drops = Drops(root, log, self.now)
        self.jobs = Jobs(log, self.now)
        self.handler = Handler(actions, log, self._version)
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

    def hint(self) -> None:
        """Something may have changed in a watched folder. Called from another thread."""
        self.drops.hinted = True

    @property
    def level(self) -> str:
        """The confinement that scripts run under."""
        return self.actions.level(self.host)

    @property
    def head_folders(self) -> tuple[Path, Path]:
        """Where another branch and a new commit can be seen: the repository's own folder, and that of its branches."""
        return self._repo.git_dir, self._repo.common_dir / "refs" / "heads"

    # --- the loop's side ---------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Take in what has come; then do one thing of what waits. Whether anything was done."""
        now = self.now
        if now < self._last:
            self._set_back(now)
        # While a run is on, nothing is looked at: what comes due meanwhile is late, not missed.
        alive_from = self._last if self._worked else max(self._started, now - GRACE)
        self._last, self._worked = now, False
        if self._try_at is not None and now < self._try_at:
            return False
        try:
            self._refresh(now)
            self._take_schedules(now, alive_from)
            self.drops.look(self.host, self.inbox, self._repo, self._head, self._version, now)
            self._take_jobs(now)
            self._chores(now)
            self._worked = self.handler.one(self.host, self.inbox, self.roster)
            if self._worked:
                self._take_events(self.now)
        except Interrupted:
            raise
        except (ClearedError, OSError, sqlite3.Error) as error:
            self._trouble(error, now)
            return False
        if self.problem is not None:
            self.log("workspace.usable", "the workspace can be used again")
        self.problem, self._try_at = None, None
        return self._worked

    def _set_back(self, now: datetime) -> None:
        """The clock is behind where it was: what is to be done at some time of it would wait for that much longer."""
        self._started = min(self._started, now)
        self.drops.look_at, self._try_at = min(self.drops.look_at, now), None
        self.jobs.look_at = min(self.jobs.look_at, now)
        if self._chore_at is not None:
            self._chore_at = now
        self.inbox.sooner(self._last - now, now)
        if self._last - now > SET_BACK:  # it was wrong before: all that was reckoned by it is
            self._head = ""

    def wake_at(self) -> datetime | None:
        """When there may be something to do, if nobody says so before."""
        if self._try_at is not None:
            return self._try_at
        times = [
            self.drops.wake_at(self.host),
            self.jobs.wake_at(self.host),
            self._chore_at,
            self._due[0][0] if self._due else None,
            self.inbox.due_at(),
        ]
        return min((t for t in times if t is not None), default=None)

    def _trouble(self, error: Exception, now: datetime) -> None:
        """Something is wrong with the workspace itself: nothing is lost by waiting until it is right again."""
        if self.problem != str(error):
            self.log("workspace.trouble", f"nothing is run until this is put right: {error}", level="error")
        self.problem, self._try_at = str(error), now + _RETRY
        self._kept.close()  # read the settings again, too

    # --- the workspace -----------------------------------------------------------------------------------------

    def _refresh(self, now: datetime) -> None:
        """Notice new settings, new approvals, a new commit, a lost ``.cleared/``."""
        host = self._kept()
        if host is not self.host:
            self.host = host
            self.log.redactor = self.host.redactor
            self._head = ""
            self.inbox.release(now)
        if not self.inbox.alive:
            self.log("inbox.lost", "what was known of the past was deleted; it is read off the history again")
            self.inbox.close()
            self.inbox, self._fresh, self._head = Inbox(self.host.layout.state_dir), True, ""
            self.drops.forget()
            self.jobs.look_at = now
            self.on_lost()
        if self._repo.current_branch() != self._repo.branch:
            self._repo.close()
            self._repo = Repository.open(self.root, for_writing=False)
        head = self._repo.read_head()
        if head == self._head:
            return
        self._repo.forget_trees()
        snapshot = Snapshot(self._repo, head)
        if self.roster.load(self.host, snapshot) or not self._head:
            self._listen(now, snapshot)
        self._head = head
        self._take_events(now)
        self.inbox.release(now)
        queue = snapshot.find_entry(self.host.layout.queue_dir)
        if queue != self._queue:
            self._queue, self._chore_at = queue, now
        if self._pruned is None or now - self._pruned > timedelta(days=1):
            self._pruned = now
            self.inbox.prune(now, self.roster.listeners)

    def _listen(self, now: datetime, snapshot: Snapshot) -> None:
        """The agents are others than before: reckon anew what comes due, and which folders are watched."""
        marks = self.inbox.marks()
        past = latest_keys(self.host, self._repo, snapshot, "schedule") if self._fresh else {}
        new = []
        self._due = []
        for listener in self.roster.listeners.values():
            if listener.schedule is None:
                continue
            mark = marks.get(listener.name)
            if mark is None:
                mark = _instant(past.get(listener.name)) or now
                new.append((listener.name, mark))
            if mark != corrected(mark, now):
                mark = corrected(mark, now)
                new.append((listener.name, mark))
            at = listener.schedule.next(mark)
            if at is not None:
                self._due.append((at, listener.name))
        heapq.heapify(self._due)
        with self.inbox.together():
            self.inbox.sooner_than(now + LONGEST_WAIT, now)
            self.inbox.mark(new)
            for name in self.roster.changed:
                self.inbox.hurry(name, now)
                self.handler.forgive(name)
            self.jobs.listen(self.host, self.inbox, self.roster, now)
        self._on_folders(self.drops.watch(self.host, self.roster, now))
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
            mark = corrected(self.inbox.mark_of(name) or now, now)
            found = due(listener.schedule, mark, now, alive_from, header.catch_up or self.host.config.triggers.catch_up)
            with self.inbox.together():
                self._schedule(listener, list(found.times), now, alive_from)
                self.inbox.mark([(name, found.mark)])
            if found.missed:
                self.log("schedule.missed", f"{name}: {found.missed} times were missed and are not made up for",
                         agent=name, missed=found.missed)  # fmt: skip
            at = listener.schedule.next(found.mark)
            if at is not None:
                heapq.heappush(self._due, (at, name))

    def _schedule(self, listener: Listener, times: list[datetime], now: datetime, alive_from: datetime) -> None:
        name, header = listener.name, listener.header
        waits = self.inbox.waits(name)
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
            event = Event("schedule", header.schedule or "", {"due": format_iso(at)}, format_iso(at))
            delay = timedelta(seconds=jitter(name, at, header.jitter) if header.jitter else 0)
            self.inbox.add(name, event, now, not_before=max(now, at + delay))
            waits = waits or not late

    def _take_events(self, now: datetime) -> None:
        """What this clone's commits told since the last look; the cursor moves with what is taken in."""
        head = self._repo.read_head()
        cursor = self.inbox.get(_CURSOR)
        if head == cursor:
            return
        found = told_since(self.host, self._repo, head, cursor, lambda name: bool(self.roster.of_event(name)), now)
        wanted = self._news(found, head, by_commit) if self._fresh else None
        self._deliver(found, wanted, now, _CURSOR, head)
        self._fresh = False

    def _take_jobs(self, now: datetime) -> None:
        """What jobs of the loop have ended since the last look."""
        found = self.jobs.look(self.host, self.inbox, now)
        if found is not None:
            wanted = self._news(found.told, self._head, by_time) if found.first else None
            self._deliver(found.told, wanted, now, _JOBS, found.cursor)

    def _news(
        self, found: list[Told], head: str, since_script: Callable[[Host, Listener, list[Told]], list[Told]]
    ) -> News:
        return news(self.host, self._repo, Snapshot(self._repo, head), self.roster, found, since_script)

    def _deliver(self, found: list[Told], news: News | None, now: datetime, cursor: str, value: str) -> None:
        """Take events in for those who listen, and that they are. ``news``: only these, to these agents."""
        most = self.host.config.triggers.max_depth
        for told in found:
            if told.event.depth > most:  # said before the cursor moves on: a kill in between says it again
                self._stop_chain(told)
        with self.inbox.together():
            for told in found:
                if told.event.depth > most:
                    continue
                for listener in self.roster.of_event(told.event.name):
                    if news is not None and (listener.name, told.event.key) not in news:
                        continue
                    if listener.header.overlap == "skip" and self.inbox.waits(listener.name):
                        self.log("event.skipped", f"{listener.name}: skipped {told.event.name}, it is busy still",
                                 agent=listener.name, key=told.event.key)  # fmt: skip
                        continue
                    self.inbox.add(listener.name, told.event, now)
            self.inbox.put(cursor, value)

    def _stop_chain(self, told: Told) -> None:
        names = [listener.name for listener in self.roster.of_event(told.event.name)]
        self.log("event.cycle", f"{', '.join(names)}: not started for {told.event.name}, the chain of events that "
                 "leads to it is too long", level="warning", key=told.event.key)  # fmt: skip
        service_notices.cycle(self.host, names, told)

    def _version(self, agent: str) -> str:
        """Changes where a file that an agent could do nothing with may be worth another try."""
        listener = self.roster.listeners.get(agent)
        return hashlib.sha256(f"{listener.blob if listener else ''} {self._kept.stamp}".encode()).hexdigest()[:16]

    def _chores(self, now: datetime) -> None:
        if self._chore_at is not None and now >= self._chore_at:
            self._chore_at = self.actions.chore(self.host, self.log)


def _instant(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
