"""When the service answers overdue questions and continues the runs that waited for an answer."""

from __future__ import annotations

from datetime import datetime

from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.service.actions import ServiceActions
from cleared.triggers.service_log import ServiceLog


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
