"""What can be asked about tasks: lists, one task, what comes next, and the briefing of a worker."""

from __future__ import annotations

from typing import Any

from cleared.base.errors import ClearedError, UsageError
from cleared.changes.host import Host
from cleared.git import Repository
from cleared.jobs.tasks.task_graph import NextTask, choose_next, list_blockers, sort_key
from cleared.jobs.tasks.task_seals import TaskSeals
from cleared.jobs.tasks.task_states import ALIASES, STATES
from cleared.work.task_runs.briefing import make_briefing
from cleared.work.task_runs.last_try import read_last_try
from cleared.work.task_runs.task_approvals import settle_awaiting
from cleared.work.task_runs.task_claims import recover_claims
from cleared.work.task_runs.task_recording import finish_interrupted, open_ledger, read_states, read_task_set


def list_tasks(host: Host, status: str | None = None) -> list[dict[str, Any]]:
    """Each task with its newest line, by id. Raises ``UsageError`` for a state that there is not."""
    if status is not None and ALIASES.get(status, status) not in STATES:
        raise UsageError(f"{status!r} is no state of a task", remedy=f"Use {', '.join(STATES)}.")
    _catch_up(host)
    lines, tasks = open_ledger(host).read_all(), read_task_set(host)
    rows = []
    for name in sorted({*tasks.tasks, *lines}, key=sort_key):
        task, line = tasks.tasks.get(name), lines.get(name)
        rows.append(
            {
                "id": name,
                "status": line.status if line else None,
                "title": task.title if task else "",
                "requires": list(task.requires) if task else [],
                "updated_at": line.updated_at if line else None,
                "summary": line.summary if line else "",
                "archived": name in tasks.archived,
            }
        )
    return [row for row in rows if status is None or row["status"] == ALIASES.get(status, status)]


def describe_task(host: Host, task_id: str) -> dict[str, Any]:
    """One task: definition, newest line, what it waits for, its seal, the size of its briefing."""
    _catch_up(host)
    tasks = read_task_set(host)
    task, ledger = tasks.require_task(task_id), open_ledger(host)
    line = ledger.read_latest(task_id)
    with Repository.open(host.root, for_writing=False) as repo:
        briefing = make_briefing(repo, repo.read_head(), task, read_last_try(host, task.id))
    return {
        **task.to_json_object(),
        "status": line.status if line else None,
        "updated_at": line.updated_at if line else None,
        "summary": line.summary if line else "",
        "delta": dict(line.delta) if line and line.delta else None,
        "awaits": dict(line.awaits) if line and line.awaits else None,
        "waits_for": list_blockers(task, tasks.tasks, read_states(host)),
        "archived": task_id in tasks.archived,
        "sealed": TaskSeals(host.root).describe_fault(task) or "yes",
        "briefing_lines": briefing.line_count,
        "briefing_bytes": len(briefing.text.encode()),
    }


def _catch_up(host: Host) -> None:
    """What was committed or decided and is not in the ledger yet. Where that cannot be recorded now, it is said, and
    left to the next one."""
    finish_interrupted(host)
    try:
        settle_awaiting(host)
    except ClearedError as error:
        host.show_message(f"what was decided about tasks is not in the ledger yet: {error.message}")


def find_next(host: Host) -> NextTask:
    """The task that comes next, once dead workers' claims are given back."""
    open_ledger(host).require()
    _catch_up(host)
    recover_claims(host)
    tasks = read_task_set(host)
    found = choose_next(tasks.tasks, read_states(host))
    if found.state == "done" and tasks.faults:
        return NextTask("blocked", None, tuple(f"{place}: {text}" for place, text in tasks.faults[:20]))
    return found


def write_briefing(host: Host, task_id: str) -> str:
    """What a worker of this task is given."""
    with Repository.open(host.root, for_writing=False) as repo:
        task = read_task_set(host).require_task(task_id)
        return make_briefing(repo, repo.read_head(), task, read_last_try(host, task.id)).text
