"""A run and its sandbox take turns on one processor; whoever started them gets back what it had."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from cleared.sandbox.worker_pool import share_processor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such thing")


def test_threads_and_programs_stay_on_one_processor_meanwhile() -> None:
    before, seen = os.sched_getaffinity(0), []
    with share_processor():
        assert len(os.sched_getaffinity(0)) == 1 and os.sched_getaffinity(0) <= before
        thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
        count = "import os; print(len(os.sched_getaffinity(0)))"
        out = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True).stdout
    assert (len(seen[0]), out.strip()) == (1, "1")
    assert os.sched_getaffinity(0) == before


def test_a_failure_gives_them_back() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(ZeroDivisionError), share_processor():
        raise ZeroDivisionError
    assert os.sched_getaffinity(0) == before


def test_where_the_system_refuses_all_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    before = os.sched_getaffinity(0)
    with share_processor():
        assert os.sched_getaffinity(0) == before
