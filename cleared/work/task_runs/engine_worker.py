"""A coding engine as a worker: it turns a task's briefing into changes of the clone, as in an AI cycle."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import WorkspaceError
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.jobs.tasks.task_definition import skill_path
from cleared.processes.confinement import ConfinementUnavailable
from cleared.processes.leftovers import end_job_processes
from cleared.work.cycles.cycle_settings import CycleSettings, read_cycle_settings, require_opt_in
from cleared.work.cycles.engine_confinement import describe_freedom, find_binary
from cleared.work.cycles.engine_policy import EnginePolicy, Spending
from cleared.work.cycles.engine_process import find_limit, run_engine
from cleared.work.cycles.guiding_texts import list_unknown_texts, require_known_texts
from cleared.work.task_runs.assignment import Assignment, WorkReport

_MOST_SUMMARY: Final = 500


class EngineWorker(Struct, frozen=True):
    """``engine``: codex, qwen, opencode or claude. ``allow_ai``: whether this start lets it run."""

    engine: str
    allow_ai: bool = False

    @property
    def name(self) -> str:
        return f"engine {self.engine}"

    def begin(self, host: Host) -> EnginePolicy:
        """Say what it may do; the policy of AI cycles holds. Raises ``PolicyError`` without their opt-in,
        ``WorkspaceError`` where it is not installed: no task fails by it."""
        settings, binary = self._find(host)
        for line in describe_freedom(settings, binary):
            host.show_message(line)
        return EnginePolicy(host, settings)

    def work(self, host: Host, assignment: Assignment) -> WorkReport:
        """Raises as ``begin`` does, and ``PolicyError`` where nobody here knows what would guide it."""
        settings, binary = self._find(host)
        skills = [skill_path(name) for name in assignment.briefing.task.skills]
        texts = list_unknown_texts(host, assignment.base, more=skills)
        require_known_texts(texts, f"cleared task run --engine {self.engine}")
        scratch = host.layout.state_dir / "cycles" / f"task-{assignment.briefing.task.id}"
        end_job_processes(scratch, -1)  # an engine that outlived a killed turn of this task
        remove_tree(scratch)
        scratch.mkdir(parents=True)
        try:
            return self._run(host, settings, binary, scratch, assignment)
        except (ConfinementUnavailable, OSError) as error:
            raise WorkspaceError(f"{self.name} could not be started: {error}", remedy="See: cleared doctor.") from None
        finally:
            remove_tree(scratch)

    def _find(self, host: Host) -> tuple[CycleSettings, Path]:
        require_opt_in(host.config, self.allow_ai, os.environ)
        settings = read_cycle_settings(host.config, {"engine": self.engine}, os.environ)
        return settings, find_binary(settings, host.root, os.environ)

    def _run(
        self, host: Host, settings: CycleSettings, binary: Path, scratch: Path, assignment: Assignment
    ) -> WorkReport:
        assignment.output.unlink(missing_ok=True)
        began = host.clock.monotonic()
        run = run_engine(
            host,
            settings,
            binary,
            prompt=assignment.briefing.text,
            folder=assignment.clone,
            scratch=scratch,
            log=assignment.output,
            timeout=min(assignment.seconds, settings.cycle_timeout_seconds),
            environment=os.environ,
            should_stop=assignment.should_stop,
        )
        report = settings.engine.read_output(run.output)
        text = " ".join((report.limit or report.question or report.text or run.tail)[-_MOST_SUMMARY:].split())
        finished = run.exit_code == 0 and not (report.failed or report.limit or report.question)
        limit = None if finished else find_limit(run, report, host.clock.now())
        used = Spending(report.cost or Decimal(0), report.tokens, host.clock.monotonic() - began)
        said = text if finished else f"{self.name} ended with {run.exit_code}: {text}"
        return WorkReport(finished, said, limit, used, is_stopped=run.ended_by == "stop")
