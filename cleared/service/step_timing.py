"""When the service's steps happened: since when it has been awake, and whether it waits before it tries again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cleared.triggers.trigger_source import StepTimes

MISFIRE_GRACE: Final = timedelta(seconds=60)
"""A schedule that is seen to be due later than this, though nothing was running, was missed: the machine slept."""


class StepTiming:
    """The times of one service's steps."""

    def __init__(self, now: datetime) -> None:
        self._started = self._last_step = now
        self.ran_delivery = False
        """Whether the last step ran a delivery, which may have taken long."""
        self.retry_at: datetime | None = None
        """When the next step may work again, after a problem with the workspace."""

    def begin_step(self, now: datetime) -> StepTimes:
        """Record that a step begins.

        During a run nothing else is looked at, so what came due meanwhile counts as on time.
        """
        awake_since = self._last_step if self.ran_delivery else max(self._started, now - MISFIRE_GRACE)
        self._last_step, self.ran_delivery = now, False
        return StepTimes(now, awake_since)

    def is_paused(self, now: datetime) -> bool:
        """Whether it is not yet time to try again."""
        return self.retry_at is not None and now < self.retry_at

    def time_set_back(self, now: datetime) -> timedelta:
        """By how much the clock was set back since the last step; zero or less where it was not."""
        return self._last_step - now

    def handle_clock_set_back(self, now: datetime) -> None:
        self._started, self.retry_at = min(self._started, now), None
