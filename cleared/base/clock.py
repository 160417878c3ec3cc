"""The time: what it is now, and how much of it a run still has. The only module that asks for it.

A script is stopped from outside, the host's own long loops are not: who runs something opens ``run_deadline``; whoever
walks what may be long takes ``check_deadline``, or says ``count_steps``. Where no time is set (a command of a
person's), nothing is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime
from itertools import chain, islice
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from cleared.base.errors import CheckFailed, UsageError


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
    return instant.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"


def find_day(instant: datetime, zone: str) -> date:
    """The day of an instant in a time zone."""
    if zone == "UTC":
        return instant.astimezone(UTC).date()
    from zoneinfo import ZoneInfo  # slow to import, and most workspaces are in UTC

    return instant.astimezone(ZoneInfo(zone)).date()


_T = TypeVar("_T")
_STEPS_BETWEEN_CHECKS: Final = 256
"""Items between two looks at the clock."""


class DeadlineExceeded(CheckFailed):
    """The host was at work for a script when its time was up."""

    type = "TimeoutError"


class _Deadline(Struct, eq=False):
    at: float
    monotonic: Callable[[], float]
    seconds: float
    spent: int = 0

    def check_time(self) -> None:
        if self.monotonic() > self.at:
            raise DeadlineExceeded(
                f"the run did not end within {self.seconds:g} s",
                remedy="Do less at a time, or raise the limit: `timeout:` in the script's header, or sandbox.timeout.",
            )

    def split_items(self, items: Iterable[_T]) -> Iterator[Iterable[_T]]:
        """The items in parts, to be chained: then Python runs nothing for an item, but for the first of so many."""
        iterator = iter(items)
        for item in iterator:
            self.check_time()
            yield (item,)
            yield islice(iterator, _STEPS_BETWEEN_CHECKS - 1)


_current: ContextVar[_Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def run_deadline(at: float, monotonic: Callable[[], float], seconds: float) -> Iterator[None]:
    """Set the time for the host's work in this block: an instant of ``monotonic``, ``seconds`` after the start."""
    token = _current.set(_Deadline(at, monotonic, seconds))
    try:
        yield
    finally:
        _current.reset(token)


def check_deadline(items: Iterable[_T]) -> Iterable[_T]:
    """The items. Raises ``DeadlineExceeded`` among them, once the time is up."""
    current = _current.get()
    if current is None:
        return items
    if isinstance(items, Sized) and len(items) < _STEPS_BETWEEN_CHECKS:  # one look is enough for so few
        current.check_time()
        return items
    return chain.from_iterable(current.split_items(items))


def count_steps(steps: int = 1) -> None:
    """So many steps have been done, or will be. Raises ``DeadlineExceeded`` once the time is up."""
    current = _current.get()
    if current is not None:
        current.spent += steps
        if current.spent >= _STEPS_BETWEEN_CHECKS:
            current.spent = 0
            current.check_time()
