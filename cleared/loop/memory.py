"""What a loop knows, put down after each change: its state, and the tree that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cleared.clock import Clock, format_iso
from cleared.config.model import Config
from cleared.config.secrets import Redactor
from cleared.jobs import inbox, loop_state, status_tree
from cleared.jobs.job_types import JobType, resolve_request
from cleared.jobs.records import LoopState, StopCode
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.jobs.signing import JobSigner
from cleared.loop import wakeup_flag
from cleared.loop.loop_settings import LoopSettings
from cleared.loop.script_requests import ScriptRequests


@dataclass(slots=True)
class Memory:
    """Of one loop. To be used by whoever holds its lock, and by nobody else."""

    settings: LoopSettings
    config: Config
    clock: Clock
    redactor: Redactor
    log: Callable[[str], None]
    requests: ScriptRequests
    step: Callable[[str], None] = lambda _: None
    """Told of each transition; crash tests stop the process there."""
    state: LoopState = field(init=False)
    signer: JobSigner = field(init=False)
    flag: wakeup_flag.WakeupFlag = field(init=False)

    def __post_init__(self) -> None:
        self.runtime.make_folders()
        self.signer = JobSigner(self.runtime.folder)
        self.flag = wakeup_flag.WakeupFlag(self.runtime)
        self.state, problem = loop_state.load_state(self.runtime, self.clock)
        if problem:
            self.log(problem)

    @property
    def runtime(self) -> RuntimeDirectory:
        return self.settings.runtime

    def save_state(self, *, fsync: bool = True, twice: bool = False) -> None:
        loop_state.save_state(self.runtime, self.state, self.clock, fsync=fsync, twice=twice)

    def export_tree(self) -> None:
        status_tree.export_tree(self.runtime, self.state, self.clock)

    def resolve_request(self, kind: str, target: str | None) -> tuple[JobType, str]:
        return resolve_request(self.config, self.runtime.root, kind, target)

    def request_stop(self, code: StopCode, reason: str) -> None:
        """Have the loop stop; the first reason is kept."""
        if self.state["stop"] is None:
            self.state["stop"] = {"at": format_iso(self.clock.now()), "code": code, "reason": reason[:1000]}
            self.state["status"] = "stopped"
            self.log(f"stopped: {reason}")

    def record_safety_stop(self, kind: str, target: str, by: str, why: str) -> None:
        self.state["safety_stops"].append(inbox.make_safety_stop(kind, target, by, why, self.clock))
        self.log(f"refused: {why}")
        self.request_stop("safety_stop", why)
