"""Collecting jobs: a job's result becomes part of the state, also where its process or an earlier loop was killed."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Final

from cleared.base.clock import format_iso
from cleared.base.errors import WorkspaceError
from cleared.base.process_identity import find_session, is_alive, is_of_this_boot
from cleared.jobs import file_schemas, inbox
from cleared.jobs.job_process import NO_INPUT
from cleared.jobs.job_results import read_signed_result, write_result
from cleared.jobs.job_types import load_built_in
from cleared.jobs.records import EndedJob, JobManifest, JobRequest, JobResult, QueuedJob, RunningJob, request_of
from cleared.processes import leftovers
from cleared.work.loop import retention
from cleared.work.loop.state_store import StateStore
from cleared.work.loop.wakeup_pipe import WakeupFlag
from cleared.workspace.settings.model import Config

ROTATION: Final = "rotation"
"""``by`` of a job that the loop itself enqueued, as its turn had come."""
FOLLOW_UP: Final = "follow-up"
"""``by`` of a job that the loop itself enqueued after the last one of its type."""


class JobCollector:
    """Brings the results of jobs into a loop's state."""

    def __init__(self, store: StateStore, config: Config) -> None:
        self.config = config
        """The settings that hold now; the loop replaces them when they change."""
        self.flag = WakeupFlag(store.runtime)
        self._store = store
        self._runtime = store.runtime
        self._clock = store.clock

    def recover_jobs(self) -> None:
        """Find out what became of the jobs that an earlier loop began before it was killed."""
        if self._adopt_started_jobs():
            self._store.save()
        self.collect_job()

    def collect_job(self, *, ended: bool = False) -> None:
        """Take in the result of the running job, if it has ended.

        ``ended``: this loop began the job and was notified of its end, so the job is not looked for among the live
        processes.
        """
        running = self._store.state["running"]
        if running is None:
            return
        # Look at the process before the file: writing the result is the last thing that the process does.
        lives = not ended and is_alive(running["pid"], running["pid_started"])
        result = self._read_result(running)
        if result is not None:
            self._finish_job(running, result)
        elif not lives:
            self._settle_lost_job(running, begun=ended)

    def _adopt_started_jobs(self) -> bool:
        """Correct an older state, in which jobs are queued that were started since; whether anything changed.

        A job that was started is never started again.
        """
        state, signer, changed = self._store.state, self._store.signer, False
        ended = {row["job_id"] for row in state["jobs"]}
        for job in list(state["queue"]):
            if job["job_id"] in ended:
                continue
            result, started = self._read_result(job), self._read_start(job)
            if result is None and not (
                self._runtime.output_path(job["job_id"]).exists()
                or is_alive(started["pid"], started["pid_started"])  # its process may be about to make the output file
            ):
                continue
            if result is not None and signer.is_valid(job):
                state["queue"].remove(job)
                self._finish_job({**started, "seal": ""}, result)
                ended.add(job["job_id"])
            elif result is None and state["running"] is None and signer.is_valid(job):
                state["queue"].remove(job)
                state["running"] = {**started, "seal": signer.sign(started)}
                changed = True
        return changed

    def _read_start(self, job: QueuedJob) -> RunningJob:
        """When and by which process a job was started, as its manifest says; a process that never lived where it does
        not say."""
        pid, since, at = 2, "", job["enqueued_at"]
        with suppress(WorkspaceError):
            manifest: JobManifest = file_schemas.read_record("manifest", self._runtime.manifest_path(job["job_id"]))
            pid, since, at = manifest["pid"] or 2, manifest["pid_started"] or "", manifest["started_at"] or at
        return {**job, "started_at": at, "pid": pid, "pid_started": since}

    def _settle_lost_job(self, running: RunningJob, *, begun: bool) -> None:
        """Settle a job whose supervising process is dead and left no result: back into the queue where it never began,
        else ``failed_or_no_result``."""
        begun = begun or not is_of_this_boot(running["pid_started"])  # after a power cut a missing file proves nothing
        is_signed = self._store.signer.is_valid(running)
        if is_signed and not begun and not self._runtime.output_path(running["job_id"]).exists():
            # The loop was killed after it recorded the start and before it assigned the job.
            self._store.state["queue"].insert(0, inbox.sign_job(request_of(running), self._store.signer))
            self._store.state["running"] = None
            self._store.save()
            return
        if is_signed:
            session = find_session(running["pid"], running["pid_started"])
            leftovers.end_job_processes(self._runtime.scratch_folder(running["job_id"]), session)
        began = datetime.fromisoformat(running["started_at"])
        now = self._clock.now()
        result: JobResult = {
            "schema_version": "single_agent_job_result_v1",
            "job_id": running["job_id"],
            "kind": running["kind"],
            "target": running["target"],
            "status": "failed_or_no_result",
            "started_at": running["started_at"],
            "ended_at": format_iso(now),
            "duration_sec": max(0.0, round((now - began).total_seconds(), 3)),
            "exit_code": None,
            "manifest_path": self._runtime.display_path(self._runtime.manifest_path(running["job_id"])),
            "output_path": self._runtime.display_path(self._runtime.output_path(running["job_id"])),
            "summary": "its process is gone, and left no result",
            "wakeup_written": False,
        }
        self._finish_job(running, result, is_signed=is_signed)

    def _finish_job(self, running: RunningJob, result: JobResult, *, is_signed: bool = True) -> None:
        """Record the end of a job: first in the wakeup flag, then in the result file, then in the state.

        ``is_signed``: whether somebody asked for the job here; the end of another is told to no agent.
        """
        store, state = self._store, self._store.state
        row: EndedJob = {
            "job_id": running["job_id"],
            "kind": running["kind"],
            "target": running["target"],
            "by": running["by"],
            "status": result["status"],
            "started_at": result["started_at"],
            "ended_at": result["ended_at"],
            "duration_sec": result["duration_sec"],
            "exit_code": result["exit_code"],
            "summary": result["summary"],
        }
        result["wakeup_written"] = self.flag.write_flag(row, self._clock)
        store.step("flag written")
        if is_signed:
            write_result(self._runtime, store.signer, result, running["by"])
        else:
            file_schemas.write_record("result", self._runtime.result_path(running["job_id"]), result)
        store.step("result written")
        current = state["running"]
        if current is not None and current["job_id"] == running["job_id"]:
            state["running"] = None
        if state["stop"] is None and not state["paused"]:
            state["status"] = "idle"
        state["jobs"].append(row)
        state["counts"][result["status"]] += 1
        self._add_knowledge(row)
        self._count_failure(row)
        self._queue_follow_up(row)
        store.save(fsync=False)  # after a power cut the result file is collected again
        store.step("collected")
        store.log(f"{row['job_id']} {row['status']}: {row['summary']}")
        retention.trim_sometimes(self._runtime, self.config.loop.keep_jobs, state, self._clock)

    def _add_knowledge(self, row: EndedJob) -> None:
        """Keep the summary of a successful job, unless the last one for its job type and target is the same."""
        if row["status"] != "succeeded":
            return
        knowledge, subject = self._store.state["knowledge"], (row["kind"], row["target"])
        last = next((item for item in reversed(knowledge) if (item["kind"], item["target"]) == subject), None)
        if last is None or last["text"] != row["summary"]:
            knowledge.append(
                {
                    "at": row["ended_at"],
                    "kind": row["kind"],
                    "target": row["target"],
                    "job_id": row["job_id"],
                    "text": row["summary"],
                }
            )

    def _count_failure(self, row: EndedJob) -> None:
        """Count failures in a row of each job type; stop the loop at ``loop.max_failures``."""
        job_type, failures = row["kind"], self._store.state["failures"]
        built_in = load_built_in().get(job_type)
        if built_in is not None and not built_in.counts_failures:
            return
        if row["status"] == "succeeded":
            failures.pop(job_type, None)
            return
        if row["by"] == ROTATION and row["exit_code"] == NO_INPUT:
            return  # a rotated job without input is not a failure: the next of the rotation has its turn
        failures[job_type] = failures.get(job_type, 0) + 1
        if failures[job_type] >= self.config.loop.max_failures:
            self._store.request_stop(
                "repeated_failure", f"{job_type} failed {failures[job_type]} times in a row; last: {row['summary']}"
            )

    def _queue_follow_up(self, row: EndedJob) -> None:
        """Queue another job of this type, where its pace says so and none waits."""
        store, job_type = self._store, load_built_in().get(row["kind"])
        if job_type is None or any(job["kind"] == row["kind"] for job in store.state["queue"]):
            return
        goes_on_since = job_type.read_pace(self._runtime.root).goes_on_since
        if goes_on_since is None or goes_on_since < datetime.fromisoformat(row["started_at"]):
            return  # it says so of an earlier job: this one did not come so far
        request = inbox.reserve_job(self._runtime, job_type, job_type.default_target, FOLLOW_UP, self._clock)
        store.state["queue"].append(inbox.sign_job(request, store.signer))

    def _read_result(self, job: JobRequest) -> JobResult | None:
        """A job's result file; None where there is none. One that is damaged, or that another program wrote, is set
        aside, with a notice."""
        path = self._runtime.result_path(job["job_id"])
        if not path.exists():
            return None
        try:
            return read_signed_result(self._runtime, self._store.signer, job["job_id"], job["by"])
        except WorkspaceError as error:
            aside = path.with_name(f"{path.name}.damaged")
            with suppress(OSError):
                path.replace(aside)
            self._store.add_notice(f"a result cannot be used and was set aside as {aside.name}: {error}")
            return None
