"""Medians over interleaved repetitions: what slows the machine down slows both sides down."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Side = Callable[[], Callable[[], object]]
"""Prepares one repetition and gives what is to be timed."""


@dataclass(frozen=True)
class Result:
    """One line of the table. ``ratio`` is None for a figure that stands for itself."""

    name: str
    measured: str
    baseline: str
    ratio: float | None
    target: str
    ok: bool
    note: str = ""


def seconds(value: float) -> str:
    """``1.23 s``, ``4.56 ms``, ``7.8 µs``."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.1f} ms" if value >= 1e-3 else f"{value * 1e6:.1f} µs"


def interleave(measured: Side, baseline: Side, repeat: int) -> tuple[float, float]:
    """The medians of both sides in seconds. One repetition of each goes before and is not counted."""
    sides = (measured, baseline)
    times: tuple[list[float], list[float]] = ([], [])
    for n in range(repeat + 1):
        for at in (0, 1) if n % 2 else (1, 0):
            act = sides[at]()
            gc.collect()
            began = time.perf_counter()
            act()
            took = time.perf_counter() - began
            if n:
                times[at].append(took)
    return statistics.median(times[0]), statistics.median(times[1])


def compare(name: str, measured: Side, baseline: Side, at_most: float, repeat: int, per: int = 1) -> Result:
    """A ratio and its target; times are shown for one of ``per``."""
    a, b = interleave(measured, baseline, repeat)
    ratio = a / b
    return Result(name, seconds(a / per), seconds(b / per), ratio, f"≤ {at_most:g}×", ratio <= at_most)


def cpu_so_far() -> float:
    """Processor time of this process, with that of its children."""
    return cpu_seconds(os.getpid())


def cpu_since(before: float) -> float:
    """Processor time since ``cpu_so_far`` gave ``before``."""
    return cpu_seconds(os.getpid()) - before


def cpu_seconds(pid: int, *, without: int | None = None) -> float:
    """User and system time of a process so far, with that of its children, but for one of them and its own."""
    ticks, left = 0, [pid]
    parents = {int(s[0]): int(s[3]) for s in _stats()}
    wanted = {pid}
    while left:
        children = {child for child, parent in parents.items() if parent == left[-1]} - {without, *wanted}
        left.pop()
        left += children
        wanted |= children
    for stat in _stats():
        if int(stat[0]) in wanted:
            ticks += sum(int(n) for n in stat[13:17])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stats() -> Iterator[list[str]]:
    """``/proc/*/stat``, field by field."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue
            name = text[text.index("(") : text.rindex(")") + 1]
            yield text.replace(name, "x", 1).split()
