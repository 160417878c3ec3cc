"""At which points of a sweep a test kills: at a few that stand for all, the same ones each time.

A command, a step and a layout of the repository go wrong together seldom; each of them occurs among the few. With
``CLEARED_EVERY_POINT=1`` all are taken.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

EVERY = bool(os.environ.get("CLEARED_EVERY_POINT"))
Case = TypeVar("Case")


def choose_cases(cases: Iterable[Case], *aspects: Callable[[Case], Hashable]) -> list[Case]:
    """Of ``cases`` so many, in their order, that each value of each aspect occurs."""
    known = list(cases)
    if EVERY:
        return known
    values = [[(number, aspect(case)) for number, aspect in enumerate(aspects)] for case in known]
    times: Counter[tuple[int, Hashable]] = Counter()
    chosen: set[int] = set()
    while left := [at for at, each in enumerate(values) if not all(times[value] for value in each)]:
        # The one with most that is new; among equals the one whose other values occurred least.
        best = max(left, key=lambda at: (sum(not times[v] for v in values[at]), -sum(times[v] for v in values[at])))
        chosen.add(best)
        times.update(values[best])
    return [known[at] for at in sorted(chosen)]
