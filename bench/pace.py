"""Times judged at one pace: a machine that is half as fast in this hour makes no figure twice as bad.

The pace is a piece of work that does not change, a new interpreter that imports typer, measured in turns with a figure,
both in processor time. What is waited for (a disk, a timer, another process) is a time by the clock, and not judged so.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from bench.measure import Result, seconds

REFERENCE_SECONDS = 0.0537
"""What the piece of work took where and when the targets were set, while nothing else ran."""
_STARTS = 3


class PacedTime(NamedTuple):
    """Seconds as they were measured, and what they come to at the pace of the reference."""

    measured: float
    at_reference: float

    def __str__(self) -> str:
        return f"{seconds(self.measured)}, at the reference pace {seconds(self.at_reference)}"


def take_paced(measure: Callable[[], float], repeat: int) -> PacedTime:
    """Medians of so many repetitions; the pace of each is that of the moments before and after it."""
    measured, paced = [], []
    before = read_pace()
    for _ in range(repeat):
        took = measure()
        after = read_pace()
        measured.append(took)
        paced.append(took / ((before + after) / 2))
        before = after
    return PacedTime(statistics.median(measured), statistics.median(paced))


def read_pace() -> float:
    """How many times as long as the reference this machine takes now."""
    took = []
    for _ in range(_STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "import typer"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(took) / REFERENCE_SECONDS


def time_act(act: Callable[[], object]) -> float:
    """Processor seconds of this process for it."""
    began = time.process_time()
    act()
    return time.process_time() - began


def judge_time(
    name: str,
    took: PacedTime,
    most: float,
    *,
    baseline: str = "—",
    ratio: float | None = None,
    memory: tuple[float, float] | None = None,
    note: str = "",
) -> Result:
    """A time, and whether it keeps its target at the pace of the reference. ``memory``: MB, and the most of them."""
    measured, target, fits = str(took), f"≤ {seconds(most)}", took.at_reference <= most
    if memory is not None:
        held, bound = memory
        measured, target, fits = f"{measured}, {held:.0f} MB", f"{target}, {bound:g} MB", fits and held <= bound
    return Result(name, measured, baseline, ratio, target, fits, note)
