"""What the service needs from the application: it is passed in, so that the service imports no upper layer."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from cleared.changes.host import Host
from cleared.runs.attempt import Event
from cleared.runs.outcome import RunResult
from cleared.triggers.service_log import ServiceLog


class ServiceActions(Protocol):
    """Opening a workspace, running an agent and settling questions, as the other commands do it."""

    def open_host(self) -> Host:
        """The workspace with its configuration as it is now."""

    def run_agent(self, host: Host, agent: str, event: Event) -> RunResult:
        """Run an agent for an event."""

    def confinement_level(self, host: Host) -> str:
        """The confinement that scripts run under."""

    def settle_questions(self, host: Host, log: ServiceLog) -> datetime | None:
        """Answer overdue questions; continue runs whose questions are answered. When to call again."""
