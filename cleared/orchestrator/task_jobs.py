"""The loop's job type for tasks: one turn of the orchestrator with the worker that the approved settings name."""

from __future__ import annotations

import os
from typing import Final

from cleared.jobs.job_types import JobType
from cleared.loop.job_process import JobContext, JobFailed
from cleared.loop.workspace_jobs import TASK_TURN


def task_turn(job: JobContext) -> str:
    """As ``cleared task run --max 1``. Raises ``JobFailed`` where the task failed."""
    from cleared.app import open_workspace
    from cleared.clock import clock_from
    from cleared.orchestrator.task_run import run_tasks
    from cleared.orchestrator.workers import choose_worker

    host = open_workspace(job.root, clock=clock_from(os.environ.get("CLEARED_CLOCK")), say=print)
    report = run_tasks(host, choose_worker(host, None, None), most=1)
    for outcome in report.outcomes:
        if outcome.status != "completed":
            raise JobFailed(f"{outcome.task_id} {outcome.status}: {outcome.summary}")
        return f"{outcome.task_id} completed: {outcome.summary}"
    return "every task is completed" if report.state == "done" else f"no task is ready: {'; '.join(report.reasons)}"


JOB_TYPES: Final = (
    JobType(
        "task_turn", "Work on the next task, with the worker of tasks.command or tasks.agent.",
        function=TASK_TURN, default_target="next task", writes=(".",), timeout=3600.0,
    ),
)  # fmt: skip
