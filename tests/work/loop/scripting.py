"""Agents that use the loop, and a loop's files as a loop leaves them."""

from __future__ import annotations

from typing import Any

from harness import Workspace

from cleared.base.clock import SystemClock
from cleared.jobs import file_schemas, loop_state
from cleared.jobs.job_results import write_result
from cleared.jobs.runtime_directory import RuntimeDirectory, own_runtime
from cleared.jobs.signing import JobSigner
from cleared.workspace.settings.config_file import load_config_file

GIT = "grants: [loop.read, loop_enqueue:git_status_summary, git.commit]\n"


def own(ws: Workspace) -> RuntimeDirectory:
    """The workspace's own loop's files; the folders are there afterwards."""
    runtime = own_runtime(ws.root, load_config_file(ws.root / "config.yaml"))
    runtime.make_folders()
    return runtime


def begun(ws: Workspace, **more: Any) -> RuntimeDirectory:
    """A loop has been there."""
    runtime = own(ws)
    if not runtime.state_path.exists():
        loop_state.save_state(runtime, {**loop_state.fresh_state(SystemClock().now()), **more}, SystemClock())  # type: ignore[typeddict-item]
    return runtime


def end(ws: Workspace, job: str, by: str = "person", at: str | None = None, **more: Any) -> dict[str, Any]:
    """A job that has ended, as its files say; its result."""
    runtime = begun(ws)
    stamp = job.split("_")[1]
    began = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:11]}:{stamp[11:13]}:{stamp[13:]}"
    kind = job.split("_", 2)[2]
    manifest = {
        "schema_version": "single_agent_job_manifest_v1",
        "job_id": job,
        "kind": kind,
        "target": "git status",
        "by": by,
        "enqueued_at": began,
        "status": "started",
        "command": ["true"],
        "function": None,
        "reads": ["."],
        "writes": [],
        "timeout_sec": 60.0,
        "max_output_bytes": 1000,
        "started_at": began,
        "pid": None,
        "pid_started": None,
        "result_path": runtime.display_path(runtime.result_path(job)),
        "output_path": runtime.display_path(runtime.output_path(job)),
    }
    result = {
        "schema_version": "single_agent_job_result_v1",
        "job_id": job,
        "kind": kind,
        "target": "git status",
        "status": "succeeded",
        "started_at": began,
        "ended_at": at or began,
        "duration_sec": 0.25,
        "exit_code": 0,
        "manifest_path": manifest["result_path"],
        "output_path": manifest["output_path"],
        "summary": "clean",
        "wakeup_written": True,
        **more,
    }
    file_schemas.write_record("manifest", runtime.manifest_path(job), manifest)
    write_result(runtime, JobSigner(runtime.folder), result, by)
    return result
