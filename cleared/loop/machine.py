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
from cleared.jobs.job_types import Kind, rotation
from cleared.jobs.records import Item, Message, Queued, Running, item_of
from cleared.loop import retention
from cleared.loop.ending import ROTATION, Endings
from cleared.loop.supervisor import Work
from cleared.loop.watcher_process import Standby
from cleared.triggers.requested_jobs import Asked

_AT_ONCE: Final = 0.05
"""Seconds: a job that ends as soon is not shown as running."""


@dataclass(slots=True)
class Machine(Endings):
    """One loop."""

    standby: Standby | None = field(init=False, default=None)

    def begin(self, *, init: bool) -> None:
        """Take up where the last loop left off, or with ``init`` anew; what was there is archived.

        Raises ``PolicyError`` where a job is running still that a fresh state would not know of.
        """
        new = not self.runtime.state.exists() and not self.runtime.backup.exists()
        taken = self.take_in()
        self.recover()
        if init and (taken or not new):
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

    # --- taking in ---------------------------------------------------------------------------------------------

    def take_in(self) -> bool:
        """Take messages and scripts' jobs into the state; whether there were any. The state is saved before they go."""
        done = []
        known = {item["job_id"] for item in self.state["queue"]}
        for path, message in inbox.messages(self.runtime):
            if isinstance(message, WorkspaceError):
                self.safety_stop("", "", "inbox", f"a message cannot be read: {message}")
            else:
                self._take(message, known)
            done.append((path, not isinstance(message, WorkspaceError)))
        asked, cursor = self.requests.since(self.state["cursor"])
        room = max(0, inbox.MOST_WAITING - len(self.state["queue"]))
        if len(asked) > room:  # the rest another time
            asked, cursor = asked[:room], self.state["cursor"]
        for job in asked:
            self._take_asked(job)
        if done or asked or cursor != self.state["cursor"]:
            self.state["cursor"] = cursor
            self.save(twice=True)  # the messages are gone then: a backup without them would have lost them
            self.step("taken in")
            self.requests.taken(asked)
            for path, readable in done:
                inbox.remove(path) if readable else inbox.set_aside(path)
        return bool(done or asked)

    def _take(self, message: Message, known: set[str]) -> None:
        job = message["job"]
        if message["what"] == "refused" and message["refused"] is not None:
            stop = message["refused"]
            self.safety_stop(stop["kind"], stop["target"], stop["by"], stop["reason"])
        elif message["what"] in ("pause", "resume"):
            self.state["paused"] = message["what"] == "pause"
            if self.state["running"] is None:
                self.state["status"] = "paused" if self.state["paused"] else "idle"
            self.log("paused" if self.state["paused"] else "resumed")
        elif job is not None and job["job_id"] not in known and not self.ended(job["job_id"]):
            running = self.state["running"]
            if running is None or running["job_id"] != job["job_id"]:
                known.add(job["job_id"])
                self.state["queue"].append(job)

    def _take_asked(self, job: Asked) -> None:
        """A script's job; it was checked when it was asked for, and is again: the settings may be others now."""
        most = self.config.triggers.max_depth
        if job.depth > most:
            text = f"{job.kind} {job.target}, asked for by {job.by}, is not run: the chain that leads to it is too long"
            loop_state.note(self.state, f"{text} (triggers.max_depth: {most})", self.clock)
            self.log(text)
            return
        try:
            kind, target = self.wanted_now(job.kind, job.target)
        except PolicyError as error:
            self.safety_stop(job.kind, job.target, job.by, str(error))
            return
        item = inbox.reserve(self.runtime, kind, target, job.by, self.clock)
        self.state["queue"].append(inbox.sealed(item, self.sealer))

    # --- a cycle -----------------------------------------------------------------------------------------------

    def cycle(self, wait: Callable[[Running, int], None]) -> None:
        """One turn. ``wait`` is given a descriptor that is readable then, and returns when the job has ended."""
        self.state["cycles"] += 1
        self.take_in()
        self.collect()
        if self.state["running"] is not None:
            self._say_status("running")
        elif self.state["stop"] is not None:
            return
        elif self.state["paused"]:
            self._say_status("paused")
        else:
            if not self.state["queue"] and self.knobs.auto_rotate:
                self._rotate()
            if self.state["queue"]:
                self._run_next(wait)
                self.export()
            else:
                self._say_status("idle")

    def _rotate(self) -> None:
        turn = rotation(self.config)
        if not turn:
            return
        here = self.state["rotation"]["next"]
        at = turn.index(here) if here in turn else 0
        kind, target = self.wanted_now(turn[at], None)
        item = inbox.reserve(self.runtime, kind, target, ROTATION, self.clock)
        self.state["queue"].append(inbox.sealed(item, self.sealer))
        self.state["rotation"] = {"next": turn[(at + 1) % len(turn)], "turns": self.state["rotation"]["turns"] + 1}

    def _run_next(self, wait: Callable[[Running, int], None]) -> None:
        job = self.state["queue"].pop(0)
        kind = self._may_run(job)
        if kind is None:
            self.save()
            return
        item = item_of(job)
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
            self._let_go()
        if self.standby is None:
            self.standby = Standby()
        return self.standby

    def close(self) -> None:
        """Let go of what is held. A job that is on goes on."""
        self._let_go()
        self.requests.close()

    def _let_go(self) -> None:
        standby, self.standby = self.standby, None
        if standby is not None:
            standby.close()

    def _put_down(self, kind: Kind, item: Item, standby: Standby) -> Running:
        now = format_iso(self.clock.now())
        pid, since = standby.pid, standby.since
        running: Running = {**item, "started_at": now, "pid": pid, "pid_started": since, "seal": ""}
        running["seal"] = self.sealer.seal(running)
        self.state["running"] = running
        self.state["status"] = "running"
        # No state before this one knows of a rotated job. One that writes nothing may be run again after a power cut.
        self.save(twice=item["by"] == ROTATION, fsync=bool(kind.writes))
        manifest = inbox.manifest(self.runtime, kind, item)
        manifest |= {"status": "started", "started_at": now, "pid": pid, "pid_started": since}
        file_schemas.write("manifest", self.runtime.manifest(item["job_id"]), manifest)
        return running

    def _may_run(self, job: Queued) -> Kind | None:
        """The kind of a queued job; None where it must not be run, for which the loop stops."""
        if not self.sealer.holds(job):
            why = "the queued job is not as it was enqueued: its seal is wrong"
        elif self.ended(job["job_id"]) or self.runtime.output(job["job_id"]).exists():
            why = "the queued job was started before"
        else:
            try:
                return self.wanted_now(job["kind"], job["target"])[0]
            except PolicyError as error:
                why = str(error)
        self.safety_stop(job["kind"], job["target"], job["by"], f"{job['job_id']}: {why}")
        return None

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
        left = len(self.state["queue"])
        self.save()
        aside = loop_state.archive(self.runtime, self.clock)
        old = self.state
        self.state = loop_state.fresh(self.clock.now(), old["instance"])
        self.state["cursor"] = old["cursor"]
        if aside is not None:
            queued = f", {left} queued jobs with it" if left else ""
            self.log(f"the old state is archived as {self.runtime.shown(aside)}{queued}")
