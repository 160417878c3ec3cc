"""Stops a worker that must stop while the host's thread is held inside the interpreter's client.

While a script computes, no Python code of the calling thread runs: neither a deadline that includes the host's
own time nor Ctrl-C would be noticed. One thread per sandbox sleeps until the earliest deadline or a signal,
and kills the worker. It costs the calls nothing.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Literal

from cleared.clock import SystemClock

_monotonic = SystemClock().monotonic


def _is_ctrl_c(signals: bytes) -> bool:
    return signal.SIGINT in signals


class InterruptSignals:
    """Which signals break a run off that is on in the main thread."""

    is_interrupt: Callable[[bytes], bool] = staticmethod(_is_ctrl_c)
    """Told the numbers of those that came, in the watching thread. A service sets another for its lifetime."""
    is_listening = False
    """Whether it is told of those that come now: a run is on in the main thread."""


class RunGuard:
    """One guarded run. ``fired`` says why its worker was killed, if it was."""

    def __init__(self, kill: Callable[[], None], deadline: float, *, main: bool) -> None:
        self.kill = kill
        self.deadline = deadline
        self.main = main
        self.fired: Literal["deadline", "interrupt"] | None = None


class Watchdog:
    """The watching thread; it starts with the first guard and ends with ``close``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guards: set[RunGuard] = set()
        self._thread: threading.Thread | None = None
        self._wakes = 0.0
        self._pipe: tuple[int, int] | None = None
        self._forward = -1

    @contextlib.contextmanager
    def guard_run(self, kill: Callable[[], None], seconds: float) -> Iterator[RunGuard]:
        """Call ``kill`` once if the block is still running after ``seconds``, or on Ctrl-C in the main thread."""
        main = threading.current_thread() is threading.main_thread()
        guard = RunGuard(kill, _monotonic() + seconds, main=main)
        writer = self._ensure_thread()
        with self._lock:
            self._guards.add(guard)
            wake = guard.deadline < self._wakes
        if wake:
            os.write(writer, b"\0")
        # The C-level handler writes here at once, also while the interpreter is held.
        armed = main and callable(signal.getsignal(signal.SIGINT))
        previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False) if armed else -1
        if armed and previous != writer:
            self._forward = previous
        heard, InterruptSignals.is_listening = InterruptSignals.is_listening, InterruptSignals.is_listening or armed
        try:
            yield guard
        finally:
            if armed:
                signal.set_wakeup_fd(previous, warn_on_full_buffer=False)
                InterruptSignals.is_listening = heard
            with self._lock:
                self._guards.discard(guard)

    def shorten_guard(self, guard: RunGuard, seconds: float) -> None:
        """Give a guarded run at most ``seconds`` more."""
        guard.deadline = min(guard.deadline, _monotonic() + seconds)
        os.write(self._ensure_thread(), b"\0")

    def close(self) -> None:
        with self._lock:
            pipe, thread, self._pipe, self._thread = self._pipe, self._thread, None, None
        if pipe is not None and thread is not None:
            os.close(pipe[1])
            thread.join()
            os.close(pipe[0])

    def _ensure_thread(self) -> int:
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
            return self._pipe[1]

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
            try:
                received = os.read(reader, 512)
            except BlockingIOError:
                continue
            if not received:
                return
            self._handle_signals(received.replace(b"\0", b""))

    def _handle_signals(self, signals: bytes) -> None:
        if signals and InterruptSignals.is_interrupt(signals):
            with self._lock:
                for guard in self._guards:
                    if guard.main and guard.fired is None:
                        guard.fired = "interrupt"
                        guard.kill()
        if signals and self._forward >= 0:
            with contextlib.suppress(OSError):
                os.write(self._forward, signals)
