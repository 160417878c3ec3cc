"""The loop's job type for tasks: one turn of the orchestrator with the worker that the approved settings name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from cleared.changes.workspace_opening import open_for_job
from cleared.jobs.job_process import JobContext, JobFailed
from cleared.jobs.job_types import JobPace, JobType
from cleared.jobs.tasks.task_states import FAILED
from cleared.work.cycles.cycle_settings import require_opt_in
from cleared.work.loop.workspace_jobs import TASK_TURN
from cleared.work.task_runs.task_run import run_tasks
from cleared.work.task_runs.task_wait import read_wait
from cleared.work.task_runs.workers import choose_worker
from cleared.workspace.settings.model import Config


def task_turn(job: JobContext) -> str:
    """As ``cleared task run --max 1``. Raises ``JobFailed`` where the task failed, or none may begin."""
    host = open_for_job(job.root)
    # A loop that was not started with --allow-ai does not come here with an engine: see ``configure_turn``.
    report = run_tasks(host, choose_worker(host, None, None, allow_ai=True), most=1, waits=False)
    if report.state == "ended":
        raise JobFailed("; ".join(report.reasons))
    for outcome in report.outcomes:
        if outcome.status == FAILED:
            raise JobFailed(f"{outcome.task_id} {outcome.status}: {outcome.summary}")
        return f"{outcome.task_id} {outcome.status}: {outcome.summary}"
    return "every task is completed" if report.state == "done" else f"no task is ready: {'; '.join(report.reasons)}"


def read_pace(root: Path) -> JobPace:
    """When the next turn may begin: not while the worker's account has no room, or it cools down."""
    return JobPace(read_wait(root).until)


def configure_turn(job_type: JobType, config: Config) -> JobType:
    """The job type with the worker of the settings; an engine's failures count for its own policy.

    Raises ``PolicyError`` for an engine without the opt-in.
    """
    if config.tasks.engine is None:
        return job_type
    require_opt_in(config, True)
    return replace(job_type, confinement="engine", opt_in=True, counts_failures=False)


JOB_TYPES: Final = (
    JobType(
        "task_turn",
        "Work on the next task, with the worker of tasks.command, tasks.agent or tasks.engine.",
        function=TASK_TURN,
        default_target="next task",
        writes=(".",),
        timeout=3600.0,
        configured_by="cleared.work.task_runs.task_jobs:configure_turn",
        paced_by="cleared.work.task_runs.task_jobs:read_pace",
    ),
)
