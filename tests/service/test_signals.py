"""Being told to end once, and twice, at the moments where the two could be taken for each other."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from cleared.sandbox.worker_watchdog import Watchdog
from cleared.service.driver import PipeWaker, ServiceDriver, stop_on_signals


def tell() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)  # the handler runs at once, and the watching thread has the time to


def while_a_run_is_on(what: Callable[[], None], first: Callable[[], None] = lambda: None) -> tuple[bool, int]:
    """Whether the loop is to end after what is done while the host answers a script, and how often it was broken
    off."""
    waker, watch = PipeWaker(), Watchdog()
    loop = ServiceDriver(waker, lambda: None)
    killed: list[str] = []
    try:
        with stop_on_signals(loop, lambda: None):
            first()
            try:
                with watch.guard_run() as guard:
                    guard.kill = lambda: killed.append("run")
                    what()
            except KeyboardInterrupt:
                killed.append("host")
    finally:
        watch.close()
        waker.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return loop.stopping, len(killed)


def test_told_once_while_the_host_answers_a_script_the_run_goes_on() -> None:
    assert while_a_run_is_on(tell) == (True, 0)


def test_told_twice_the_run_is_broken_off() -> None:
    stopping, killed = while_a_run_is_on(lambda: (tell(), tell())[0])
    assert stopping and killed


@pytest.mark.parametrize("times", [1, 2])
def test_told_before_the_run_and_in_it(times: int) -> None:
    stopping, killed = while_a_run_is_on(tell if times == 2 else lambda: None, first=tell)
    assert stopping and bool(killed) == (times == 2)
