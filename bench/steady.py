"""What a service costs per run, and whether it grows: in one process, on a clock that is moved by hand."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from bench.calls import LIMITS
from bench.measure import Result, compare
from bench.service import only
from bench.workspaces import NOW, host
from cleared.changes.workspace_opening import open_workspace
from cleared.cli import GC_THRESHOLD
from cleared.gate.proposals.setting_changes import set_setting
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.monty import Sandbox
from cleared.service.driver import ServiceDriver
from cleared.service.workspace_actions import WorkspaceActions
from cleared.service.workspace_service import WorkspaceService
from cleared.triggers.external_events import submit_event
from cleared.triggers.service_log import ServiceLog

RUNS = 10_000
EARLY = 500
"""Runs after which memory is looked at first."""
COMMITS = 1_000
BATCH = 50
EMPTY = '"""\nname: empty\ntrigger: event\nevent: go\n"""\nNone\n'
MANY = f'"""\nname: many\ntrigger: event\nevent: start\n"""\nfor n in range({BATCH}):\n    ctx_emit("go")\n'
IDLE = '"""\nname: idle\ntrigger: schedule\nschedule: * * * * *\n"""\nctx_log("nothing to do")\n'
BUSY = IDLE.replace("idle", "busy").replace('ctx_log("nothing to do")', 'ctx_emit("done", {"n": 1})')


class Hand:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return time.monotonic()


@contextmanager
def _service(root: Path, clock: Hand) -> Iterator[WorkspaceService]:
    with WorkspaceActions(root, lambda root: open_workspace(root, clock=clock)) as served:
        service = WorkspaceService(
            root, served, ServiceLog(root / ".cleared", clock, lambda text: None), lambda folders: None
        )
        try:
            yield service
        finally:
            service.close()


def throughput(quick: bool) -> Result:
    """An empty script, from the commit that tells its event to the line in the log, against the sandbox alone."""
    root, clock = only({"empty": EMPTY, "many": MANY}), Hand()
    set_setting(host(root), "triggers.max_event_runs", "1000000")
    with _service(root, clock) as service, Sandbox() as sandbox:
        service.run_step()

        def ours() -> Callable[[], object]:
            clock.at += timedelta(minutes=1)
            submit_event(service.host, "start", None)
            assert service.run_step()  # the one run that emits them all, in one commit

            def act() -> None:
                runs = 0
                while service.run_step():
                    runs += 1
                assert runs == BATCH

            return act

        def bare() -> Callable[[], object]:
            def act() -> None:
                for _ in range(BATCH):
                    sandbox.run(
                        ScriptRun(EMPTY, file="empty.py", call=_none, names=(), limits=LIMITS, now=NOW, seed="bench")
                    )

            return act

        found = compare("an empty run, event → run → log / the bare sandbox", ours, bare, 1, 3 if quick else 9, BATCH)
    assert found.ratio is not None
    return Result(found.name, found.measured, found.baseline, found.ratio, "—", ok=True)


def _none(*_: object) -> None:
    """Never called: the script calls nothing."""


def memory(quick: bool) -> Result:
    """Resident memory of a service, its git and its sandbox after ten thousand runs, against that after the first."""
    return _grows("runs without effects", IDLE, RUNS // 10 if quick else RUNS)


def memory_commits(quick: bool) -> Result:
    """The same where each run makes a commit."""
    return _grows("runs with a commit each", BUSY, COMMITS)


def _grows(what: str, script: str, runs: int) -> Result:
    early = min(EARLY, runs // 2)
    child = [sys.executable, "-c", "from bench.steady import soak; soak()", script, str(early), str(runs)]
    done = subprocess.run(child, check=True, capture_output=True, text=True)
    before, after = (int(n) for n in done.stdout.split())
    return Result(
        f"memory of the service after {runs:,} {what} / after {early:,}",
        f"{after / 1e6:.1f} MB",
        f"{before / 1e6:.1f} MB",
        after / before,
        "≤ 1.1×",
        after <= before * 1.1,
    )


def soak() -> None:
    """In a process of its own: a run each minute."""
    gc.set_threshold(*GC_THRESHOLD)  # as the command does, before its loop begins
    script, early, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    name = "busy" if "busy" in script else "idle"
    root, clock = only({name: script}), Hand()
    ended: list[datetime] = []

    class Minutes:
        """Sleeps until the next minute, in no time."""

        def wait(self, seconds: float) -> None:
            if len(ended) in (early, runs):
                print(resident(os.getpid()), flush=True)
            if len(ended) == runs:
                loop.stop()
            clock.at += timedelta(minutes=1)

        def wake(self) -> None:
            """It never sleeps."""

    with _service(root, clock) as service:
        service.handler.on_run = lambda began: None if began else ended.append(clock.at)
        loop = ServiceDriver(Minutes(), lambda: None)
        loop.services = [service]
        loop.run_until_stopped()


def resident(pid: int) -> int:
    """Bytes, with those of its children."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(fields["VmRSS"].split()[0]) * 1024 + sum(resident(int(child)) for child in children)
