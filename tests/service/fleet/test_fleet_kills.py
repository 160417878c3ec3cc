"""Workers that are killed, that pause and wake, and a database that goes away: what was asked for is done, once."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from fleets import FleetOfOne, end
from harness import CLOCK, Workspace, chase
from held_pushes import hold_push
from procrastinate import PsycopgConnector
from running import eventually
from synced import tip_of

from cleared.service.fleet.job_queue import make_app
from cleared.service.fleet.local_postgres import LocalPostgres
from cleared.service.fleet.worker import retry_job
from cleared.workspace.lock import read_holder

pytestmark = pytest.mark.slow

POST = 'journal_add_double("2025-02-09", "slow", 5070, 1010, "1.00")\n1\n'
_LINES = [("02/04/2025", f"SHOP {n}", f"-{n}.00") for n in range(1, 6)]


def _drop(fleet: FleetOfOne, folder: Path, number: int) -> None:
    path = folder / f"{number}.csv"
    path.write_text(chase(_LINES[number]))
    fleet.owner.ok("drop", "acme", str(path))


def test_a_killed_worker_s_job_is_done_by_another(fleet: FleetOfOne, tmp_path: Path) -> None:
    """The job holds the lock of its workspace until the worker is seen to be dead."""
    one, two = fleet.worker("one"), fleet.worker("two")
    held = hold_push(fleet.shared, tmp_path)
    _drop(fleet, tmp_path, 0)
    first = one.start("--patience", "2")
    eventually(Path(f"{held}-waits").exists)
    first.kill()  # with all of its processes: a job ends with its worker
    first.communicate()
    _drop(fleet, tmp_path, 1)
    held.unlink()
    second = two.start("--patience", "2")
    eventually(lambda: not fleet.owner.json("status", "acme")["files"])
    said = end(second)
    assert "a worker died at its job" in said and "Traceback" not in said
    assert fleet.owner.json("status")["ended"]["lost"] == 1
    assert sorted(entry["amount"] for entry in fleet.fetch().entries()) == ["1.00", "2.00"]


def test_a_worker_of_much_patience_is_not_taken_for_dead(fleet: FleetOfOne) -> None:
    """Others have less; ``status`` counts it, and nobody takes its jobs."""
    worker = fleet.worker("one").start("--patience", "86400")
    read = "SELECT last_heartbeat FROM procrastinate_workers"
    first = eventually(lambda: fleet.query(read))
    eventually(lambda: fleet.query(read) > first)
    assert fleet.owner.json("status")["alive"] == 1
    assert "Traceback" not in end(worker)


def test_what_a_killed_worker_left_among_temporary_files_is_removed(fleet: FleetOfOne) -> None:
    """By the next one; what a worker uses that is up stays, and so does what is another program's."""
    one, two = fleet.worker("one"), fleet.worker("two")
    with tempfile.TemporaryDirectory() as name:  # a socket's path has to be short
        temporary = Path(name)
        one.variables = two.variables = {"TMPDIR": name}
        (temporary / "pymp-other").mkdir()
        killed = one.start()
        left = eventually(lambda: [*temporary.glob("pymp-*/listener-*")])[0].parent
        killed.kill()
        killed.communicate()
        other = two.start()
        eventually(lambda: not left.exists())
        used = eventually(lambda: [*temporary.glob("pymp-*/listener-*")])[0].parent
        third = one.start()
        eventually(lambda: len([*temporary.glob("pymp-*/listener-*")]) == 2)
        assert used.exists()
        for process in (other, third):
            assert "Traceback" not in end(process)
        assert (temporary / "pymp-other").exists()


def test_a_worker_that_is_killed_while_it_clones_makes_the_clone_again(fleet: FleetOfOne) -> None:
    one = fleet.worker("one")
    for _ in range(3):  # it is killed at another step each time
        first = one.start("--patience", "2")
        eventually(lambda: [*one.home.glob("fleet/clones/*")], pause=0.001)
        first.kill()
        first.communicate()
        second = one.start("--patience", "2")
        eventually((one.home / "fleet/clones/acme/config.yaml").exists)
        end(second)  # with its job
        assert fleet.row()["problem"] == ""
        assert not Workspace(one.home / "fleet/clones/acme").git("status", "--porcelain")
        shutil.rmtree(one.home / "fleet/clones")
        fleet.make_due(CLOCK)


def test_a_worker_that_was_paused_is_stopped_by_the_fence(fleet: FleetOfOne) -> None:
    """It wakes long after others took its job over, and goes on to push."""
    one, two = fleet.worker("one"), fleet.worker("two")
    fleet.ws.agent("slow", f"n = 0\nwhile n < 3000000:\n    n = n + 1\n{POST}")
    fleet.ws.ok("sync")
    fleet.owner("run", "acme", "slow", "--wait", "0", "--key", "once")
    first = one.start("--patience", "2")
    state = one.home / "fleet/clones/acme/.cleared"
    job = eventually(lambda: _find_run(state), pause=0.005)
    os.kill(first.pid, signal.SIGSTOP)
    os.kill(job, signal.SIGSTOP)
    second = two.start("--patience", "2")
    assert fleet.owner.json("run", "acme", "slow", "--key", "once")["status"] == "succeeded"
    end(second)
    tip = tip_of(fleet.shared)
    os.kill(job, signal.SIGCONT)
    os.kill(first.pid, signal.SIGCONT)
    eventually(lambda: _find_run(state) is None)
    assert "pushed meanwhile" in end(first)
    assert tip_of(fleet.shared) == tip
    assert [entry["description"] for entry in fleet.fetch().entries()] == ["slow"]


def test_a_run_that_asks_is_told_so_though_its_worker_was_killed_after_its_push(
    fleet: FleetOfOne, tmp_path: Path
) -> None:
    fleet.ws.agent("asks", 'queue_ask("Which colour?", ["red", "blue"])\n' + POST)
    fleet.ws.ok("sync")
    fleet.work("one", CLOCK)
    fleet.kill_after_push(tmp_path, "asks")
    second = fleet.worker("two").start("--patience", "2")
    told = fleet.owner.json("run", "acme", "asks", "--key", "a")
    assert "Traceback" not in end(second)
    assert told["status"] == "asks" and "Which colour?" in told["said"], told
    (card,) = fleet.fetch().cards()
    fleet.ws.ok("queue", "answer", card["id"], "red")
    fleet.ws.ok("sync")
    fleet.make_due(CLOCK)
    fleet.work("two")
    assert [entry["description"] for entry in fleet.fetch().entries()] == ["slow"]


def test_a_job_that_is_lost_is_asked_for_again(fleet: FleetOfOne) -> None:
    """The queue alone has lost it: what is due stays due."""
    fleet.work(at=CLOCK)
    fleet.query("UPDATE fleet_workspaces SET due = %s, asked_due = %s", CLOCK, CLOCK)
    fleet.work(at=CLOCK)
    assert fleet.query("SELECT asked_due IS NULL AND due > %s FROM fleet_workspaces", CLOCK) == [(True,)]


def test_who_finds_a_dead_worker_s_job_second_leaves_it(fleet: FleetOfOne, tmp_path: Path) -> None:
    """Several workers look for such jobs at once, and one of them has put it back into the queue."""
    fleet.worker("one")
    _drop(fleet, tmp_path, 0)
    fleet.query("UPDATE procrastinate_jobs SET status = 'doing'")

    async def find_twice() -> None:
        async with make_app(PsycopgConnector(conninfo=fleet.database)).open_async() as app:
            (job,) = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=1)
            for _ in range(2):
                await retry_job(app, job)

    asyncio.run(find_twice())
    assert fleet.query("SELECT status FROM procrastinate_jobs") == [("todo",)]
    fleet.work()
    assert [entry["amount"] for entry in fleet.fetch().entries()] == ["1.00"]


def _find_run(state: Path) -> int | None:
    """The process that runs an agent in a worker's clone."""
    holder = read_holder(state)
    return holder.pid if holder is not None and holder.what.startswith("agent run") else None


def test_a_database_that_is_restarted_loses_nothing(fleet: FleetOfOne, cluster: LocalPostgres, tmp_path: Path) -> None:
    worker = fleet.worker("one").start("--patience", "2")
    _drop(fleet, tmp_path, 0)
    eventually(lambda: not fleet.owner.json("status", "acme")["files"])
    cluster.stop(how="immediate")
    assert fleet.owner("list").code == 4
    cluster.start()
    _drop(fleet, tmp_path, 1)
    eventually(lambda: not fleet.owner.json("status", "acme")["files"])
    said = end(worker)
    assert "Traceback" not in said, said
    assert sorted(entry["amount"] for entry in fleet.fetch().entries()) == ["1.00", "2.00"]


def test_a_job_whose_database_was_away_says_so_and_is_done_again(fleet: FleetOfOne, tmp_path: Path) -> None:
    """The database is there again before the job sees that it was away."""
    held = hold_push(fleet.shared, tmp_path)
    _drop(fleet, tmp_path, 0)
    worker = fleet.worker("one").start()
    eventually(Path(f"{held}-waits").exists)
    fleet.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()"
    )
    held.unlink()
    problem = eventually(lambda: fleet.row()["problem"])
    assert "the fleet's database cannot be reached" in problem and "Look whether" in problem
    fleet.make_due(CLOCK)
    eventually(lambda: not fleet.owner.json("status", "acme")["files"])
    assert "Traceback" not in end(worker)
    assert [entry["amount"] for entry in fleet.fetch().entries()] == ["1.00"]


def test_a_job_whose_process_is_killed_says_so_and_is_done_again(fleet: FleetOfOne) -> None:
    fleet.ws.agent("slow", f"n = 0\nwhile n < 3000000:\n    n = n + 1\n{POST}")
    fleet.ws.ok("sync")
    fleet.owner("run", "acme", "slow", "--wait", "0", "--key", "once")
    one = fleet.worker("one")
    worker = one.start()
    os.kill(eventually(lambda: _find_run(one.home / "fleet/clones/acme/.cleared"), pause=0.005), signal.SIGKILL)
    problem = eventually(lambda: fleet.row()["problem"])
    assert f"ended by signal 9 on {os.uname().nodename}" in problem and "done again" in problem
    assert fleet.owner.json("status")["ended"]["killed"] == 1
    fleet.make_due(CLOCK)
    assert fleet.owner.json("run", "acme", "slow", "--key", "once")["status"] == "succeeded"
    assert "Traceback" not in end(worker)
    assert [entry["description"] for entry in fleet.fetch().entries()] == ["slow"]
