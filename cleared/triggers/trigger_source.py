"""What the service asks of a source of deliveries: the one that makes the deliveries of one kind of trigger."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from cleared.sandbox.trigger_kinds import TriggerKind
from cleared.triggers.workspace_view import WorkspaceView


class StepTimes(NamedTuple):
    """The times of one step of the service."""

    now: datetime
    """When the step began."""
    awake_since: datetime
    """What came due since then is on time; what came due before was missed."""


class TriggerSource(Protocol):
    """Makes the deliveries for all agents with one kind of trigger."""

    @property
    def kind(self) -> TriggerKind:
        """The kind of trigger."""

    def set_agents(self, view: WorkspaceView, now: datetime) -> None:
        """Make deliveries for the agents in ``view.triggers`` from now on. Called within a transaction of the inbox."""

    def add_due_deliveries(self, view: WorkspaceView, times: StepTimes) -> None:
        """Add deliveries to the inbox for what has happened, if it is time to look."""

    def next_look_at(self, view: WorkspaceView) -> datetime | None:
        """When to call ``add_due_deliveries`` again; None where nothing is planned."""

    def handle_clock_set_back(self, now: datetime) -> None:
        """Plan anew: the clock shows an earlier time than at the last step."""
