"""Files that were dropped: which of them are new to an agent, and its one event for all of those."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cleared.changes.emitted_events import files_handled_by
from cleared.changes.host import Host
from cleared.decisions.grown_files import return_grown_files
from cleared.errors import ClearedError
from cleared.runs.attempt import Event
from cleared.sandbox.trigger_kinds import FILE_WATCH
from cleared.triggers import service_notices
from cleared.triggers.agent_triggers import TriggeredAgent, TriggerIndex
from cleared.triggers.pending_deliveries import Inbox
from cleared.triggers.service_log import ServiceLog
from cleared.triggers.watched_folder import CompleteFile, WatchedFolder
from cleared.vcs import Repository, Snapshot


@dataclass(frozen=True, slots=True)
class _WatchedAgent:
    listener: TriggeredAgent
    folder: WatchedFolder


class DroppedFiles:
    """The watched folders of one workspace. A watcher hints; besides, they are looked at now and then."""

    def __init__(self, root: Path, log: ServiceLog, now: datetime) -> None:
        self.root, self.log = root, log
        self.look_at = now
        """When they are looked at next, hinted or not."""
        self.hinted = False
        """Set from another thread: something may have changed."""
        self._not_before = 0.0
        self._folders: dict[str, _WatchedAgent] = {}
        self._missing: dict[str, dict[str, float]] = {}
        """Agent → SHA-256 → since when (monotonic) a file that was dealt with is not there any more."""
        self._copies: set[tuple[str, str, str]] = set()
        """Agent, path, SHA-256 of files of which was said that they are copies."""
        self._looked: set[str] = set()
        """Agents whose folders were looked at: what is there the first time may have been there all along."""
        self._problem = ""
        """What kept imported files from being looked at again, last time."""

    def set_agents(self, host: Host, roster: TriggerIndex, now: datetime) -> list[Path]:
        """Watch for these agents from now on; the directories that it is about."""
        limits, before = host.config.import_, self._folders
        self._folders = {}
        for listener in roster.listeners.values():
            if not listener.watched_paths:
                continue
            known = before.get(listener.name)
            paths = listener.watched_paths
            folder = known.folder if known and known.listener.watched_paths == paths else WatchedFolder(
                self.root, paths, limits.settle_seconds, host.clock, max_bytes=limits.max_bytes
            )  # fmt: skip
            self._folders[listener.name] = _WatchedAgent(listener, folder)
        self.look_at = now
        return sorted({d for watched in self._folders.values() for d in watched.folder.directories})

    def forget_history(self) -> None:
        """What was known was lost: what is there now may have been there all along."""
        self._missing.clear()
        self._copies.clear()
        self._looked.clear()

    def next_scan_at(self, host: Host) -> datetime:
        """When to look next."""
        if not self.hinted:
            return self.look_at
        hinted = host.clock.now() + timedelta(seconds=max(0.0, self._not_before - host.clock.monotonic()))
        return min(self.look_at, hinted)

    def scan_if_due(
        self, host: Host, inbox: Inbox, repo: Repository, head: str, version: Callable[[str], str], now: datetime
    ) -> None:
        """Look, if it is time to, and take in what is new. ``version`` of an agent and its settings: where that
        changes, a file in the drop folder that it could do nothing with is worth another try."""
        clock = host.clock
        if self.hinted and clock.monotonic() >= self._not_before:
            self.look_at = now
        if now < self.look_at:
            return
        self.hinted = False
        began = clock.monotonic()
        again = self._restore_grown_files(host)
        for watched in self._folders.values():
            look = watched.folder.scan_files()
            for problem in look.problems:
                self.log("folder.problem", problem, level="warning", agent=watched.listener.name)
            if look.again_in is not None:
                again.append(look.again_in)
            name = watched.listener.name
            within = f"{host.layout.import_dir}/"
            outside = any(not file.path.startswith(within) for file in look.ready)
            taken = (
                files_handled_by(Snapshot(repo, head).read_file(host.layout.imported_files), name) if outside else {}
            )
            _AgentFiles(self, host, inbox, watched.listener, version(name), taken, now).deliver_new_files(
                list(look.ready)
            )
        inbox.release_held(now)  # what is held may wait for somebody to be trusted, which nobody tells of
        self.look_at = now + timedelta(seconds=min([host.config.triggers.scan_seconds, *again]))
        # Thousands of files being written give thousands of hints: looking must not be all that is done.
        ended = clock.monotonic()
        self._not_before = ended + max(0.02, 4 * (ended - began))

    def _restore_grown_files(self, host: Host) -> list[float]:
        """What was written to imported files since comes back into the drop folder; when to look again."""
        try:
            found, problem = return_grown_files(host), ""
        except ClearedError as error:
            found, problem = None, str(error)
        if problem and problem != self._problem:
            self.log("folder.problem", f"imported files were not looked at again: {problem}", level="warning")
        self._problem = problem
        return [found.recheck_seconds] if found is not None and found.recheck_seconds is not None else []


@dataclass(frozen=True, slots=True)
class _AgentFiles:
    """One agent's complete files at one moment. ``taken``: SHA-256 → path of files outside of the drop folder that
    the history says it has had; empty where there are none to ask about."""

    owner: DroppedFiles
    host: Host
    inbox: Inbox
    listener: TriggeredAgent
    version: str
    recorded: dict[str, str]
    now: datetime

    def deliver_new_files(self, ready: list[CompleteFile]) -> None:
        name, root = self.listener.name, self.owner.root
        known = self.inbox.handled_files(name)
        there = {file.sha256 for file in ready}
        gone = self._confirm_missing(
            {s for s, (path, _) in known.items() if s not in there and not (root / path).exists()}
        )
        if not ready and not gone:
            return
        waiting = self.inbox.deliveries_of(name)
        pending = {sha for d in waiting for _, sha in d.event.files}
        new: list[tuple[str, str]] = []
        kept: list[tuple[str, str]] = []
        again: list[tuple[str, str, str]] = []
        for file in ready:
            path, digest = file.path, file.sha256
            before, then = known.get(digest, (None, None))
            dropped_in = path.startswith(f"{self.host.layout.import_dir}/")
            earlier = before or (None if dropped_in else self.recorded.get(digest))
            if (
                digest in pending
                or (before, then) == (path, self.version)
                or (name, path, digest) in self.owner._copies
            ):
                continue
            if earlier is None or (dropped_in and then != self.version):
                new.append((path, digest))
            elif earlier != path and (root / earlier).exists():
                again.append((path, digest, earlier))  # a copy of what is there
            else:
                kept.append((path, digest))  # the same, or renamed: nothing new …
                if before is None and name in self.owner._looked:
                    again.append((path, digest, earlier))  # … but for one that was gone, and was dropped once more
        for path, digest, earlier in again:
            self.owner.log("file.again", f"{path} has the content of {earlier}, which {name} had a run for", agent=name)
            service_notices.report_duplicate_file(self.host, name, path, digest, earlier)
            self.owner._copies.add((name, path, digest))
        self.owner._looked.add(name)
        with self.inbox.transaction():
            self.inbox.remove_handled_files(name, gone)
            self.inbox.add_handled_files(name, kept, self.version)
            if new:
                last = waiting[-1] if waiting else None
                if last and last.event.files and last.state == "waiting" and not (last.failures or last.starts):
                    self.inbox.drop_delivery(last)  # not begun yet: one run for all
                    new = sorted({*new, *last.event.files})
                self.inbox.add_delivery(name, make_file_event(self.listener, new, self.now), self.now)

    def _confirm_missing(self, missing: set[str]) -> list[str]:
        """What has been missing for so long that it is not just being renamed."""
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
