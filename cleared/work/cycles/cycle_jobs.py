"""The loop's job type for AI cycles: one cycle a job, and another job after it, until the cycles end.

When the next one may start stands in the state of the cycles, which ``cleared cycle`` shows and steers. Failures count
for the breaker of the cycles alone.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.changes.workspace_opening import open_for_job
from cleared.jobs.job_process import JobContext, JobFailed
from cleared.jobs.job_types import JobPace, JobType
from cleared.work.cycles import cycle_state
from cleared.work.cycles.cycle_control import end_waiting
from cleared.work.cycles.cycle_loop import CycleLoop
from cleared.work.cycles.cycle_settings import read_cycle_settings, require_opt_in
from cleared.work.cycles.engine_confinement import describe_freedom, find_binary
from cleared.work.cycles.guiding_texts import list_unknown_texts, read_own_texts, require_known_texts
from cleared.work.cycles.pending_work import commit_start
from cleared.work.loop.job_collection import FOLLOW_UP
from cleared.workspace.settings.model import Config

_HANDOVER_SECONDS: Final = 900.0
"""What making the clone, and taking over what the engine changed, may take beside the engine's own time."""


def run_cycle_job(job: JobContext) -> str:
    """As one cycle of ``cleared cycle start``. Raises ``JobFailed`` where it failed."""
    host = open_for_job(job.root)
    try:
        host.refuse_invalid_policy()
        require_opt_in(host.config, True)
        settings = read_cycle_settings(host.config, {})
        start, own = commit_start(host), read_own_texts(host.root)
        require_known_texts(list_unknown_texts(host, start, own=own), "cleared cycle start")
        binary = find_binary(settings, host.root, os.environ)
    except ClearedError as error:  # a person must see to it
        end_waiting(host, "failed", str(error))
        raise
    for line in describe_freedom(settings, binary):
        host.show_message(line)
    went_well, summary = CycleLoop(host, settings, binary).run_one(is_follow_up=job.by == FOLLOW_UP)
    if not went_well:
        raise JobFailed(summary)
    return summary


def configure_job(job_type: JobType, config: Config) -> JobType:
    """The job type with the time that the settings give an engine. Raises ``PolicyError`` without the opt-in."""
    require_opt_in(config, True)  # whether the loop allows it is seen when the job is to start
    try:
        settings = read_cycle_settings(config, {})
    except UsageError as error:
        raise PolicyError(f"AI cycles cannot be run: {error}") from None
    return replace(job_type, timeout=settings.cycle_timeout_seconds + _HANDOVER_SECONDS)


def read_pace(root: Path) -> JobPace:
    """When the next cycle may start: not while it waits or is paused, nor while ``cleared cycle start`` runs."""
    try:
        state = cycle_state.read_state(root)
        is_held = (root / cycle_state.PAUSE_FILE).exists() or cycle_state.is_running(root, state)
        if cycle_state.waits_in_queue(state):
            return JobPace(_read_time(state["until"]), is_held, _read_time(state["updated_at"]))
        return JobPace(None, is_held, _read_time(state["updated_at"]) if cycle_state.was_cut_off(root, state) else None)
    except (ClearedError, OSError, ValueError):
        return JobPace()  # the job itself says what is wrong with the file


def _read_time(text: str | None) -> datetime | None:
    time = datetime.fromisoformat(text) if text else None
    if time is not None and time.tzinfo is None:
        raise ValueError(f"no zone: {text}")
    return time


JOB_TYPES: Final = (
    JobType(
        "ai_cycle",
        "One AI cycle, and the next one after its wait, as cleared cycle start does.",
        function="cleared.work.cycles.cycle_jobs:run_cycle_job",
        default_target="one AI cycle",
        writes=(".",),
        timeout=1_800.0 + _HANDOVER_SECONDS,
        rotates=False,
        confinement="engine",
        opt_in=True,
        configured_by="cleared.work.cycles.cycle_jobs:configure_job",
        paced_by="cleared.work.cycles.cycle_jobs:read_pace",
        counts_failures=False,
    ),
)
