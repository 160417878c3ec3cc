"""How many workers there may be at once. (A18)"""

from __future__ import annotations

from typing import Any

import pytest

from cleared.base.errors import BusyError
from cleared.sandbox import worker_pool
from cleared.sandbox.worker_pool import WorkerPool


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "MAX_WORKERS", 2)


def test_a18_no_more_work_at_once_than_may(few: None) -> None:
    pool = WorkerPool("best", keep=1)
    taken = [pool.take_worker(1.0) for _ in range(2)]
    with pytest.raises(BusyError, match="2 scripts are running already"):
        pool.take_worker(1.0)
    for worker in taken:  # one is kept, one is stopped
        pool.return_worker(worker, reusable=True)
    again = [pool.take_worker(1.0) for _ in range(2)]
    assert taken[0] in again
    for worker in again:
        pool.return_worker(worker, reusable=False)
    pool.close()


def test_a18_a_worker_that_could_not_start_counts_no_more(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = WorkerPool("best", keep=0)

    def fail(*_: Any) -> worker_pool.Worker:
        raise OSError("no process can be had now")

    with monkeypatch.context() as patch:
        patch.setattr(worker_pool, "start_worker", fail)
        for _ in range(3):
            with pytest.raises(OSError, match="no process"):
                pool.take_worker(1.0)
    pool.return_worker(pool.take_worker(1.0), reusable=True)
