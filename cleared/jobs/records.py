"""The records in the loop's files, with the fields that the schemas have."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

JobStatus = Literal["succeeded", "failed", "failed_or_no_result"]
StopCode = Literal["asked", "repeated_failure", "safety_stop", "trouble"]


class JobRequest(TypedDict):
    """A job as it was requested."""

    job_id: str
    kind: str
    target: str
    by: str
    """Who requested it: ``person``, ``rotation``, ``follow-up`` (of the last one), or ``run:<id>`` for a script."""
    enqueued_at: str


def request_of(job: JobRequest) -> JobRequest:
    """The request alone, without what a queued or running job has besides."""
    return {
        "job_id": job["job_id"],
        "kind": job["kind"],
        "target": job["target"],
        "by": job["by"],
        "enqueued_at": job["enqueued_at"],
    }


class QueuedJob(JobRequest):
    """A job that waits in the queue."""

    seal: str
    """The signature, see ``signing``."""


class RunningJob(JobRequest):
    """The job that runs."""

    started_at: str
    pid: int
    """The process that supervises the job, and leads the session of all of the job's processes."""
    pid_started: str
    """When that process started: with ``pid`` it identifies one process for ever."""
    seal: str
    """The signature, see ``signing``."""


class EndedJob(TypedDict):
    """A job that has ended."""

    job_id: str
    kind: str
    target: str
    by: str
    status: JobStatus
    started_at: str
    ended_at: str
    duration_sec: float
    exit_code: int | None
    summary: str


class JobResult(TypedDict):
    """``jobs/<job_id>.result.json``, the contract's ``single_agent_job_result_v1``."""

    schema_version: Literal["single_agent_job_result_v1"]
    job_id: str
    kind: str
    target: str
    status: JobStatus
    started_at: str
    ended_at: str
    duration_sec: float
    exit_code: int | None
    manifest_path: str
    output_path: str
    summary: str
    wakeup_written: bool


class JobManifest(JobRequest):
    """``jobs/<job_id>.manifest.json``."""

    schema_version: Literal["single_agent_job_manifest_v1"]
    status: Literal["queued", "started"]
    command: list[str]
    function: str | None
    reads: list[str]
    writes: list[str]
    timeout_sec: float
    max_output_bytes: int
    started_at: str | None
    pid: int | None
    pid_started: str | None
    result_path: str
    output_path: str


class Knowledge(TypedDict):
    """The summary of a successful job."""

    at: str
    kind: str
    target: str
    job_id: str
    text: str


class LoopStop(TypedDict):
    """Why the loop stopped."""

    at: str
    code: StopCode
    reason: str


class SafetyStop(TypedDict):
    """A job that was asked for and is not allowed."""

    at: str
    kind: str
    target: str
    by: str
    reason: str


class Notice(TypedDict):
    """A line for people."""

    at: str
    text: str


class StatusCounts(TypedDict):
    """How many jobs have ended, by status."""

    succeeded: int
    failed: int
    failed_or_no_result: int


class RotationState(TypedDict):
    """Which job type of ``loop.rotation`` has the next turn."""

    next: str | None
    """None: the first."""
    turns: int


class LoopState(TypedDict):
    """``single_agent_state.json``."""

    schema_version: Literal["single_agent_state_v1"]
    instance: str
    created_at: str
    updated_at: str
    status: Literal["idle", "running", "sleeping", "paused", "stopped"]
    paused: bool
    stop: LoopStop | None
    cycles: int
    queue: list[QueuedJob]
    running: RunningJob | None
    jobs: list[EndedJob]
    """Oldest first."""
    counts: StatusCounts
    failures: dict[str, int]
    """Job type → how often in a row it has failed."""
    rotation: RotationState
    knowledge: list[Knowledge]
    safety_stops: list[SafetyStop]
    notices: list[Notice]
    cursor: str | None
    """The commit up to which the requests of scripts were taken in."""


class InboxMessage(TypedDict):
    """``inbox/<name>.json``."""

    schema_version: Literal["single_agent_inbox_v1"]
    what: Literal["job", "refused", "pause", "resume"]
    at: str
    job: QueuedJob | None
    refused: SafetyStop | None


class WakeupRecord(TypedDict):
    """``single_agent_wakeup.flag``."""

    schema_version: Literal["single_agent_wakeup_v1"]
    reason: str
    time: str
    job_id: NotRequired[str | None]
    artifact: NotRequired[str | None]
