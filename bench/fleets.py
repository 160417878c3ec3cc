"""A fleet: what a job costs beside the same run without one, how soon it begins, and what more workers bring."""

from __future__ import annotations

import json
import math
import os
import secrets
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bench.measure import Result, cpu_seconds, cpu_since, cpu_so_far, seconds
from bench.service import Up
from bench.startup import CLEARED
from bench.workspaces import copy, git, place, use_own_home, workspace
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_records import Request
from cleared.service.fleet.job_queue import ask_for_job, count_jobs, open_queue
from cleared.service.fleet.local_postgres import LocalPostgres

BOOK = """\"\"\"
name: book
trigger: on_demand
\"\"\"
ctx_log("first")
journal_add_double("2025-12-01", "one", 5070, 1010, "1.00")
git_commit("one")
"""
LONGEST = 600.0
CORES = len(os.sched_getaffinity(0))


class Fleet:
    """PostgreSQL in a folder, workspaces on bare repositories, workers."""

    def __init__(self, url: str, count: int, postgres: int) -> None:
        self.url, self.folder, self.postgres = url, place(), postgres
        self.folder.mkdir(parents=True)
        self.owner = Path(os.environ["CLEARED_HOME"])
        self.names = [f"w{number}" for number in range(count)]
        self.run(self.owner, "init", "--database", url, "--store", str(self.folder / "files"))
        self.clones: list[Path] = []
        for name in self.names:
            root, bare = workspace(agents={"book": BOOK}), self.folder / f"{name}.git"
            git(self.folder, "clone", "-q", "--bare", str(root), str(bare))
            git(bare, "config", "receive.denyNonFastForwards", "true")
            git(bare, "config", "receive.denyDeletes", "true")
            git(root, "remote", "add", "origin", str(bare))
            self.run(self.owner, "add", name, str(bare))
            self.clones.append(root)

    def run(self, home: Path, *words: str) -> str:
        environment = {**os.environ, "CLEARED_HOME": str(home)}
        done = subprocess.run([CLEARED, "fleet", *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 5), done
        return done.stdout

    def join(self, name: str) -> Path:
        home = self.folder / name
        owner = json.loads((self.owner / "fleet.json").read_bytes())["owner"]
        before = {row["key"] for row in json.loads(self.run(self.owner, "trust", "--json"))}
        self.run(home, "join", "--database", self.url, "--owner", owner, "--store", str(self.folder / "files"))
        (key,) = {row["key"] for row in json.loads(self.run(self.owner, "trust", "--json"))} - before
        self.run(self.owner, "trust", key)
        return home

    def ask(self, name: str) -> None:
        """Ask for a run, and do not wait for it."""
        request = Request(secrets.token_hex(8), name, "book", None, "waiting", "", "")
        with FleetDatabase.connect(self.url) as database, open_queue(self.url) as queue:
            database.add_request(request, "bench", datetime.now(UTC))
            ask_for_job(queue, name, "run", request.id)

    def wait_until_idle(self) -> None:
        end = time.monotonic() + LONGEST
        with FleetDatabase.connect(self.url) as database:
            while count_jobs(database):
                assert time.monotonic() < end
                time.sleep(0.02)


@contextmanager
def _postgres() -> Iterator[tuple[str, int]]:
    """In a folder that PostgreSQL's own user can reach; its URL, and its process."""
    with tempfile.TemporaryDirectory(prefix="cleared-bench-pg-") as folder:
        Path(folder).chmod(0o711)
        made = LocalPostgres(Path(folder) / "pg")
        with made.running() as url:
            yield url, int((made.folder / "data" / "postmaster.pid").read_text().split()[0])


def _work(home: Path, *options: str) -> Up:
    """A worker."""
    return Up(home, "fleet", "worker", *options, environment={**os.environ, "CLEARED_HOME": str(home)})


@contextmanager
def _fleet(count: int, workers: int) -> Iterator[tuple[Fleet, list[Path]]]:
    """Each worker has its clones and indexes already."""
    use_own_home()
    with _postgres() as (url, process):
        fleet = Fleet(url, count, process)
        homes = [fleet.join(f"worker{number}") for number in range(workers)]
        for home in homes:
            for name in fleet.names:
                fleet.ask(name)
            fleet.run(home, "worker", "--once")
        yield fleet, homes


@cache
def _measure_jobs(quick: bool) -> tuple[float, float, list[float]]:
    """Processor seconds of a job, and of the same run without a fleet; how late first primitives come."""
    with _fleet(1 if quick else 8, 1) as (fleet, homes):
        alone = _run_alone(fleet, quick)
        per_job, late = _run_in_fleet(fleet, homes[0], quick)
        return per_job, alone, late


def _run_alone(fleet: Fleet, quick: bool) -> float:
    """A service on one machine: what one more run costs it, with a push."""
    root = copy(fleet.clones[0])
    spent = []
    for _ in range(3 if quick else 15):
        before = cpu_so_far()
        subprocess.run([CLEARED, "agent", "run", "book"], cwd=root, check=True, capture_output=True)
        git(root, "fetch", "-q", "origin")
        git(root, "push", "-q", "origin", f"HEAD:refs/heads/alone-{secrets.token_hex(4)}")
        spent.append(cpu_since(before))
    return statistics.median(spent)


def _run_in_fleet(fleet: Fleet, home: Path, quick: bool) -> tuple[float, list[float]]:
    """One job after the other, on a worker that waits."""
    late, spent = [], []
    with _work(home) as worker:
        worker.hears("up;")
        for number in range(3 if quick else 31):
            name = fleet.names[number % len(fleet.names)]
            time.sleep(0.2)
            before = worker.cpu_seconds()
            began = time.perf_counter()
            fleet.ask(name)
            asked = time.perf_counter()
            late.append(worker.hears(f"{name}: book: first") - (began + asked) / 2)
            fleet.wait_until_idle()
            time.sleep(0.2)
            spent.append(worker.cpu_seconds() - before)
    return statistics.median(spent[1:]), late[1:]


class Pace(NamedTuple):
    """``jobs`` that were done in so many ``seconds``, ``cpu`` of them of the workers, their jobs with git's processes,
    and PostgreSQL. ``busy``: the seconds that the cores of the machine were not idle."""

    jobs: float
    seconds: float
    cpu: float
    busy: float

    def describe(self) -> str:
        used, busy = (each / self.seconds / CORES for each in (self.cpu, self.busy))
        return f"{self.jobs / self.seconds:.2f}/s with {used:.0%} of {CORES} cores, {busy:.0%} of them busy"


def _measure_pace(fleet: Fleet, homes: list[Path]) -> Pace:
    """Of so many workers that are up, each with one job at a time."""
    with ExitStack() as stack:
        workers = [stack.enter_context(_work(home)) for home in homes]
        for worker in workers:
            worker.hears("up;")

        for name in fleet.names[: len(homes)]:  # by its end, the processes that jobs are forked off have their imports
            fleet.ask(name)
        fleet.wait_until_idle()

        def spend() -> float:
            return cpu_seconds(fleet.postgres) + sum(worker.cpu_seconds() for worker in workers)

        began, cpu, busy = time.perf_counter(), spend(), _busy_seconds()
        for name in fleet.names:
            fleet.ask(name)
        fleet.wait_until_idle()
        return Pace(len(fleet.names), time.perf_counter() - began, spend() - cpu, _busy_seconds() - busy)


def _busy_seconds() -> float:
    """What all cores of the machine have worked since its start."""
    fields = [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:8]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # but idle, and idle until a disk answers


def overhead(quick: bool) -> Result:
    """Processor time of the worker and all of its processes."""
    per_job, alone, _ = _measure_jobs(quick)
    return Result(
        "a job of a fleet / cleared agent run, git fetch, git push (processor time)",
        seconds(per_job),
        seconds(alone),
        per_job / alone,
        "≤ 1.3×",
        per_job / alone <= 1.3,
    )


def latency(quick: bool) -> Result:
    """From asking to the first primitive, on a worker that has nothing to do."""
    late = sorted(_measure_jobs(quick)[2])
    p99 = late[math.ceil(0.99 * len(late)) - 1]
    return Result(
        f"a fleet is asked → first primitive, p99 of {len(late)}, idle",
        seconds(p99),
        "—",
        None,
        "≤ 1 s",
        p99 <= 1,
        f"p50 {seconds(statistics.median(late))}",
    )


def throughput(quick: bool) -> Result:
    """Until the cores end, more workers do more; so what is judged is how much a core does, and beside it stands how
    far they have ended. In turns, as the machine is faster at one time than at another."""
    with _fleet(2 if quick else 24, 2 if quick else 3) as (fleet, homes):
        paces = {count: Pace(0, 0, 0, 0) for count in range(1, len(homes) + 1)}
        for _ in range(1 if quick else 3):
            for count, before in paces.items():
                measured = _measure_pace(fleet, homes[:count])
                paces[count] = Pace(*map(sum, zip(before, measured, strict=True)))
    per_core = {count: pace.jobs / pace.cpu for count, pace in paces.items()}
    least = min(per_core[count] for count in per_core if count > 1)
    return Result(
        "jobs of a fleet per second of a core: several workers / one",
        f"{least:.2f}",
        f"{per_core[1]:.2f}",
        least / per_core[1],
        "≥ 0.9×",
        least / per_core[1] >= 0.9,
        "; ".join(f"{count}: {pace.describe()}, {per_core[count]:.2f} a core" for count, pace in paces.items()),
    )


def killed(quick: bool) -> Result:
    """A worker is killed at a run; from then to the first primitive of the same run in another worker."""
    options = ("--patience", "2") if quick else ()
    took = []
    with _fleet(1, 2) as (fleet, homes):
        for _ in range(1 if quick else 3):
            with _work(homes[0], *options) as one, _work(homes[1], *options) as two:
                for worker in (one, two):
                    worker.hears("up;")
                os.kill(two.pid, signal.SIGSTOP)  # so that it is the first one that takes it
                fleet.ask("w0")
                one.hears("w0: book: first")
                one.kill()
                began = time.perf_counter()
                os.kill(two.pid, signal.SIGCONT)
                took.append(two.hears("w0: book: first") - began)
                fleet.wait_until_idle()
            homes.reverse()
    return Result(
        f"a worker is killed at a run → another one is at it, the slowest of {len(took)}",
        seconds(max(took)),
        "—",
        None,
        "≤ 60 s",
        max(took) <= 60,
    )


FIGURES = {"fleet_job": overhead, "fleet_latency": latency, "fleet_throughput": throughput, "fleet_killed": killed}
