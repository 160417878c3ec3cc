"""The loop of a workspace, carried by ``cleared up --work``: it is up as long as the service is."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cleared.base.errors import ClearedError, Interrupted
from cleared.changes.host import Host
from cleared.jobs.loop_reader import loop_of
from cleared.jobs.loop_state import peek_state
from cleared.work.loop.control import start_loop
from cleared.work.loop.loop_settings import LoopSettings


class CarriedLoop:
    """It runs in a process of its own, as jobs are forked and a service has threads."""

    def __init__(self, host: Host, settings: LoopSettings) -> None:
        self._host, self._settings = host, settings
        self._runner = loop_of(settings.runtime)
        self._has_begun = False
        self._problem = ""

    def keep_up(self) -> None:
        """Start it, the first time whatever ended the last one. Later one that was killed is started again, and one
        that has stopped for a reason, or was told to, stays so. What goes wrong is said once."""
        state = peek_state(self._settings.runtime)
        has_stopped = self._has_begun and state is not None and state["stop"] is not None
        self._has_begun = True
        if has_stopped or self._runner.find() is not None:
            return
        try:
            start_loop(self._host, self._settings)
            self._problem = ""
        except ClearedError as error:
            if str(error) != self._problem:
                self._host.show_message(f"the loop is down until this is put right: {error}")
            self._problem = str(error)

    def end(self, *, now: bool) -> None:
        """Have it end after its job, or ``now`` with it; a signal meanwhile is a *now*. One that was never begun is
        another process's."""
        if not self._has_begun:
            return
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            self._runner.end(now=now, wait=math.inf)
        except KeyboardInterrupt:
            self._runner.end(now=True, wait=math.inf)
        finally:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def carry_loops(loops: Sequence[CarriedLoop]) -> Iterator[None]:
    """End these loops with the block. Where it is broken off, so are their jobs."""
    is_broken_off = False
    try:
        yield
    except (KeyboardInterrupt, Interrupted):
        is_broken_off = True
        raise
    finally:
        for loop in loops:
            loop.end(now=is_broken_off)
