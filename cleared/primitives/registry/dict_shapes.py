"""The dicts primitives take and give. A script sees them as ``TypedDict``s."""

# Without annotations from __future__: each would be a text, which a TypedDict compiles.

from typing import Any, TypedDict


class CommitResult(TypedDict):
    """``commit_hash`` is ``run:<id>`` (a commit cannot hold its own hash), or None where nothing is staged."""

    success: bool
    commit_hash: str | None


class CommitInfo(TypedDict):
    commit_hash: str
    date: str
    author: str
    message: str


class CardInfo(TypedDict):
    id: str
    kind: str
    entry_id: str | None
    title: str
    created_at: str


class LoopAsked(TypedDict):
    """A job that was asked for. It has no id before the loop has taken it in."""

    kind: str
    target: str


class LoopStatus(TypedDict):
    """How the loop is. ``status``: none (there has never been one), idle, running, sleeping, paused or stopped;
    ``queued``: how many jobs wait; ``succeeded``, ``failed``, ``failed_or_no_result``: how many have ended so."""

    up: bool
    status: str
    paused: bool
    stop_reason: str | None
    cycles: int
    running: str | None
    queued: int
    succeeded: int
    failed: int
    failed_or_no_result: int
    last_job: str | None


class LoopResult(TypedDict):
    """A job. ``status``: queued, running, succeeded, failed or failed_or_no_result; times are UTC, ISO 8601."""

    job_id: str
    kind: str
    target: str
    status: str
    started_at: str | None
    ended_at: str | None
    duration_sec: float | None
    exit_code: int | None
    summary: str


class LoopJob(LoopResult):
    """A job, and who asked for it: person, rotation or ``run:<id>``; empty where that is not known any more."""

    by: str


class Classification(TypedDict):
    """What a language model suggests. ``source``: model, local or none."""

    choice: str | None
    confidence: float
    source: str
    reason: str


class Summary(TypedDict):
    """What a language model says in short. ``source``: model or none."""

    text: str | None
    source: str
    reason: str


class MessageStaged(TypedDict):
    """A message that is sent once the run is committed."""

    subject: str
    cards: int


class TaskContext(TypedDict):
    """What a task names."""

    files: list[str]
    docs: list[str]
    skills: list[str]


class TaskInfo(TypedDict):
    """A task with its newest state; None: it is not in the ledger."""

    id: str
    title: str
    description: str
    requires: list[str]
    context: TaskContext
    acceptance_criteria: list[str]
    verification_command: str
    status: str | None
    updated_at: str | None
    summary: str


class NextTaskInfo(TypedDict):
    """Which task comes next, or why none does. ``state``: ready, done or blocked."""

    state: str
    id: str | None
    reasons: list[str]


class EventInfo(TypedDict):
    """Why the run happens."""

    id: str
    kind: str
    name: str
    payload: Any
