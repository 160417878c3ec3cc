"""All work of a workspace as one list: jobs, cycles and tasks, what each does, what is next, and why it waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.errors import WorkspaceError
from cleared.base.growing_file import decode_line
from cleared.changes.host import Host
from cleared.jobs import loop_reader
from cleared.jobs.loop_state import peek_state
from cleared.jobs.tasks.task_ledger import LEDGER
from cleared.jobs.tasks.task_states import AWAITING, BLOCKED, COMPLETED, FAILED, IN_PROGRESS, PENDING
from cleared.work.cycles import cycle_state
from cleared.work.cycles.cycle_control import read_status
from cleared.work.cycles.cycle_log import list_main_logs
from cleared.work.loop.loop_settings import LoopSettings
from cleared.work.task_runs.task_reports import list_tasks
from cleared.work.task_runs.task_run import tasks_of
from cleared.work.task_runs.task_wait import read_wait
from cleared.workspace.process_lock import service_of
from cleared.workspace.runners import Runner

_BEGIN_JOBS: Final = "no loop runs: cleared up --work, or cleared loop start"
_BEGIN_TASKS: Final = "nobody works on tasks: cleared task run, or cleared loop enqueue task_turn"
_ON_TASK: Final[Mapping[str | None, str]] = {
    FAILED: "try it again: cleared task retry {}",
    BLOCKED: "somebody skipped it: cleared task retry {}",
    AWAITING: "you approve what it made: cleared task show {}",
    None: "it is not in the ledger: cleared task plan",
}


class WorkRow(Struct, frozen=True):
    """One piece of work. ``since``: of its state; ``next_at``: when it goes on; ``why``: what it waits for."""

    kind: str
    """``job``, ``cycle`` or ``task``."""
    id: str
    title: str
    state: str
    since: str | None = None
    next_at: str | None = None
    why: str = ""


def list_runners(host: Host, settings: LoopSettings) -> dict[str, Runner]:
    """What works here, by what it works on."""
    return {
        "agents": service_of(host.layout.state_dir),
        "jobs": loop_reader.loop_of(settings.runtime),
        "cycles": cycle_state.cycles_of(host.root),
        "tasks": tasks_of(host.root),
    }


def read_overview(host: Host, settings: LoopSettings) -> dict[str, Any]:
    """Who works, and on what, as ``cleared work status --json`` shows it."""
    runners = []
    for works_on, runner in list_runners(host, settings).items():
        holder = runner.find()
        runners.append(
            {
                "works_on": works_on,
                "command": f"cleared {runner.command}",
                "up": holder is not None,
                "pid": holder.pid if holder is not None else None,
                "since": holder.since if holder is not None else None,
            }
        )
    up = {str(each["works_on"]): bool(each["up"]) for each in runners}
    rows = [*_list_jobs(settings), *_list_cycles(host), *_list_tasks(host, settings, up["tasks"])]
    return {"runners": runners, "work": [asdict(row) for row in rows]}


def list_logs(host: Host, settings: LoopSettings) -> dict[Path, Callable[[bytes], str | None]]:
    """The logs of all work, each with what makes a line of it one for people, which begins with the time."""
    logs = [settings.runtime.log_path, *list_main_logs(host.root)]
    return {**dict.fromkeys(logs, decode_line), host.root / LEDGER: _read_ledger_line}


def _read_ledger_line(line: bytes) -> str | None:
    try:
        row = json.loads(line)
        return f"{row['updated_at']} {row['id']} {row['status']}: {row['summary']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _list_jobs(settings: LoopSettings) -> Iterator[WorkRow]:
    """The job that runs, then those that wait, in order."""
    if peek_state(settings.runtime) is None:
        return
    status = loop_reader.read_status(settings.runtime)
    on, stop = status["running"], status["stop"]
    if on is not None:
        yield WorkRow("job", on["job_id"], _name_job(on), "running", on["started_at"])
    for job in status["queued"]:
        why = f"{on['job_id']} runs" if on is not None else ""
        if status["paused"]:
            why = "paused: cleared work resume"
        elif not status["up"]:
            why = f"the loop stopped: {stop['reason']}" if stop is not None else _BEGIN_JOBS
        elif job.get("is_held"):
            why = "the cycles are paused, or run elsewhere"
        elif job.get("not_before"):
            why = "it waits until then"
        yield WorkRow("job", job["job_id"], _name_job(job), "queued", job["enqueued_at"], job.get("not_before"), why)


def _name_job(job: Mapping[str, Any]) -> str:
    return f"{job['kind']} {job['target']}" if job["target"] else str(job["kind"])


def _list_cycles(host: Host) -> Iterator[WorkRow]:
    """The cycles, where any were begun: they are one row."""
    if not (host.root / cycle_state.STATE_FILE).exists():
        return
    try:
        state = read_status(host.root)
    except WorkspaceError as error:
        yield WorkRow("cycle", "cycles", "", "unknown", why=str(error))
        return
    action = state["next_action"].strip().splitlines()
    why = state["reason"] or ""
    if state["status"] == "paused":
        why = "paused: cleared work resume"
    elif state["status"] == "sleeping":
        why = why or "the interval between cycles"
    title = f"{state['engine']}: {action[0]}" if action else str(state["engine"])
    yield WorkRow("cycle", f"cycle {state['cycle']}", title, state["status"], state["updated_at"], state["until"], why)


def _list_tasks(host: Host, settings: LoopSettings, is_run: bool) -> Iterator[WorkRow]:
    """The tasks that are not completed."""
    if not (host.root / LEDGER).exists():
        return
    rows = list_tasks(host)
    states = {row["id"]: row["status"] for row in rows}
    wait = read_wait(host.root)
    waits_until = wait.until is not None and wait.until > host.clock.now()
    has_turn = peek_state(settings.runtime) is not None and any(
        job["kind"] == "task_turn" for job in loop_reader.read_status(settings.runtime)["queued"]
    )
    for row in rows:
        state, next_at = row["status"], None
        required = {each: states.get(each, "unknown") for each in row["requires"]}
        blockers = [f"{each} ({state_of})" for each, state_of in required.items() if state_of != COMPLETED]
        why = _ON_TASK.get(state, "").format(row["id"])
        if state in (FAILED, BLOCKED, IN_PROGRESS) and row["summary"]:
            why = f"{row['summary']}; {why}" if why else row["summary"]
        if state == PENDING:
            state = "waits" if blockers else "ready"
            why = f"it requires {', '.join(blockers)}" if blockers else ""
            if not blockers and waits_until and wait.until is not None:
                why, next_at = wait.reason, wait.until.isoformat()
            elif not blockers and not is_run and not has_turn:
                why = _BEGIN_TASKS
        if state != COMPLETED:
            yield WorkRow(
                "task", row["id"], row["title"], state or "not in the ledger", row["updated_at"], next_at, why
            )
