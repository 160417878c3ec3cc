"""Ten thousand workspaces in the table of a fleet, and processes that only ask for the jobs of what is due.

Database, statements and schedulers are real. The jobs are done here, many in one transaction, as 10,000 repositories
would need an hour: what one does is planned again as its service would, at the next time of its schedule.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleet_years import ClockFile
from fleets import FleetOfOne
from procrastinate import App

from cleared.base.clock import format_iso
from cleared.sandbox.schedule import jitter_seconds
from cleared.service.fleet import fleet_home, worker
from cleared.service.fleet.fleet_database import AWAKE, FleetDatabase
from cleared.service.fleet.owner_statements import WorkspaceStatement, sign_statement
from cleared.service.fleet.worker import FleetWorker
from cleared.trust.keys import own_key
from cleared.workspace.fleet_clones import fleet_folder

SPREAD = 600
MONDAY = datetime(2025, 2, 10, 6, 0, tzinfo=UTC)


class Crowd:
    """``count`` workspaces, which so many machines look after; all have something at six on Mondays, each tenth on
    every day. ``clock``: the file with the time. ``fired``: what was done at which due time, how often."""

    def __init__(self, fleet: FleetOfOne, folder: Path, count: int, machines: int) -> None:
        self.clock = folder / "clock"
        self.machines = [fleet.worker(f"scheduler{number}") for number in range(machines)]
        fleet.owner.ok("remove", "acme")
        self.names = [f"w{number}" for number in range(count)]
        self.due = {name: self._next_due(name, MONDAY - timedelta(hours=1)) for name in self.names}
        self.fired: Counter[tuple[str, datetime]] = Counter()
        self.set_clock(MONDAY - timedelta(hours=1))
        self.database = FleetDatabase.connect(fleet.database)
        self._fill()

    def _fill(self) -> None:
        key = own_key(fleet_folder())
        assert key is not None
        with self.database.transaction():
            for name, due in self.due.items():
                said = WorkspaceStatement(
                    name=name, url="", branch="main", books=name, keys={}, spread_seconds=SPREAD, at=""
                )
                self.database.add_workspace(name, sign_statement(key, said), due)

    @staticmethod
    def _next_due(name: str, now: datetime) -> datetime:
        """When a schedule is due next, with its jitter."""
        days = 1 if name.endswith("0") else 7
        at = MONDAY
        while at + timedelta(seconds=jitter_seconds(name, at, SPREAD)) <= now:
            at += timedelta(days=days)
        return at + timedelta(seconds=jitter_seconds(name, at, SPREAD))

    def set_clock(self, at: datetime) -> None:
        new = self.clock.with_suffix(".new")
        new.write_text(format_iso(at))
        os.replace(new, self.clock)
        self.now = at

    def expect(self) -> set[tuple[str, datetime]]:
        """What is due now, by the plans: each once."""
        return {(name, due) for name, due in self.due.items() if due <= self.now}

    def count_waiting(self) -> int:
        ((count,),) = self.database.run("SELECT count(*) FROM procrastinate_jobs")
        return int(count)

    def read_last_look(self) -> datetime | None:
        """When a scheduler looked last, by the clock."""
        text = self.database.read_fact(AWAKE)
        return datetime.fromisoformat(text.split(" ")[0]) if text else None

    def say_problems(self) -> str:
        """What schedulers have said beside that they are up."""
        said = "".join((home / "said").read_text() for home in [each.home for each in self.machines])
        return "".join(line for line in said.splitlines(keepends=True) if "up; Ctrl-C" not in line)

    def do_jobs(self, lose: int = 0) -> int:
        """Do what waits, but for so many jobs, which are lost; how many there were."""
        with self.database.transaction():
            taken = self.database.run("DELETE FROM procrastinate_jobs RETURNING lock, args ->> 'key'")
            for name, key in taken[lose:]:
                due = datetime.fromisoformat(key).astimezone(UTC)
                assert due <= self.now, (name, due)
                self.fired[name, due] += 1
                self.due[name] = self._next_due(name, self.now)
                self.database.save_job(name, state=b"", head="", due=self.due[name], now=self.now, cards=0, problem="")
        return len(taken)

    def start(self, number: int = 0) -> subprocess.Popen[bytes]:
        """A scheduler in a process of its own, on this machine."""
        return self.machines[number].begin_function("fleet_crowds:run_scheduler", str(self.clock))


class Scheduler(FleetWorker):
    """A worker that asks for jobs, and takes none."""

    def _start_forking(self) -> None:
        pass

    async def _take_jobs(self, app: App, stopping: asyncio.Event) -> None:
        looking = asyncio.create_task(self._look_for_due(stopping))
        await stopping.wait()
        looking.cancel()


def run_scheduler() -> int:
    """The process of a scheduler: the clock's file."""
    worker._LOOK_SECONDS = 0.1  # type: ignore[misc]  # a jump is seen at once
    Scheduler(fleet_home.read_fleet(), ClockFile(Path(sys.argv[1]))).run()
    return 0
