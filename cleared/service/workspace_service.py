"""The service of one workspace: it takes in what triggers agents, and runs the deliveries one by one. It answers
overdue questions, too, and waits before it tries again what went wrong.

It knows no signals and no threads: ``ServiceDriver`` calls ``run_step`` and sleeps in between. A run is the same as one
of ``cleared agent run``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cleared.base.errors import ClearedError, Interrupted
from cleared.changes.host import Host
from cleared.domains.domain import Duty
from cleared.domains.installed_domains import load_domains
from cleared.git import Snapshot
from cleared.sandbox.schedule import MAX_SET_BACK
from cleared.service.actions import ServiceActions
from cleared.service.delivery import DeliveryRunner
from cleared.service.nightly_improvement import NightlyImprovement
from cleared.service.regular_sync import RegularSync
from cleared.triggers.dropped_files import DroppedFiles
from cleared.triggers.event_source import EventSource
from cleared.triggers.schedule_source import ScheduleSource
from cleared.triggers.service_log import ServiceLog
from cleared.triggers.trigger_source import StepTimes, TriggerSource
from cleared.triggers.webhook_source import WebhookSource
from cleared.triggers.workspace_view import WorkspaceView

MAX_WAIT: Final = timedelta(hours=25)
"""No delivery is put off for longer: a header's jitter is at most a day."""
_RETRY_AFTER: Final = timedelta(seconds=30)
_CLEANUP_EVERY: Final = timedelta(days=1)


class WorkspaceService:
    """One workspace. ``run_step`` runs at most one delivery; there is nothing to do before ``wake_at``."""

    def __init__(
        self,
        root: Path,
        actions: ServiceActions,
        log: ServiceLog,
        on_folders: Callable[[list[Path]], None],
        *,
        awake_since: datetime | None = None,
    ) -> None:
        """``on_folders`` is called with the folders to watch, whenever the agents have changed.

        ``awake_since``: in a fleet, since when some worker serves: it is made anew for each job, and what came due in
        between was not missed. There, what was done is pushed by the job, and ``wake_at`` plans no mere looks.
        """
        self.actions, self.log, self._awake_since = actions, log, awake_since
        self._on_folders = on_folders
        self.view = WorkspaceView(root, actions.open_host)
        self.log.redactor = self.host.redactor
        self.on_lost: Callable[[], None] = lambda: None
        """Called where ``.cleared/`` was deleted, and with it the record that this service is up."""
        self.problem: str | None = None
        """Why nothing is run, where the workspace cannot be used as it is."""
        self.handler = DeliveryRunner(actions, log, self.view.agent_version)
        self.schedules = ScheduleSource(log, self.handler.was_running)
        self.drops = DroppedFiles(root, log, self.now, are_complete=awake_since is not None)
        self.events = EventSource(log, self.now)
        self.webhooks = WebhookSource(root, lambda: self.now)
        self.handler.on_ended = self.webhooks.record_end
        self.sources: tuple[TriggerSource, ...] = (self.schedules, self.drops, self.events, self.webhooks)
        """One for each kind of trigger, in the order in which they are asked. A new kind's source goes here."""
        self._questions = QuestionSettling(actions, log, self.now)
        self._duties: list[Duty] = [
            NightlyImprovement(log),
            *([RegularSync(log)] if awake_since is None else []),
            *(duty for domain in load_domains() for duty in domain.make_duties(log)),
        ]
        self._timing = StepTiming(self.now, awake_since)
        self._cleaned_at: datetime | None = None

    @property
    def host(self) -> Host:
        """The workspace with the settings in force."""
        return self.view.host

    @property
    def now(self) -> datetime:
        return self.host.clock.now()

    def close(self) -> None:
        self.webhooks.close()
        self.view.close()

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
        return self.view.repo.git_dir, self.view.repo.common_dir / "refs" / "heads"

    # --- steps -------------------------------------------------------------------------------------------------

    def run_step(self) -> bool:
        """Add deliveries for what has happened; then run one that is due. Returns whether one was run.

        Raises ``Interrupted`` where a person breaks the run off. A problem with the workspace is logged, not raised.
        """
        now, view = self.now, self.view
        if self._timing.time_set_back(now) > timedelta(0):
            self._handle_clock_set_back(now)
        times = self._timing.begin_step(now)
        if self._timing.is_paused(now):
            return False
        try:
            self._refresh_view(now)
            for source in self.sources:
                source.add_due_deliveries(view, times)
            self._questions.settle_if_due(self.host, now)
            for duty in self._duties:
                duty.perform_if_due(self.host, now)
            self._timing.ran_delivery = self.handler.run_next(self.host, view.inbox, view.triggers)
            if self._timing.ran_delivery:
                ran = [self.handler.last_agent] if self.handler.last_agent else []
                self.actions.look_at_changes(self.host, self.log, ran)
                self.events.add_committed_events(view, self.now)
        except Interrupted:
            raise
        except (ClearedError, OSError, sqlite3.Error) as error:
            self._report_problem(error, now)
            return False
        if self.problem is not None:
            self.log("workspace.usable", "the workspace can be used again")
        self.problem, self._timing.retry_at = None, None
        return self._timing.ran_delivery

    def wake_at(self) -> datetime | None:
        """When to call ``run_step`` again, if nothing calls for it before."""
        if self._timing.retry_at is not None:
            return self._timing.retry_at
        looked_for = self.sources if self._awake_since is None else [self.schedules]
        times = [source.next_look_at(self.view) for source in looked_for]
        times += [
            self._questions.due_at,
            *(duty.due_at for duty in self._duties),
            self.view.inbox.next_due_at(self.handler.agents_asking),
        ]
        return min((time for time in times if time is not None), default=None)

    def _handle_clock_set_back(self, now: datetime) -> None:
        """Move what was planned: it would wait longer by the time that the clock was set back."""
        time_set_back = self._timing.time_set_back(now)
        self._timing.handle_clock_set_back(now)
        for source in self.sources:
            source.handle_clock_set_back(now)
        self._questions.handle_clock_set_back(now)
        for duty in self._duties:
            duty.handle_clock_set_back(now)
        self.view.inbox.shift_deliveries(time_set_back, now)
        if time_set_back > MAX_SET_BACK:  # the clock was wrong before, and so is all that was planned by it
            self.view.head = ""

    def _report_problem(self, error: Exception, now: datetime) -> None:
        """Something is wrong with the workspace itself: nothing is lost by waiting until it is right again."""
        if self.problem != str(error):
            self.log("workspace.trouble", f"nothing is run until this is put right: {error}", level="error")
        self.problem, self._timing.retry_at = str(error), now + _RETRY_AFTER
        self.view.expire_host()

    # --- the workspace -----------------------------------------------------------------------------------------

    def _refresh_view(self, now: datetime) -> None:
        """Notice new settings, new approvals, a deleted ``.cleared/``, a new commit."""
        view = self.view
        if view.reload_host():
            self.log.redactor = self.host.redactor
            view.inbox.release_held(now)
        if not view.inbox.file_exists:
            self.log("inbox.lost", "what was known of the past was deleted; it is read off the history again")
            view.reopen_inbox()
            self.drops.forget_history()
            self.events.jobs.look_at = now
            self.on_lost()
        is_first = not view.head
        if not view.read_new_commit():
            return
        snapshot = view.snapshot
        if view.triggers.read_agents(self.host, snapshot) or is_first:
            self._set_agents(now)
        self.events.add_committed_events(view, now)
        view.inbox.release_held(now)
        self._questions.notice_commit(self.host, snapshot, now)
        for duty in self._duties:
            duty.notice_commit()
        if is_first:  # what ran while no service was up counts as well
            self.actions.look_at_changes(self.host, self.log, None)
        if self._cleaned_at is None or now - self._cleaned_at > _CLEANUP_EVERY:
            self._cleaned_at = now
            view.inbox.remove_obsolete(now, view.triggers.listeners)

    def _set_agents(self, now: datetime) -> None:
        """Have the sources make deliveries for the agents of the new commit."""
        view = self.view
        with view.inbox.transaction():
            view.inbox.limit_waiting(now + MAX_WAIT, now)
            for source in self.sources:
                source.set_agents(view, now)
            for name in view.triggers.changed:
                view.inbox.restart_deliveries(name, now)
                self.handler.reset_agent(name)
        self._on_folders(self.drops.directories)
        for name, why in view.triggers.unreadable.items():
            self.log("agent.unreadable", f"{name} is not started by itself: {why}", level="warning", agent=name)


class QuestionSettling:
    """Due at the beginning, whenever the queue of cards has changed, and when a question is overdue."""

    def __init__(self, actions: ServiceActions, log: ServiceLog, now: datetime) -> None:
        self.actions, self.log = actions, log
        self.due_at: datetime | None = now
        self._queue_entry: object = None
        """The queue's folder in the last commit."""

    def notice_commit(self, host: Host, snapshot: Snapshot, now: datetime) -> None:
        """Due at once if this commit has another queue than the one before."""
        entry = snapshot.find_entry(host.layout.queue_dir)
        if entry != self._queue_entry:
            self._queue_entry, self.due_at = entry, now

    def handle_clock_set_back(self, now: datetime) -> None:
        if self.due_at is not None:
            self.due_at = now

    def settle_if_due(self, host: Host, now: datetime) -> None:
        if self.due_at is not None and now >= self.due_at:
            self.due_at = self.actions.settle_questions(host, self.log)


MISFIRE_GRACE: Final = timedelta(seconds=60)
"""A schedule that is seen to be due later than this, though nothing was running, was missed: the machine slept."""


class StepTiming:
    """The times of one service's steps."""

    def __init__(self, now: datetime, awake_since: datetime | None = None) -> None:
        self._started = self._last_step = now
        self._awake_since = awake_since
        self.ran_delivery = False
        """Whether the last step ran a delivery, which may have taken long."""
        self.retry_at: datetime | None = None
        """When the next step may work again, after a problem with the workspace."""

    def begin_step(self, now: datetime) -> StepTimes:
        """Record that a step begins.

        During a run nothing else is looked at, so what came due meanwhile counts as on time.
        """
        here = self._last_step if self.ran_delivery else max(self._started, now - MISFIRE_GRACE)
        self._last_step, self.ran_delivery = now, False
        return StepTimes(now, self._awake_since or here)

    def is_paused(self, now: datetime) -> bool:
        """Whether it is not yet time to try again."""
        return self.retry_at is not None and now < self.retry_at

    def time_set_back(self, now: datetime) -> timedelta:
        """By how much the clock was set back since the last step; zero or less where it was not."""
        return self._last_step - now

    def handle_clock_set_back(self, now: datetime) -> None:
        self._started, self.retry_at = min(self._started, now), None
