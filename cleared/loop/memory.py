"""What a loop knows, put down after each change: its state, and the tree that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cleared.clock import Clock, format_iso
from cleared.config.model import Config
from cleared.config.secrets import Redactor
from cleared.jobs import inbox, loop_state, status_tree
from cleared.jobs.job_types import Kind, wanted
from cleared.jobs.records import Code, State
from cleared.jobs.runtime_directory import Runtime
from cleared.jobs.signing import Sealer
from cleared.loop import wakeup_flag
from cleared.loop.loop_settings import Knobs
from cleared.loop.script_requests import Requests


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
    flag: wakeup_flag.Flag = field(init=False)

    def __post_init__(self) -> None:
        self.runtime.make()
        self.sealer = Sealer(self.runtime.folder)
        self.flag = wakeup_flag.Flag(self.runtime)
        self.state, problem = loop_state.load(self.runtime, self.clock)
        if problem:
            self.log(problem)

    @property
    def runtime(self) -> Runtime:
        return self.knobs.runtime

    def save(self, *, fsync: bool = True, twice: bool = False) -> None:
        loop_state.save(self.runtime, self.state, self.clock, fsync=fsync, twice=twice)

    def export(self) -> None:
        status_tree.export(self.runtime, self.state, self.clock)

    def wanted_now(self, kind: str, target: str | None) -> tuple[Kind, str]:
        return wanted(self.config, self.runtime.root, kind, target)

    def stop(self, code: Code, reason: str) -> None:
        """Have the loop stop; the first reason is kept."""
        if self.state["stop"] is None:
            self.state["stop"] = {"at": format_iso(self.clock.now()), "code": code, "reason": reason[:1000]}
            self.state["status"] = "stopped"
            self.log(f"stopped: {reason}")

    def safety_stop(self, kind: str, target: str, by: str, why: str) -> None:
        self.state["safety_stops"].append(inbox.safety_stop(kind, target, by, why, self.clock))
        self.log(f"refused: {why}")
        self.stop("safety_stop", why)
