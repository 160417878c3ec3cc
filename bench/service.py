"""What the service is as a process: how soon it acts on a file and on a schedule, what it costs while it waits."""

from __future__ import annotations

import math
import os
import select
import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Self

from bench.books import measure_command
from bench.calls import LIMITS
from bench.measure import Result, cpu_seconds, seconds
from bench.pace import judge_time, take_paced
from bench.startup import CLEARED
from bench.workspaces import NOW, approved, chase, copy, git, host, workspace
from cleared.gate.proposals.setting_changes import set_setting
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.monty import Sandbox
from cleared.sandbox.script_failure import Position
from cleared.trust.approval_record import WORKSPACE

SETTLE = 0.2
AGENTS = 10_000
IDLE_SECONDS = 30.0
LONGEST = 60.0
"""Seconds that a line of the service is waited for."""
FIRST = 'ctx_log("first")\n'
"""Its one primitive has ``cleared up`` write a line at once: nothing in the program is changed to be measured."""
DROP = f'"""\nname: drop\ntrigger: file_watch\nwatch: import/\n"""\n{FIRST}'


def files(quick: bool) -> Result:
    """One file after the other; nothing else waits."""
    root = only({"drop": DROP})
    set_setting(host(root), "import.settle_seconds", str(SETTLE))
    took, bare = [], []
    with Up(root) as up, Sandbox() as sandbox:
        up.hears("up;")
        for n in range(11 if quick else 101):
            time.sleep(0.3 + n % 7 / 50)
            with (root / "import" / f"{n:03d}.csv").open("wb") as file:
                file.write(chase(3, days=3) + b"%d\n" % n)
            written = time.perf_counter()
            took.append(up.hears("drop: first") - written - SETTLE)
            bare.append(_bare(sandbox))
    median, base = statistics.median(took[1:]), statistics.median(bare[1:])
    return Result(
        f"a file is complete → first primitive, p50 of {len(took) - 1}, less the settle time of {SETTLE:g} s"
        " / bare sandbox → first call",
        seconds(median),
        seconds(base),
        median / base,
        "≤ 30 ms",
        median <= 0.03,
        f"p90 {seconds(sorted(took[1:])[math.ceil(0.9 * (len(took) - 1)) - 1])}",
    )


def cron(quick: bool) -> Result:
    """One comes due each second, out of ten thousand; half a second later the bare sandbox, which tells what of it is
    the machine's."""
    root, count = copy(_fleet(AGENTS - 100)), 20 if quick else 100
    (root / "import" / "first.csv").write_bytes(chase(1))
    late, bare = [], []
    with Up(root) as up, Sandbox() as sandbox:
        up.hears("drop: first")
        _bare(sandbox)
        begin = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=20)
        times = [begin + timedelta(seconds=n) for n in range(count)]
        _commit(
            root,
            {f"due{n:03d}": _scheduled(f"due{n:03d}", f"{at:%-M %-H} * * * {at:%-S}") for n, at in enumerate(times)},
        )
        for n, at in enumerate(times):
            up.hears(f"due{n:03d}: first")
            late.append((datetime.now(UTC) - at).total_seconds())
            half = at + timedelta(seconds=0.5)
            time.sleep(max(0.0, (half - datetime.now(UTC)).total_seconds()))
            _bare(sandbox)
            bare.append((datetime.now(UTC) - half).total_seconds())
    p99, base = (sorted(side)[math.ceil(0.99 * count) - 1] for side in (late, bare))
    return Result(
        f"a schedule is due → first primitive, p99 of {count}, {AGENTS:,} scheduled agents / sleep + bare sandbox",
        seconds(p99),
        seconds(base),
        p99 / base,
        "≤ 100 ms",
        p99 <= 0.1,
        f"p50 {seconds(statistics.median(late))} / {seconds(statistics.median(bare))}",
    )


def load(quick: bool) -> Result:
    """From the start of the process to the first primitive of a file that lies there already, with and without them."""

    def start(root: Path) -> float:
        shutil.rmtree(root / ".cleared", ignore_errors=True)
        (root / "import" / "first.csv").write_bytes(chase(1))
        time.sleep(2.5)  # longer than it has to settle
        began = time.perf_counter()
        with Up(root) as up:
            return up.hears("drop: first") - began

    many, none = _fleet(AGENTS), _fleet(0)
    start(many), start(none)
    took = [(start(many), start(none)) for _ in range(1 if quick else 5)]
    more, base = (statistics.median(side) for side in zip(*took, strict=True))
    return Result(
        f"start of the service → it acts, {AGENTS:,} scheduled agents / none",
        seconds(more),
        seconds(base),
        more / base,
        "3 s more",
        more - base <= 3,
    )


def idle(quick: bool) -> Result:
    """User and system time of the service and all its processes while nothing is due."""
    root, span = _fleet(AGENTS), IDLE_SECONDS / 3 if quick else IDLE_SECONDS
    shutil.rmtree(root / ".cleared", ignore_errors=True)  # another figure's service may have seen such a file
    (root / "import" / "first.csv").write_bytes(chase(1))
    with Up(root) as up:
        up.hears("drop: first")
        time.sleep(3)
        before = up.cpu_seconds()
        assert before > 0
        time.sleep(span)
        share = (up.cpu_seconds() - before) / span
    return Result(
        f"an idle service over {span:g} s, {AGENTS:,} scheduled agents, one watched folder",
        f"{share:.2%} CPU",
        "—",
        None,
        "≤ 0.5%",
        share <= 0.005,
    )


def status(quick: bool) -> Result:
    """``cleared status`` of so many approved agents, not the first time; what it prints is read."""
    root, helps = _fleet(AGENTS), []

    def ask() -> float:
        helps.append(measure_command([CLEARED, "--help"], root)[0])
        return measure_command([CLEARED, "status"], root)[0]

    ask()
    took = take_paced(ask, 3 if quick else 15)
    base = statistics.median(helps)
    return judge_time(
        f"cleared status, {AGENTS:,} scheduled agents / cleared --help",
        took,
        0.3,
        baseline=seconds(base),
        ratio=took.measured / base,
    )


class Up:
    """``cleared up`` on a workspace, or another command that serves; what it writes is read as it comes."""

    def __init__(self, root: Path, *words: str, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [CLEARED, *(words or ("up",))], cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self.pid = self._process.pid
        assert self._process.stderr is not None
        self._pipe = self._process.stderr.fileno()
        self._said = b""

    def hears(self, text: str) -> float:
        """When (``perf_counter``) it has written a line with that text, after all lines that were heard before."""
        end = time.perf_counter() + LONGEST
        while True:
            line, found, rest = self._said.partition(b"\n")
            if found:
                self._said = rest
                if text.encode() in line:
                    return time.perf_counter()
                continue
            ready, _, _ = select.select([self._pipe], [], [], end - time.perf_counter())
            more = os.read(self._pipe, 65_536) if ready else b""
            if not more:
                raise AssertionError(f"the service has not said {text!r}, but {self._said!r}")
            self._said += more

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    def kill(self) -> None:
        """As a machine that fails does."""
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()


def _bare(sandbox: Sandbox) -> float:
    """The same script in the bare sandbox, up to its first call."""
    called: list[float] = []

    def answer(name: str, args: tuple[object, ...], kwargs: dict[str, object], at: Position) -> None:
        called.append(time.perf_counter())

    began = time.perf_counter()
    sandbox.run(ScriptRun(DROP, file="bench.py", call=answer, names={"ctx_log"}, limits=LIMITS, now=NOW, seed="bench"))
    return called[0] - began


def _scheduled(name: str, cron: str) -> str:
    return f'"""\nname: {name}\ntrigger: schedule\nschedule: {cron}\n"""\n{FIRST}'


@cache
def _fleet(count: int) -> Path:
    """So many scheduled agents, none of them due in the coming months, and one watched folder."""
    day = datetime.now(UTC) + timedelta(days=150)
    return only(
        {"drop": DROP}
        | {f"beat{n:05d}": _scheduled(f"beat{n:05d}", f"{n % 60} {n // 60 % 24} {day:%-d %-m} *") for n in range(count)}
    )


def only(agents: dict[str, str]) -> Path:
    """A workspace with these agents, without the starters."""
    root = workspace()
    git(root, "rm", "-q", *(f"agents/{name}.py" for name in ("ingest", "monthly_summary", "review_reminder")))
    _commit(root, agents)
    git(root, "gc", "-q")
    return root


def _commit(root: Path, agents: dict[str, str]) -> None:
    scripts = {f"agents/{name}.py": text.encode() for name, text in agents.items()}
    for path, data in approved(scripts, (root / WORKSPACE).read_text().strip()).items():
        full = root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(data)
    git(root, "-c", "gc.auto=0", "add", "agents")
    git(root, "-c", "gc.auto=0", "commit", "-q", "-m", "agents")
