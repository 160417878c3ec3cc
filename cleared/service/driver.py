"""Driving services: one after the other, one thing at a time, and asleep in between."""

from __future__ import annotations

import gc
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, Protocol

from cleared.sandbox.worker_watchdog import InterruptSignals
from cleared.service.workspace_service import WorkspaceService

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
MAX_SLEEP: Final = 30.0
"""Seconds after which the clock is looked at again: it may have been set, or the machine have slept."""

GC_THRESHOLD: Final = (5_000, 10, 10)
"""A command hardly looks for garbage, as it ends soon; a process that goes on for months would grow by that."""


class Waker(Protocol):
    """What a loop sleeps on."""

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
    """Runs until told to stop. The services take turns, so that none waits for another's backlog."""

    def __init__(self, waker: Waker, on_idle: Callable[[], float | None]) -> None:
        self.services: Sequence[WorkspaceService] = ()
        self.waker, self._on_idle = waker, on_idle
        self.stopping = False

    def stop(self) -> None:
        """End after the run that is on, if one is."""
        self.stopping = True
        self.waker.wake()

    def run_until_stopped(self) -> None:
        """Raises ``Interrupted`` where a run was interrupted, with nothing of it done."""
        gc.set_threshold(*GC_THRESHOLD)
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
        own = self._on_idle()
        if own is not None:
            times.append(own)
        for service in self.services:
            at = service.wake_at()
            if at is not None:
                times.append((at - service.now).total_seconds())
        return max(0.0, min(times))


@contextmanager
def stop_on_signals(loop: ServiceDriver, on_stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the loop after the run that is on; a second one ends that run too, with nothing done.

    ``on_stop`` is told of the first; perhaps twice, and from another thread.
    """

    asked = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if loop.stopping:
            raise KeyboardInterrupt
        asked = asked or not InterruptSignals.is_listening  # else ``break_off`` counts it, before or after this
        loop.stop()
        on_stop()

    def break_off(came: bytes) -> bool:
        """While a script computes, no handler of Python's runs: it is seen here first."""
        nonlocal asked
        times = sum(number in _STOP_SIGNALS for number in came)
        again = times > 1 or (times == 1 and asked)
        if times and not asked:
            on_stop()
        asked = asked or times > 0
        return again

    before = {number: signal.signal(number, on_signal) for number in _STOP_SIGNALS}
    usual, InterruptSignals.is_interrupt = InterruptSignals.is_interrupt, staticmethod(break_off)
    try:
        yield
    finally:
        InterruptSignals.is_interrupt = staticmethod(usual)
        # The process is about to end; told once more meanwhile, it must not die of that with another exit code.
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if handler == signal.SIG_DFL else handler)
