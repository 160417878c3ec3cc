"""How an agent does, as the page shows it: a line, and a small chart of its months."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from cleared.base.terminal import count_noun
from cleared.gate.agent_stats import AgentStats, describe_health

_MOST_MONTHS: Final = 24
WIDTH: Final = 10
"""Of a month, with the room beside it."""
HEIGHT: Final = 32


class MonthBar(Struct, frozen=True):
    """One month: what was booked without asking stands below what was asked about. Lengths are of the chart."""

    x: int
    sure_top: float
    sure_height: float
    asked_height: float
    title: str


class Health(Struct, frozen=True):
    """What the page shows of one agent."""

    says: str
    width: int
    height: int
    bars: Sequence[MonthBar]


def draw_health(stats: AgentStats) -> Health:
    """The newest months, oldest first, each as high as its records beside those of the others."""
    months = list(stats.trend)[-_MOST_MONTHS:]
    most = max((int(month["records"]) for month in months), default=0) or 1
    bars = []
    for number, month in enumerate(months):
        records = int(month["records"])
        asked = min(int(month["asked"]), records)
        sure_height, asked_height = (round(part * HEIGHT / most, 1) for part in (records - asked, asked))
        said = f"{count_noun(records, 'record')}, {asked} asked about, {count_noun(int(month['errors']), 'error')}"
        title = f"{month['month']}: {said}"
        bars.append(MonthBar(number * WIDTH, HEIGHT - sure_height, sure_height, asked_height, title))
    return Health(describe_health(stats), max(len(bars), 1) * WIDTH, HEIGHT, bars)
