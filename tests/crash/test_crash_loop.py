"""The loop of jobs killed at each of its steps and at any time: no job is lost, none is run twice.

``CLEARED_EVERY_POINT=1`` kills at every point there is, instead of at one of each kind; ``CLEARED_LOOP_KILLS=300``
says how often it is killed at random times. ``python -m tests.crash --loop --kills 300`` goes on for longer.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_loop import calm, campaign, scene
from crash_service import Hand
from harness import copy_books
from kill_points import EVERY
from looped import STEPS, Loops, eventually, plugged_in, prepare

from cleared.jobs import loop_state

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("CLEARED_LOOP_KILLS", "6"))


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory, own_home: None, _nobody: None) -> Iterator[Loops]:
    with plugged_in(tmp_path_factory.mktemp("kinds") / "plugin"), Loops() as found:
        yield found


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, starting_point: Path, loops: Loops) -> Path:
    """A workspace whose loop has never run."""
    root = tmp_path_factory.mktemp("loop") / "books"
    copy_books(starting_point, root)
    return prepare(root)


@pytest.fixture(scope="module")
def points(start: Path, loops: Loops, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What an undisturbed loop comes by in the scene."""
    return calm(start, tmp_path_factory.mktemp("calm") / "books", loops)


def chosen(points: list[str], seed: int, part: int = 0, parts: int = 1) -> list[tuple[str, int]]:
    """Steps and their times: all, or one of each kind of a part at random."""
    found, draw = [], random.Random(seed)
    for name in STEPS if EVERY else STEPS[part::parts]:
        times = points.count(name)
        assert times, f"it never comes by {name!r}"
        found += [(name, nth) for nth in (range(1, times + 1) if EVERY else [draw.randint(1, times)])]
    return found


@pytest.mark.parametrize("part", [0, 1])
def test_killed_at_each_step(start: Path, points: list[str], loops: Loops, tmp_path: Path, part: int) -> None:
    """Rows E6, E26, E27: with jobs that come meanwhile, a slow one among them, and rotation on."""
    for name, nth in chosen(points, 1, part, 2):
        life = scene(start, tmp_path / f"{STEPS.index(name)}-{nth}", loops)
        try:
            assert loops.killed_at(life, name, nth, **FLAGS)
            life.enqueue("note", 2)
            life.drain(loops)
            life.check()
        except BaseException as error:
            error.add_note(f"killed at {name} {nth}: look at {life.root}")
            raise


FLAGS = {"max_cycles": 8, "auto_rotate": True, "sleep_seconds": 0.0}


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_the_same_step_over_and_over(start: Path, loops: Loops, tmp_path: Path, step: str) -> None:
    """It comes on all the same; only where it never lets a job go does it not."""
    life = scene(start, tmp_path / "books", loops)
    for _ in range(5):
        if not loops.killed_at(life, step, **FLAGS):
            break
    life.drain(loops)
    life.check()


def test_a_job_whose_loop_was_killed_goes_on(start: Path, loops: Loops, tmp_path: Path) -> None:
    """Row E6: its result is collected by the next loop."""
    life = scene(start, tmp_path / "books", loops, fast=0, slow=0)
    job = life.enqueue("slow")
    assert loops.killed_at(life, "job assigned", **FLAGS)
    eventually(lambda: ("e", job) in life.marks())
    assert life.state()["running"]["job_id"] == job
    eventually(lambda: job in life.results())
    life.drain(loops)
    life.check()
    assert [row["status"] for row in life.state()["jobs"]] == ["succeeded"]


@pytest.mark.parametrize("both", [False, True], ids=["supervisor", "both"])
def test_a_job_whose_supervisor_was_killed_is_ended_and_told(
    start: Path, loops: Loops, tmp_path: Path, both: bool
) -> None:
    """Row E26; the loop goes on, or is killed with it."""
    life = scene(start, tmp_path / "books", loops, fast=0, slow=0)
    job = life.enqueue("waits")
    loops.begin(life, **FLAGS | {"auto_rotate": False})
    eventually(lambda: ("b", job) in life.marks())
    if both:
        loops.signal(life, signal.SIGKILL)
    assert life.kill_supervisor()
    assert loops.ended() == (-signal.SIGKILL if both else 0)
    after = life.enqueue("note")
    life.drain(loops)
    (life.root / "ran/go").touch()
    time.sleep(0.2)
    life.check()
    assert [(row["job_id"], row["status"]) for row in life.state()["jobs"]] == [
        (job, "failed_or_no_result"),
        (after, "succeeded"),
    ]
    assert ("e", job) not in life.marks(), "it was ended"


def test_what_a_dead_job_leaves_is_told_from_a_job_of_the_same_id(start: Path, loops: Loops, tmp_path: Path) -> None:
    """Row E32: what ends the one leaves the other alone, in whichever directory it runs."""
    lives = [scene(start, tmp_path / name, loops, fast=0, slow=0) for name in ("one", "two")]
    for life in lives:
        life.host.clock = Hand("2025-02-10T06:00:00+00:00")
        job = life.enqueue("waits")
        assert loops.killed_at(life, "job assigned", **FLAGS)
    assert lives[0].ids == lives[1].ids
    eventually(lambda: all(life.marks() == [("b", job)] for life in lives))
    assert lives[0].kill_supervisor()
    lives[0].drain(loops)
    (lives[1].root / "ran/go").touch()
    lives[1].drain(loops)
    for life in lives:
        life.check()
    assert [life.results()[job]["status"] for life in lives] == ["failed_or_no_result", "succeeded"]


def test_told_to_end_it_ends_after_the_job_that_is_on(start: Path, loops: Loops, tmp_path: Path) -> None:
    life = scene(start, tmp_path / "books", loops, fast=2, slow=1)
    loops.begin(life, **FLAGS)
    eventually(lambda: life.marks() and life.marks()[-1][0] == "b")
    loops.signal(life, signal.SIGTERM)
    assert loops.ended() == 0
    assert life.state()["running"] is None and life.state()["stop"]["code"] == "asked"
    life.drain(loops)
    life.check()


# -- what a power cut leaves ------------------------------------------------------------------------------------------


LOSSES = {"the backup": (0, 1), "cut short": (0, 2), "gone": (1, 2)}
"""What is left of a loop's state, and at which part of the steps: one cut short and one that is gone end alike."""


@pytest.mark.parametrize("how", LOSSES)
def test_a_state_that_goes_back_by_one_step(
    start: Path, points: list[str], loops: Loops, tmp_path: Path, how: str
) -> None:
    """Row E29, at each transition: nothing is lost, nothing is run twice."""
    draw = random.Random(3)
    for name, nth in chosen(points, len(how), *LOSSES[how]):
        life = scene(start, tmp_path / f"{STEPS.index(name)}-{nth}", loops)
        assert loops.killed_at(life, name, nth, **FLAGS)
        if how == "the backup":
            life.runtime.state_path.write_bytes(life.runtime.backup_path.read_bytes())
        elif how == "gone":
            life.runtime.state_path.unlink()
        else:
            whole = life.runtime.state_path.read_bytes()
            life.runtime.state_path.unlink()
            life.runtime.state_path.write_bytes(whole[: draw.randrange(len(whole) - 1)])
        try:
            life.drain(loops)
            life.check(notices=int(how != "the backup"))
        except BaseException as error:
            error.add_note(f"killed at {name} {nth}: look at {life.root}")
            raise


@pytest.mark.parametrize("most", [0, 1])
def test_what_was_taken_in_is_in_the_backup_too(start: Path, loops: Loops, tmp_path: Path, most: int) -> None:
    """Its message is gone by then. So too what is taken in while a job is on."""
    life = scene(start, tmp_path / "books", loops, fast=0, slow=1)
    if most:
        loops.begin(life, max_cycles=5, sleep_seconds=0.0)
        eventually(lambda: life.marks())
        life.enqueue("note", 2)
        eventually(lambda: len(life.state()["queue"]) == 2 and not list(life.runtime.inbox_folder.glob("*.json")))
        loops.signal(life, signal.SIGKILL)
        assert loops.ended() == -signal.SIGKILL
    life.runtime.state_path.unlink()
    life.drain(loops)
    life.check(notices=1)


def test_a_state_cut_short_at_any_length(start: Path, loops: Loops, tmp_path: Path) -> None:
    """Row E29: it is told from a whole one, set aside, and the backup is used."""
    life = scene(start, tmp_path / "books", loops)
    loops.run(life, max_cycles=3, sleep_seconds=0.0)
    whole, backup = life.runtime.state_path.read_bytes(), life.runtime.backup_path.read_bytes()
    assert len(whole) > 1000
    for length in range(0, len(whole) - 1, 1 if EVERY else 61):
        life.runtime.state_path.unlink(missing_ok=True)
        life.runtime.state_path.write_bytes(whole[:length])
        found, problem = loop_state.load_state(life.runtime, life.host.clock)
        assert "its backup is used" in problem and not life.runtime.state_path.exists()
        assert found["notices"].pop()["text"] == problem
        assert found == json.loads(backup)
        [*_, aside] = sorted(life.runtime.archive_folder.iterdir(), key=lambda p: p.stat().st_mtime_ns)
        assert aside.read_bytes() == whole[:length]
    assert life.runtime.backup_path.read_bytes() == backup


@pytest.mark.parametrize("step", ["job assigned", "job ended", "flag written", "result written"])
def test_after_a_power_cut_no_job_is_begun_again(
    start: Path, loops: Loops, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The state was synced before the job was told to go; its own files may not have been."""
    life = scene(start, tmp_path / "books", loops, fast=1, slow=0)
    [job] = life.ids
    assert loops.killed_at(life, step, **FLAGS)
    eventually(lambda: job in life.results())
    for path in (life.runtime.result_path(job), life.runtime.output_path(job)):
        path.unlink()
    life.shot.add(job)
    monkeypatch.setattr("cleared.base.process_identity._boot_id", lambda: "another")
    life.enqueue("note")
    life.drain(loops)
    life.check()
    assert life.results()[job]["status"] == "failed_or_no_result"


# -- at any time ------------------------------------------------------------------------------------------------------


def test_killed_at_any_time(start: Path, loops: Loops, tmp_path: Path) -> None:
    """Loop, supervisor or both, or told to end; jobs come meanwhile, refused ones too."""
    told = campaign(start, tmp_path, loops, KILLS, 0)
    assert told.kills >= KILLS
