"""Schedules of many workspaces on a clock that is jumped: the books are those of the same workspaces on one machine.

``CLEARED_FLEET_YEAR=50x365`` serves fifty busy workspaces for a year instead, with three workers;
``CLEARED_FLEET_YEAR=firm:500x365`` five hundred of a firm, most of which have something once a quarter.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fleet_years import MIXES, START, YearOfFleet, live_alone, read_entries

from cleared.service.fleet.local_postgres import LocalPostgres

MIX, _, SIZE = os.environ.get("CLEARED_FLEET_YEAR", "2x35").rpartition(":")
WORKSPACES, DAYS = map(int, SIZE.split("x"))
KINDS = [MIXES[MIX or "busy"](number) for number in range(WORKSPACES)]
UNTIL = START + timedelta(days=DAYS)


@pytest.fixture
def year(plain_environment: None, database: str, tmp_path: Path) -> Iterator[YearOfFleet]:
    made = YearOfFleet(database, tmp_path, KINDS, 3 if WORKSPACES > 2 else 2)
    yield made
    made.end_all()


def test_schedules_of_many_have_the_books_of_one_machine(year: YearOfFleet, cluster: LocalPostgres) -> None:
    """Row I13: workers are killed meanwhile, and the database is cut off."""
    rand, cuts = random.Random(DAYS), 0
    began = time.monotonic()

    def disturb(step: int) -> None:
        nonlocal cuts
        if step % 8 == 2:
            time.sleep(rand.random() * 2)
            year.kill(rand.randrange(9))
        if step % 50 == 6:
            cuts += 1
            cluster.stop(how="immediate")
            cluster.start()
        if step % 20 == 0:
            print(f"{year.now:%F %H:%M}, {time.monotonic() - began:.0f} s", flush=True)

    year.disturb = disturb
    year.live(UNTIL)
    took = time.monotonic() - began
    said, outcomes = year.end(), year.count_outcomes()
    at = said.find("Traceback")
    assert at < 0, said[at : at + 3000]
    entries = 0
    alone = {kind: live_alone(ws, UNTIL) for kind, ws in year.alone.items()}
    for name, kind in year.names.items():
        found = read_entries(year.bare(name), UNTIL)
        entries += found.total() // 2
        assert found == alone[kind], (name, found - alone[kind], alone[kind] - found)
    assert entries >= WORKSPACES * DAYS // 100
    for name in {kind: name for name, kind in year.names.items()}.values():  # the last of each kind
        year.desk(name).ok("sync")
        year.desk(name).in_order()
    print(
        f"{WORKSPACES} workspaces, {DAYS} days: {entries} entries, {outcomes}, {year.jumps} jumps, "
        f"{year.kills} workers killed, {cuts} cuts, {took:.0f} s"
    )
