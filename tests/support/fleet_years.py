"""Many workspaces in a fleet whose clock jumps from one due time to the next, and the same workspaces on one machine.

Workers, database and repositories are real; the clock alone is a file, which all of them go by.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psycopg
from fleets import Machine, read_owner
from harness import Workspace, copy_books, here, journal_rows
from patience import PATIENCE
from synced import run_git
from world import World

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError
from cleared.base.terminal import print_message
from cleared.service.fleet import fleet_home, worker
from cleared.service.fleet.job_queue import JobKind, JobTry
from cleared.service.fleet.worker import FleetWorker
from cleared.workspace.location import cleared_home

START = datetime(2025, 2, 10, 6, 0, tzinfo=UTC)
_WORKER_PATIENCE = "2"
_STEP = 50
"""After so many jobs of one due time something may go wrong again."""
STALLED = 300.0
"""Seconds without a job that ends after which something is wrong."""
_POST = """
due = ctx_event()["payload"]["due"]
journal_add_double(due[:10], "{name} " + due, 5070, 1010, "{amount}")
ctx_emit("booked", {{"due": due}})
1
"""
_LISTENS = '''"""
name: listens
trigger: event
event: booked
"""
due = ctx_event()["payload"]["due"]
journal_add_double(due[:10], "heard " + due, 5060, 1010, "0.50")
1
'''


class Kind(NamedTuple):
    """What is scheduled in a workspace: name, expression, time zone. ``is_heard``: by another agent, each time."""

    schedules: tuple[tuple[str, str, str], ...]
    is_heard: bool = True


BUSY = (
    Kind((("rent", "0 6 1 * *", "UTC"), ("weekly", "30 5 * * 1", "Europe/London"))),
    Kind((("quarter", "0 0 1 1,4,7,10 *", "Australia/Lord_Howe"), ("sunday", "30 2 * * 0", "America/New_York"))),
    Kind((("last", "45 23 28-31 * *", "UTC"), ("thursday", "0 6 * * 4", "UTC"))),
    Kind((("first", "0 6 1 * *", "UTC"), ("fortnight", "15 1 1,15 * *", "Europe/London"))),
)
"""Each workspace has something nearly every week."""
_DAILY = Kind((("daily", "0 7 * * *", "Australia/Lord_Howe"),), is_heard=False)
_WEEKLY = (
    Kind((("weekly", "30 5 * * 1", "Europe/London"),)),
    Kind((("sunday", "30 2 * * 0", "America/New_York"),)),
)
_MONTHLY = (
    Kind((("rent", "0 6 1 * *", "UTC"),), is_heard=False),
    Kind((("last", "45 23 28 * *", "America/New_York"),)),
)
_QUARTERLY = Kind((("quarter", "0 6 1 1,4,7,10 *", "UTC"),), is_heard=False)


def choose_busy(number: int) -> Kind:
    """The kind of the workspace with this number, where all are busy."""
    return BUSY[number % len(BUSY)]


def choose_of_firm(number: int) -> Kind:
    """The same in a firm that keeps the books of many: of 500, one has something daily, 20 weekly, 125 monthly, the
    others each quarter; most of them on the first at six."""
    if number % 500 == 3:
        return _DAILY
    if number % 25 == 1:
        return _WEEKLY[number // 25 % 2]
    if number % 4 == 2:
        return _MONTHLY[number // 4 % 2]
    return _QUARTERLY


MIXES: Mapping[str, Callable[[int], Kind]] = {"busy": choose_busy, "firm": choose_of_firm}
Rows = Counter[tuple[str, ...]]


def make_workspace(root: Path, kind: Kind) -> Workspace:
    """Books with the agents of a kind, and no others that have a schedule."""
    done = here("init", str(root), "--name", "Acme")
    assert done.code == 0, done
    ws = Workspace(root)
    ws.git("rm", "-q", *(f"agents/{path.name}" for path in (root / "agents").glob("*.py")))
    ws.git("commit", "-q", "-m", "no starters")
    ws.config("self_improvement.enabled=false")  # a job each night
    texts = {"agents/listens.py": _LISTENS} if kind.is_heard else {}
    for number, (name, cron, zone) in enumerate(kind.schedules):
        header = f'"""\nname: {name}\ntrigger: schedule\nschedule: {cron}\ntimezone: {zone}\n"""'
        texts[f"agents/{name}.py"] = header + _POST.format(name=name, amount=f"{10 + number}.00")
    for path, text in texts.items():
        ws.put(path, text)
    ws.commit(*texts, *ws.approve(*texts), message="agents")
    return ws


def live_alone(ws: Workspace, until: datetime) -> Rows:
    """The same on one machine: a service that is there at each due time."""
    ws.config("triggers.scan_seconds=86400")  # nothing is dropped; a look each minute of a year takes an hour
    with World(ws, format_iso(START)) as world:
        while world.time.at < until:
            world.settle()
            assert world.service is not None
            wake = world.service.wake_at()
            if wake is None:
                break
            world.time.at = max(wake, world.time.at)
    return read_entries(ws.root, until)


def read_entries(repository: Path, until: datetime) -> Rows:
    """All legs that are committed, without their ids."""
    packed = subprocess.run(["git", "archive", "main", "books"], cwd=repository, capture_output=True, check=True).stdout
    found: Rows = Counter()
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        for member in files:
            file = files.extractfile(member) if member.name.endswith("/journal.csv") else None
            if file is not None:
                found.update(tuple(row[1:6]) for row in journal_rows(file.read().decode())[1:])
    return found


class YearOfFleet:
    """``names``: workspaces, each of one kind. ``disturb``: what goes wrong at times, called with the number of the
    step: each jump is one, and each time that so many jobs were done."""

    def __init__(self, database: str, folder: Path, kinds: Sequence[Kind], workers: int) -> None:
        self.database, self.folder, self.clock = database, folder, folder / "clock"
        self.owner = Machine(cleared_home())
        self.owner.ok("init", "--database", database, "--store", str(folder / "store"))
        self.alone: dict[Kind, Workspace] = {}
        self.names = {f"w{number}": kind for number, kind in enumerate(kinds)}
        for name, kind in self.names.items():
            self._add(name, kind)
        self._set_clock(START)
        self.machines = [self._join(f"worker{number}") for number in range(workers)]
        self.running = {machine.home: self._start(machine) for machine in self.machines}
        self.jumps = self.steps = self.kills = 0
        self.disturb: Callable[[int], None] = lambda step: None

    def _add(self, name: str, kind: Kind) -> None:
        ws, bare = make_workspace(self.folder / name, kind), self.bare(name)
        if kind not in self.alone:
            self.alone[kind] = Workspace(copy_books(ws.root, self.folder / f"alone-{len(self.alone)}"))
        fence = ("receive.denyNonFastForwards=true", "receive.denyDeletes=true")
        run_git(self.folder, "clone", "-q", "--bare", *(f"-c{each}" for each in fence), f"file://{ws.root}", str(bare))
        done = here("fleet", "add", name, str(bare))
        assert done.code == 0, done

    def bare(self, name: str) -> Path:
        return self.folder / f"{name}.git"

    def desk(self, name: str) -> Workspace:
        """The owner's clone."""
        return Workspace(self.owner.home / "fleet/desk" / name)

    def _join(self, name: str) -> Machine:
        machine = Machine(self.folder / name)
        before = self.owner.json("trust")
        owner = read_owner(self.owner.home)
        machine.ok("join", "--database", self.database, "--store", str(self.folder / "store"), "--owner", owner)
        (new,) = [row for row in self.owner.json("trust") if row not in before]
        self.owner.ok("trust", str(new["key"]))
        return machine

    def _start(self, machine: Machine) -> subprocess.Popen[bytes]:
        return machine.begin_function("fleet_years:run_worker", str(self.clock))

    def kill(self, which: int) -> None:
        """A worker dies with its jobs, and comes again."""
        self.kills += 1
        machine = self.machines[which % len(self.machines)]
        self.running[machine.home].kill()
        self.running[machine.home].wait()
        self.running[machine.home] = self._start(machine)

    def _set_clock(self, at: datetime) -> None:
        new = self.clock.with_suffix(".new")
        new.write_text(format_iso(at))
        os.replace(new, self.clock)
        self.now = at

    def live(self, until: datetime) -> None:
        """Jump from due time to due time."""
        self._wait_until_idle()
        while (due := self._next_due()) is not None and due <= until:
            self._set_clock(due)
            self.jumps += 1
            self._step()
            self._wait_until_idle()

    def _step(self) -> None:
        self.steps += 1
        self.disturb(self.steps)

    def _next_due(self) -> datetime | None:
        with psycopg.connect(self.database) as db:
            row = db.execute("SELECT min(due) FROM fleet_workspaces").fetchone()
        assert row is not None
        return max(row[0].astimezone(UTC), self.now) if row[0] is not None else None

    def _wait_until_idle(self) -> None:
        while not self._wait_for_jobs():
            self._step()

    def _wait_for_jobs(self) -> bool:
        """Wait until all that is due now is done, or much of it; whether it is all."""
        query = (
            "SELECT (SELECT count(*) FROM procrastinate_jobs), (SELECT count(*) FROM fleet_workspaces WHERE due <= %s)"
        )
        last, since, most = None, time.monotonic(), 0
        with psycopg.connect(self.database, autocommit=True) as db:
            while (left := db.execute(query, [self.now]).fetchone()) != (0, 0):
                assert left is not None
                if left != last:
                    last, since = left, time.monotonic()
                most = max(most, left[1])
                if left[1] < most - _STEP:
                    return False
                assert time.monotonic() - since < STALLED, (left, self.owner.json("list"))
                for machine in self.machines:  # as the system starts a service again that has ended
                    if self.running[machine.home].poll() is not None:
                        self.running[machine.home] = self._start(machine)
                time.sleep(0.05)
        return True

    def count_outcomes(self) -> dict[str, int]:
        """How many jobs ended how."""
        with psycopg.connect(self.database) as db:
            return dict(db.execute("SELECT outcome, jobs FROM fleet_outcomes").fetchall())

    def end(self) -> str:
        """Stop the workers; what they have said."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            process.wait(PATIENCE)
        return "".join((machine.home / "said").read_text() for machine in self.machines)

    def end_all(self) -> None:
        for machine in self.machines:
            for process in machine.started:
                if process.poll() is None:
                    process.kill()
                    process.wait()


class ClockFile:
    """The time that stands in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> datetime:
        return datetime.fromisoformat(self._path.read_text())

    def monotonic(self) -> float:
        return time.monotonic()


class JumpedWorker(FleetWorker):
    """A worker whose jobs go by the clock's file as it is when they begin."""

    async def _do_job(self, workspace: str, kind: JobKind, key: str, job: JobTry) -> None:
        self._instant = format_iso(self._clock.now())
        await super()._do_job(workspace, kind, key, job)


def run_worker() -> int:
    """The process of a worker: the clock's file."""
    clock = ClockFile(Path(sys.argv[1]))
    worker._LOOK_SECONDS = 0.1  # type: ignore[misc]  # a jump is seen at once
    try:
        JumpedWorker(fleet_home.read_fleet(), clock, patience=float(_WORKER_PATIENCE)).run()
    except ClearedError as error:  # the database was away when it began
        print_message(str(error))
        return int(error.exit_code)
    return 0
