"""The loop's state in memory and on disk: what every part of the loop reads, changes and saves."""

from __future__ import annotations

from collections.abc import Callable

from cleared.base.clock import Clock, format_iso
from cleared.jobs import inbox, loop_state, status_tree
from cleared.jobs.records import StopCode
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.jobs.signing import JobSigner


class StateStore:
    """Holds the state of one loop. Only the process that holds the loop's lock may have one.

    ``step`` is called with the name of each transition; crash tests stop the process there.
    """

    def __init__(
        self, runtime: RuntimeDirectory, clock: Clock, log: Callable[[str], None], step: Callable[[str], None]
    ) -> None:
        """Load the state. A damaged state is replaced by its backup, and the log says so."""
        runtime.make_folders()
        self.runtime = runtime
        self.clock = clock
        self.log = log
        self.step = step
        self.signer = JobSigner(runtime.folder)
        self.state, problem = loop_state.load_state(runtime, clock)
        if problem:
            log(problem)

    def save(self, *, fsync: bool = True, twice: bool = False) -> None:
        """Write the state file; ``twice`` and ``fsync`` as ``loop_state.save_state`` has them."""
        loop_state.save_state(self.runtime, self.state, self.clock, fsync=fsync, twice=twice)

    def export_tree(self) -> None:
        """Write the status tree of the state that was saved last."""
        status_tree.export_tree(self.runtime, self.state, self.clock)

    def set_status(self, status: str) -> None:
        """Change the loop's status, save the state and export the tree."""
        self.state["status"] = status  # type: ignore[typeddict-item]
        self.save()
        self.export_tree()

    def add_notice(self, text: str) -> None:
        """Add a notice for people to the state."""
        loop_state.add_notice(self.state, text, self.clock)

    def request_stop(self, code: StopCode, reason: str) -> None:
        """Mark the loop as stopped. Where it is stopped already, the first reason is kept."""
        if self.state["stop"] is None:
            self.state["stop"] = {"at": format_iso(self.clock.now()), "code": code, "reason": reason[:1000]}
            self.state["status"] = "stopped"
            self.log(f"stopped: {reason}")

    def record_safety_stop(self, job_type: str, target: str, by: str, reason: str) -> None:
        """Record a job that was asked for and is not allowed, and stop the loop."""
        self.state["safety_stops"].append(inbox.make_safety_stop(job_type, target, by, reason, self.clock))
        self.log(f"refused: {reason}")
        self.request_stop("safety_stop", reason)

    def has_ended(self, job_id: str) -> bool:
        """Whether a job has a result, or the state names it among the ended ones."""
        return self.runtime.result_path(job_id).exists() or any(row["job_id"] == job_id for row in self.state["jobs"])
