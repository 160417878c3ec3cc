"""The loop of the service process: a step of each service in turn, and sleep in between."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, Protocol

from cleared.base.garbage import collect_often
from cleared.base.process_identity import restore_handlers
from cleared.sandbox.worker_watchdog import InterruptSignals
from cleared.service.workspace_service import WorkspaceService

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
MAX_SLEEP: Final = 30.0
"""Seconds after which the clock is read again: it may have been set, or the machine may have slept."""


class Waker(Protocol):
    """What the driver sleeps on."""

    def wait(self, seconds: float) -> None:
        """Sleep, until somebody calls ``wake``."""

    def wake(self) -> None:
        """End a sleep, or the next one. From any thread, and from a signal's handler."""


class PipeWaker:
    """A waker made of a pipe: waking is one write, which is allowed anywhere."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)

    def wait(self, seconds: float) -> None:
        select.select([self._read], [], [], max(0.0, seconds))
        with suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass

    def wake(self) -> None:
        with suppress(OSError):  # full: it is awake anyway
            os.write(self._write, b".")

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


class ServiceDriver:
    """Runs services until it is stopped. They take turns, so that none waits for another's backlog.

    ``on_idle`` is called before each sleep; it returns the seconds until it wants to be called again, or None.
    """

    def __init__(self, waker: Waker, on_idle: Callable[[], float | None]) -> None:
        self.services: Sequence[WorkspaceService] = ()
        self.waker, self._on_idle = waker, on_idle
        self.stopping = False

    def stop(self) -> None:
        """End after the current run, if one is."""
        self.stopping = True
        self.waker.wake()

    def run_until_stopped(self) -> None:
        """Raises ``Interrupted`` where a run was broken off, with nothing of it done."""
        collect_often()
        while not self.stopping:
            if not self.step_services():
                self.waker.wait(self._seconds_to_sleep())

    def step_services(self) -> bool:
        """A step of each service; whether any had something to do."""
        worked = False
        for service in self.services:
            if self.stopping:
                break
            worked |= service.run_step()
        return worked

    def _seconds_to_sleep(self) -> float:
        """Seconds until there is something to do, as far as is known."""
        times = [MAX_SLEEP]
        idle_seconds = self._on_idle()
        if idle_seconds is not None:
            times.append(idle_seconds)
        for service in self.services:
            at = service.wake_at()
            if at is not None:
                times.append((at - service.now).total_seconds())
        return max(0.0, min(times))


@contextmanager
def stop_on_signals(driver: ServiceDriver, on_stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the loop after the current run; a second one breaks that run off, with nothing done.

    ``on_stop`` is called at the first signal; perhaps twice, and from another thread.
    """

    stop_requested = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal stop_requested
        if driver.stopping:
            raise KeyboardInterrupt
        # While it listens, ``count_signals`` counts this signal, before or after this line.
        stop_requested = stop_requested or not InterruptSignals.is_listening
        driver.stop()
        on_stop()

    def count_signals(received: bytes) -> bool:
        """Whether to break the run off. While a script computes, no Python handler runs; signals are seen here."""
        nonlocal stop_requested
        times = sum(number in _STOP_SIGNALS for number in received)
        is_second = times > 1 or (times == 1 and stop_requested)
        if times and not stop_requested:
            on_stop()
        stop_requested = stop_requested or times > 0
        return is_second

    earlier_handlers = {number: signal.signal(number, on_signal) for number in _STOP_SIGNALS}
    earlier_check, InterruptSignals.is_interrupt = InterruptSignals.is_interrupt, staticmethod(count_signals)
    try:
        yield
    finally:
        InterruptSignals.is_interrupt = staticmethod(earlier_check)
        restore_handlers(earlier_handlers)
