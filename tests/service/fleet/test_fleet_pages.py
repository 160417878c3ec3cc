"""The page of a fleet: what is decided in the owner's clones is pushed, and what workers push comes into them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import preloaded
from fleets import FleetOfOne
from harness import CLOCK, chase
from running import SECONDS, eventually
from synced import tip_of
from web_client import Server


def test_a_decision_on_the_page_is_pushed_and_starts_who_waits_for_it(fleet: FleetOfOne, tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(chase(("02/05/2025", "CORNER SHOP", "-5.00")))
    environment = {k: v for k, v in os.environ.items() if k != "CLEARED_CLOCK"}
    process = preloaded.Preloaded(
        ["fleet", "server", "--json", "--port", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    try:
        place = json.loads(process.stdout.readline())
        server = Server.at(place["url"], place["code"])
        server.sign_in(place["code"])
        fleet.owner.ok("drop", "acme", str(tmp_path / "shop.csv"))
        fleet.work("one", CLOCK)
        eventually(lambda: "CORNER SHOP" in server.get("/queue").text)
        before = tip_of(fleet.shared)
        server.submit(server.get("/queue"), "/queue", ("choice", "confirm"))
        eventually(lambda: tip_of(fleet.shared) != before)
        eventually(lambda: fleet.owner.json("queue"))  # a worker is asked to look
    finally:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=SECONDS)[1].decode()
    assert "Traceback" not in said and "not joined" not in said, said
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
