"""Medians over interleaved repetitions: what slows the machine down slows both sides down."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

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
