"""The service process: the services of one or several workspaces, their watcher, their log, and how they end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import BusyError, ClearedError
from cleared.base.file_source import list_dated
from cleared.changes.record_sources import CommittedSource
from cleared.service.actions import ServiceActions
from cleared.service.driver import PipeWaker, ServiceDriver, stop_on_signals
from cleared.service.notify.channels import NETWORK_SECONDS
from cleared.service.notify.notifications import Notifier
from cleared.service.notify.phone_messages import PhoneMessages
from cleared.service.notify.script_messages import ScriptMessages
from cleared.service.workspace_service import WorkspaceService
from cleared.triggers.file_watch import FolderWatcher
from cleared.triggers.pending_deliveries import Delivery
from cleared.triggers.service_log import ServiceLog
from cleared.workspace.location import Layout
from cleared.workspace.process_lock import ServiceStatus, find_running_service, hold_service_lock

_HEAD_TAG: Final = "head"
_JOBS_TAG: Final = "jobs"
_CALLS_TAG: Final = "calls"


class ServedWorkspace:
    """One workspace of the process."""

    def __init__(self, root: Path, actions: ServiceActions, clock: Clock, say: Callable[[str], None]) -> None:
        self.root, self._clock = root, clock
        self.watcher: FolderWatcher | None = None
        """Hints at changes. The folders are scanned now and then without it, too."""
        self.state_dir = root / Layout.state
        self.log = ServiceLog(self.state_dir, clock, say)
        self.status = ServiceStatus(self.state_dir, clock)
        self._lock = ExitStack()
        self._lock.enter_context(hold_service_lock(self.state_dir, clock))
        self._folders: list[Path] = []
        self._reported: set[str] = set()
        self.service = WorkspaceService(root, actions, self.log, self._set_folders)
        self.notifier = Notifier(self.service.host)
        self._notify_at: datetime | None = clock.now()
        self._changed = False
        self._seen: tuple[str, list[tuple[str, str | None]]] = ("", [])
        """The commit, and its file of emitted events, as of the last look for messages of scripts."""
        self._idle_at = clock.now()
        self._notifying: threading.Thread | None = None
        self.service.on_lost = self.keep_lock
        self.service.handler.on_run = self._show_running
        self.service.handler.on_failed = self._record_failure

    def close(self) -> None:
        self.service.close()
        self._lock.close()

    def finish_sending(self) -> None:
        """Wait a little for a message that is being handed over: cut off now, it would be sent again later."""
        if self._notifying is not None:
            self._notifying.join(NETWORK_SECONDS)

    def keep_lock(self) -> None:
        """Take the lock again, where it was deleted with ``.cleared/``.

        Raises ``BusyError`` where another service has taken it.
        """
        other = find_running_service(self.state_dir)
        if other is not None and other.pid != os.getpid():
            raise BusyError(f"another service has taken over {self.root}: process {other.pid}, since {other.since}")
        if other is None:
            self._lock.close()
            self._lock.enter_context(hold_service_lock(self.state_dir, self._clock))
        if self.status.file_missing:
            self.status.update_fields()

    def _set_folders(self, folders: list[Path]) -> None:
        self._folders = folders
        self.watch_folders()

    def watch_folders(self) -> None:
        """Watch the folders of the agents and of the loop's jobs; also one that was deleted and made again."""
        if self.watcher is None:
            return
        problems = self.watcher.set_directories(str(self.root), self._folders)
        problems += self.watcher.set_directories(
            f"{_JOBS_TAG} {self.root}", self.service.events.jobs.watched_folders, recursive=False
        )
        problems += self.watcher.set_directories(
            f"{_CALLS_TAG} {self.root}", self.service.webhooks.watched_folders, recursive=False
        )
        for problem in problems:
            if problem not in self._reported:
                self._reported.add(problem)
                self.log("watch.problem", problem, level="warning")

    def _show_running(self, delivery: Delivery | None) -> None:
        running = None
        if delivery is not None:
            running = {
                "agent": delivery.agent,
                "kind": delivery.event.kind,
                "key": delivery.event.key,
                "since": format_iso(self.service.now),
            }
        self.status.update_fields(running=running)

    def _record_failure(self, run: str, agent: str, cause: str, at: datetime) -> None:
        self.notifier.host = self.service.host
        self.notifier.record_failure(run, agent, cause, at)
        self._changed = True

    def send_notifications(self) -> float | None:
        """Send the messages that are due, in a thread of its own, and update the status.

        Returns the seconds until this is to be called again; None where nothing is planned.
        """
        now = self.service.now
        self.status.update_fields(problem=self.service.problem, notifications=self.notifier.status_data())
        if self._notifying is not None:
            if self._notifying.is_alive():
                return 1.0
            self._notifying = None
        self._look_for_messages()
        if self._changed or self.notifier.host is not self.service.host or now < self._idle_at:
            self._changed, self._notify_at = False, now
            self.notifier.host = self.service.host
        self._idle_at = now
        if self._notify_at is None:
            return None
        if now < self._notify_at:
            return (self._notify_at - now).total_seconds()
        self._notify_at = now + timedelta(seconds=60)  # until the thread has set it
        self._notifying = threading.Thread(target=self._send_due_messages, args=(now,), name="notify", daemon=True)
        self._notifying.start()
        return 0.2

    def _look_for_messages(self) -> None:
        """Notice a commit that emits events: scripts send messages by them."""
        view = self.service.view
        if view.head and view.head != self._seen[0]:
            files = list_dated(CommittedSource(view.snapshot), view.host.layout.events)
            events = [(path, view.snapshot.find_blob_id(path)) for path in files]
            self._changed |= events != self._seen[1]
            self._seen = view.head, events

    def _send_due_messages(self, now: datetime) -> None:
        host = self.notifier.host
        senders = (self.notifier, ScriptMessages(host), PhoneMessages(host))
        times = [sender.send_due_messages(now) for sender in senders]
        self._notify_at = min((time for time in times if time is not None), default=None)


def serve_workspaces(
    roots: Sequence[Path],
    actions: Callable[[Path], ServiceActions],
    clock: Clock,
    say: Callable[[str], None],
    on_idle: Sequence[Callable[[], None]] = (),
) -> None:
    """Serve these workspaces until SIGTERM or Ctrl-C. ``actions`` returns the actions of a workspace's service;
    ``on_idle`` is called where there is nothing to do, and every half minute.

    Raises ``BusyError`` where one of them is served already, ``Interrupted`` where a run was broken off.
    """
    with ExitStack() as stack:
        waker = PipeWaker()
        stack.callback(waker.close)
        members: list[ServedWorkspace] = []
        driver = ServiceDriver(waker, lambda: _do_idle_work(members, on_idle))
        stack.enter_context(stop_on_signals(driver, lambda: _announce_stop(members)))

        def hint(tag: str) -> None:
            for member in members:
                if tag == str(member.root):
                    member.service.hint_files()
                elif tag == f"{_JOBS_TAG} {member.root}":
                    member.service.events.jobs.hinted = True
            waker.wake()

        for root in roots:
            prefix = f"{root.name}: " if len(roots) > 1 else ""
            member = ServedWorkspace(root, actions(root), clock, lambda text, p=prefix: say(f"{p}{text}"))  # type: ignore[misc]
            members.append(member)
            stack.callback(member.close)
            member.service.actions.on_answered = waker.wake
            stack.callback(setattr, member.service.actions, "on_answered", _do_nothing)  # the waker is closed soon
        watcher = FolderWatcher(hint, polling=any(m.service.host.config.triggers.polling for m in members))
        stack.callback(watcher.close)
        for member in members:
            member.watcher = watcher
            git, branches = member.service.head_folders
            watcher.set_directories(f"{_HEAD_TAG} {member.root}", [git], recursive=False)
            watcher.set_directories(f"{_HEAD_TAG} {member.root}", [branches])
        watcher.start()
        driver.services = [member.service for member in members]
        confinement = {"confinement": members[0].service.confinement_level}
        for member in members:
            member.status.update_fields(ready=True, roots=[str(root) for root in roots], **confinement)
            member.log("service.up", "up; Ctrl-C ends it after the current run", **confinement)
        try:
            driver.run_until_stopped()
            for member in members:
                member.finish_sending()
        finally:
            for member in members:
                member.log("service.down", "down")


def _do_nothing() -> None:
    pass


def _announce_stop(members: Sequence[ServedWorkspace]) -> None:
    """Say that the first signal was received: the run that is on may take a while to end."""
    for member in members:
        if member.status.current_value("running") and not member.status.current_value("stopping"):
            member.status.update_fields(stopping=True)
            member.log("service.stopping", "ends after the current run; the same again breaks it off")


def _do_idle_work(members: Sequence[ServedWorkspace], others: Sequence[Callable[[], None]]) -> float | None:
    """Keep locks and watches, send notifications, and do what others want. Returns the seconds until this is to be done
    again."""
    times = []
    for do_other in others:
        do_other()
    for member in members:
        member.keep_lock()
        try:
            member.watch_folders()
            times.append(member.send_notifications())
        except ClearedError as error:
            member.log("service.trouble", str(error), level="error")
    return min((t for t in times if t is not None), default=None)
