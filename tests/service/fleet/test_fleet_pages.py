"""The page of a fleet: what is decided in the owner's clones is pushed, and what workers push comes into them."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import pytest
from fleets import FleetOfOne
from harness import CLOCK, chase, command
from held_pushes import hold_push
from running import eventually
from signed_calls import make_called, send
from synced import tip_of

from cleared.base.programs import own_command
from cleared.service.fleet.local_postgres import LocalPostgres

pytestmark = pytest.mark.slow


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
    """By a person, or by what the git host does after a push."""
    fleet.work("one", CLOCK)
    hook = fleet.shared / "hooks/post-receive"
    hook.parent.mkdir(exist_ok=True)
    look = shlex.join(own_command("fleet", "look", "acme"))
    hook.write_text(f"#!/bin/sh\nCLEARED_HOME={fleet.owner.home} exec {look}\n")
    hook.chmod(0o755)
    fleet.ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    fleet.ws.ok("sync")
    assert fleet.row()["head"] != tip_of(fleet.shared)
    assert fleet.owner.json("queue") == [{"workspace": "acme", "waiting": 1, "doing": 0}]
    fleet.owner.ok("look", "acme")
    assert fleet.owner.json("queue") == [{"workspace": "acme", "waiting": 1, "doing": 0}]
    fleet.work("one", CLOCK)
    assert fleet.row()["head"] == tip_of(fleet.shared)
    assert fleet.owner("look", "nobody").code == 2


def test_a_decision_is_pushed_also_where_the_server_was_killed_before_that(fleet: FleetOfOne, tmp_path: Path) -> None:
    """By the next one; and another link signs in to that."""
    (tmp_path / "shop.csv").write_text(chase(("02/05/2025", "CORNER SHOP", "-5.00")))
    fleet.owner.ok("drop", "acme", str(tmp_path / "shop.csv"))
    fleet.work("one", CLOCK)
    before = tip_of(fleet.shared)
    held = hold_push(fleet.shared, tmp_path)
    with fleet.serving() as server:
        server.sign_in(server.code)
        eventually(lambda: "CORNER SHOP" in server.get("/w/acme/queue").text)
        server.submit(server.get("/w/acme/queue"), "/w/acme/queue", ("choice", "confirm"))
        eventually(Path(f"{held}-waits").exists)
        for process in fleet.owner.started:
            os.killpg(process.pid, signal.SIGKILL)  # with the sync that it has begun
            process.wait()
    held.with_name("held-waits").unlink()
    (fleet.shared / "hooks/pre-receive").unlink()
    assert tip_of(fleet.shared) == before
    with fleet.serving() as server:
        link = command("server", "--link", "--port", str(server.port)).out
        assert server.sign_in(link.strip().partition("/login#")[2]).status == 303
        assert "acme" in server.get("/").text
        eventually(lambda: tip_of(fleet.shared) != before)
        held.unlink()
    assert [entry["status"] for entry in fleet.fetch().entries()] == ["user-confirmed"]


def test_one_workspace_that_cannot_be_opened_hides_and_holds_no_other(fleet: FleetOfOne) -> None:
    fleet.add_other("beta")
    fleet.work("one", CLOCK)
    root = fleet.desk_of("beta").root
    with fleet.serving() as server:
        server.sign_in(server.code)
        away = root.rename(root.with_name("away"))
        listed = server.get("/").text
        assert "cannot be opened" in listed and "acme" in listed
        before = tip_of(fleet.shared)
        fleet.desk.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
        eventually(lambda: tip_of(fleet.shared) != before)
        away.rename(root)
        assert "cannot be opened" not in server.get("/").text


def test_the_pages_are_there_while_the_database_is_away(fleet: FleetOfOne, cluster: LocalPostgres) -> None:
    secret = make_called(fleet)
    fleet.work("one", CLOCK)
    with fleet.serving() as server:
        server.sign_in(server.code)
        assert send(server, secret, "m1", {"order": 1})[0] == 202
        cluster.stop(how="immediate")
        try:
            assert server.get("/").status == server.get("/w/acme/").status == server.get("/w/acme/queue").status == 200
            status, answer = send(server, secret, "m2", {"order": 2})
            assert status >= 500 and "cannot be reached" in answer["error"]["message"]
        finally:
            cluster.start()
        assert send(server, secret, "m2", {"order": 2})[0] == 202
        before = tip_of(fleet.shared)
        fleet.desk.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
        eventually(lambda: tip_of(fleet.shared) != before)
        fleet.work("one")
    commits = fleet.fetch().git("log", "--format=%(trailers:key=Event,valueonly,separator=)", "--grep=Agent: orders")
    assert sorted(commits.split("\n")[:-1]) == ["webhook hook/m1", "webhook hook/m2"]


def test_a_workspace_that_comes_or_goes_later_is_on_the_page_or_not(fleet: FleetOfOne) -> None:
    fleet.work("one", CLOCK)
    with fleet.serving() as server:
        server.sign_in(server.code)
        fleet.add_other("beta")
        eventually(lambda: "beta" in server.get("/").text)
        assert server.get("/w/beta/queue").status == 200
        fleet.work("one", CLOCK)
        desk, before = fleet.desk_of("beta"), tip_of(fleet.shared_of("beta"))
        desk.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
        eventually(lambda: tip_of(fleet.shared_of("beta")) != before)  # it is joined as those from the start are
        fleet.owner.ok("remove", "beta", "--forget")
        eventually(lambda: server.get("/w/beta/queue").status == 404)
        assert "beta" not in server.get("/").text
        assert server.get("/w/acme/queue").status == 200


def test_what_somebody_else_wrote_in_the_database_is_not_shown(fleet: FleetOfOne) -> None:
    fleet.work("one", CLOCK)
    with fleet.serving() as server:
        server.sign_in(server.code)
        fleet.query(
            "INSERT INTO fleet_workspaces (name, statement, signature) SELECT 'copy', statement, signature "
            "FROM fleet_workspaces"
        )
        fleet.add_other("beta")
        eventually(lambda: "beta" in server.get("/").text)
        assert server.get("/w/copy/queue").status == 404
