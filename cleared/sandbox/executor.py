"""What runs a script: the sandbox in this process, or one behind a bridge."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from cleared.base.clock import SystemClock
from cleared.base.errors import UsageError
from cleared.sandbox.limits import Limits
from cleared.sandbox.script_failure import Position

HostCall = Callable[[str, tuple[object, ...], dict[str, object], Position], object]


class ScriptRun(Struct, frozen=True):
    """A script to run, with all that the run needs."""

    source: str
    """Its result is the value of its last expression."""
    file: str
    call: HostCall
    """``call(name, args, kwargs, position)`` answers the calls of the functions in ``names``; an exception that it
    raises ends the run."""
    names: Container[str]
    limits: Limits
    now: datetime
    """With a time zone: the only time that the script can see."""
    seed: str
    """The start of its random numbers."""
    timezone: str = "UTC"
    """Its local zone."""
    inputs: Mapping[str, object] = {}
    """Bound as variables."""
    on_print: Callable[[str], None] | None = None
    """Gets printed text at once."""
    deadline: float | None = None
    """A time of ``monotonic`` at which it ends, where ``limits.seconds`` after its start is not sooner; the time spent
    in ``call`` counts."""
    monotonic: Callable[[], float] = SystemClock().monotonic

    def __post_init__(self) -> None:
        if self.now.tzinfo is None:
            raise UsageError("the time of a run must be aware of its zone")

    def find_end(self, began: float) -> float:
        """When it has to be over, in ``monotonic``'s time."""
        end = began + self.limits.seconds
        return end if self.deadline is None else min(end, self.deadline)


class Executor(Protocol):
    """Runs one script after another, each in a fresh session."""

    def run(self, run: ScriptRun) -> object: ...
