"""Turns: a workspace that has much to do lets others have theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import FleetOfOne
from harness import chase
from patience import PATIENCE

pytestmark = pytest.mark.slow


def test_who_has_many_runs_lets_others_have_their_turn(fleet: FleetOfOne) -> None:
    """After its turn a workspace is behind those that wait, however many jobs were asked for it."""
    fleet.add_other("beta")
    for workspace, keys in (("acme", ("a1", "a2", "a3")), ("beta", ("b1",))):
        for key in keys:
            fleet.owner(*("run", workspace, "monthly_summary", "--wait", "0", "--key", key))
    rows = [{"workspace": "acme", "waiting": 3, "doing": 0}, {"workspace": "beta", "waiting": 1, "doing": 0}]
    assert [fleet.owner.json("queue", *names) for names in ((), ("acme",), ("beta",))] == [rows, rows[:1], rows[1:]]
    worker = fleet.worker("one").start("--once", "--turn", "0")
    worker.communicate(timeout=PATIENCE)
    ended = fleet.query("SELECT id FROM fleet_requests WHERE status = 'succeeded' ORDER BY ended_at")
    assert [each for (each,) in ended] == ["a1", "b1", "a2", "a3"]


def test_who_has_many_files_is_served_by_one_job(fleet: FleetOfOne, tmp_path: Path) -> None:
    paths = []
    for number in range(1, 6):
        paths.append(tmp_path / f"{number}.csv")
        paths[-1].write_text(chase(("02/04/2025", f"SHOP {number}", f"-{number}.00")))
    fleet.owner.ok("drop", "acme", *map(str, paths))
    assert fleet.owner.json("status")["waiting"] == 5
    fleet.work("one")
    status = fleet.owner.json("status")
    assert (status["waiting"], status["files"], sum(status["ended"].values())) == (0, 0, 1)
    assert len(fleet.fetch().entries()) == 5
