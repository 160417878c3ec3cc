"""A git host that moves, or is lost: nothing that was pushed is forgotten in passing, and nothing is done twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fleets import FleetOfOne
from harness import CLOCK, JANUARY, Workspace, chase, take_ok
from signed_calls import make_called
from synced import run_git, tip_of

pytestmark = pytest.mark.slow

FEBRUARY = chase(("02/04/2025", "STAPLES", "-9.00"))
LATER = "2025-02-11T06:00:30Z"


def copy_host(fleet: FleetOfOne, place: Path) -> Path:
    """The repository that is pushed to, as it is now, at another address."""
    run_git(place.parent, "clone", "-q", "--bare", str(fleet.shared), str(place))
    for setting in ("receive.denyNonFastForwards", "receive.denyDeletes"):
        run_git(place, "config", setting, "true")
    return place


def hand_in(fleet: FleetOfOne, folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    fleet.owner.ok("drop", "acme", str(folder / name))


def add_daily_agent(fleet: FleetOfOne) -> None:
    ws = fleet.ws
    ws.put("agents/daily.py", '"""\nname: daily\ntrigger: schedule\nschedule: 0 6 * * *\n"""\nctx_emit("day", 1)\n1\n')
    take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", "daily")["id"]))
    ws.ok("sync")


def list_daily_runs(ws: Workspace) -> list[str]:
    return sorted(run["started_at"][:10] for run in ws.json("run", "list", "--agent", "daily"))


def clone_of(fleet: FleetOfOne, worker: str) -> Workspace:
    return Workspace(fleet.worker(worker).home / "fleet/clones/acme")


def test_a_host_that_moved_is_told_once(fleet: FleetOfOne, tmp_path: Path) -> None:
    """Clones of owner and workers follow it, with what was decided and not pushed, and the secrets of webhooks."""
    make_called(fleet)
    add_daily_agent(fleet)
    hand_in(fleet, tmp_path, "january.csv", JANUARY)
    fleet.work("one", CLOCK)
    fleet.work("two", CLOCK)
    fleet.desk.ok("sync", "origin")
    fleet.desk.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    decided = fleet.desk.head()
    moved = copy_host(fleet, tmp_path / "moved.git")
    shutil.rmtree(fleet.shared)
    hand_in(fleet, tmp_path, "february.csv", FEBRUARY)
    fleet.work("one", CLOCK)
    assert f"{fleet.shared}: " in fleet.row()["problem"], "it waits"
    kept = clone_of(fleet, "one").root.stat().st_ino
    fleet.owner.ok("add", "acme", str(moved))
    assert fleet.desk.head() == decided and not fleet.desk.root.with_name("acme.before-1").exists()
    assert [each["agent"] for each in fleet.desk.json("webhook", "list")] == ["orders"]
    fleet.work("one", LATER)
    fleet.desk.ok("sync", "origin")
    fleet.make_due(LATER)
    fleet.work("two", LATER)
    row = fleet.row()
    assert (row["problem"], row["url"]) == ("", str(moved)) and not fleet.owner.json("status", "acme")["files"]
    assert clone_of(fleet, "one").root.stat().st_ino == kept, "no clone is made anew"
    fleet.ws.git("remote", "set-url", "origin", str(moved))
    assert len(fleet.fetch().entries()) == 4 + 1 + 1
    assert list_daily_runs(fleet.ws) == ["2025-02-11"]


def test_a_lost_host_is_made_again_from_the_newest_clone(fleet: FleetOfOne, tmp_path: Path) -> None:
    """No worker gives up what may be the last copy, and an older one at another address is not taken for it."""
    add_daily_agent(fleet)
    fleet.work("one", CLOCK)
    backup = copy_host(fleet, tmp_path / "backup.git")
    hand_in(fleet, tmp_path, "january.csv", JANUARY)
    fleet.work("one", LATER)
    newest = tip_of(fleet.shared)
    shutil.rmtree(fleet.shared)
    for _ in range(4):  # so that a damaged disk would be thought of
        fleet.make_due(LATER)
        fleet.work("one", LATER)
    assert "cannot be read" in fleet.row()["problem"] and clone_of(fleet, "one").head() == newest
    fleet.owner.ok("add", "acme", str(backup))
    for _ in range(4):
        fleet.make_due(LATER)
        fleet.work("one", LATER)
        fleet.make_due(LATER)
        fleet.work("two", LATER)
    problem = fleet.row()["problem"]
    assert f"has lost the commit {newest[:10]}" in problem and clone_of(fleet, "one").head() == newest
    fleet.make_due(LATER)
    fleet.work("one", LATER)
    command = f"git -C {clone_of(fleet, 'one').root} push {backup} {newest[:10]}:main"
    assert f": {command})" in fleet.row()["problem"]
    run_git(tmp_path, *command.split()[1:])
    for name in ("one", "two"):
        fleet.make_due(LATER)
        fleet.work(name, LATER)
        assert fleet.row()["problem"] == ""
    fleet.ws.git("remote", "set-url", "origin", str(backup))
    assert len(fleet.fetch().entries()) == 4 and list_daily_runs(fleet.ws) == ["2025-02-11"]


def test_what_an_older_copy_lacks_is_handed_in_again(fleet: FleetOfOne, tmp_path: Path) -> None:
    """Where nobody has the newest commits any more: what they had done is not done by itself, and not twice."""
    add_daily_agent(fleet)
    fleet.work("one", CLOCK)
    backup = copy_host(fleet, tmp_path / "backup.git")
    hand_in(fleet, tmp_path, "january.csv", JANUARY)
    fleet.work("one", LATER)
    shutil.rmtree(fleet.shared)
    fleet.owner.ok("add", "acme", str(backup), "--rewritten")
    for at in (LATER, "2025-02-12T06:00:30Z"):
        for name in ("two", "one"):
            fleet.make_due(at)
            fleet.work(name, at)
            assert fleet.row()["problem"] == ""
    assert "handed in before" in fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv")).out
    fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv"), "--again")
    fleet.work("one", at)
    fleet.desk.ok("sync", "origin")
    fleet.desk.in_order()
    assert len(fleet.desk.entries()) == 4 and list_daily_runs(fleet.desk) == ["2025-02-12"]
