"""What a person decides about a task that did not go as planned: try it again, or leave it."""

from __future__ import annotations

from cleared.base.errors import UsageError
from cleared.changes import commit_messages
from cleared.changes.host import Host, current_user
from cleared.jobs.tasks.task_states import BLOCKED, PENDING
from cleared.trust.person_only import refuse_in_job
from cleared.work.task_runs.last_try import note_wish
from cleared.work.task_runs.task_claims import drop_claim
from cleared.work.task_runs.task_recording import Recorded, open_recorder, read_task_set


def retry_task(host: Host, task_id: str, summary: str = "") -> Recorded:
    """Have a failed or blocked task tried again, or take a claim back: it is pending.

    Raises ``PolicyError`` where it is completed, ``UsageError`` where there is none.
    """
    recorded = _record_decision(host, task_id, PENDING, summary or f"Retry by {current_user()}")
    if summary.strip():
        note_wish(host, task_id, summary)
    return recorded


def skip_task(host: Host, task_id: str, reason: str) -> Recorded:
    """Leave a task: it is blocked with the reason, and what requires it waits until somebody retries it.

    Raises ``UsageError`` without a reason, ``PolicyError`` where it is completed.
    """
    if not reason.strip():
        raise UsageError("skipping needs a reason", remedy='Pass --summary "…": whoever finds it blocked reads it.')
    return _record_decision(host, task_id, BLOCKED, f"Skipped by {current_user()}: {reason}")


def _record_decision(host: Host, task_id: str, status: str, summary: str) -> Recorded:
    refuse_in_job()
    read_task_set(host).require_task(task_id)
    with open_recorder(host, f"task {'retry' if status == PENDING else 'skip'} {task_id}") as recorder:
        line = recorder.make_line(task_id, status, summary)
        recorded = recorder.commit([line], commit_messages.task_recorded(task_id, status, line.summary))
        drop_claim(host, task_id)
    return recorded
