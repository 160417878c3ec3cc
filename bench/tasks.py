"""Tasks: how soon the newest line of one is found in a ledger that nobody should read whole."""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.measure import Result, interleave, seconds
from bench.pace import judge_time, take_paced, time_act
from cleared.base.clock import SystemClock
from cleared.jobs.tasks.task_ledger import LEDGER, TaskLedger

BYTES = 1 << 30
MOST_SECONDS = 0.1


def task_ledger(quick: bool) -> Result:
    """The newest line of a task that stands at the beginning of 1 GB (quick: 64 MB), and of one among 100 lines."""
    folder = Path(tempfile.mkdtemp(prefix="cleared-bench-"))
    try:
        large = _make_ledger(folder / "large", BYTES >> 4 if quick else BYTES)
        small = _make_ledger(folder / "small", 20_000)
        took, base = interleave(_look_up(large), _look_up(small), 5 if quick else 25)
    finally:
        shutil.rmtree(folder)
    return Result(
        "a task's newest line in a ledger of 1 GB / of 100 lines",
        seconds(took),
        seconds(base),
        took / base,
        "≤ 100 ms",
        took <= MOST_SECONDS,
    )


def cold_ledger(quick: bool) -> Result:
    """The same without an index: the first answer, of a task that stands at the beginning, and all newest lines."""
    folder = Path(tempfile.mkdtemp(prefix="cleared-bench-"))
    try:
        ledger = _make_ledger(folder, BYTES >> 4 if quick else BYTES)

        def look(act: Callable[[], object]) -> float:
            ledger.index.drop()
            return time_act(act)

        first = take_paced(lambda: look(lambda: ledger.read_latest("T-000")), 3)
        whole = statistics.median(look(ledger.read_all) for _ in range(3))
    finally:
        shutil.rmtree(folder)
    return judge_time(
        "the first answer of a ledger of 1 GB without an index / all newest lines of it, processor time",
        first,
        1,
        baseline=seconds(whole),
        ratio=first.measured / whole,
    )


def _make_ledger(root: Path, size: int) -> TaskLedger:
    """A ledger of so many bytes, whose first task never comes again, indexed."""
    path = root / LEDGER
    path.parent.mkdir(parents=True)
    line = {"status": "pending", "updated_at": "2026-02-07T15:00:00Z", "summary": "é" + "x" * 100}
    block = b"".join(json.dumps({"id": f"T-{n:03d}", **line}).encode() + b"\n" for n in range(1, 101))
    with path.open("wb") as file:
        file.write(json.dumps({"id": "T-000", **line}).encode() + b"\n")
        for _ in range(max(1, size // len(block))):
            file.write(block)
    ledger = TaskLedger(root, clock=SystemClock())
    ledger.read_all()
    return ledger


def _look_up(ledger: TaskLedger) -> Callable[[], Callable[[], object]]:
    def find() -> None:
        found = ledger.read_latest("T-000")
        assert found is not None and found.status == "pending"

    return lambda: find
