"""What a worker is given, and what it says of its work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from cleared.work.cycles.engine_policy import Spending
from cleared.work.cycles.usage_limit import UsageLimit
from cleared.work.task_runs.briefing import Briefing


class Assignment(Struct, frozen=True):
    """One piece of work. ``base``: the commit that it begins from; ``clone``: of it, the only place for its changes;
    ``seconds``: how long it may take."""

    briefing: Briefing
    base: str
    clone: Path
    seconds: float
    output: Path
    """Where what the worker printed is kept."""
    should_stop: Callable[[], bool] = bool
    """Whether it is to end now; then it raises ``KeyboardInterrupt``, or says of its work that it was stopped."""


class WorkReport(Struct, frozen=True):
    """What a worker says of its work: whether it is finished, and in a sentence what it did or why not. ``limit``: of
    its account, where that kept it from the work; ``used``: what the work has cost, also where it ``is_stopped``."""

    is_finished: bool
    summary: str
    limit: UsageLimit | None = None
    used: Spending = Spending()
    is_stopped: bool = False
