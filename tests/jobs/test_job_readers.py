"""Whoever reads the loop's files while it is at work sees whole ones: during a thousand cycles, with two enqueuers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import copy_books
from looped import Life, Loops, files, plugged_in, prepare

from cleared.base.errors import WorkspaceError
from cleared.jobs import file_schemas, loop_reader

CYCLES = int(os.environ.get("CLEARED_LOOP_CYCLES", "500"))
EACH = CYCLES // 12
"""Jobs of each enqueuer; the other cycles find nothing to do, and say so."""
NEWEST = 12
BRIDGE = "ai_single_turn_bridge"


@pytest.fixture
def life(tmp_path: Path, starting_point: Path) -> Iterator[tuple[Life, Loops]]:
    """A loop that has never run."""
    with plugged_in(tmp_path / "plugin"), Loops() as loops:
        yield Life(prepare(copy_books(starting_point, tmp_path / "books"))), loops


class Reader:
    """Reads all there is, over and over; nothing of it may be half a file, or go back in time."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.passes = self.read = self.cycles = self.ended = 0

    def look(self) -> None:
        self.passes += 1
        job_files: list[tuple[Path, Any]] = []
        for path, name in files(self.life):
            if name in ("manifest", "result"):
                job_files.append((path, name))
            else:
                self.one(path, name)
        job_files.sort(key=lambda found: found[0].name)
        for path, name in job_files[-NEWEST:] + job_files[self.passes % 50 :: 50]:
            self.one(path, name)
        status = loop_reader.read_status(self.life.runtime)
        assert status["cycles"] >= self.cycles
        assert len({row["job_id"] for row in loop_reader.list_jobs(self.life.runtime, 25)}) >= min(1, self.ended)

    def one(self, path: Path, name: Any) -> None:
        try:
            found = file_schemas.read_record(name, path)
        except file_schemas.DamagedFile:
            raise
        except WorkspaceError as error:
            assert name == "inbox" and "no such file" in str(error), f"{path}: {error}"
            return
        self.read += 1
        if name == "tree":
            self.tree(found)
        elif path == self.life.runtime.state_path:
            assert found["cycles"] >= self.cycles
            self.cycles = found["cycles"]

    def tree(self, found: dict[str, Any]) -> None:
        summary, state = found["summary"], found["state"]
        assert {k: summary[k] for k in state["counts"]} == state["counts"]
        assert (summary["queued"], summary["cycles"]) == (len(state["queue"]), state["cycles"])
        assert summary["running"] == (state["running"]["job_id"] if state["running"] else None)
        ended = sum(state["counts"].values())
        assert ended >= self.ended
        self.ended = ended


def test_no_reader_sees_half_a_file(life: tuple[Life, Loops]) -> None:
    """Rows E7, E14, E15, E27."""
    one, loops = life
    two = Life(one.root)
    one.enqueue("noop")
    reader, problems, codes = Reader(one), [], []

    def enqueues(mine: Life) -> None:
        try:
            for number in range(EACH):
                mine.enqueue("noop" if number % 3 == 0 else BRIDGE)
                time.sleep(0.01)
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            problems.append(error)

    threads = [threading.Thread(target=enqueues, args=(mine,)) for mine in (one, two)]
    bridge = {"allow_ai_turn": True, "ai_dry_run": True}
    loops.begin(one, max_cycles=CYCLES, sleep_seconds=0.0, **bridge)
    loops.up(one)
    for thread in threads:
        thread.start()
    done = threading.Event()
    waiter = threading.Thread(target=lambda: (codes.append(loops.ended()), done.set()))
    waiter.start()
    while not done.wait(0.005):
        reader.look()
    for thread in (*threads, waiter):
        thread.join()
    assert problems == [] and codes == [0]
    one.ids += two.ids
    assert len(one.ids) == 2 * EACH + 1
    one.drain(loops, **bridge)  # a quick loop has ended before the last are put in
    one.check()
    reader.look()
    results = one.results()
    assert {results[job]["status"] for job in one.ids} == {"succeeded"}
    assert one.state()["cycles"] >= CYCLES and reader.cycles > CYCLES // 2 and reader.ended > EACH // 2
    assert reader.passes > 20 and reader.read > 5 * reader.passes, (reader.passes, reader.read)
    for path in one.runtime.jobs_folder.glob("*.bridge_manifest.json"):
        file_schemas.read_record("bridge", path)
