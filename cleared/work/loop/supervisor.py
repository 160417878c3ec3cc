"""Supervises a job: starts it confined, takes its output, ends it at its limits with all that it has started, and
writes its result.

It runs in the watcher process (``watcher_process``), never in the loop's.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import ClearedError, WorkspaceError
from cleared.base.tree_removal import remove_tree
from cleared.jobs import job_process
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.job_results import write_result
from cleared.jobs.job_types import JobType
from cleared.jobs.records import JobRequest, JobResult
from cleared.jobs.signing import JobSigner
from cleared.processes import leftovers
from cleared.processes.fences import Fence, require_walls
from cleared.processes.program import Ending, Program, RunningProgram
from cleared.trust.clone_marks import UNATTENDED
from cleared.trust.keys import cleared_home
from cleared.trust.person_only import JOB
from cleared.work.loop.ai_bridge import run_ai_turn
from cleared.work.loop.job_confinement import (
    PATH,
    is_own,
    job_fence,
    make_bare_environment,
    resolve_paths,
    runs_agents,
    writable_paths,
)
from cleared.work.loop.job_output import JobOutput, last_line
from cleared.work.loop.loop_settings import LoopSettings
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.secrets import Redactor

_PASSED_VARIABLES: Final = ("CLEARED_CLOCK", "SYSTEMROOT")
_OWN_VARIABLES: Final = frozenset({JOB, leftovers.FOLDER_VARIABLE, "TMPDIR", "PYTHONSAFEPATH"})
_MAX_SUMMARY: Final = 500
_WRITE_ATTEMPTS: Final = 20


Surroundings = tuple[JobType, LoopSettings, Config, Redactor]
"""What jobs of a type have in common as long as nobody changes the settings."""


class JobAssignment(Struct, frozen=True):
    """A job, and all that the watcher process needs to run it."""

    request: JobRequest
    clock: Clock
    job_type: JobType
    settings: LoopSettings
    config: Config
    redactor: Redactor

    @property
    def surroundings(self) -> Surroundings:
        """What it has in common with other jobs."""
        return self.job_type, self.settings, self.config, self.redactor

    @property
    def target(self) -> str:
        """The target that was asked for; empty where none was."""
        return "" if self.request["target"] == self.job_type.default_target else self.request["target"]


class _Outcome(Struct, frozen=True):
    status: str
    summary: str
    exit_code: int | None


class Supervisor:
    """Runs one job after another. Set ``end_requested`` to have the job that runs ended.

    ``is_loop_gone``: whether the loop has ended, with which an engine's job ends.
    """

    def __init__(self, is_loop_gone: Callable[[], bool]) -> None:
        self.end_requested = False
        self.is_loop_gone = is_loop_gone

    def run_job(self, assignment: JobAssignment) -> None:
        """Run the job and write its result. Raises ``WorkspaceError`` where the result cannot be written."""
        _JobRun(assignment, self).run_to_result()


class _JobRun:
    """One run of one job."""

    def __init__(self, assignment: JobAssignment, supervisor: Supervisor) -> None:
        self._assignment, self._supervisor = assignment, supervisor
        self._job_type, self._runtime = assignment.job_type, assignment.settings.runtime
        self._job_id = assignment.request["job_id"]
        self._scratch = self._runtime.scratch_folder(self._job_id)

    def run_to_result(self) -> None:
        assignment, runtime = self._assignment, self._runtime
        began, at = assignment.clock.now(), assignment.clock.monotonic()
        signer = JobSigner(runtime.folder)  # read while nothing of the job runs
        # The output file is made first, and only once: it says for ever that the job was started.
        output = JobOutput(runtime.output_path(self._job_id), self._job_type.max_output, assignment.redactor)
        try:
            outcome = self._run_in_loop() if self._job_type.in_loop else self._run_process(output)
        except ClearedError as error:
            outcome = _Outcome("failed", str(error), None)
        except OSError as error:
            outcome = _Outcome("failed", f"the job could not be started: {error.strerror or error}", None)
        with suppress(OSError):
            output.close()
        summary = " ".join(assignment.redactor.redact_output(outcome.summary).split())[:_MAX_SUMMARY]
        result: JobResult = {
            "schema_version": "single_agent_job_result_v1",
            "job_id": self._job_id,
            "kind": assignment.request["kind"],
            "target": assignment.request["target"],
            "status": "succeeded" if outcome.status == "succeeded" else "failed",
            "started_at": format_iso(began),
            "ended_at": format_iso(assignment.clock.now()),
            "duration_sec": round(max(0.0, assignment.clock.monotonic() - at), 3),
            "exit_code": outcome.exit_code,
            "manifest_path": runtime.display_path(runtime.manifest_path(self._job_id)),
            "output_path": runtime.display_path(runtime.output_path(self._job_id)),
            "summary": summary,
            "wakeup_written": False,
        }
        for attempt in range(_WRITE_ATTEMPTS):  # a full disk may have room again; else the loop settles the job
            try:
                write_result(runtime, signer, result, assignment.request["by"])
                return
            except WorkspaceError:
                if attempt == _WRITE_ATTEMPTS - 1:
                    raise
                time.sleep(0.5)

    def _run_in_loop(self) -> _Outcome:
        assignment = self._assignment
        succeeded, summary = run_ai_turn(self._runtime, assignment.request, assignment.settings, assignment.clock)
        return _Outcome("succeeded" if succeeded else "failed", summary, 0 if succeeded else 1)

    def _run_process(self, output: JobOutput) -> _Outcome:
        """Run the job in a process of its own, confined to what its type reads and writes."""
        assignment, job_type = self._assignment, self._job_type
        forbidden = ForbiddenFiles(self._runtime.root, assignment.config.loop.forbidden_paths)
        has_path = assignment.target and job_type.target == "path"
        targets = [assignment.target] if has_path else self._default_paths()
        reads = [*resolve_paths(forbidden, job_type.reads), *resolve_paths(forbidden, targets)]
        writes = writable_paths(forbidden, job_type, self._runtime)
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            modules = job_process.module_search_path(forbidden.root) if job_type.function else []
            command = self._build_argv(forbidden, modules)
            if job_type.confinement == "engine":  # it confines the engine that it starts
                return self._watch_program(command, None, output)
            fence = job_fence(
                forbidden, reads, [*writes, self._scratch], modules, trust=is_own(job_type), asks=runs_agents(job_type)
            )
            return self._watch_program(command, require_walls(fence, assignment.config.sandbox.confine), output)
        finally:
            leftovers.end_children()  # no result is written while anything of the job runs
            with suppress(OSError):
                remove_tree(self._scratch)

    def _default_paths(self) -> list[str]:
        """The paths that the configuration names for this job type."""
        key = self._job_type.reads_setting
        value = getattr(self._assignment.config.loop, key) if key else ()
        return [value] if isinstance(value, str) else list(value)

    def _build_argv(self, forbidden: ForbiddenFiles, modules: list[str]) -> list[str]:
        assignment, job_type = self._assignment, self._job_type
        if job_type.function:
            by = assignment.request["by"]
            return job_process.build_command(
                job_type.function, forbidden, assignment.target, by, self._default_paths(), modules
            )
        program = shutil.which(job_type.command[0], path=PATH)
        if program is None:
            raise WorkspaceError(f"the program {job_type.command[0]} is not installed")
        target = assignment.request["target"]
        return [program, *(target if part == "{target}" else part for part in job_type.command[1:])]

    def _watch_program(self, argv: list[str], fence: Fence | None, output: JobOutput) -> _Outcome:
        clock, limit = self._assignment.clock, self._job_type.timeout
        end = clock.monotonic() + limit
        program = Program(argv, self._runtime.root, self._build_environment(), fence)
        running = RunningProgram(program, output.feed_bytes)
        try:
            while running.step():
                if self._supervisor.end_requested:
                    running.end("stopped by a person")
                elif clock.monotonic() >= end:
                    running.end(f"stopped at its limit of {limit:g} s")
                elif self._job_type.confinement == "engine" and self._supervisor.is_loop_gone():
                    running.end("its loop was killed", grace=0.0)
        finally:
            ending = running.settle(leftovers.end_children)
        with suppress(OSError):  # a full disk
            output.close()
        return self._judge_exit(ending, output)

    def _build_environment(self) -> dict[str, str]:
        """The whole environment of the job's process."""
        environment = job_environment(self._job_id, self._scratch, own=is_own(self._job_type))
        if self._job_type.confinement == "engine":  # the engine finds its credential by the user's variables
            environment |= {name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES}
        return environment

    def _judge_exit(self, ending: Ending, output: JobOutput) -> _Outcome:
        """The outcome; the last line of the output is the job's own summary."""
        code, reason = ending.code, ending.reason
        line = last_line(output.tail)
        if code < 0 and not reason:
            reason = f"killed by {_name_signal(-code)}"
        if reason:
            return _Outcome("failed", f"{reason}{': ' + line if line else ''}", code)
        if code:
            return _Outcome("failed", line or f"ended with exit code {code}", code)
        return _Outcome("succeeded", line or "done", 0)


def job_environment(job_id: str, scratch: Path, *, own: bool) -> dict[str, str]:
    """The whole environment of a job's process. ``own``: a job of this package, which reads whom the user trusts."""
    environment = make_bare_environment(job_id, scratch) | {
        "PYTHONUNBUFFERED": "1",
        "PYTHONSAFEPATH": "1",  # a job starts in the workspace, and no module is to come from there
        "GIT_OPTIONAL_LOCKS": "0",
    }
    if own:
        environment["CLEARED_HOME"] = str(cleared_home())
        if UNATTENDED in os.environ:
            environment[UNATTENDED] = os.environ[UNATTENDED]
    return environment | {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}


def _name_signal(number: int) -> str:
    """Most of those for real time have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
