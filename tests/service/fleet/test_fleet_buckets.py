"""A fleet whose store is a bucket: dropped files and calls of webhooks lie in it, by S3's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bucket_server import KEY, SECRET, Bucket, serve_bucket
from fleets import FleetOfOne, read_owner
from harness import CLOCK, chase, refused
from signed_calls import make_called, send

pytestmark = pytest.mark.slow

STORE = "s3://files/acme"
FEBRUARY = chase(("02/04/2025", "GITHUB *PRO", "-4.00"), ("02/05/2025", "CORNER SHOP", "-5.00"))
POST = 'amount = ctx_event()["payload"]["amount"]\njournal_add_double("2025-02-09", "called", 5070, 1010, amount)\n1\n'


@pytest.fixture
def bucket(fleet: FleetOfOne) -> Iterator[Bucket]:
    """The store of the fleet; its keys are in the environment of owner and worker."""
    with serve_bucket() as made:
        worker = fleet.worker("one")
        fleet.owner.variables = worker.variables = {**made.variables, "CLEARED_FLEET_DATABASE": fleet.database}
        said = fleet.owner.ok("init", "--database", fleet.database, "--store", STORE).err
        assert f"--store {STORE} " in said
        worker.ok("join", "--database", fleet.database, "--owner", read_owner(fleet.owner.home), "--store", STORE)
        yield made


def test_a_dropped_file_lies_in_the_bucket_before_its_job_is_asked_for(
    fleet: FleetOfOne, bucket: Bucket, tmp_path: Path
) -> None:
    """Where it cannot be put there, nothing is handed in. A job has none of the bucket's keys."""
    (tmp_path / "february.csv").write_text(FEBRUARY)
    fleet.work("one", CLOCK)
    words = ("drop", "acme", str(tmp_path / "february.csv"))
    refused(fleet.owner(*words, AWS_SECRET_ACCESS_KEY="another"), 4, STORE, "keys in the environment")
    assert fleet.owner.json("status", "acme")["files"] == fleet.owner.json("queue") == [] and not bucket.kept
    fleet.owner.ok(*words)
    assert list(bucket.kept.values()) == [FEBRUARY.encode()]
    hook = fleet.shared / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nenv > {tmp_path}/environment\n")  # a push has what its job has
    hook.chmod(0o755)
    fleet.work("one", CLOCK)
    assert fleet.row()["problem"] == "" and len(fleet.fetch().entries()) == 2
    environment = (tmp_path / "environment").read_text()
    assert "CLEARED_HOME=" in environment
    assert all(text not in environment for text in (KEY, SECRET, "CLEARED_FLEET_DATABASE"))
    fleet.owner.ok(*words, "--again")
    fleet.work("one", CLOCK)
    assert fleet.owner.json("status", "acme")["files"] == [] and len(fleet.fetch().entries()) == 2


def test_calls_of_webhooks_lie_in_the_bucket_until_they_are_run(fleet: FleetOfOne, bucket: Bucket) -> None:
    """Also where the database is lost meanwhile; and none is left of a workspace that was taken out."""
    secret = make_called(fleet, POST, '{"amount": "1.00"}')
    with fleet.serving() as server:
        for number in (3, 4):
            assert send(server, secret, f"m{number}", {"amount": f"{number}.00"})[0] == 202
        assert len([path for path in bucket.kept if path.startswith("/files/acme/calls/acme/")]) == 2
    fleet.query("DROP SCHEMA public CASCADE")
    fleet.query("CREATE SCHEMA public")
    fleet.owner.ok("init", "--database", fleet.database, "--store", STORE)
    fleet.add()
    assert {call["id"] for call in fleet.owner.json("status", "acme")["calls"]} == {"m3", "m4"}
    fleet.work("one")
    assert sorted(entry["amount"] for entry in fleet.fetch().entries()) == ["3.00", "4.00"] and not bucket.kept
    with fleet.serving() as server:
        assert send(server, secret, "m5", {"amount": "5.00"})[0] == 202
    fleet.owner.ok("remove", "acme", "--forget")
    assert not bucket.kept
