"""The loop's state machine: take in, collect, wait or run exactly one job, export, wake, stop.

One process at a time is the loop of a runtime directory, and it alone writes the state. What may be killed at any
moment is put down first: a job is queued, then it has a process that waits, then the state names that process, then
the process is told to go, and its first act is to make the job's output file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cleared.clock import format_iso
from cleared.errors import PolicyError, WorkspaceError
from cleared.jobs import file_schemas, inbox, loop_state
from cleared.jobs.job_types import JobType, read_rotation
from cleared.jobs.records import InboxMessage, JobRequest, QueuedJob, RunningJob, request_of
from cleared.loop import retention
from cleared.loop.ending import ROTATION, Endings
from cleared.loop.supervisor import JobAssignment
from cleared.loop.watcher_process import WatcherProcess
from cleared.triggers.requested_jobs import CommittedJobRequest

_SHORT_JOB: Final = 0.05
"""Seconds: a job that ends as soon is not shown as running."""


@dataclass(slots=True)
class LoopMachine(Endings):
    """One loop."""

    watcher: WatcherProcess | None = field(init=False, default=None)

    def begin_run(self, *, init: bool) -> None:
        """Take up where the last loop left off, or with ``init`` anew; what was there is archived.

        Raises ``PolicyError`` where a job is running still that a fresh state would not know of.
        """
        new = not self.runtime.state_path.exists() and not self.runtime.backup_path.exists()
        taken = self.take_messages()
        self.recover_jobs()
        if init and (taken or not new):
            self._replace_state()
        if self.state["stop"] is not None:
            if self.state["stop"]["code"] == "repeated_failure":
                self.state["failures"] = {}
            self.state["stop"] = None
        if self.state["status"] != "paused":
            self.state["status"] = "idle"
        self.save_state(twice=init)
        retention.trim_files(self.runtime, self.config.loop.keep_jobs, self.state, self.clock)
        self.export_tree()

    # --- taking in ---------------------------------------------------------------------------------------------

    def take_messages(self) -> bool:
        """Take messages and scripts' jobs into the state; whether there were any. The state is saved before they go."""
        done = []
        known = {item["job_id"] for item in self.state["queue"]}
        for path, message in inbox.read_messages(self.runtime):
            if isinstance(message, WorkspaceError):
                self.record_safety_stop("", "", "inbox", f"a message cannot be read: {message}")
            else:
                self._take_message(message, known)
            done.append((path, not isinstance(message, WorkspaceError)))
        asked, cursor = self.requests.requests_since(self.state["cursor"])
        room = max(0, inbox.MAX_WAITING - len(self.state["queue"]))
        if len(asked) > room:  # the rest another time
            asked, cursor = asked[:room], self.state["cursor"]
        for job in asked:
            self._take_request(job)
        if done or asked or cursor != self.state["cursor"]:
            self.state["cursor"] = cursor
            self.save_state(twice=True)  # the messages are gone then: a backup without them would have lost them
            self.step("taken in")
            self.requests.mark_taken(asked)
            for path, readable in done:
                inbox.remove_message(path) if readable else inbox.set_aside_message(path)
        return bool(done or asked)

    def _take_message(self, message: InboxMessage, known: set[str]) -> None:
        job = message["job"]
        if message["what"] == "refused" and message["refused"] is not None:
            stop = message["refused"]
            self.record_safety_stop(stop["kind"], stop["target"], stop["by"], stop["reason"])
        elif message["what"] in ("pause", "resume"):
            self.state["paused"] = message["what"] == "pause"
            if self.state["running"] is None:
                self.state["status"] = "paused" if self.state["paused"] else "idle"
            self.log("paused" if self.state["paused"] else "resumed")
        elif job is not None and job["job_id"] not in known and not self.has_ended(job["job_id"]):
            running = self.state["running"]
            if running is None or running["job_id"] != job["job_id"]:
                known.add(job["job_id"])
                self.state["queue"].append(job)

    def _take_request(self, job: CommittedJobRequest) -> None:
        """A script's job; it was checked when it was asked for, and is again: the settings may be others now."""
        most = self.config.triggers.max_depth
        if job.depth > most:
            text = f"{job.kind} {job.target}, asked for by {job.requested_by}, is not run: the chain that leads to it is too long"
            loop_state.add_notice(self.state, f"{text} (triggers.max_depth: {most})", self.clock)
            self.log(text)
            return
        try:
            kind, target = self.resolve_request(job.kind, job.target)
        except PolicyError as error:
            self.record_safety_stop(job.kind, job.target, job.requested_by, str(error))
            return
        item = inbox.reserve_job(self.runtime, kind, target, job.requested_by, self.clock)
        self.state["queue"].append(inbox.sign_job(item, self.signer))

    # --- a cycle -----------------------------------------------------------------------------------------------

    def run_cycle(self, wait: Callable[[RunningJob, int], None]) -> None:
        """One turn. ``wait`` is given a descriptor that is readable then, and returns when the job has ended."""
        self.state["cycles"] += 1
        self.take_messages()
        self.collect_job()
        if self.state["running"] is not None:
            self._set_status("running")
        elif self.state["stop"] is not None:
            return
        elif self.state["paused"]:
            self._set_status("paused")
        else:
            if not self.state["queue"] and self.settings.auto_rotate:
                self._enqueue_rotation()
            if self.state["queue"]:
                self._run_next_job(wait)
                self.export_tree()
            else:
                self._set_status("idle")

    def _enqueue_rotation(self) -> None:
        turn = read_rotation(self.config)
        if not turn:
            return
        here = self.state["rotation"]["next"]
        at = turn.index(here) if here in turn else 0
        kind, target = self.resolve_request(turn[at], None)
        item = inbox.reserve_job(self.runtime, kind, target, ROTATION, self.clock)
        self.state["queue"].append(inbox.sign_job(item, self.signer))
        self.state["rotation"] = {"next": turn[(at + 1) % len(turn)], "turns": self.state["rotation"]["turns"] + 1}

    def _run_next_job(self, wait: Callable[[RunningJob, int], None]) -> None:
        job = self.state["queue"].pop(0)
        kind = self._check_queued(job)
        if kind is None:
            self.save_state()
            return
        item = request_of(job)
        standby = self._ensure_watcher()
        self.step("forked")
        running = self._record_start(kind, item, standby)
        self.step("running")
        standby.assign_job(JobAssignment(item, kind, self.settings, self.config, self.clock, self.redactor))
        self.step("told to go")
        if not standby.has_ended_within(_SHORT_JOB):
            self.export_tree()
        wait(running, standby.fileno())
        standby.wait_ended()
        self.step("ended")
        self.collect_job(told=True)

    def _ensure_watcher(self) -> WatcherProcess:
        """The one there is; another where it has died."""
        if self.watcher is not None and not self.watcher.is_alive:
            self._release_watcher()
        if self.watcher is None:
            self.watcher = WatcherProcess()
        return self.watcher

    def close(self) -> None:
        """Let go of what is held. A job that is on goes on."""
        self._release_watcher()
        self.requests.close()

    def _release_watcher(self) -> None:
        standby, self.watcher = self.watcher, None
        if standby is not None:
            standby.close()

    def _record_start(self, kind: JobType, item: JobRequest, standby: WatcherProcess) -> RunningJob:
        now = format_iso(self.clock.now())
        pid, since = standby.pid, standby.since
        running: RunningJob = {**item, "started_at": now, "pid": pid, "pid_started": since, "seal": ""}
        running["seal"] = self.signer.sign(running)
        self.state["running"] = running
        self.state["status"] = "running"
        # No state before this one knows of a rotated job. One that writes nothing may be run again after a power cut.
        self.save_state(twice=item["by"] == ROTATION, fsync=bool(kind.writes))
        manifest = inbox.build_manifest(self.runtime, kind, item)
        manifest |= {"status": "started", "started_at": now, "pid": pid, "pid_started": since}
        file_schemas.write_record("manifest", self.runtime.manifest_path(item["job_id"]), manifest)
        return running

    def _check_queued(self, job: QueuedJob) -> JobType | None:
        """The kind of a queued job; None where it must not be run, for which the loop stops."""
        if not self.signer.is_valid(job):
            why = "the queued job is not as it was enqueued: its seal is wrong"
        elif self.has_ended(job["job_id"]) or self.runtime.output_path(job["job_id"]).exists():
            why = "the queued job was started before"
        else:
            try:
                return self.resolve_request(job["kind"], job["target"])[0]
            except PolicyError as error:
                why = str(error)
        self.record_safety_stop(job["kind"], job["target"], job["by"], f"{job['job_id']}: {why}")
        return None

    def _set_status(self, status: str) -> None:
        self.state["status"] = status  # type: ignore[typeddict-item]
        self.save_state()
        self.export_tree()

    def _replace_state(self) -> None:
        if self.state["running"] is not None:
            raise PolicyError(
                f"{self.state['running']['job_id']} is running still",
                remedy="Wait until it has ended, or end it: cleared loop stop --now.",
            )
        left = len(self.state["queue"])
        self.save_state()
        aside = loop_state.archive_state(self.runtime, self.clock)
        old = self.state
        self.state = loop_state.fresh_state(self.clock.now(), old["instance"])
        self.state["cursor"] = old["cursor"]
        if aside is not None:
            queued = f", {left} queued jobs with it" if left else ""
            self.log(f"the old state is archived as {self.runtime.display_path(aside)}{queued}")
