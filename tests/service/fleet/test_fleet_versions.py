"""Workers of two versions at once: a job waits for one that can do it, and nothing is lost or done twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fleets import FleetOfOne, Machine
from harness import CLOCK, chase
from patience import PATIENCE

import cleared
from cleared.service.fleet.fleet_tables import VERSION

pytestmark = pytest.mark.slow

_LINES = [("02/04/2025", f"SHOP {n}", f"-{n}.00") for n in range(1, 6)]


class NewerProgram:
    """This program as a later version of it would be: its fleet's version is one more."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        package = Path(cleared.__file__).parent
        shutil.copytree(package, folder / "cleared", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("agents", "scripts", "config.yaml"):  # the starters lie beside it
            (folder / name).symlink_to(package.parent / name)
        tables = folder / "cleared/service/fleet/fleet_tables.py"
        text, line = tables.read_text(), f"VERSION: Final = {VERSION}\n"
        assert line in text
        tables.write_text(text.replace(line, f"VERSION: Final = {VERSION + 1}\n"))

    def ok(self, machine: Machine, *argv: str) -> str:
        """What ``cleared fleet`` of that version says on a machine."""
        environment = machine.environment({"PYTHONPATH": str(self._folder), "CLEARED_CLOCK": CLOCK})
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        program = [sys.executable, "-m", "cleared", "fleet", *argv]
        done = subprocess.run(program, env=environment, cwd=self._folder, capture_output=True, check=False)
        assert done.returncode == 0, (argv, done)
        return (done.stdout + done.stderr).decode()


def drop(folder: Path, number: int) -> str:
    path = folder / f"{number}.csv"
    path.write_text(chase(_LINES[number]))
    return str(path)


def test_two_versions_work_beside_each_other(fleet: FleetOfOne, tmp_path: Path) -> None:
    (tmp_path / "newer").mkdir()
    newer = NewerProgram(tmp_path / "newer")
    owner, one, two = fleet.owner, fleet.worker("one"), fleet.worker("two")
    fleet.work("one", CLOCK)
    said = newer.ok(owner, "upgrade")
    assert f"tables of version {VERSION + 1}" in said and "Workers of an earlier version: " in said
    assert said.count(os.uname().nodename) == 2 and "install cleared" in said

    owner.ok("drop", "acme", drop(tmp_path, 0))  # asked by this version: either can do it
    fleet.work("one", CLOCK)
    assert owner.json("status", "acme")["files"] == []

    newer.ok(owner, "drop", "acme", drop(tmp_path, 1))
    fleet.work("one", CLOCK)
    assert len(owner.json("status", "acme")["files"]) == 1
    status = owner.json("status")
    assert status["waiting"] == status["for_newer"] == 1
    newer.ok(two, "worker", "--once")
    assert owner.json("status", "acme")["files"] == [] and owner.json("status")["for_newer"] == 0

    # What a newer worker has written down, an older one leaves to such.
    owner.ok("drop", "acme", drop(tmp_path, 2))
    assert "a newer worker has served it" in fleet.work("one", CLOCK).err
    assert owner.json("status")["for_newer"] == 1 and owner.json("status")["problems"] == 0
    newer.ok(two, "worker", "--once")
    assert sorted(entry["amount"] for entry in fleet.fetch().entries()) == ["1.00", "2.00", "3.00"]
    assert newer.ok(owner, "upgrade").count(os.uname().nodename) == 1
    newer.ok(one, "worker", "--once")
    assert "earlier version" not in newer.ok(owner, "upgrade")


def test_a_worker_beside_which_the_tables_cannot_be_ends(fleet: FleetOfOne) -> None:
    """Also one that is up."""
    process = fleet.worker("one").start()
    fleet.query("UPDATE fleet_facts SET value = '99' WHERE name = 'oldest'")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2 and b"Install the newer cleared" in said, said
