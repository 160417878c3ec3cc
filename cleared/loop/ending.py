"""What became of a job: its result taken in, also where the loop that began it, or its process, is gone."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Final

from cleared.clock import format_iso
from cleared.errors import WorkspaceError
from cleared.jobs import file_schemas, inbox, loop_state
from cleared.jobs.records import EndedJob, JobManifest, JobResult, QueuedJob, RunningJob, request_of
from cleared.loop import job_processes, retention
from cleared.loop.job_process import NO_INPUT
from cleared.loop.memory import Memory
from cleared.workspace.processes import find_session, is_alive, is_of_this_boot

ROTATION: Final = "rotation"
"""Who asks for a job that nobody else has asked for."""


class Endings(Memory):
    """Collects jobs into what the loop knows."""

    __slots__ = ()

    def recover_jobs(self) -> None:
        """Find out what became of what another loop, killed since, had begun."""
        if self._find_started_jobs():
            self.save_state()
        self.collect_job()

    def collect_job(self, *, told: bool = False) -> None:
        """Take in the result of the job that was running, if it has ended. ``told``: this very loop told it to go, and
        knows that it has."""
        running = self.state["running"]
        if running is not None:
            # Asked first: its last act is the result.
            lives = not told and is_alive(running["pid"], running["pid_started"])
            result = self._read_result(running["job_id"])
            if result is not None:
                self._finish_job(running, result)
            elif not lives:
                self._settle_lost_job(running, told)

    def _find_started_jobs(self) -> bool:
        """Jobs that the state takes for queued, as it is an older one: what was started is not started again."""
        changed = False
        ended = {row["job_id"] for row in self.state["jobs"]}
        for job in list(self.state["queue"]):
            if job["job_id"] in ended:
                continue
            result, started = self._read_result(job["job_id"]), self._read_started(job)
            if result is None and not (
                self.runtime.output_path(job["job_id"]).exists()
                or is_alive(started["pid"], started["pid_started"])  # it may have been told to go just now
            ):
                continue
            if result is not None and self.signer.is_valid(job):
                self.state["queue"].remove(job)
                self._finish_job({**started, "seal": ""}, result)
                ended.add(job["job_id"])
            elif result is None and self.state["running"] is None and self.signer.is_valid(job):
                self.state["queue"].remove(job)
                self.state["running"] = {**started, "seal": self.signer.sign(started)}
                changed = True
        return changed

    def _read_started(self, job: QueuedJob) -> RunningJob:
        pid, since, at = 2, "", job["enqueued_at"]
        with suppress(WorkspaceError):
            manifest: JobManifest = file_schemas.read_record("manifest", self.runtime.manifest_path(job["job_id"]))
            pid, since, at = manifest["pid"] or 2, manifest["pid_started"] or "", manifest["started_at"] or at
        return {**job, "started_at": at, "pid": pid, "pid_started": since}

    def _settle_lost_job(self, running: RunningJob, told: bool) -> None:
        """The process that watched over the job is dead, and there is no result."""
        begun = told or not is_of_this_boot(running["pid_started"])  # after a power cut, no file says no
        ours = self.signer.is_valid(running)
        if ours and not begun and not self.runtime.output_path(running["job_id"]).exists():
            # It was never told to go: killed between the two, the loop has not run it.
            self.state["queue"].insert(0, inbox.sign_job(request_of(running), self.signer))
            self.state["running"] = None
            self.save_state()
            return
        if ours:
            session = find_session(running["pid"], running["pid_started"])
            job_processes.end_job_processes(self.runtime.scratch_folder(running["job_id"]), session)
        began = datetime.fromisoformat(running["started_at"])
        now = self.clock.now()
        result: JobResult = {
            "schema_version": "single_agent_job_result_v1", "job_id": running["job_id"], "kind": running["kind"],
            "target": running["target"], "status": "failed_or_no_result", "started_at": running["started_at"],
            "ended_at": format_iso(now), "duration_sec": max(0.0, round((now - began).total_seconds(), 3)),
            "exit_code": None,
            "manifest_path": self.runtime.display_path(self.runtime.manifest_path(running["job_id"])),
            "output_path": self.runtime.display_path(self.runtime.output_path(running["job_id"])),
            "summary": "its process is gone, and left no result", "wakeup_written": False,
        }  # fmt: skip
        self._finish_job(running, result)

    def _finish_job(self, running: RunningJob, result: JobResult) -> None:
        """A job has ended: the state, the flag and the result say so."""
        row: EndedJob = {
            "job_id": running["job_id"], "kind": running["kind"], "target": running["target"], "by": running["by"],
            "status": result["status"], "started_at": result["started_at"], "ended_at": result["ended_at"],
            "duration_sec": result["duration_sec"], "exit_code": result["exit_code"], "summary": result["summary"],
        }  # fmt: skip
        path = self.runtime.result_path(running["job_id"])
        result["wakeup_written"] = self.flag.write_flag(row, self.clock)
        self.step("flag written")
        file_schemas.write_record("result", path, result)
        self.step("result written")
        current = self.state["running"]
        if current is not None and current["job_id"] == running["job_id"]:
            self.state["running"] = None
        if self.state["stop"] is None and not self.state["paused"]:
            self.state["status"] = "idle"
        self.state["jobs"].append(row)
        self.state["counts"][result["status"]] += 1
        self._add_knowledge(row)
        self._count_failure(row)
        self.save_state(fsync=False)  # the result is there, to be collected again
        self.step("collected")
        self.log(f"{row['job_id']} {row['status']}: {row['summary']}")
        retention.trim_sometimes(self.runtime, self.config.loop.keep_jobs, self.state, self.clock)

    def _add_knowledge(self, row: EndedJob) -> None:
        """What a job found out, where it is news."""
        if row["status"] != "succeeded":
            return
        last = next(
            (k for k in reversed(self.state["knowledge"]) if (k["kind"], k["target"]) == (row["kind"], row["target"])),
            None,
        )
        if last is None or last["text"] != row["summary"]:
            self.state["knowledge"].append(
                {"at": row["ended_at"], "kind": row["kind"], "target": row["target"], "job_id": row["job_id"],
                 "text": row["summary"]}
            )  # fmt: skip

    def _count_failure(self, row: EndedJob) -> None:
        kind, failures = row["kind"], self.state["failures"]
        if row["status"] == "succeeded":
            failures.pop(kind, None)
            return
        if row["by"] == ROTATION and row["exit_code"] == NO_INPUT:
            return  # there is nothing for it to work on: the next of the rotation has its turn
        failures[kind] = failures.get(kind, 0) + 1
        if failures[kind] >= self.config.loop.max_failures:
            self.request_stop(
                "repeated_failure", f"{kind} failed {failures[kind]} times in a row; last: {row['summary']}"
            )

    def _read_result(self, job: str) -> JobResult | None:
        path = self.runtime.result_path(job)
        if not path.exists():
            return None
        try:
            found: JobResult = file_schemas.read_record("result", path, shown=self.runtime.display_path(path))
        except WorkspaceError as error:
            aside = path.with_name(f"{path.name}.damaged")
            with suppress(OSError):
                path.replace(aside)
            loop_state.add_notice(
                self.state, f"a result was damaged and set aside as {aside.name}: {error}", self.clock
            )
            return None
        return found if found["job_id"] == job else None

    def has_ended(self, job: str) -> bool:
        return self.runtime.result_path(job).exists() or any(row["job_id"] == job for row in self.state["jobs"])
