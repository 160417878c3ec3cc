"""The loop's state machine: take in, collect, wait or run exactly one job, export, wake, stop.

One process at a time is the loop of a runtime directory, and it alone writes the state. What may be killed at any
moment is put down first: a job is queued, then it has a process that waits, then the state names that process, then
the process is told to go, and its first act is to make the job's output file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cleared.clock import Clock, iso
from cleared.config.model import Config
from cleared.config.secrets import Redactor
from cleared.errors import PolicyError, WorkspaceError
from cleared.jobs import inbox, schema, state, tree
from cleared.jobs.forbidden import Forbidden
from cleared.jobs.kinds import Kind, rotation, wanted
from cleared.jobs.layout import Runtime
from cleared.jobs.records import Code, Item, Manifest, Message, Queued, Result, Row, Running, State
from cleared.jobs.seal import Sealer
from cleared.loop import processes, retention, wakeup
from cleared.loop.asked import Requests
from cleared.loop.child import NO_INPUT
from cleared.loop.knobs import Knobs
from cleared.loop.standby import Standby
from cleared.loop.supervisor import Work
from cleared.triggers.enqueued import Asked

ROTATION: Final = "rotation"
_AT_ONCE: Final = 0.05
"""Seconds: a job that ends as soon is not shown as running."""


@dataclass(slots=True)
class Machine:
    """One loop. To be used by whoever holds its lock, and by nobody else."""

    knobs: Knobs
    config: Config
    clock: Clock
    redactor: Redactor
    log: Callable[[str], None]
    requests: Requests
    step: Callable[[str], None] = lambda _: None
    """Told of each transition; crash tests stop the process there."""
    state: State = field(init=False)
    sealer: Sealer = field(init=False)
    flag: wakeup.Flag = field(init=False)
    standby: Standby | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.runtime.make()
        self.sealer = Sealer(self.runtime.folder)
        self.flag = wakeup.Flag(self.runtime)
        self.state, problem = state.load(self.runtime, self.clock)
        if problem:
            self.log(problem)

    @property
    def runtime(self) -> Runtime:
        return self.knobs.runtime

    def begin(self, *, init: bool) -> None:
        """Take up where the last loop left off, or with ``init`` anew; what was there is archived.

        Raises ``PolicyError`` where a job is running still that a fresh state would not know of.
        """
        self.take_in()
        self.recover()
        if init:
            self._init()
        if self.state["stop"] is not None:
            if self.state["stop"]["code"] == "repeated_failure":
                self.state["failures"] = {}
            self.state["stop"] = None
        if self.state["status"] != "paused":
            self.state["status"] = "idle"
        self.save(twice=init)
        retention.trim(self.runtime, self.config.loop.keep_jobs, self.state, self.clock)
        self.export()

    def save(self, *, fsync: bool = True, twice: bool = False) -> None:
        state.save(self.runtime, self.state, self.clock, fsync=fsync, twice=twice)

    def export(self) -> None:
        tree.export(self.runtime, self.state, self.clock)

    # --- taking in ---------------------------------------------------------------------------------------------

    def take_in(self) -> bool:
        """Take messages and scripts' jobs into the state; whether there were any. The state is saved before they go."""
        done = []
        known = {item["job_id"] for item in self.state["queue"]}
        for path, message in inbox.messages(self.runtime):
            if isinstance(message, WorkspaceError):
                self._safety_stop("", "", "inbox", f"a message cannot be read: {message}")
            else:
                self._take(message, known)
            done.append(path)
        asked, cursor = self.requests.since(self.state["cursor"])
        for job in asked:
            self._take_asked(job)
        if done or asked or cursor != self.state["cursor"]:
            self.state["cursor"] = cursor
            self.save(twice=True)  # the messages are gone then: a backup without them would have lost them
            self.step("taken in")
            self.requests.taken(asked)
            for path in done:
                inbox.remove(path)
        return bool(done or asked)

    def _take(self, message: Message, known: set[str]) -> None:
        job = message["job"]
        if message["what"] == "refused" and message["refused"] is not None:
            stop = message["refused"]
            self._safety_stop(stop["kind"], stop["target"], stop["by"], stop["reason"])
        elif message["what"] in ("pause", "resume"):
            self.state["paused"] = message["what"] == "pause"
            if self.state["running"] is None:
                self.state["status"] = "paused" if self.state["paused"] else "idle"
            self.log("paused" if self.state["paused"] else "resumed")
        elif job is not None and job["job_id"] not in known and not self._ended(job["job_id"]):
            running = self.state["running"]
            if running is None or running["job_id"] != job["job_id"]:
                known.add(job["job_id"])
                self.state["queue"].append(job)

    def _take_asked(self, job: Asked) -> None:
        """A script's job; it was checked when it was asked for, and is again: the settings may be others now."""
        most = self.config.triggers.max_depth
        if job.depth > most:
            text = f"{job.kind} {job.target}, asked for by {job.by}, is not run: the chain that leads to it is too long"
            state.note(self.state, f"{text} (triggers.max_depth: {most})", self.clock)
            self.log(text)
            return
        try:
            kind, target = self._wanted(job.kind, job.target)
        except PolicyError as error:
            self._safety_stop(job.kind, job.target, job.by, str(error))
            return
        item = inbox.reserve(self.runtime, kind, target, job.by, self.clock)
        self.state["queue"].append(inbox.sealed(item, self.sealer))

    # --- a cycle -----------------------------------------------------------------------------------------------

    def cycle(self, wait: Callable[[Running, int], None]) -> bool:
        """One turn; whether a job was run. ``wait`` is given a descriptor that is readable then, and returns when
        the job has ended."""
        self.state["cycles"] += 1
        self.take_in()
        self.collect()
        if self.state["running"] is not None:
            self._say_status("running")
            return False
        if self.state["stop"] is not None:
            return False
        if self.state["paused"]:
            self._say_status("paused")
            return False
        if not self.state["queue"] and self.knobs.auto_rotate:
            self._rotate()
        if not self.state["queue"]:
            self._say_status("idle")
            return False
        self._run_next(wait)
        self.export()
        return True

    def _rotate(self) -> None:
        turn = rotation(self.config)
        if not turn:
            return
        here = self.state["rotation"]["next"]
        at = turn.index(here) if here in turn else 0
        kind, target = self._wanted(turn[at], None)
        item = inbox.reserve(self.runtime, kind, target, ROTATION, self.clock)
        self.state["queue"].append(inbox.sealed(item, self.sealer))
        self.state["rotation"] = {"next": turn[(at + 1) % len(turn)], "turns": self.state["rotation"]["turns"] + 1}

    def _run_next(self, wait: Callable[[Running, int], None]) -> None:
        job = self.state["queue"].pop(0)
        kind = self._may_run(job)
        if kind is None:
            self.save()
            return
        item: Item = {
            "job_id": job["job_id"], "kind": job["kind"], "target": job["target"], "by": job["by"],
            "enqueued_at": job["enqueued_at"],
        }  # fmt: skip
        standby = self._standby_process()
        self.step("forked")
        running = self._put_down(kind, item, standby)
        self.step("running")
        standby.do(Work(item, kind, self.knobs, self.config, self.clock, self.redactor))
        self.step("told to go")
        if not standby.ends_within(_AT_ONCE):
            self.export()
        wait(running, standby.fileno())
        standby.ended()
        self.step("ended")
        self.collect(told=True)

    def _standby_process(self) -> Standby:
        """The one there is; another where it has died."""
        if self.standby is not None and not self.standby.alive:
            self.close()
        if self.standby is None:
            self.standby = Standby()
        return self.standby

    def close(self) -> None:
        """Let go of what is held. A job that is on goes on."""
        standby, self.standby = self.standby, None
        if standby is not None:
            standby.close()

    def _put_down(self, kind: Kind, item: Item, standby: Standby) -> Running:
        now = iso(self.clock.now())
        pid, since = standby.pid, standby.since
        running: Running = {**item, "started_at": now, "pid": pid, "pid_started": since, "seal": ""}
        running["seal"] = self.sealer.seal(running)
        self.state["running"] = running
        self.state["status"] = "running"
        self.save(twice=item["by"] == ROTATION)  # no state before this one knows of such a job
        manifest = inbox.manifest(self.runtime, kind, item)
        manifest |= {"status": "started", "started_at": now, "pid": pid, "pid_started": since}
        schema.write("manifest", self.runtime.manifest(item["job_id"]), manifest)
        return running

    def _may_run(self, job: Queued) -> Kind | None:
        """The kind of a queued job; None where it must not be run, for which the loop stops."""
        if not self.sealer.holds(job):
            why = "the queued job is not as it was enqueued: its seal is wrong"
        elif self._ended(job["job_id"]) or self.runtime.output(job["job_id"]).exists():
            why = "the queued job was started before"
        else:
            try:
                return self._wanted(job["kind"], job["target"])[0]
            except PolicyError as error:
                why = str(error)
        self._safety_stop(job["kind"], job["target"], job["by"], f"{job['job_id']}: {why}")
        return None

    def _wanted(self, kind: str, target: str | None) -> tuple[Kind, str]:
        return wanted(self.config, kind, target, Forbidden(self.runtime.root, self.config.loop.forbidden_paths))

    # --- collecting --------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Find out what became of what another loop, killed since, had begun."""
        if self._find_started():
            self.save()
        self.collect()

    def collect(self, *, told: bool = False) -> None:
        """Take in the result of the job that was running, if it has ended. ``told``: this very loop told it to go, and
        knows that it has."""
        running = self.state["running"]
        if running is not None:
            # Asked first: its last act is the result.
            lives = not told and processes.alive(running["pid"], running["pid_started"])
            result = self._result(running["job_id"])
            if result is not None:
                self._finish(running, result)
            elif not lives:
                self._gone(running, told)

    def _find_started(self) -> bool:
        """Jobs that the state takes for queued, as it is an older one: what was started is not started again."""
        changed = False
        ended = {row["job_id"] for row in self.state["jobs"]}
        for job in list(self.state["queue"]):
            if job["job_id"] in ended:
                continue
            result, started = self._result(job["job_id"]), self._started(job)
            if result is None and not (
                self.runtime.output(job["job_id"]).exists()
                or processes.alive(started["pid"], started["pid_started"])  # it may have been told to go just now
            ):
                continue
            if result is not None and self.sealer.holds(job):
                self.state["queue"].remove(job)
                self._finish({**started, "seal": ""}, result)
                ended.add(job["job_id"])
            elif result is None and self.state["running"] is None and self.sealer.holds(job):
                self.state["queue"].remove(job)
                self.state["running"] = {**started, "seal": self.sealer.seal(started)}
                changed = True
        return changed

    def _started(self, job: Queued) -> Running:
        pid, since, at = 2, "", job["enqueued_at"]
        with suppress(WorkspaceError):
            manifest: Manifest = schema.read("manifest", self.runtime.manifest(job["job_id"]))
            pid, since, at = manifest["pid"] or 2, manifest["pid_started"] or "", manifest["started_at"] or at
        return {**job, "started_at": at, "pid": pid, "pid_started": since}

    def _gone(self, running: Running, told: bool) -> None:
        """The process that watched over the job is dead, and there is no result."""
        begun = told or not processes.of_this_boot(running["pid_started"])  # after a power cut, no file says no
        if not begun and not self.runtime.output(running["job_id"]).exists():
            # It was never told to go: killed between the two, the loop has not run it.
            item: Item = {
                "job_id": running["job_id"], "kind": running["kind"], "target": running["target"],
                "by": running["by"], "enqueued_at": running["enqueued_at"],
            }  # fmt: skip
            if self.sealer.holds(running):
                self.state["queue"].insert(0, inbox.sealed(item, self.sealer))
                self.state["running"] = None
                self.save()
                return
        if self.sealer.holds(running):
            session = processes.session_of(running["pid"], running["pid_started"])
            processes.end_all(self.runtime.scratch(running["job_id"]), session)
        began = datetime.fromisoformat(running["started_at"])
        now = self.clock.now()
        result: Result = {
            "schema_version": "single_agent_job_result_v1", "job_id": running["job_id"], "kind": running["kind"],
            "target": running["target"], "status": "failed_or_no_result", "started_at": running["started_at"],
            "ended_at": iso(now), "duration_sec": max(0.0, round((now - began).total_seconds(), 3)),
            "exit_code": None, "manifest_path": self.runtime.shown(self.runtime.manifest(running["job_id"])),
            "output_path": self.runtime.shown(self.runtime.output(running["job_id"])),
            "summary": "its process is gone, and left no result", "wakeup_written": False,
        }  # fmt: skip
        self._finish(running, result)

    def _finish(self, running: Running, result: Result) -> None:
        """A job has ended: the state, the flag and the result say so."""
        row: Row = {
            "job_id": running["job_id"], "kind": running["kind"], "target": running["target"], "by": running["by"],
            "status": result["status"], "started_at": result["started_at"], "ended_at": result["ended_at"],
            "duration_sec": result["duration_sec"], "exit_code": result["exit_code"], "summary": result["summary"],
        }  # fmt: skip
        path = self.runtime.result(running["job_id"])
        result["wakeup_written"] = wakeup.write(self.runtime, row, self.clock)
        self.flag.written()
        self.step("flag written")
        schema.write("result", path, result)
        self.step("result written")
        current = self.state["running"]
        if current is not None and current["job_id"] == running["job_id"]:
            self.state["running"] = None
        if self.state["stop"] is None and not self.state["paused"]:
            self.state["status"] = "idle"
        self.state["jobs"].append(row)
        self.state["counts"][result["status"]] += 1
        self._learn(row)
        self._count_failure(row)
        self.save(fsync=False)  # the result is there, to be collected again
        self.step("collected")
        self.log(f"{row['job_id']} {row['status']}: {row['summary']}")
        retention.sometimes(self.runtime, self.config.loop.keep_jobs, self.state, self.clock)

    def _learn(self, row: Row) -> None:
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

    def _count_failure(self, row: Row) -> None:
        kind, failures = row["kind"], self.state["failures"]
        if row["status"] == "succeeded":
            failures.pop(kind, None)
            return
        if row["by"] == ROTATION and row["exit_code"] == NO_INPUT:
            return  # there is nothing for it to work on: the next of the rotation has its turn
        failures[kind] = failures.get(kind, 0) + 1
        if failures[kind] >= self.config.loop.max_failures:
            self.stop("repeated_failure", f"{kind} failed {failures[kind]} times in a row; last: {row['summary']}")

    def _result(self, job: str) -> Result | None:
        path = self.runtime.result(job)
        if not path.exists():
            return None
        try:
            found: Result = schema.read("result", path, shown=self.runtime.shown(path))
        except WorkspaceError as error:
            aside = path.with_name(f"{path.name}.damaged")
            with suppress(OSError):
                path.replace(aside)
            state.note(self.state, f"a result was damaged and set aside as {aside.name}: {error}", self.clock)
            return None
        return found if found["job_id"] == job else None

    def _ended(self, job: str) -> bool:
        return self.runtime.result(job).exists() or any(row["job_id"] == job for row in self.state["jobs"])

    # --- stopping ----------------------------------------------------------------------------------------------

    def stop(self, code: Code, reason: str) -> None:
        """Have the loop stop; the first reason is kept."""
        if self.state["stop"] is None:
            self.state["stop"] = {"at": iso(self.clock.now()), "code": code, "reason": reason[:1000]}
            self.state["status"] = "stopped"
            self.log(f"stopped: {reason}")

    def _safety_stop(self, kind: str, target: str, by: str, why: str) -> None:
        self.state["safety_stops"].append(inbox.safety_stop(kind, target, by, why, self.clock))
        self.log(f"refused: {why}")
        self.stop("safety_stop", why)

    def _say_status(self, status: str) -> None:
        self.state["status"] = status  # type: ignore[typeddict-item]
        self.save()
        self.export()

    def _init(self) -> None:
        if self.state["running"] is not None:
            raise PolicyError(
                f"{self.state['running']['job_id']} is running still",
                remedy="Wait until it has ended, or end it: cleared loop stop --now.",
            )
        if not self.runtime.state.exists() and not self.runtime.backup.exists():
            return
        left = len(self.state["queue"])
        self.save()
        aside = state.archive(self.runtime, self.clock)
        old = self.state
        self.state = state.fresh(self.clock.now(), old["instance"])
        self.state["cursor"] = old["cursor"]
        if aside is not None:
            queued = f", {left} queued jobs with it" if left else ""
            self.log(f"the old state is archived as {self.runtime.shown(aside)}{queued}")
