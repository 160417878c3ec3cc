"""Jobs of the workspace's own loop that have ended: each one event, read off its result where an agent listens."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cleared.changes.host import Host
from cleared.errors import ClearedError, PolicyError, UsageError, WorkspaceError
from cleared.jobs import file_schemas
from cleared.jobs.loop_state import peek_state
from cleared.jobs.records import JobResult, LoopState
from cleared.jobs.runtime_directory import RuntimeDirectory, check_job_id, own_runtime
from cleared.primitives.loop_jobs import describe_job as told_of
from cleared.runs.attempt import Event
from cleared.triggers.agent_triggers import Listener, Roster
from cleared.triggers.event_stream import JOB_FINISHED, LOOK_BACK, Told
from cleared.triggers.pending_deliveries import Inbox
from cleared.triggers.requested_jobs import depth_after
from cleared.triggers.service_log import Logbook
from cleared.vcs import history

CURSOR: Final = "jobs"
"""In the inbox: the folder that was looked at, and the jobs whose results had been seen in it."""
_RESULT: Final = ".result.json"
_PAUSE: Final = 0.2
"""Seconds between two looks that were hinted: a job's output, too, is written into the folder."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a look has found. ``first``: nothing was known of what had been delivered."""

    told: list[Told]
    cursor: str
    first: bool


class Jobs:
    """A watcher hints; besides, the folder is looked at now and then. Where nobody listens it is not."""

    def __init__(self, log: Logbook, now: datetime) -> None:
        self.log = log
        self.look_at = now
        self.hinted = False
        """Set from another thread: something may have changed."""
        self._not_before = 0.0
        self._runtime: RuntimeDirectory | None = None

    def listen(self, host: Host, inbox: Inbox, roster: Roster, now: datetime) -> None:
        """Look for these agents from now on. What ends while nobody listens is told to nobody."""
        self._runtime, self.look_at = None, now
        if roster.of_event(JOB_FINISHED):
            try:
                self._runtime = own_runtime(host.root, host.config)
            except PolicyError as error:
                self.log("jobs.problem", f"no job of the loop is told of: {error}", level="warning")
        elif inbox.get(CURSOR):
            inbox.put(CURSOR, "")

    @property
    def folders(self) -> list[Path]:
        """What is to be watched."""
        return [self._runtime.jobs_folder] if self._runtime is not None else []

    def wake_at(self, host: Host) -> datetime | None:
        """When to look next."""
        if self._runtime is None:
            return None
        if not self.hinted:
            return self.look_at
        hinted = host.clock.now() + timedelta(seconds=max(0.0, self._not_before - host.clock.monotonic()))
        return min(self.look_at, hinted)

    def look(self, host: Host, inbox: Inbox, now: datetime) -> Ended | None:
        """Look, if it is time to; None where there is nothing new."""
        runtime, clock = self._runtime, host.clock
        if runtime is None or not (now >= self.look_at or (self.hinted and clock.monotonic() >= self._not_before)):
            return None
        self.hinted = False
        self.look_at = now + timedelta(seconds=host.config.triggers.scan_seconds)
        self._not_before = clock.monotonic() + _PAUSE
        there, seen = _names(runtime), _seen(inbox, runtime)
        state = peek_state(runtime) if seen is None or there - seen else None
        if state is None:
            return None
        told, later = [], set()
        for name in sorted(there - (seen or set())):
            try:
                result: JobResult = file_schemas.read_record(
                    "result", runtime.result_path(name), shown=f"jobs/{name}{_RESULT}"
                )
            except file_schemas.DamagedFile as error:
                self.log("jobs.problem", f"the end of {name} is told to nobody: {error}", level="warning")
            except WorkspaceError:
                later.add(name)  # gone by now, or to be read at another time
            else:
                if result["job_id"] == name and (seen is not None or _recent(result, state, now)):
                    told.append(_told(host, runtime, state, result))
        told.sort(key=lambda each: (each.event.payload["ended_at"], each.event.payload["job_id"]))
        cursor = json.dumps([str(runtime.folder), sorted(there - later)])
        return Ended(told, cursor, first=seen is None)


def by_time(host: Host, listener: Listener, mine: list[Told]) -> list[Told]:
    """For ``news``: the ends that are not older than the commit of the agent's script."""
    commits = history.read_log(host.root, 1, [host.layout.agent_path(listener.name)])
    return [told for told in mine if commits and _ended(told.event.payload) >= commits[0].when]


def asked_by(host: Host, key: str) -> str:
    """Who asked for the job that an event is about; empty where that is not known."""
    try:
        return _by(own_runtime(host.root, host.config), check_job_id(key.rpartition("/")[2]))
    except ClearedError:
        return ""


def _told(host: Host, runtime: RuntimeDirectory, state: LoopState, result: JobResult) -> Told:
    by = _by(runtime, result["job_id"])
    key = f"{state['instance']}/{result['job_id']}"
    event = Event("event", JOB_FINISHED, told_of(result), key, depth_after(host, by))
    return Told(event, "", by.removeprefix("run:"))


def _by(runtime: RuntimeDirectory, job: str) -> str:
    try:
        return str(file_schemas.read_record("manifest", runtime.manifest_path(job))["by"])
    except WorkspaceError:
        return ""


def _recent(result: JobResult, state: LoopState, now: datetime) -> bool:
    """Whether it may not have been told yet, where nothing is known: neither old, nor of a loop before this one."""
    ended = _ended(result)
    return ended >= now - LOOK_BACK and ended >= datetime.fromisoformat(state["created_at"])


def _ended(result: JobResult) -> datetime:
    return datetime.fromisoformat(result["ended_at"])


def _names(runtime: RuntimeDirectory) -> set[str]:
    try:
        names = [entry.name for entry in os.scandir(runtime.jobs_folder)]
    except OSError:
        return set()
    found = set()
    for name in names:
        if name.endswith(_RESULT):
            try:
                found.add(check_job_id(name.removesuffix(_RESULT)))
            except UsageError:
                continue
    return found


def _seen(inbox: Inbox, runtime: RuntimeDirectory) -> set[str] | None:
    """None: nothing is known of this folder."""
    try:
        folder, names = json.loads(inbox.get(CURSOR) or "null")
        return set(names) if folder == str(runtime.folder) else None
    except (ValueError, TypeError):
        return None
