"""Kills a worker at its deadline, or at Ctrl-C.

While a script computes, the calling thread waits inside the interpreter's client and runs no Python code: it would
notice neither a deadline nor Ctrl-C. So each sandbox has one thread that sleeps until the earliest deadline or a
signal. It does not slow down calls.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Literal

from cleared.base.clock import SystemClock

_monotonic = SystemClock().monotonic


class InterruptSignals:
    """Which signals interrupt a run in the main thread."""

    is_interrupt: Callable[[bytes], bool] = staticmethod(lambda signals: signal.SIGINT in signals)
    """Called in the watchdog's thread with the numbers of signals; whether to interrupt. A service sets its own."""
    is_listening = False
    """Whether it is called for signals now, as a run is guarded in the main thread."""


class RunGuard:
    """One guarded run: from before its worker is there until it is given back. ``fired`` says why it was to end."""

    def __init__(self, pipe: tuple[int, int], hear_signals: Callable[[int], bytes | None], *, main: bool) -> None:
        self._reader, self._writer = pipe
        self._hear_signals = hear_signals
        self.main = main
        self.deadline = float("inf")
        self.kill: Callable[[], None] = lambda: None
        """Ends the worker."""
        self.fired: Literal["deadline", "interrupt"] | None = None

    def limit_run(self, seconds: float) -> None:
        """Give the run at most ``seconds`` from now on."""
        self.deadline = min(self.deadline, _monotonic() + seconds)
        os.write(self._writer, b"\0")

    def raise_interrupt(self) -> None:
        """Raises ``KeyboardInterrupt`` where a signal was to interrupt the run: also one that the watchdog's thread has
        not woken for yet. What Python raises for it, the interpreter's client may take for the script's, or drop."""
        if self._hear_signals(self._reader):
            os.write(self._writer, b"\0")  # what was read may have been meant to wake the thread
        if self.fired == "interrupt":
            raise KeyboardInterrupt


class Watchdog:
    """The watchdog's thread; it starts with the first guarded run and ends with ``close``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taking = threading.Lock()
        self._guards: set[RunGuard] = set()
        self._thread: threading.Thread | None = None
        self._wakes = 0.0
        self._pipe: tuple[int, int] | None = None
        self._forward = -1

    @contextlib.contextmanager
    def guard_run(self) -> Iterator[RunGuard]:
        """Call the guard's ``kill`` once, at its deadline, or at Ctrl-C in the main thread: then the block ends with
        ``KeyboardInterrupt``."""
        main = threading.current_thread() is threading.main_thread()
        pipe = self._ensure_thread()
        guard = RunGuard(pipe, self._hear_signals, main=main)
        with self._lock:
            self._guards.add(guard)
        # Python's C-level signal handler writes here at once, also while no Python code runs.
        armed = main and callable(signal.getsignal(signal.SIGINT))
        previous = signal.set_wakeup_fd(pipe[1], warn_on_full_buffer=False) if armed else -1
        if armed and previous != pipe[1]:
            self._forward = previous
        was_listening, InterruptSignals.is_listening = (
            InterruptSignals.is_listening,
            InterruptSignals.is_listening or armed,
        )
        try:
            yield guard
            guard.raise_interrupt()
        finally:
            if armed:
                signal.set_wakeup_fd(previous, warn_on_full_buffer=False)
                InterruptSignals.is_listening = was_listening
            with contextlib.suppress(KeyboardInterrupt):  # the next guard is not to hear what came for this one
                guard.raise_interrupt()
            with self._lock:
                self._guards.discard(guard)

    def close(self) -> None:
        """End the thread; the next guarded run starts another."""
        with self._lock:
            pipe, thread, self._pipe, self._thread = self._pipe, self._thread, None, None
        if pipe is not None and thread is not None:
            os.close(pipe[1])
            thread.join()
            os.close(pipe[0])

    def _ensure_thread(self) -> tuple[int, int]:
        with self._lock:
            if self._pipe is None:
                self._pipe = os.pipe()
                for fd in self._pipe:
                    os.set_blocking(fd, False)
                self._wakes = float("inf")
                self._thread = threading.Thread(
                    target=self._watch_guards, args=(self._pipe[0],), name="cleared-watch", daemon=True
                )
                self._thread.start()
            return self._pipe

    def _watch_guards(self, reader: int) -> None:
        while True:
            now = _monotonic()
            with self._lock:
                for guard in self._guards:
                    if guard.fired is None and guard.deadline <= now:
                        guard.fired = "deadline"
                        guard.kill()
                self._wakes = min(
                    (guard.deadline for guard in self._guards if guard.fired is None), default=float("inf")
                )
                wait = None if self._wakes == float("inf") else max(self._wakes - now, 0.0)
            select.select([reader], [], [], wait)
            if self._hear_signals(reader) == b"":
                return

    def _hear_signals(self, reader: int) -> bytes | None:
        """Act on the signals that came: what was read, None where nothing was there, nothing at the end."""
        with self._taking:
            try:
                received = os.read(reader, 512)
            except BlockingIOError:
                return None
            signals = received.replace(b"\0", b"")
            if signals and InterruptSignals.is_interrupt(signals):
                with self._lock:
                    for guard in self._guards:
                        if guard.main and guard.fired is None:
                            guard.fired = "interrupt"
                            guard.kill()
            if signals and self._forward >= 0:
                with contextlib.suppress(OSError):
                    os.write(self._forward, signals)
        return received
