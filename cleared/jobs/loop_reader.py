"""Reads a loop's files for commands, scripts and pages. Writes nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from cleared.base.clock import format_iso
from cleared.base.errors import Place, UsageError, WorkspaceError
from cleared.jobs import file_schemas, inbox
from cleared.jobs.job_types import load_built_in
from cleared.jobs.loop_state import peek_state
from cleared.jobs.records import JobRequest, LoopState, request_of
from cleared.jobs.runtime_directory import LOCK_NAME, RuntimeDirectory, check_job_id
from cleared.workspace.lock import LockHolder
from cleared.workspace.runners import Runner


def loop_of(runtime: RuntimeDirectory) -> Runner:
    """The loop of this directory."""
    name = f"the loop of {runtime.folder}"
    return Runner(name, runtime.folder, LOCK_NAME, "loop run", "cleared loop status", "cleared loop stop")


def find_running_loop(runtime: RuntimeDirectory) -> LockHolder | None:
    """The process of the loop that runs in this directory now, if one does."""
    return loop_of(runtime).find()


def read_state(runtime: RuntimeDirectory) -> LoopState:
    """The state of the loop. Raises ``UsageError`` where there has never been one."""
    state = peek_state(runtime)
    if state is None:
        raise UsageError(
            f"there is no loop in {runtime.folder} yet", remedy="Begin one: cleared loop init, or cleared loop run."
        )
    return state


def list_waiting(runtime: RuntimeDirectory, state: LoopState) -> list[JobRequest]:
    """The jobs that wait, in order: those in the queue, then those in the inbox."""
    queued_ids = {job["job_id"] for job in state["queue"]}
    waiting: list[JobRequest] = list(state["queue"])
    for _, message in inbox.read_messages(runtime):
        if not isinstance(message, WorkspaceError) and message["job"] and message["job"]["job_id"] not in queued_ids:
            waiting.append(message["job"])
    return waiting


def read_status(runtime: RuntimeDirectory) -> dict[str, Any]:
    """The status of the loop, as ``cleared loop status --json`` shows it. Raises ``UsageError`` where there is none."""
    state = read_state(runtime)
    loop = find_running_loop(runtime)
    queue = list_waiting(runtime, state)
    running = state["running"]
    status: str = state["status"]
    if loop is None and status in ("running", "sleeping"):  # the loop was killed
        status = "idle"
    return {
        "up": loop is not None,
        "pid": loop.pid if loop else None,
        "since": loop.since if loop else None,
        "status": status,
        "paused": state["paused"],
        "stop": state["stop"],
        "cycles": state["cycles"],
        "running": {k: running[k] for k in ("job_id", "kind", "target", "started_at", "pid")} if running else None,
        "queued": [request_of(job) | _read_wait(runtime, job) for job in queue],
        "counts": state["counts"],
        "failures": state["failures"],
        "safety_stops": state["safety_stops"],
        "notices": state["notices"],
        "last_job": state["jobs"][-1] if state["jobs"] else None,
        "runtime_dir": str(runtime.folder),
        "log": str(runtime.log_path),
    }


def _read_wait(runtime: RuntimeDirectory, job: JobRequest) -> dict[str, Any]:
    """Until when a waiting job waits, where its type has a pace."""
    job_type = load_built_in().get(job["kind"])
    if job_type is None or not job_type.paced_by:
        return {}
    pace = job_type.read_pace(runtime.root)
    return {"not_before": format_iso(pace.not_before) if pace.not_before else None, "is_held": pace.is_held}


def list_jobs(runtime: RuntimeDirectory, limit: int = 25) -> list[dict[str, Any]]:
    """Jobs, newest first: waiting, running, ended."""
    rows = _list_known_jobs(runtime)
    if len(rows) < limit:
        rows += _list_older_jobs(runtime, {row["job_id"] for row in rows}, limit - len(rows))
    return rows[:limit]


def read_result(runtime: RuntimeDirectory, text: str) -> dict[str, Any]:
    """The result of a job; its ``status`` is ``queued`` or ``running`` where it has not ended.

    Raises ``UsageError`` where there is no such job, or its files are no longer kept.
    """
    identity = check_job_id(text)
    path = runtime.result_path(identity)
    if path.exists():
        result: dict[str, Any] = file_schemas.read_record("result", path, shown=runtime.display_path(path))
        return result
    for row in _list_known_jobs(runtime):  # every other ended job has a file
        if row["job_id"] == identity:
            return row
    raise UsageError(f"there is no job {identity}", place=Place(field="job_id"), remedy="See: cleared loop jobs.")


def read_job(runtime: RuntimeDirectory, text: str) -> dict[str, Any]:
    """All that is kept of a job: manifest, result, output. Raises ``UsageError`` where there is none."""
    result = read_result(runtime, text)
    identity = result["job_id"]
    path = runtime.manifest_path(identity)
    manifest = file_schemas.read_record("manifest", path, shown=runtime.display_path(path)) if path.exists() else None
    output = runtime.output_path(identity)
    return {
        "result": result,
        "manifest": manifest,
        "output": output.read_text("utf-8", "replace") if output.is_file() and not output.is_symlink() else None,
    }


def read_tree(runtime: RuntimeDirectory) -> dict[str, Any]:
    """The status tree as it was last written. Raises ``UsageError`` where none was."""
    try:
        tree: dict[str, Any] = file_schemas.read_record(
            "tree", runtime.tree_path, shown=runtime.display_path(runtime.tree_path)
        )
    except WorkspaceError:
        read_state(runtime)
        raise
    return tree


def _list_known_jobs(runtime: RuntimeDirectory) -> list[dict[str, Any]]:
    """The jobs in the state and in the inbox, newest first."""
    state = read_state(runtime)
    running = state["running"]
    rows = [_make_row(job, "queued") for job in reversed(list_waiting(runtime, state))]
    if running is not None:
        rows.append(_make_row(running, "running") | {"started_at": running["started_at"]})
    return rows + [dict(row) for row in reversed(state["jobs"])]


def _make_row(item: JobRequest, status: str) -> dict[str, Any]:
    return {
        "job_id": item["job_id"],
        "kind": item["kind"],
        "target": item["target"],
        "by": item["by"],
        "status": status,
        "started_at": None,
        "ended_at": None,
        "duration_sec": None,
        "exit_code": None,
        "summary": "",
    }


def _list_older_jobs(runtime: RuntimeDirectory, known: set[str], most: int) -> list[dict[str, Any]]:
    """Ended jobs that are no longer in the state, newest first."""
    rows = []
    for path in runtime.jobs_folder.glob("job_*.result.json"):
        if path.name.removesuffix(".result.json") in known:
            continue
        with suppress(WorkspaceError):  # removed meanwhile, or damaged
            rows.append(file_schemas.read_record("result", path))
    rows.sort(key=lambda row: row["ended_at"], reverse=True)
    return [{"by": "", **row} for row in rows[:most]]
