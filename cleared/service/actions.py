"""What a service has done for it by the layers above."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from cleared.changes.host import Host
from cleared.runs.attempt import Event
from cleared.runs.outcome import RunResult
from cleared.triggers.service_log import ServiceLog


class ServiceActions(Protocol):
    """Opening a workspace, running an agent, settling questions: the ways of every other command."""

    def open_host(self) -> Host:
        """The workspace with its configuration as it is now."""

    def run_agent(self, host: Host, agent: str, event: Event) -> RunResult:
        """Run an agent for an event."""

    def confinement_level(self, host: Host) -> str:
        """The confinement that scripts run under."""

    def settle_questions(self, host: Host, log: ServiceLog) -> datetime | None:
        """Settle questions whose time has come, go on with those that were answered; when the next comes due."""
