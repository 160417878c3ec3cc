"""The workspace's own loop as a run sees it: what can be asked of it, and how its jobs are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, PrimitiveError, UsageError
from cleared.primitives.registry.dict_shapes import LoopJob, LoopResult, LoopStatus
from cleared.workspace.settings.model import Config

_JOB_ID: Final = r"job_(?P<at>[0-9]{8}T[0-9]{6}Z)_(?P<kind>.+?)(?:_[0-9]+)?"


class WorkspaceLoop(Struct, frozen=True):
    """The loop of the workspace that the run is in. Reads nothing before a method is called. ``in_fleet``: whether a
    worker of a fleet runs it, beside which there is no loop."""

    root: Path
    config: Config
    in_fleet: bool = False

    def resolve_job(self, kind: str, target: str | None) -> tuple[str, str]:
        """The kind and the target that a job would have. Raises ``PrimitiveError``, naming the field, where no such
        job may be run, ``PolicyError`` in a fleet."""
        from cleared.jobs.job_types import resolve_request

        if self.in_fleet:
            raise PolicyError(
                "the workers of a fleet have no loop, so nobody would do this job",
                place=Place(field="kind"),
                remedy="Have an agent do it that hears of an event: ctx_emit, and trigger: event in its header. Or run "
                "this one in a clone that has a loop: cleared agent run, cleared loop run.",
            )
        try:
            job_type, aim = resolve_request(self.config, self.root.resolve(), kind, target)
        except PolicyError as error:
            field = error.place.field if error.place else None
            remedy = error.remedy or "Name a file or folder of the workspace that jobs may read."
            raise PrimitiveError(error.message, place=Place(field=field or "target"), remedy=remedy) from None
        return job_type.name, aim

    def read_status(self) -> LoopStatus:
        """How it is now."""
        from cleared.jobs import loop_reader
        from cleared.jobs.loop_state import peek_state
        from cleared.jobs.runtime_directory import own_runtime

        runtime = own_runtime(self.root, self.config)
        if peek_state(runtime) is None:
            return _status_of_no_loop(up=loop_reader.find_running_loop(runtime) is not None)
        status = loop_reader.read_status(runtime)
        stop, running, last, counts = status["stop"], status["running"], status["last_job"], status["counts"]
        return {
            "up": status["up"],
            "status": status["status"],
            "paused": status["paused"],
            "stop_reason": stop["reason"] if stop else None,
            "cycles": status["cycles"],
            "running": running["job_id"] if running else None,
            "queued": len(status["queued"]),
            "succeeded": counts["succeeded"],
            "failed": counts["failed"],
            "failed_or_no_result": counts["failed_or_no_result"],
            "last_job": last["job_id"] if last else None,
        }

    def list_jobs(self, limit: int) -> list[LoopJob]:
        """Jobs, newest first: those that wait, the one that runs, those that have ended."""
        from cleared.jobs import loop_reader
        from cleared.jobs.loop_state import peek_state
        from cleared.jobs.runtime_directory import own_runtime

        runtime = own_runtime(self.root, self.config)
        if peek_state(runtime) is None:
            return []
        return [{**describe_job(row), "by": str(row["by"])} for row in loop_reader.list_jobs(runtime, limit)]

    def read_result(self, job_id: str) -> LoopResult:
        """One job. Raises ``PrimitiveError`` where there is none of that id, or it is not kept any more."""
        from cleared.jobs import loop_reader
        from cleared.jobs.runtime_directory import own_runtime

        try:
            return describe_job(loop_reader.read_result(own_runtime(self.root, self.config), job_id))
        except UsageError as error:
            raise PrimitiveError(error.message, place=Place(field="job_id"), remedy=error.remedy) from None


class DryRunLoop(WorkspaceLoop, frozen=True):
    """The loop in a dry run, always the same: none has run yet, and every job that is looked up has succeeded."""

    def read_status(self) -> LoopStatus:
        return _status_of_no_loop(up=False)

    def list_jobs(self, limit: int) -> list[LoopJob]:
        return []

    def read_result(self, job_id: str) -> LoopResult:
        from cleared.jobs.runtime_directory import check_job_id as checked

        try:
            match = re.fullmatch(_JOB_ID, checked(job_id))
        except UsageError as error:
            raise PrimitiveError(error.message, place=Place(field="job_id"), remedy=error.remedy) from None
        assert match is not None
        day = match["at"]
        at = f"{day[:4]}-{day[4:6]}-{day[6:11]}:{day[11:13]}:{day[13:]}"
        return {
            "job_id": job_id,
            "kind": match["kind"],
            "target": "",
            "status": "succeeded",
            "started_at": at,
            "ended_at": at,
            "duration_sec": 0.0,
            "exit_code": 0,
            "summary": "",
        }


def describe_job(row: Mapping[str, Any]) -> LoopResult:
    """What is told of a job: how it went, and nothing of where its files lie."""
    return {
        "job_id": row["job_id"],
        "kind": row["kind"],
        "target": row["target"],
        "status": row["status"],
        "started_at": row["started_at"],
        "ended_at": row["ended_at"],
        "duration_sec": row["duration_sec"],
        "exit_code": row["exit_code"],
        "summary": row["summary"],
    }


def _status_of_no_loop(*, up: bool) -> LoopStatus:
    return {
        "up": up,
        "status": "none",
        "paused": False,
        "stop_reason": None,
        "cycles": 0,
        "running": None,
        "queued": 0,
        "succeeded": 0,
        "failed": 0,
        "failed_or_no_result": 0,
        "last_job": None,
    }
