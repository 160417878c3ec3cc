"""Schedules of 10,000 workspaces from one table: each fire once, whichever schedulers run."""

from __future__ import annotations

import os
import random
import signal
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from fleet_crowds import MONDAY, SPREAD, Crowd
from fleets import FleetOfOne
from harness import refused
from patience import PATIENCE
from running import eventually

from cleared.service.fleet.job_queue import MOST_DUE

pytestmark = pytest.mark.slow

_MANY = 10_000
_SCHEDULERS = 3


def test_each_of_ten_thousand_fires_once(fleet: FleetOfOne, tmp_path: Path) -> None:
    """Three schedulers, which are killed meanwhile, on a clock that jumps forwards and back; some jobs are lost."""
    crowd, rand = Crowd(fleet, tmp_path, _MANY, _SCHEDULERS), random.Random(7)
    running = [crowd.start(number) for number in range(_SCHEDULERS)]
    rounds = 0

    def jump(at: timedelta) -> int:
        """Move the clock, and do what comes; how many fires that made."""
        nonlocal rounds
        crowd.set_clock(MONDAY + at)
        expected, before = crowd.expect(), crowd.fired.total()
        while not expected <= crowd.fired.keys():
            eventually(crowd.count_waiting)
            rounds += 1
            if rounds % 5 == 0:
                which = rand.randrange(_SCHEDULERS)
                running[which].kill()
                running[which].wait()
                running[which] = crowd.start(which)
            assert crowd.do_jobs(lose=rounds % 3) <= MOST_DUE
        assert crowd.fired.total() - before == len(expected)
        return len(expected)

    # The spread of one morning is even, and none comes before its time.
    quarters = [jump(timedelta(seconds=SPREAD * part / 4)) for part in range(1, 5)]
    assert sum(quarters) == _MANY and all(2_300 < each < 2_700 for each in quarters)
    assert jump(timedelta(days=-1)) == 0
    assert jump(timedelta(days=1, seconds=SPREAD)) == _MANY // 10
    assert jump(timedelta(days=5)) == _MANY // 10
    for process in running:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in (0, -signal.SIGTERM)  # one that was started just now is not up yet
    assert not crowd.say_problems()
    assert set(crowd.fired.values()) == {1}


def test_a_morning_s_schedules_keep_nobody_waiting(fleet: FleetOfOne, tmp_path: Path) -> None:
    """All are due, and no worker is free: who asks has few jobs before theirs, and is not refused."""
    crowd = Crowd(fleet, tmp_path, 1_000, 1)
    crowd.start()
    for second in range(3):  # of a look that has a time, the one before has ended
        crowd.set_clock(MONDAY + timedelta(seconds=SPREAD + second))
        eventually(lambda: crowd.read_last_look() == crowd.now)
    assert crowd.count_waiting() == fleet.owner.json("status")["waiting"] == MOST_DUE
    refused(fleet.owner("run", "w7", "ingest", "--wait", "0"), 5, "waits for a worker")
    assert crowd.count_waiting() == MOST_DUE + 1


def test_a_scheduler_that_sleeps_keeps_no_other_from_looking(fleet: FleetOfOne, tmp_path: Path) -> None:
    """It falls asleep with what only one may have at a time, as a machine does whose lid is closed."""
    crowd = Crowd(fleet, tmp_path, 100, 2)
    sleeper = crowd.start(0)
    eventually(crowd.read_last_look)
    with psycopg.connect(fleet.database) as db:
        db.execute("LOCK TABLE fleet_facts IN EXCLUSIVE MODE")
        stuck = (
            "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND query LIKE '%fleet_facts%'"
        )
        eventually(lambda: db.execute(stuck).fetchall())
        os.kill(sleeper.pid, signal.SIGSTOP)
    crowd.set_clock(MONDAY + timedelta(days=1))
    other = crowd.start(1)
    eventually(lambda: crowd.count_waiting() == 100)
    other.kill()
    crowd.do_jobs()
    crowd.set_clock(MONDAY + timedelta(days=8))
    os.kill(sleeper.pid, signal.SIGCONT)  # it looks again by itself
    eventually(lambda: crowd.count_waiting() == 100)
