"""The only module that asks what time it is."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

from cleared.base.errors import UsageError


class Clock(Protocol):
    """A source of time. ``now`` is always aware and in UTC; ``monotonic`` counts seconds for durations."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        return datetime.now(UTC)


class FixedClock:
    """A clock that stands still at one instant; for rehearsals and tests. Durations are still real."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self, instant: datetime) -> None:
        self._instant = instant.astimezone(UTC)

    def now(self) -> datetime:
        return self._instant


def clock_from(instant: str | None) -> Clock:
    """The clock a process uses: fixed at ``instant`` (ISO 8601 with an offset) if given, else the machine's.

    Raises ``UsageError`` where ``instant`` is not an aware ISO 8601 time.
    """
    if not instant:
        return SystemClock()
    try:
        parsed = datetime.fromisoformat(instant)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise UsageError(
            f"CLEARED_CLOCK={instant!r} is not an ISO 8601 time with an offset",
            remedy="Write it like 2025-02-01T06:00:00Z, or unset it.",
        )
    return FixedClock(parsed)


def format_iso(instant: datetime) -> str:
    """``2025-02-01T06:00:00Z``: UTC, whole seconds, ISO 8601 (the one form in which times are stored)."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
