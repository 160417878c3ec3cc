"""Deliveries for agents that are started by webhooks: the calls that the server has accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cleared.runs.attempt import Event
from cleared.runs.outcome import RunResult
from cleared.sandbox.trigger_kinds import WEBHOOK
from cleared.triggers.pending_deliveries import Delivery
from cleared.triggers.trigger_source import StepTimes
from cleared.triggers.webhook_calls import WebhookCall, WebhookCalls, calls_folder
from cleared.triggers.workspace_view import WorkspaceView

_MOST_AT_ONCE: Final = 500
_CLEANUP_EVERY: Final = timedelta(hours=12)


class WebhookSource:
    """Reads accepted calls, each once; a call is settled where its delivery is. When the service starts, or the agents
    change, all that were not settled are read again: the inbox knows those that it has."""

    kind = WEBHOOK

    def __init__(self, root: Path, now: Callable[[], datetime]) -> None:
        self.root, self._now = root, now
        self._calls = WebhookCalls(root)
        self._agents: frozenset[str] = frozenset()
        self._read_up_to = 0
        self._look_at: datetime | None = None
        self._cleaned_at: datetime | None = None

    def close(self) -> None:
        self._calls.close()

    @property
    def watched_folders(self) -> list[Path]:
        """The folders that a watcher is to watch."""
        return [calls_folder(self.root)] if self._agents else []

    def set_agents(self, view: WorkspaceView, now: datetime) -> None:
        """Take the calls of these agents from now on."""
        self._agents = frozenset(
            name for name, agent in view.triggers.listeners.items() if WEBHOOK.name in agent.header.triggers
        )
        self._read_up_to, self._look_at = 0, now if self._agents else None

    def next_look_at(self, view: WorkspaceView) -> datetime | None:
        """When to look though nothing has hinted at a call."""
        return self._look_at

    def handle_clock_set_back(self, now: datetime) -> None:
        if self._look_at is not None:
            self._look_at = min(self._look_at, now)

    def add_due_deliveries(self, view: WorkspaceView, times: StepTimes) -> None:
        """Add a delivery for each call that was not read yet."""
        if not self._agents:
            return
        self._look_at = times.now + timedelta(seconds=view.host.config.triggers.scan_seconds)
        while calls := self._calls.list_waiting(self._read_up_to, _MOST_AT_ONCE):
            with view.inbox.transaction():
                ended = [call for _, call in calls if not self._add_delivery(view, call, times.now)]
            self._read_up_to = calls[-1][0]
            for call in ended:
                self._calls.settle_call(call.agent, call.key, times.now)
        if self._cleaned_at is None or times.now - self._cleaned_at > _CLEANUP_EVERY:
            self._cleaned_at = times.now
            self._calls.remove_old(times.now)

    def _add_delivery(self, view: WorkspaceView, call: WebhookCall, now: datetime) -> bool:
        """Whether the call waits for its run; False where it had it, and a kill kept that from being written down."""
        if call.agent not in self._agents:
            return True  # read again when the agents change
        event = Event(WEBHOOK.name, "", json.loads(call.body), call.key)
        order = f"named {call.ordering_key}" if call.ordering_key else call.key
        added = view.inbox.add_delivery(call.agent, event, now, ordering_key=order)
        return added or not view.inbox.was_settled(call.agent, call.key)

    def record_end(self, delivery: Delivery, result: RunResult | None, is_settled: bool) -> None:
        """Note the result of a run, and that a delivery is settled, for whoever waits for it."""
        if delivery.event.kind != WEBHOOK.name:
            return
        key = str(delivery.event.key)
        if result is not None:
            self._calls.record_result(delivery.agent, key, result.to_json_object())
        if is_settled:
            self._calls.settle_call(delivery.agent, key, self._now())
