"""A service in this process, on a clock that a test moves; all else is real: runs, commits, files."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness import Workspace

from cleared.changes.host import Host
from cleared.changes.workspace_opening import open_workspace
from cleared.runs.attempt import Event
from cleared.runs.outcome import RunResult
from cleared.service.workspace_actions import WorkspaceActions
from cleared.service.workspace_service import WorkspaceService
from cleared.triggers.pending_deliveries import peek_deliveries
from cleared.triggers.service_log import ServiceLog, read_last_rows


class Time:
    """A clock that is set by hand. Durations stay real: the sandbox has its own limits."""

    def __init__(self, at: str | datetime) -> None:
        self.at = datetime.fromisoformat(at) if isinstance(at, str) else at

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return time.monotonic()

    def forward(self, **span: float) -> datetime:
        self.at += timedelta(**span)
        return self.at


class World:
    """A workspace with its service, which can be stopped and started as often as wanted."""

    def __init__(self, ws: Workspace, at: str = "2025-02-10T06:00:00Z") -> None:
        self.ws, self.time = ws, Time(at)
        self.ws.config("import.settle_seconds=0")
        self.served: WorkspaceActions | None = None
        self.service: WorkspaceService | None = None
        self.folders: list[Path] = []
        self.before_run: Callable[[str, Event], None] = lambda agent, event: None

    @property
    def state_dir(self) -> Path:
        return self.ws.root / ".cleared"

    def start(self) -> None:
        self.served = _Told(self)
        log = ServiceLog(self.state_dir, self.time, lambda _: None)
        self.service = WorkspaceService(self.ws.root, self.served, log, self.folders.extend)

    def stop(self) -> None:
        if self.service is not None:
            self.service.close()
        if self.served is not None:
            self.served.__exit__(None, None, None)
        self.service = self.served = None

    def __enter__(self) -> World:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def settle(self, most: int = 1_000) -> None:
        """Do what there is to do now."""
        assert self.service is not None
        self.service.drops.look_at = self.time.at  # as if the watcher had told, some time after the last look
        for _ in range(most):
            worked, wake = self.service.run_step(), self.service.wake_at()
            if not worked and (wake is None or wake > self.time.at + timedelta(seconds=0.1)):
                return
            self.time.at = max(self.time.at, wake or self.time.at) if not worked else self.time.at
        raise AssertionError("it does not come to rest")

    def until_run(self) -> None:
        """Up to the end of the next run."""
        assert self.service is not None
        while not self.service.run_step():
            self.time.at = self.service.wake_at() or self.time.at

    def until(self, at: str | datetime) -> None:
        """Let the time go by, as the loop sleeps: to what comes due next."""
        assert self.service is not None
        end = datetime.fromisoformat(at) if isinstance(at, str) else at
        self.settle()
        while True:
            # Every minute it looks for files of which nobody told: here each time that something comes due, which is
            # twenty times as fast.
            if self.service.drops.look_at == self.time.at + timedelta(minutes=1):
                self.service.drops.look_at += timedelta(minutes=19)
            wake = self.service.wake_at() or end
            self.time.at = max(self.time.at, min(wake, end))
            self.settle(10_000)
            if self.time.at >= end:
                return

    def forward(self, **span: float) -> None:
        self.until(self.time.at + timedelta(**span))

    # --- what happened -----------------------------------------------------------------------------------------

    def log(self, *what: str) -> list[dict[str, Any]]:
        rows = read_last_rows(self.state_dir, 100_000)
        return [row for row in rows if not what or row["what"] in what]

    def ran(self, agent: str | None = None) -> list[dict[str, Any]]:
        """Runs that ended well, oldest first."""
        return [row for row in self.log("run.succeeded") if agent in (None, row["agent"])]

    def keys(self, agent: str) -> list[str]:
        return [row["key"] for row in self.ran(agent)]

    def waiting(self) -> list[tuple[str, str, str]]:
        """Agent, kind of event, state of all that waits."""
        return [(d.agent, d.event.kind, d.state) for d in peek_deliveries(self.state_dir)[1]]

    def commits(self, trailer: str) -> list[str]:
        """The values of a trailer over the whole history, oldest first."""
        shown = self.ws.git("log", "--reverse", f"--format=%(trailers:key={trailer},valueonly,unfold)")
        return [line for line in shown.splitlines() if line]


class _Told(WorkspaceActions):
    """As the real one; tells the test before each run."""

    def __init__(self, world: World) -> None:
        super().__init__(world.ws.root, lambda root: open_workspace(root, clock=world.time))
        self._world = world

    def run_agent(self, host: Host, agent: str, event: Event) -> RunResult:
        self._world.before_run(agent, event)
        return super().run_agent(host, agent, event)


def instants(*times: str) -> list[str]:
    """``2025-02-10T06:00`` → ``2025-02-10T06:00:00Z``."""
    return [datetime.fromisoformat(t).replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for t in times]
