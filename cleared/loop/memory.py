"""What a loop knows, put down after each change: its state, and the tree that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cleared.clock import Clock, iso
from cleared.config.model import Config
from cleared.config.secrets import Redactor
from cleared.jobs import inbox, state, tree
from cleared.jobs.kinds import Kind, wanted
from cleared.jobs.layout import Runtime
from cleared.jobs.records import Code, State
from cleared.jobs.seal import Sealer
from cleared.loop import wakeup
from cleared.loop.asked import Requests
from cleared.loop.knobs import Knobs


@dataclass(slots=True)
class Memory:
    """Of one loop. To be used by whoever holds its lock, and by nobody else."""

    knobs: Knobs
    config: Config
    clock: Clock
    redactor: Redactor
    log: Callable[[str], None]
    requests: Requests
    step: Callable[[str], None] = lambda _: None
    """Told of each transition; crash tests stop the process there."""
    state: State = field(init=False)
    sealer: Sealer = field(init=False)
    flag: wakeup.Flag = field(init=False)

    def __post_init__(self) -> None:
        self.runtime.make()
        self.sealer = Sealer(self.runtime.folder)
        self.flag = wakeup.Flag(self.runtime)
        self.state, problem = state.load(self.runtime, self.clock)
        if problem:
            self.log(problem)

    @property
    def runtime(self) -> Runtime:
        return self.knobs.runtime

    def save(self, *, fsync: bool = True, twice: bool = False) -> None:
        state.save(self.runtime, self.state, self.clock, fsync=fsync, twice=twice)

    def export(self) -> None:
        tree.export(self.runtime, self.state, self.clock)

    def wanted_now(self, kind: str, target: str | None) -> tuple[Kind, str]:
        return wanted(self.config, self.runtime.root, kind, target)

    def stop(self, code: Code, reason: str) -> None:
        """Have the loop stop; the first reason is kept."""
        if self.state["stop"] is None:
            self.state["stop"] = {"at": iso(self.clock.now()), "code": code, "reason": reason[:1000]}
            self.state["status"] = "stopped"
            self.log(f"stopped: {reason}")

    def safety_stop(self, kind: str, target: str, by: str, why: str) -> None:
        self.state["safety_stops"].append(inbox.safety_stop(kind, target, by, why, self.clock))
        self.log(f"refused: {why}")
        self.stop("safety_stop", why)
