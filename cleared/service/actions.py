"""What the service needs from the application: it is passed in, so that the service imports no upper layer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from cleared.changes.host import Host
from cleared.runs.attempt import Event
from cleared.runs.outcome import RunResult
from cleared.triggers.service_log import ServiceLog


class ServiceActions(Protocol):
    """Opening a workspace, running an agent and settling questions, as the other commands do it."""

    on_answered: Callable[[], None]
    """Called from another thread, when a run that waits for a model can go on."""

    def open_host(self) -> Host:
        """The workspace with its configuration as it is now."""

    def run_agent(self, host: Host, agent: str, event: Event) -> RunResult:
        """Run an agent for an event. Raises ``WaitsForModel`` where a model is asked meanwhile; then it is to be called
        again for the same event, once that is over."""

    def confinement_level(self, host: Host) -> str:
        """The confinement that scripts run under."""

    def settle_questions(self, host: Host, log: ServiceLog) -> datetime | None:
        """Answer overdue questions; continue runs whose questions are answered. When to call again."""

    def look_at_changes(self, host: Host, log: ServiceLog, agents: list[str] | None) -> None:
        """Have shadows follow the runs of these agents; take back the changes (None: of all) that turned out badly."""
