"""Whoever can write to the database, the store or the remote, or has a worker, approves nothing and loses nothing."""

from __future__ import annotations

from pathlib import Path

import psycopg
from fleets import FleetOfOne
from harness import CLOCK, JANUARY, Workspace
from synced import run_git, tip_of


def _refused(fleet: FleetOfOne, why: str, name: str = "one") -> None:
    """A worker does nothing, and says why; the next one would not either."""
    before = tip_of(fleet.shared)
    fleet.make_due(CLOCK)
    fleet.work(name, CLOCK)
    assert why in fleet.row()["problem"], fleet.row()
    assert tip_of(fleet.shared) == before


def test_what_the_owner_did_not_say_runs_nothing(fleet: FleetOfOne, tmp_path: Path) -> None:
    """The tables only carry what the owner has signed."""
    fleet.worker("one")
    said, signature = fleet.query("SELECT statement, signature FROM fleet_workspaces")[0]
    (tmp_path / "january.csv").write_text(JANUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv"))
    fleet.query("UPDATE fleet_workspaces SET statement = replace(encode(statement, 'escape'), 'main', 'evil')::bytea")
    _refused(fleet, "not signed by the fleet's owner")
    fleet.query("UPDATE fleet_workspaces SET statement = %s, signature = %s", said, signature)
    (workers,) = fleet.query("SELECT value FROM fleet_facts WHERE name = 'workers'")[0]
    fleet.query("UPDATE fleet_facts SET value = replace(value, 'revoked', 'Revoked') WHERE name = 'workers'")
    assert "not signed by the fleet's owner" in fleet.worker("one")("worker", "--once").err
    fleet.query("UPDATE fleet_facts SET value = %s WHERE name = 'workers'", workers)
    fleet.add()  # the owner says something later
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    assert len(fleet.fetch().entries()) == 4
    fleet.query("UPDATE fleet_workspaces SET statement = %s, signature = %s", said, signature)
    _refused(fleet, "has said something else")


def test_one_name_cannot_stand_for_the_books_of_another(fleet: FleetOfOne) -> None:
    fleet.worker("one")
    fleet.query(
        "INSERT INTO fleet_workspaces (name, statement, signature) SELECT 'other', statement, signature "
        "FROM fleet_workspaces"
    )
    fleet.query("DELETE FROM fleet_workspaces WHERE name = 'acme'")
    _refused(fleet, "is what the owner said of acme")


def test_a_file_of_another_content_is_not_imported(fleet: FleetOfOne, tmp_path: Path) -> None:
    fleet.worker("one")
    (tmp_path / "january.csv").write_text(JANUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv"))
    (kept,) = fleet.store.iterdir()
    kept.write_text(JANUARY.replace("-4.00", "-400.00"))
    _refused(fleet, "another content")
    fleet.query("UPDATE fleet_files SET name = '../../../agents/evil.py'")
    kept.write_text(JANUARY)
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    assert not (fleet.worker("one").home / "fleet/clones/acme/agents/evil.py").exists()
    assert len(fleet.fetch().entries()) == 4


def test_a_history_that_was_taken_back_stops_the_work(fleet: FleetOfOne) -> None:
    fleet.work("one", CLOCK)
    run_git(fleet.shared, "config", "receive.denyNonFastForwards", "false")
    fleet.ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    fleet.ws.ok("sync")
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    assert fleet.row()["problem"] == ""
    run_git(fleet.ws.root, "push", "-q", "-f", "origin", "HEAD~1:main")
    _refused(fleet, "has lost the commit", "one")
    _refused(fleet, "has lost the commit", "two")
    assert "take commits back" in fleet.owner("add", "acme", str(fleet.shared)).err


def test_a_worker_that_was_revoked_does_nothing_any_more(fleet: FleetOfOne, tmp_path: Path) -> None:
    """What it has pushed before counts; what it pushes afterwards stops the work."""
    (tmp_path / "january.csv").write_text(JANUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv"))
    fleet.work("two", CLOCK)
    key = {row["key"] for row in fleet.owner.json("trust")}
    fleet.worker("one")
    (one,) = {row["key"] for row in fleet.owner.json("trust")} - key
    fleet.owner.ok("trust", one, "--revoke")
    fleet.make_due(CLOCK)
    refused = fleet.worker("one")("worker", "--once", CLEARED_CLOCK=CLOCK)
    assert refused.code == 3 and "was revoked" in refused.err
    assert len(fleet.fetch().entries()) == 4
    stolen = Workspace(fleet.worker("one").home / "fleet/clones/acme")
    assert not stolen.root.exists()


def test_a_database_that_is_away_is_said(fleet: FleetOfOne, tmp_path: Path) -> None:
    worker = fleet.worker("one")
    gone = fleet.database.replace("host=", "host=%2Fnowhere")
    for words in (("list",), ("worker", "--once"), ("run", "acme", "ingest")):
        done = worker(*words, CLEARED_FLEET_DATABASE=gone)
        assert done.code == 4 and "cannot be reached" in done.err and "Traceback" not in done.err, done
    wrong = worker("list", CLEARED_FLEET_DATABASE="not a url")
    assert wrong.code == 2 and "Traceback" not in wrong.err, wrong
    alone = fleet.worker("one").__class__(tmp_path / "nobody")
    assert alone("list").code == 2 and "belongs to no fleet" in alone("list").err
    with psycopg.connect(fleet.database, autocommit=True) as db:
        db.execute("UPDATE fleet_facts SET value = '99' WHERE name = 'schema'")
    late = worker("worker", "--once")
    assert late.code == 2 and "Install the newer cleared" in late.err


def test_only_the_owner_says_what_is_in_the_fleet(fleet: FleetOfOne) -> None:
    worker = fleet.worker("one")
    for words in (("add", "more", str(fleet.shared)), ("remove", "acme"), ("upgrade",)):
        done = worker(*words)
        assert done.code == 3 and ("owner" in done.err or "no approval key" in done.err), done
    assert fleet.owner("add", "twice", str(fleet.shared)).code == 2
    assert fleet.owner("add", "../evil", str(fleet.shared)).code == 2
    assert fleet.owner("add", "gone", str(fleet.shared) + "-not").code == 4
    assert [row["name"] for row in fleet.owner.json("list")] == ["acme"]
