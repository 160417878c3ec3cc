"""The loop's state machine: take messages and scripts' requests, collect, run at most one job, export the tree.

One process at a time is the loop of a runtime directory, and it alone writes the state. It may be killed at any moment,
so each step is durable before the next: a job is queued; it has a watcher process, which waits; the state names that
process; the process is assigned the job, and first makes the job's output file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import PolicyError, WorkspaceError
from cleared.jobs import file_schemas, inbox, loop_state
from cleared.jobs.job_types import JobPace, JobType, load_built_in, read_rotation, resolve_request
from cleared.jobs.records import InboxMessage, JobRequest, LoopState, QueuedJob, RunningJob, request_of
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.triggers.requested_jobs import CommittedJobRequest
from cleared.work.loop import retention
from cleared.work.loop.job_collection import ROTATION, JobCollector
from cleared.work.loop.loop_settings import OPT_IN_VARIABLE, LoopSettings
from cleared.work.loop.script_requests import ScriptRequests
from cleared.work.loop.state_store import StateStore
from cleared.work.loop.supervisor import JobAssignment
from cleared.work.loop.watcher_process import WatcherProcess
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.secrets import Redactor

_SHORT_JOB: Final = 0.05
"""Seconds: a job that ends within them is not shown as running."""


class LoopMachine:
    """One loop. Only the process that holds the loop's lock may have one; ``close`` it at the end."""

    def __init__(
        self,
        settings: LoopSettings,
        config: Config,
        redactor: Redactor,
        clock: Clock,
        log: Callable[[str], None],
        requests: ScriptRequests,
        step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self.config = config
        self.store = StateStore(settings.runtime, clock, log, step)
        self.collector = JobCollector(self.store, config)
        self._intake = MessageIntake(self.store, config, requests)
        self._requests = requests
        self._redactor = redactor
        self._watcher: WatcherProcess | None = None

    @property
    def runtime(self) -> RuntimeDirectory:
        return self.settings.runtime

    @property
    def state(self) -> LoopState:
        return self.store.state

    def use_config(self, config: Config, redactor: Redactor) -> None:
        """Go on with these settings from now on."""
        self.config = self.collector.config = self._intake.config = config
        self._redactor = redactor

    def take_messages(self) -> bool:
        """Take in what waits in the inbox and what scripts have asked for; whether there was anything."""
        return self._intake.take_messages()

    def begin_run(self, *, init: bool) -> None:
        """Take up where the last loop left off, or with ``init`` begin a fresh state and archive the old one.

        Raises ``PolicyError`` where a job is still running, of which a fresh state would not know.
        """
        is_new = not self.runtime.state_path.exists() and not self.runtime.backup_path.exists()
        has_taken = self.take_messages()
        self.collector.recover_jobs()
        if init and (has_taken or not is_new):
            self._replace_state()
        if self.state["stop"] is not None:
            if self.state["stop"]["code"] == "repeated_failure":
                self.state["failures"] = {}
            self.state["stop"] = None
        if self.state["status"] != "paused":
            self.state["status"] = "idle"
        self.store.save(twice=init)
        retention.trim_files(self.runtime, self.config.loop.keep_jobs, self.state, self.store.clock)
        self.store.export_tree()

    def run_cycle(self, wait: Callable[[RunningJob, int], None]) -> None:
        """Run one cycle: at most one job. ``wait(job, descriptor)`` must return when the job has ended; the descriptor
        is readable then."""
        self.state["cycles"] += 1
        self.take_messages()
        self.collector.collect_job()
        if self.state["running"] is not None:
            self.store.set_status("running")
        elif self.state["stop"] is not None:
            return
        elif self.state["paused"]:
            self.store.set_status("paused")
        else:
            if self._find_startable() is None and self.settings.auto_rotate and not self._enqueue_rotation():
                self.store.save()
                return
            index = self._find_startable()
            if index is not None:
                self._run_job(self.state["queue"].pop(index), wait)
                self.store.export_tree()
            else:
                self.store.set_status("idle")

    def has_startable_job(self) -> bool:
        """Whether the next cycle would run a job."""
        state = self.state
        return state["running"] is None and not state["paused"] and self._find_startable() is not None

    def close(self) -> None:
        """Release the watcher process and the repository. A job that runs goes on."""
        self._release_watcher()
        self._requests.close()

    def _find_startable(self) -> int | None:
        """Where in the queue the first job is whose time has come; jobs that wait hold up no others."""
        waits = {kind: self._waits(kind) for kind in {job["kind"] for job in self.state["queue"]}}
        return next((at for at, job in enumerate(self.state["queue"]) if not waits[job["kind"]]), None)

    def _waits(self, kind: str) -> bool:
        """Whether no job of this type may start yet."""
        job_type = load_built_in().get(kind)  # no plug-in's job type has a pace
        pace = job_type.read_pace(self.runtime.root) if job_type is not None else JobPace()
        return pace.is_held or (pace.not_before is not None and pace.not_before > self.store.clock.now())

    def _enqueue_rotation(self) -> bool:
        """Queue the next job type of ``loop.rotation`` that need not wait, if there is any; False where it may not be
        run, for which the loop stops."""
        names = read_rotation(self.config)
        current = self.state["rotation"]["next"]
        first = names.index(current) if current in names else 0
        turns_round = [(first + step) % len(names) for step in range(len(names))]
        index = next((each for each in turns_round if not self._waits(names[each])), None)
        if index is None:
            return True
        try:
            job_type, target = resolve_request(self.config, self.runtime.root, names[index], None)
        except PolicyError as error:
            self.store.record_safety_stop(names[index], "", ROTATION, str(error))
            return False
        job = inbox.reserve_job(self.runtime, job_type, target, ROTATION, self.store.clock)
        self.state["queue"].append(inbox.sign_job(job, self.store.signer))
        turns = self.state["rotation"]["turns"] + 1
        self.state["rotation"] = {"next": names[(index + 1) % len(names)], "turns": turns}
        return True

    def _run_job(self, queued: QueuedJob, wait: Callable[[RunningJob, int], None]) -> None:
        """Run a job that was taken out of the queue, and collect it."""
        job_type = self._check_queued(queued)
        if job_type is None:
            self.store.save()
            return
        request = request_of(queued)
        watcher = self._ensure_watcher()
        self.store.step("watcher ready")
        running = self._record_start(job_type, request, watcher)
        self.store.step("start recorded")
        watcher.assign_job(
            JobAssignment(request, self.store.clock, job_type, self.settings, self.config, self._redactor)
        )
        self.store.step("job assigned")
        if not watcher.has_ended_within(_SHORT_JOB):
            self.store.export_tree()
        wait(running, watcher.fileno())
        watcher.wait_ended()
        self.store.step("job ended")
        self.collector.collect_job(ended=True)

    def _check_queued(self, job: QueuedJob) -> JobType | None:
        """The type of a queued job; None where the job must not be run, for which the loop stops."""
        if not self.store.signer.is_valid(job):
            reason = "the queued job is not as it was enqueued: its signature is wrong"
        elif self.store.has_ended(job["job_id"]) or self.runtime.output_path(job["job_id"]).exists():
            reason = "the queued job was started before"
        else:
            try:
                job_type = resolve_request(self.config, self.runtime.root, job["kind"], job["target"])[0]
                if job_type.opt_in and not self.settings.allow_ai:
                    raise PolicyError(
                        f"this loop was not started to run {job_type.name}",
                        remedy=f"Start it with --allow-ai, or with {OPT_IN_VARIABLE}=1.",
                    )
                return job_type
            except PolicyError as error:
                reason = str(error)
        self.store.record_safety_stop(job["kind"], job["target"], job["by"], f"{job['job_id']}: {reason}")
        return None

    def _record_start(self, job_type: JobType, request: JobRequest, watcher: WatcherProcess) -> RunningJob:
        """Write into the state, then into the job's manifest, which process runs it."""
        now = format_iso(self.store.clock.now())
        pid, since = watcher.pid, watcher.since
        running: RunningJob = {**request, "started_at": now, "pid": pid, "pid_started": since, "seal": ""}
        running["seal"] = self.store.signer.sign(running)
        self.state["running"] = running
        self.state["status"] = "running"
        # No earlier state knows of a rotated job, so the backup must. A job that writes nothing needs no fsync: after a
        # power cut it may be run again.
        self.store.save(twice=request["by"] == ROTATION, fsync=bool(job_type.writes))
        manifest = inbox.build_manifest(self.runtime, job_type, request)
        manifest |= {"status": "started", "started_at": now, "pid": pid, "pid_started": since}
        file_schemas.write_record("manifest", self.runtime.manifest_path(request["job_id"]), manifest)
        return running

    def _ensure_watcher(self) -> WatcherProcess:
        """The watcher process; a new one where there is none, or it has died."""
        if self._watcher is not None and not self._watcher.is_alive:
            self._release_watcher()
        if self._watcher is None:
            self._watcher = WatcherProcess()
        return self._watcher

    def _release_watcher(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()

    def _replace_state(self) -> None:
        """Archive the state and begin a fresh one. Raises ``PolicyError`` while a job runs."""
        old = self.state
        if old["running"] is not None:
            raise PolicyError(
                f"{old['running']['job_id']} is running still",
                remedy="Wait until it has ended, or end it: cleared loop stop --now.",
            )
        self.store.save()
        aside = loop_state.archive_state(self.runtime, self.store.clock)
        self.store.state = loop_state.fresh_state(self.store.clock.now(), old["instance"])
        self.state["cursor"] = old["cursor"]
        if aside is not None:
            queued = f", {len(old['queue'])} queued jobs with it" if old["queue"] else ""
            self.store.log(f"the old state is archived as {self.runtime.display_path(aside)}{queued}")


class MessageIntake:
    """Moves what waits in the inbox, and what scripts have asked for, into a loop's state."""

    def __init__(self, store: StateStore, config: Config, requests: ScriptRequests) -> None:
        self.config = config
        """The settings that hold now; the loop replaces them when they change."""
        self._store = store
        self._requests = requests

    def take_messages(self) -> bool:
        """Take in all that waits; whether there was anything. The state is saved before the messages are removed."""
        store, state = self._store, self._store.state
        taken = []
        queued_ids = {job["job_id"] for job in state["queue"]}
        for path, message in inbox.read_messages(store.runtime):
            if isinstance(message, WorkspaceError):
                store.record_safety_stop("", "", "inbox", f"a message cannot be read: {message}")
            else:
                self._take_message(message, queued_ids)
            taken.append((path, not isinstance(message, WorkspaceError)))
        requests, cursor = self._requests.requests_since(state["cursor"])
        room = max(0, inbox.MAX_WAITING - len(state["queue"]))
        if len(requests) > room:  # the cursor stays, so that the rest is taken another time
            requests, cursor = requests[:room], state["cursor"]
        for request in requests:
            self._take_request(request)
        if taken or requests or cursor != state["cursor"]:
            state["cursor"] = cursor
            store.save(twice=True)  # a backup without these messages could not get them back
            store.step("messages taken")
            self._requests.mark_taken(requests)
            for path, is_readable in taken:
                inbox.remove_message(path) if is_readable else inbox.set_aside_message(path)
        return bool(taken or requests)

    def _take_message(self, message: InboxMessage, known: set[str]) -> None:
        """``known``: the ids of the queued jobs; a message that was taken in before adds nothing."""
        store, state, job = self._store, self._store.state, message["job"]
        if message["what"] == "refused" and message["refused"] is not None:
            refused = message["refused"]
            store.record_safety_stop(refused["kind"], refused["target"], refused["by"], refused["reason"])
        elif message["what"] in ("pause", "resume"):
            state["paused"] = message["what"] == "pause"
            if state["running"] is None:
                state["status"] = "paused" if state["paused"] else "idle"
            store.log("paused" if state["paused"] else "resumed")
        elif job is not None and job["job_id"] not in known and not store.has_ended(job["job_id"]):
            running = state["running"]
            if running is None or running["job_id"] != job["job_id"]:
                known.add(job["job_id"])
                state["queue"].append(job)

    def _take_request(self, request: CommittedJobRequest) -> None:
        """Queue a script's job. It was checked when the script asked; the settings may have changed since."""
        store, longest = self._store, self.config.triggers.max_depth
        label = f"{request.kind} {request.target}, asked for by {request.requested_by},"
        if request.depth > longest:
            text = f"{label} is not run: the chain that leads to it is too long"
            store.add_notice(f"{text} (triggers.max_depth: {longest})")
            store.log(text)
            return
        try:
            job_type, target = resolve_request(self.config, store.runtime.root, request.kind, request.target)
        except PolicyError as error:
            store.record_safety_stop(request.kind, request.target, request.requested_by, str(error))
            return
        job = inbox.reserve_job(store.runtime, job_type, target, request.requested_by, store.clock)
        store.state["queue"].append(inbox.sign_job(job, store.signer))
