"""Jobs of the workspace's own loop that have ended. Each is one event, made from its result file, if a loop of this
machine has signed that.

The folder of results is only looked at while some agent listens to these events.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import ClearedError, PolicyError, UsageError, WorkspaceError
from cleared.changes.host import Host
from cleared.git import history
from cleared.jobs import file_schemas
from cleared.jobs.job_results import read_signed_result
from cleared.jobs.loop_state import peek_state
from cleared.jobs.records import JobResult, LoopState
from cleared.jobs.runtime_directory import RuntimeDirectory, check_job_id, own_runtime
from cleared.jobs.signing import JobSigner
from cleared.primitives.loop_jobs import describe_job
from cleared.runs.attempt import Event
from cleared.sandbox.trigger_kinds import EVENT
from cleared.triggers.agent_triggers import TriggeredAgent, TriggerIndex
from cleared.triggers.event_stream import JOB_FINISHED, MAX_EVENT_AGE, RecordedEvent
from cleared.triggers.pending_deliveries import Inbox
from cleared.triggers.requested_jobs import event_depth_after
from cleared.triggers.service_log import ServiceLog

CURSOR_KEY: Final = "jobs"
"""In the inbox: the folder that was looked at, and the jobs whose results had been seen in it."""
_RESULT_SUFFIX: Final = ".result.json"
_SCAN_PAUSE: Final = 0.2
"""Seconds between two looks that were hinted: a job's output, too, is written into the folder."""


class EndedJobsScan(Struct, frozen=True):
    """What a scan has found. ``is_first``: it is not known which events were delivered before."""

    events: list[RecordedEvent]
    cursor: str
    is_first: bool


class EndedJobs:
    """The results folder: scanned when a watcher hints, and every ``triggers.scan_seconds``."""

    def __init__(self, log: ServiceLog, now: datetime) -> None:
        self.log = log
        self.look_at = now
        self.hinted = False
        """Set from another thread: something may have changed."""
        self._not_before = 0.0
        self._runtime: RuntimeDirectory | None = None

    def set_agents(self, host: Host, inbox: Inbox, triggers: TriggerIndex, now: datetime) -> None:
        """Scan for these agents from now on. A job that ends while no agent listens makes no event."""
        self._runtime, self.look_at = None, now
        if triggers.agents_for_event(JOB_FINISHED):
            try:
                self._runtime = own_runtime(host.root, host.config)
            except PolicyError as error:
                self.log("jobs.problem", f"no job of the loop is told of: {error}", level="warning")
        elif inbox.read_cursor(CURSOR_KEY):
            inbox.set_cursor(CURSOR_KEY, "")

    @property
    def watched_folders(self) -> list[Path]:
        """The folders that a watcher is to watch."""
        return [self._runtime.jobs_folder] if self._runtime is not None else []

    def next_scan_at(self, host: Host) -> datetime | None:
        """When to scan next; None where no agent listens."""
        if self._runtime is None:
            return None
        if not self.hinted:
            return self.look_at
        hinted = host.clock.now() + timedelta(seconds=max(0.0, self._not_before - host.clock.monotonic()))
        return min(self.look_at, hinted)

    def scan_if_due(self, host: Host, inbox: Inbox, now: datetime) -> EndedJobsScan | None:
        """Scan, if it is time to; None where there is nothing new."""
        runtime, clock = self._runtime, host.clock
        if runtime is None or not (now >= self.look_at or (self.hinted and clock.monotonic() >= self._not_before)):
            return None
        self.hinted = False
        self.look_at = now + timedelta(seconds=host.config.triggers.scan_seconds)
        self._not_before = clock.monotonic() + _SCAN_PAUSE
        ended, seen = _list_ended_jobs(runtime), _read_seen_jobs(inbox, runtime)
        state = peek_state(runtime) if seen is None or ended - seen else None
        if state is None:
            return None
        events, unreadable = [], set()
        for name in sorted(ended - (seen or set())):
            try:
                by = _read_requester(runtime, name)
                result = read_signed_result(runtime, JobSigner(runtime.folder), name, by)
            except file_schemas.DamagedFile as error:
                self.log("jobs.problem", f"the end of {name} is told to nobody: {error}", level="warning")
            except WorkspaceError:
                unreadable.add(name)  # gone by now, or to be read at another time
            else:
                if seen is not None or _is_recent(result, state, now):
                    events.append(_make_event(host, state, result, by))
        events.sort(key=lambda each: (each.event.payload["ended_at"], each.event.payload["job_id"]))
        cursor = json.dumps([runtime.display_path(runtime.folder), sorted(ended - unreadable)])
        return EndedJobsScan(events, cursor, is_first=seen is None)


def events_since_script(host: Host, listener: TriggeredAgent, mine: list[RecordedEvent]) -> list[RecordedEvent]:
    """The events of jobs that ended after the agent's script was last committed."""
    commits = history.read_log(host.root, 1, [host.layout.agent_path(listener.name)])
    return [recorded for recorded in mine if commits and _end_time(recorded.event.payload) >= commits[0].when]


def find_job_requester(host: Host, key: str) -> str:
    """Who asked for the job of this event (``run:<id>`` for a run); empty where that is not known."""
    try:
        return _read_requester(own_runtime(host.root, host.config), check_job_id(key.rpartition("/")[2]))
    except ClearedError:
        return ""


def _make_event(host: Host, state: LoopState, result: JobResult, by: str) -> RecordedEvent:
    key = f"{state['instance']}/{result['job_id']}"
    event = Event(EVENT.name, JOB_FINISHED, describe_job(result), key, event_depth_after(host, by))
    return RecordedEvent(event, "", by.removeprefix("run:"))


def _read_requester(runtime: RuntimeDirectory, job: str) -> str:
    try:
        return str(file_schemas.read_record("manifest", runtime.manifest_path(job))["by"])
    except WorkspaceError:
        return ""


def _is_recent(result: JobResult, state: LoopState, now: datetime) -> bool:
    """Whether it may be undelivered, where nothing is known: it is not old, and not of a loop before this one."""
    ended = _end_time(result)
    return ended >= now - MAX_EVENT_AGE and ended >= datetime.fromisoformat(state["created_at"])


def _end_time(result: JobResult) -> datetime:
    return datetime.fromisoformat(result["ended_at"])


def _list_ended_jobs(runtime: RuntimeDirectory) -> set[str]:
    try:
        names = [entry.name for entry in os.scandir(runtime.jobs_folder)]
    except OSError:
        return set()
    job_ids = set()
    for name in names:
        if name.endswith(_RESULT_SUFFIX):
            try:
                job_ids.add(check_job_id(name.removesuffix(_RESULT_SUFFIX)))
            except UsageError:
                continue
    return job_ids


def _read_seen_jobs(inbox: Inbox, runtime: RuntimeDirectory) -> set[str] | None:
    """The jobs whose results were seen in this folder; None where it was not scanned before."""
    try:
        folder, names = json.loads(inbox.read_cursor(CURSOR_KEY) or "null")
        return set(names) if folder == runtime.display_path(runtime.folder) else None
    except (ValueError, TypeError):
        return None
