"""Schedules of many workspaces on a clock that is jumped: the books are those of the same workspaces on one machine.

``CLEARED_FLEET_YEAR=50x365`` serves fifty workspaces for a year instead, with three workers.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fleet_years import START, YearOfFleet, live_alone, read_entries

from cleared.service.fleet.local_postgres import LocalPostgres

WORKSPACES, DAYS = map(int, os.environ.get("CLEARED_FLEET_YEAR", "2x35").split("x"))
UNTIL = START + timedelta(days=DAYS)


@pytest.fixture
def year(plain_environment: None, database: str, tmp_path: Path) -> Iterator[YearOfFleet]:
    made = YearOfFleet(database, tmp_path, WORKSPACES, 3 if WORKSPACES > 2 else 2)
    yield made
    made.end_all()


def test_schedules_of_many_have_the_books_of_one_machine(year: YearOfFleet, cluster: LocalPostgres) -> None:
    """Workers are killed meanwhile, and the database is cut off."""
    rand = random.Random(DAYS)

    def disturb(jump: int) -> None:
        if jump % 8 == 2:
            time.sleep(rand.random() * 2)
            year.kill(rand.randrange(9))
        if jump % 50 == 6:
            cluster.stop(how="immediate")
            cluster.start()

    year.disturb = disturb
    began = time.monotonic()
    year.live(UNTIL)
    took = time.monotonic() - began
    said = year.end()
    at = said.find("Traceback")
    assert at < 0, said[at : at + 3000]
    entries = 0
    alone = {kind: live_alone(ws, UNTIL) for kind, ws in year.alone.items()}
    for name, kind in year.names.items():
        found = read_entries(year.bare(name), UNTIL)
        entries += found.total() // 2
        assert found == alone[kind], (name, found - alone[kind], alone[kind] - found)
    assert entries >= WORKSPACES * DAYS // 10
    print(f"{WORKSPACES} workspaces, {DAYS} days: {entries} entries, {year.jumps} jumps, {took:.0f} s")
