"""Deliveries for agents that watch folders: which dropped files are new to an agent, and one event for all of those."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import ClearedError, PolicyError
from cleared.changes.consumed_events import files_handled_by
from cleared.changes.decisions.grown_files import return_grown_files
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import describe_lock_holder
from cleared.runs.attempt import Event
from cleared.sandbox.trigger_kinds import FILE_WATCH
from cleared.triggers import service_notices
from cleared.triggers.agent_triggers import TriggeredAgent
from cleared.triggers.pending_deliveries import Inbox
from cleared.triggers.service_log import ServiceLog
from cleared.triggers.trigger_source import StepTimes
from cleared.triggers.watched_folder import CompleteFile, WatchedFolder
from cleared.triggers.workspace_view import WorkspaceView
from cleared.workspace.watched_names import refuse_brought

_WHILE_GIT_WRITES: Final = timedelta(seconds=1)
"""After what time to look again where git writes files."""


class _WatchedAgent(Struct, frozen=True):
    listener: TriggeredAgent
    folder: WatchedFolder


class DroppedFiles:
    """The watched folders of one workspace: scanned when a watcher hints, and every ``triggers.scan_seconds``."""

    kind = FILE_WATCH

    def __init__(self, root: Path, log: ServiceLog, now: datetime, *, are_complete: bool = False) -> None:
        """``are_complete``: every file is, as nobody but this program puts them there."""
        self.root, self.log, self._are_complete = root, log, are_complete
        self.look_at = now
        """When they are scanned next, hinted or not."""
        self.hinted = False
        """Set from another thread: something may have changed."""
        self._not_before = 0.0
        self._folders: dict[str, _WatchedAgent] = {}
        self._missing: dict[str, dict[str, float]] = {}
        """Agent → SHA-256 → since when (monotonic) a handled file is missing from its folder."""
        self._copies: set[tuple[str, str, str]] = set()
        """Agent, path, SHA-256 of the files that were already reported as duplicates."""
        self._scanned: set[str] = set()
        """Agents whose folders were scanned before. At the first scan a file may have been there for long."""
        self._problem = ""
        """What kept imported files from being checked for changes, the last time."""
        self._brought: frozenset[str] = frozenset()
        """The new files that git brought, at the last scan: a card says so of each."""

    def set_agents(self, view: WorkspaceView, now: datetime) -> None:
        """Scan the folders of these agents from now on."""
        limits, before = view.host.config.import_, self._folders
        self._folders = {}
        for listener in view.triggers.listeners.values():
            if not listener.watched_paths:
                continue
            earlier = before.get(listener.name)
            paths = listener.watched_paths
            folder = (
                earlier.folder
                if earlier and earlier.listener.watched_paths == paths
                else WatchedFolder(
                    self.root,
                    paths,
                    None if self._are_complete else limits.settle_seconds,
                    view.host.clock,
                    max_bytes=limits.max_bytes,
                )
            )
            self._folders[listener.name] = _WatchedAgent(listener, folder)
        self.look_at = now

    @property
    def directories(self) -> list[Path]:
        """The directories that a watcher is to watch."""
        return sorted({path for watched in self._folders.values() for path in watched.folder.directories})

    def forget_history(self) -> None:
        """Begin anew, where the inbox was lost: the next scan counts as the first."""
        self._missing.clear()
        self._copies.clear()
        self._scanned.clear()
        self._brought = frozenset()

    def handle_clock_set_back(self, now: datetime) -> None:
        self.look_at = min(self.look_at, now)

    def next_look_at(self, view: WorkspaceView) -> datetime:
        """When to scan next."""
        if not self.hinted:
            return self.look_at
        clock = view.host.clock
        hinted = clock.now() + timedelta(seconds=max(0.0, self._not_before - clock.monotonic()))
        return min(self.look_at, hinted)

    def add_due_deliveries(self, view: WorkspaceView, times: StepTimes) -> None:
        """Scan, if it is time to, and add a delivery for each agent that has new files."""
        host, now, clock = view.host, times.now, view.host.clock
        if self.hinted and clock.monotonic() >= self._not_before:
            self.look_at = now
        if now < self.look_at:
            return
        if describe_lock_holder(view.repo) is not None:  # the commit of what git writes at the moment is not known yet
            self.look_at = now + _WHILE_GIT_WRITES
            self._not_before = clock.monotonic() + _WHILE_GIT_WRITES.total_seconds()
            return
        self.hinted = False
        began = clock.monotonic()
        waits = self._restore_grown_files(host)
        brought: dict[str, PolicyError] = {}
        for watched in self._folders.values():
            scan = watched.folder.scan_files()
            for problem in scan.problems:
                self.log("folder.problem", problem, level="warning", agent=watched.listener.name)
            if scan.again_in is not None:
                waits.append(scan.again_in)
            name = watched.listener.name
            drop_folder = f"{host.layout.import_dir}/"
            recorded: dict[str, str] = {}
            if any(not file.path.startswith(drop_folder) for file in scan.ready):
                recorded = files_handled_by(CommittedSource(view.snapshot), name)
            version = view.agent_version(name)
            agent_files = _AgentFiles(self, view, watched.listener, version, recorded, now)
            brought |= agent_files.deliver_new_files(list(scan.ready))
        self._report_brought(host, brought)
        view.inbox.release_held(now)  # a held delivery may wait for a key to be trusted, which nothing announces
        self.look_at = now + timedelta(seconds=min([host.config.triggers.scan_seconds, *waits]))
        # Thousands of files being written give thousands of hints: the service must not only scan.
        ended = clock.monotonic()
        self._not_before = ended + max(0.02, 4 * (ended - began))

    def _report_brought(self, host: Host, brought: dict[str, PolicyError]) -> None:
        """Have cards say which files git brought, once each."""
        new = {path: error for path, error in brought.items() if path not in self._brought}
        self._brought = frozenset(brought)
        if new:
            for path, error in new.items():
                self.log("file.held", f"{path} starts nothing: {error.message}", level="warning", file=path)
            service_notices.report_brought_files(host, new)

    def _restore_grown_files(self, host: Host) -> list[float]:
        """Put what was added to imported files back into the drop folder. Returns in how many seconds to look again;
        empty where there is no need."""
        try:
            outcome, problem = return_grown_files(host), ""
        except ClearedError as error:
            outcome, problem = None, str(error)
        if problem and problem != self._problem:
            self.log("folder.problem", f"imported files were not looked at again: {problem}", level="warning")
        self._problem = problem
        return [outcome.recheck_seconds] if outcome is not None and outcome.recheck_seconds is not None else []


class _AgentFiles(Struct, frozen=True):
    """One agent's complete files at one moment."""

    owner: DroppedFiles
    view: WorkspaceView
    listener: TriggeredAgent
    version: str
    """Of the agent and its settings: where it changes, a file in the drop folder that the agent could do nothing with
    is worth another try."""
    recorded: dict[str, str]
    """SHA-256 → path of the files outside of the drop folder that the agent has handled, by the history."""
    now: datetime

    @property
    def host(self) -> Host:
        return self.view.host

    @property
    def inbox(self) -> Inbox:
        return self.view.inbox

    def deliver_new_files(self, ready: list[CompleteFile]) -> dict[str, PolicyError]:
        """Add one delivery for the files that are new to the agent, and report copies of files that it has handled.

        Returns the new files that git brought, path → why they start nothing.
        """
        name, root = self.listener.name, self.owner.root
        brought: dict[str, PolicyError] = {}
        handled = self.inbox.handled_files(name)
        present = {file.sha256 for file in ready}
        gone = self._confirm_missing(
            {sha for sha, (path, _) in handled.items() if sha not in present and not (root / path).exists()}
        )
        if not ready and not gone:
            return brought
        waiting = self.inbox.deliveries_of(name)
        pending = {sha for d in waiting for _, sha in d.event.files}
        new: list[tuple[str, str]] = []
        unchanged: list[tuple[str, str]] = []
        duplicates: list[tuple[str, str, str]] = []
        for file in ready:
            path, digest = file.path, file.sha256
            handled_as, handled_version = handled.get(digest, (None, None))
            in_drop_folder = path.startswith(f"{self.host.layout.import_dir}/")
            earlier = handled_as or (None if in_drop_folder else self.recorded.get(digest))
            if (
                digest in pending
                or (handled_as, handled_version) == (path, self.version)
                or (name, path, digest) in self.owner._copies
            ):
                continue
            if earlier is None or (in_drop_folder and handled_version != self.version):
                try:
                    refuse_brought(path, path.rpartition("/")[2], self.view.snapshot.has_file)
                    new.append((path, digest))
                except PolicyError as error:
                    brought[path] = error
            elif earlier != path and (root / earlier).exists():
                duplicates.append((path, digest, earlier))  # the earlier file is still there
            else:
                unchanged.append((path, digest))  # the same file, perhaps renamed …
                if handled_as is None and name in self.owner._scanned:
                    duplicates.append((path, digest, earlier))  # … or one that was gone and was dropped again
        for path, digest, earlier in duplicates:
            self.owner.log("file.again", f"{path} has the content of {earlier}, which {name} had a run for", agent=name)
            service_notices.report_duplicate_file(self.host, name, path, digest, earlier)
            self.owner._copies.add((name, path, digest))
        self.owner._scanned.add(name)
        with self.inbox.transaction():
            self.inbox.remove_handled_files(name, gone)
            self.inbox.add_handled_files(name, unchanged, self.version)
            if new:
                last = waiting[-1] if waiting else None
                if last and last.event.files and last.state == "waiting" and not (last.failures or last.starts):
                    self.inbox.drop_delivery(last)  # its run has not begun: one run handles all files
                    new = sorted({*new, *last.event.files})
                self.inbox.add_delivery(name, make_file_event(self.listener, new, self.now), self.now)
        return brought

    def _confirm_missing(self, missing: set[str]) -> list[str]:
        """The digests of files that have been missing for longer than a rename takes."""
        now = self.host.clock.monotonic()
        since = self.owner._missing.setdefault(self.listener.name, {})
        for digest in since.keys() - missing:
            del since[digest]
        for digest in missing:
            since.setdefault(digest, now)
        patience = 2 * self.host.config.import_.settle_seconds + 1
        return [digest for digest, at in since.items() if now - at >= patience]


def make_file_event(listener: TriggeredAgent, files: list[tuple[str, str]], now: datetime) -> Event:
    """The event of files that were dropped: (path, SHA-256). The same content dropped later is another event."""
    digest = hashlib.sha256("\n".join(sorted(sha for _, sha in files)).encode()).hexdigest()[:16]
    payload = {"files": [path for path, _ in files]}
    key = f"{now:%Y%m%dT%H%M%S.%f}-{digest}"
    return Event(FILE_WATCH.name, " ".join(listener.watched_paths), payload, key, files=tuple(files))
