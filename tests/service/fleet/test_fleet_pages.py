"""The page of a fleet: what is decided in the owner's clones is pushed, and what workers push comes into them."""

from __future__ import annotations

from pathlib import Path

from fleets import FleetOfOne
from harness import CLOCK, chase
from running import eventually
from synced import tip_of


def test_a_decision_on_the_page_is_pushed_and_starts_who_waits_for_it(fleet: FleetOfOne, tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(chase(("02/05/2025", "CORNER SHOP", "-5.00")))
    with fleet.serving() as server:
        server.sign_in(server.code)
        fleet.owner.ok("drop", "acme", str(tmp_path / "shop.csv"))
        fleet.work("one", CLOCK)
        eventually(lambda: "CORNER SHOP" in server.get("/w/acme/queue").text)
        before = tip_of(fleet.shared)
        server.submit(server.get("/w/acme/queue"), "/w/acme/queue", ("choice", "confirm"))
        eventually(lambda: tip_of(fleet.shared) != before)
        eventually(lambda: fleet.owner.json("queue"))  # a worker is asked to look
    fleet.work("one", CLOCK)
    assert fleet.row()["head"] == tip_of(fleet.shared)
    assert [entry["status"] for entry in fleet.fetch().entries()] == ["user-confirmed"]


def test_a_look_is_asked_for_where_somebody_has_pushed(fleet: FleetOfOne) -> None:
    fleet.work("one", CLOCK)
    fleet.ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    fleet.ws.ok("sync")
    assert fleet.row()["head"] != tip_of(fleet.shared)
    fleet.owner.ok("look", "acme")
    fleet.owner.ok("look", "acme")
    assert fleet.owner.json("queue") == [{"workspace": "acme", "waiting": 1, "doing": 0}]
    fleet.work("one", CLOCK)
    assert fleet.row()["head"] == tip_of(fleet.shared)
    assert fleet.owner("look", "nobody").code == 2
