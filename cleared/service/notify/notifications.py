"""Notifying a person of what waits and what failed: when a message is due, and that none is lost.

A message is on disk before it is sent and until a channel has accepted it. A kill in between sends it again, under the
same key.
"""

from __future__ import annotations

import sqlite3
import threading
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, WorkspaceError
from cleared.changes.host import Host
from cleared.domains.domain import Standing
from cleared.domains.installed_domains import load_domains
from cleared.service.notify.channels import Message, Undelivered, escape_text, send_message
from cleared.service.notify.digest import digest_message, read_digest_facts
from cleared.service.notify.messages import failure_message, redact_message
from cleared.service.notify.notifier_state import (
    MAX_LISTED_FAILURES,
    STATE_FILE,
    QueuedMessage,
    read_state,
    write_state,
)
from cleared.triggers.event_stream import RUN_FAILED, read_events_since
from cleared.workspace.settings.model import Notifications

GATHER_FAILURES: Final = timedelta(seconds=30)
"""How long to wait after a failure for further ones, which go into the same message."""
FAILURES_EVERY: Final = timedelta(minutes=15)
"""At most one message about failures in this time."""
KEEP_UNDELIVERED: Final = timedelta(days=3)
"""A message that no channel accepts is given up after this."""
_FIRST_RETRY, _LONGEST_RETRY = timedelta(minutes=1), timedelta(hours=1)


class Notifier:
    """Sends the messages of one workspace, as its ``notifications`` settings say. Any thread may call it.

    ``host`` may be replaced by one that was opened anew: its configuration is read at each call.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self._lock = threading.Lock()
        self._sending = False
        self._unwritten = False
        self._look_again: datetime | None = None
        """When to read the cards again, after they could not be read for a digest."""
        self._state = read_state(self._state_path)

    def record_failure(self, run_id: str, agent: str, cause: str, at: datetime) -> None:
        """Record that a run failed. It is on disk when this returns, unless the disk is full; ``send_due_messages``
        sends it when it is due."""
        if not _is_enabled(self.host.config.notifications) or not self.host.config.notifications.on_failure:
            return
        failure = self.host.redactor.redact_data(
            {"run_id": run_id, "agent": agent, "cause": cause, "at": format_iso(at)}
        )
        failure["cause"] = failure["cause"][:1_000]
        with self._lock:
            if any(known["run_id"] == failure["run_id"] for known in self._state.failures):
                return
            if len(self._state.failures) < MAX_LISTED_FAILURES:
                self._state.failures.append(failure)
            else:
                self._state.more += 1
            self._write_state()

    def record_pushed_failures(self, head: str, began_at: str, now: datetime) -> None:
        """Record the failed runs of the commits up to ``head``: those after the last look, else after ``began_at``. In
        a fleet a worker may be killed between its push and this, so they are read off what was pushed."""
        state = self._state
        if not _is_enabled(self.host.config.notifications) or state.cursor == head:
            return
        with self.host.open_for_reading() as repo:
            cursor = state.cursor if state.cursor and repo.has_in_history(state.cursor) else began_at
            failed = read_events_since(self.host, repo, head, cursor, lambda name: name == RUN_FAILED, now)
        for each in failed:
            about = each.event.payload
            state.failed[str(about["agent"])] = state.failed.get(str(about["agent"]), 0) + 1
            self.record_failure(each.made_by, str(about["agent"]), str(about["cause"]), now)
        state.cursor, self._unwritten = head, True

    def prepare_messages(self, now: datetime) -> None:
        """Make the messages that are due, with their keys, and send none yet."""
        if _is_enabled(self.host.config.notifications):
            self._prepare_messages(now, self.host.config.notifications)

    def send_due_messages(self, now: datetime) -> datetime | None:
        """Send what is due. Returns when to call again; None where nothing is planned. Also call it after
        ``record_failure``.

        It may take as long as the network and a command may; a second call meanwhile returns at once. What cannot be
        sent is tried again later; nothing is raised.
        """
        settings = self.host.config.notifications
        if not _is_enabled(settings):
            return None
        with self._lock:
            if self._sending:
                return now + timedelta(seconds=1)
            self._sending = True
        try:
            if not self._prepare_messages(now, settings):
                return now + _FIRST_RETRY
            # A time later than the longest retry was planned before the clock was set back, so it is due as well.
            latest = format_iso(now + _LONGEST_RETRY)
            for queued in [each for each in self._state.outbox if not format_iso(now) < each.next <= latest]:
                self._send_queued(queued, now, settings)
            with self._lock:
                return self._next_call_at(now, settings)
        finally:
            with self._lock:
                self._sending = False

    def status_data(self) -> dict[str, Any]:
        """For ``cleared status``: the method, when a message was last sent, how many wait, the last error."""
        with self._lock:
            state = self._state
            return {
                "method": self.host.config.notifications.method or "none",
                "last_sent_at": state.last_sent_at,
                "waiting": len(state.outbox) + bool(state.failures),
                "next_attempt_at": min((w.next for w in state.outbox), default=None),
                "last_error": state.last_error,
            }

    # -- what is due ----------------------------------------------------------------------------------------------

    def _prepare_messages(self, now: datetime, settings: Notifications) -> bool:
        """Make the messages that are due. Returns whether they are on disk, as they must be before they are sent."""
        with self._lock:
            state = self._state
            old = format_iso(now - KEEP_UNDELIVERED)
            state.outbox = [w for w in state.outbox if w.message.at > old]
            state.failures = [f for f in state.failures if f["at"] > old] if settings.on_failure else []
            state.more = state.more if state.failures else 0
            # Without a time the state is new; with one in the future, the clock was set back.
            if state.digest_at is None or state.digest_at > format_iso(now + timedelta(days=1)):
                state.digest_at = format_iso(now)
                self._unwritten = True
            due = self._failures_due_at()
            if due is not None and not now < due <= now + FAILURES_EVERY + GATHER_FAILURES:
                self._queue_message(failure_message(self.host, state.failures, state.more, now), now)
                state.failures, state.more, state.failures_at = [], 0, format_iso(now)
            since = datetime.fromisoformat(state.digest_at)
        self._prepare_digest(since, now, settings)
        with self._lock:
            return not self._unwritten or self._write_state()

    def _prepare_digest(self, since: datetime, now: datetime, settings: Notifications) -> None:
        due = self._digest_due_at(settings)
        if due is None or due > now or (self._look_again is not None and self._look_again > now):
            return
        try:
            facts = read_digest_facts(self.host, since, self._read_standing(since, now), self._state.failed)
        except (ClearedError, OSError, sqlite3.Error, ValueError) as error:
            with self._lock:
                self._state.last_error = self._clean_error(f"what waits cannot be read: {error}")
                self._look_again = now + _FIRST_RETRY * 10
                self._unwritten = True
            return
        with self._lock:
            self._look_again = None
            # A digest that was not sent yet says nothing that this one does not say.
            self._state.outbox = [w for w in self._state.outbox if w.message.kind != "digest"]
            if not self._state.outbox:
                self._state.last_error = None
            if facts.is_worth_sending:
                self._queue_message(digest_message(self.host, facts, now), now)
            self._state.digest_at, self._state.failed = format_iso(now), {}
            self._unwritten = True

    def _read_standing(self, since: datetime, now: datetime) -> dict[str, Standing]:
        """How the records of each domain stand, where this is the first digest of a month; else nothing of it."""
        from zoneinfo import ZoneInfo

        zone = ZoneInfo(self.host.config.business.timezone)
        before, today = since.astimezone(zone), now.astimezone(zone)
        is_first = (before.year, before.month) != (today.year, today.month)
        return {
            name: domain.read_standing(self.host) if is_first else Standing()
            for domain in load_domains()
            if (name := domain.standing_name)
        }

    def _queue_message(self, message: Message, now: datetime) -> None:
        self._state.outbox.append(QueuedMessage(message, next=format_iso(now)))
        self._unwritten = True

    def _failures_due_at(self) -> datetime | None:
        """When the recorded failures become a message; None while the previous one about failures is still unsent."""
        state = self._state
        if not state.failures or any(w.message.kind == "failure" for w in state.outbox):
            return None
        first = datetime.fromisoformat(state.failures[0]["at"]) + GATHER_FAILURES
        if state.failures_at is None:
            return first
        return max(first, datetime.fromisoformat(state.failures_at) + FAILURES_EVERY)

    def _digest_due_at(self, settings: Notifications) -> datetime | None:
        if settings.daily_digest_time is None or self._state.digest_at is None:
            return None
        since = datetime.fromisoformat(self._state.digest_at)
        return next_digest_at(since, settings.daily_digest_time, self.host.config.business.timezone)

    def _next_call_at(self, now: datetime, settings: Notifications) -> datetime | None:
        digest = self._digest_due_at(settings)
        if digest is not None and self._look_again is not None:
            digest = self._look_again
        planned = [digest, self._failures_due_at(), *(datetime.fromisoformat(w.next) for w in self._state.outbox)]
        if self._unwritten:
            planned.append(now + _FIRST_RETRY)
        return min((p for p in planned if p is not None), default=None)

    # -- sending --------------------------------------------------------------------------------------------------

    def _send_queued(self, queued: QueuedMessage, now: datetime, settings: Notifications) -> None:
        try:
            send_message(redact_message(self.host, queued.message), settings, self.host.root, self.host.clock)
        except Undelivered as error:
            with self._lock:
                queued.attempts += 1
                pause = min(_FIRST_RETRY * 2 ** min(queued.attempts - 1, 10), _LONGEST_RETRY)
                queued.next = format_iso(now + pause)
                self._state.last_error = self._clean_error(str(error))
                self._write_state()
            return
        with self._lock:
            self._state.outbox.remove(queued)
            self._state.last_sent_at, self._state.last_error = format_iso(now), None
            self._write_state()

    def _clean_error(self, text: str) -> str:
        return escape_text(self.host.redactor.redact_text(text))

    # -- the file -------------------------------------------------------------------------------------------------

    @property
    def _state_path(self) -> Path:
        return self.host.layout.state_dir / STATE_FILE

    def _write_state(self) -> bool:
        """Write the state. False where the disk does not take it; the next call tries again."""
        try:
            write_state(self._state_path, self._state)
        except WorkspaceError as error:
            self._unwritten = True
            self._state.last_error = self._clean_error(str(error))
            return False
        self._unwritten = False
        return True


def next_digest_at(since: datetime, at: str, zone: str) -> datetime:
    """The first time after ``since`` at which the clocks of ``zone`` show ``at`` (HH:MM); UTC.

    Where clocks are put forward over ``at``, it is as much later; where they are put back and show it twice, it is the
    first of both.
    """
    from zoneinfo import ZoneInfo

    timezone, wall_time = ZoneInfo(zone), time.fromisoformat(at)
    day: date = since.astimezone(timezone).date()
    while True:
        moment = datetime.combine(day, wall_time, timezone).astimezone(UTC)
        if moment > since:
            return moment
        day += timedelta(days=1)


def _is_enabled(settings: Notifications) -> bool:
    return settings.method not in (None, "none")
