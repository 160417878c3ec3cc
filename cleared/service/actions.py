"""What a service has done for it by the layers above."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from cleared.changes.host import Host
from cleared.runs.attempt import Event
from cleared.runs.outcome import RunResult
from cleared.triggers.service_log import Logbook


class Actions(Protocol):
    """Opening a workspace, running an agent, settling questions: the ways of every other command."""

    def open(self) -> Host:
        """The workspace with its configuration as it is now."""

    def run(self, host: Host, agent: str, event: Event) -> RunResult:
        """Run an agent for an event."""

    def level(self, host: Host) -> str:
        """The confinement that scripts run under."""

    def chore(self, host: Host, log: Logbook) -> datetime | None:
        """Settle questions whose time has come, go on with those that were answered; when the next comes due."""
