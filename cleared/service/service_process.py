"""The service process: the services of one or several workspaces, their watcher, their log, and how they end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cleared.clock import Clock, format_iso
from cleared.errors import BusyError, ClearedError
from cleared.notify.notifications import Notifier
from cleared.service.actions import Actions
from cleared.service.driver import Loop, Pipe, signals
from cleared.service.process_lock import Board, running, serving
from cleared.service.workspace_service import Service
from cleared.triggers.file_watch import Watcher
from cleared.triggers.pending_deliveries import Delivery
from cleared.triggers.service_log import Logbook
from cleared.workspace.location import Layout

_HEAD: Final = "head"
_JOBS: Final = "jobs"


class Member:
    """One workspace of the process."""

    def __init__(self, root: Path, actions: Actions, clock: Clock, say: Callable[[str], None]) -> None:
        self.root, self._clock = root, clock
        self.watcher: Watcher | None = None
        """What hints; the folders are looked at without it, too."""
        self.state_dir = root / Layout.state
        self.log = Logbook(self.state_dir, clock, say)
        self.board = Board(self.state_dir, clock)
        self._place = ExitStack()
        self._place.enter_context(serving(self.state_dir, clock))
        self._folders: list[Path] = []
        self._said: set[str] = set()
        self.service = Service(root, actions, self.log, self._watch)
        self.notifier = Notifier(self.service.host)
        self._notify_at: datetime | None = clock.now()
        self._changed = False
        self._idle_at = clock.now()
        self._notifying: threading.Thread | None = None
        self.service.on_lost = self.hold
        self.service.handler.on_run = self._running
        self.service.handler.on_failed = self._failed

    def close(self) -> None:
        self.service.close()
        self._place.close()

    def hold(self) -> None:
        """Be the one service of the workspace still, where what said so was deleted with ``.cleared/``.

        Raises ``BusyError`` where another one has taken the place.
        """
        other = running(self.state_dir)
        if other is not None and other.pid != os.getpid():
            raise BusyError(f"another service has taken over {self.root}: process {other.pid}, since {other.since}")
        if other is None:
            self._place.close()
            self._place.enter_context(serving(self.state_dir, self._clock))
        if self.board.lost:
            self.board.say()

    def _watch(self, folders: list[Path]) -> None:
        self._folders = folders
        self.rewatch()

    def rewatch(self) -> None:
        """Watch what is to be watched; also what was deleted and made again meanwhile."""
        if self.watcher is None:
            return
        problems = self.watcher.watch(str(self.root), self._folders)
        problems += self.watcher.watch(f"{_JOBS} {self.root}", self.service.jobs.folders, recursive=False)
        for problem in problems:
            if problem not in self._said:
                self._said.add(problem)
                self.log("watch.problem", problem, level="warning")

    def _running(self, delivery: Delivery | None) -> None:
        on = None
        if delivery is not None:
            on = {"agent": delivery.agent, "kind": delivery.event.kind, "key": delivery.event.key,
                  "since": format_iso(self.service.now)}  # fmt: skip
        self.board.say(running=on)

    def _failed(self, run: str, agent: str, cause: str, at: datetime) -> None:
        self.notifier.host = self.service.host
        self.notifier.failed(run, agent, cause, at)
        self._changed = True

    def idle(self) -> float | None:
        """Send what is to be sent, beside the loop; tell how things are. Seconds until this is wanted again."""
        now = self.service.now
        self.board.say(problem=self.service.problem, notifications=self.notifier.state())
        if self._notifying is not None:
            if self._notifying.is_alive():
                return 1.0
            self._notifying = None
        if self._changed or self.notifier.host is not self.service.host or now < self._idle_at:
            self._changed, self._notify_at = False, now
            self.notifier.host = self.service.host
        self._idle_at = now
        if self._notify_at is None:
            return None
        if now < self._notify_at:
            return (self._notify_at - now).total_seconds()
        self._notify_at = now + timedelta(seconds=60)  # unless it says otherwise
        self._notifying = threading.Thread(target=self._notify, args=(now,), name="notify", daemon=True)
        self._notifying.start()
        return 0.2

    def _notify(self, now: datetime) -> None:
        self._notify_at = self.notifier.tick(now)


def up(
    roots: Sequence[Path], actions: Callable[[Path], Actions], clock: Clock, say: Callable[[str], None]
) -> None:  # fmt: skip
    """Serve these workspaces until SIGTERM or Ctrl-C. ``actions`` gives what each service has done for it.

    Raises ``BusyError`` where one of them is served already, ``Interrupted`` where a run was broken off.
    """
    with ExitStack() as stack:
        waker = Pipe()
        stack.callback(waker.close)
        members: list[Member] = []
        loop = Loop(waker, lambda: _soonest(members))
        stack.enter_context(signals(loop, lambda: _tell_end(members)))

        def hint(tag: str) -> None:
            for member in members:
                if tag == str(member.root):
                    member.service.hint()
                elif tag == f"{_JOBS} {member.root}":
                    member.service.jobs.hinted = True
            waker.wake()

        for root in roots:
            prefix = f"{root.name}: " if len(roots) > 1 else ""
            member = Member(root, actions(root), clock, lambda text, p=prefix: say(f"{p}{text}"))  # type: ignore[misc]
            members.append(member)
            stack.callback(member.close)
        watcher = Watcher(hint, polling=any(m.service.host.config.triggers.polling for m in members))
        stack.callback(watcher.close)
        for member in members:
            member.watcher = watcher
            git, branches = member.service.head_folders
            watcher.watch(f"{_HEAD} {member.root}", [git], recursive=False)
            watcher.watch(f"{_HEAD} {member.root}", [branches])
        watcher.start()
        loop.services = [member.service for member in members]
        known = {"confinement": members[0].service.level}
        for member in members:
            member.board.say(ready=True, roots=[str(root) for root in roots], **known)
            member.log("service.up", "up; Ctrl-C ends it after the run that is on", **known)
        try:
            loop.run()
        finally:
            for member in members:
                member.log("service.down", "down")


def _tell_end(members: Sequence[Member]) -> None:
    """That the first signal has come: a run may take a while to end."""
    for member in members:
        if member.board.field("running") and not member.board.field("stopping"):
            member.board.say(stopping=True)
            member.log("service.stopping", "ends after the run that is on; the same again breaks it off")


def _soonest(members: Sequence[Member]) -> float | None:
    times = []
    for member in members:
        member.hold()
        try:
            member.rewatch()
            times.append(member.idle())
        except ClearedError as error:
            member.log("service.trouble", str(error), level="error")
    return min((t for t in times if t is not None), default=None)
