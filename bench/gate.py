"""What the gate costs: the whole of it against one bare type check, the past rehearsed, many agents in one process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta

from msgspec.structs import replace

from bench.calls import empty_primitives
from bench.measure import Result, compare, interleave, seconds
from bench.pace import PacedTime, judge_time, read_pace
from bench.workspaces import HEADER, NOW, chase, copy, host, ingest_script, workspace
from cleared.base.clock import FixedClock
from cleared.gate.examination import Gate
from cleared.gate.manual_runs import run_now
from cleared.primitives.registry import projections
from cleared.sandbox.monty import Sandbox
from cleared.sandbox.worker_pool import start_worker

RUNS = 50
ROWS = 100
AGENTS = 100


@contextmanager
def _gate(root: object) -> Iterator[Gate]:
    opened = host(root)  # type: ignore[arg-type]
    with Gate(opened) as gate:
        yield gate


def whole(quick: bool) -> Result:
    """Every stage over the starter, warm, over made-up and real files, without its history."""
    template = workspace(files={"bank.csv": chase(6)})
    opened = host(template)
    stubs, source = projections.render_stubs(opened.registry), ingest_script()
    worker = start_worker("best", 60.0)
    with _gate(template) as gate:

        def ours() -> Callable[[], object]:
            return lambda: gate.check_agent("ingest", runs=0)

        def bare() -> Callable[[], object]:
            def act() -> None:
                with worker.pool.checkout(type_check=True, type_check_stubs=stubs) as session:
                    session.feed_start(source)

            return act

        found = compare(
            "the whole gate on the starter, warm, no history / one bare type check",
            ours,
            bare,
            5,
            3 if quick else 15,
        )
    worker.stop()
    return found


def history(quick: bool) -> Result:
    """Two versions rehearsed over 50 past runs of 100 rows each; the floor is the sandbox's part of these 100 runs.

    All cores compute and nothing is waited for, so the time by the clock is judged at the reference pace."""
    root = workspace()
    for n in range(RUNS):
        day = date(2024, 1, 1) + timedelta(days=7 * n)
        rows = [f"DEBIT,{day:%m/%d/%Y},GITHUB {n:03d} {i:03d},-{1 + i}.00,ACH_DEBIT,,," for i in range(ROWS)]
        (root / "import" / f"{n:03d}.csv").write_text("\n".join([HEADER, *rows, ""]))
        opened = replace(host(root), clock=FixedClock(NOW + timedelta(seconds=n)))
        assert run_now(opened, "ingest").status == "succeeded"
    script = root / "agents/ingest.py"
    script.write_text(script.read_text().replace('"GitHub", 5020, 0.98', '"GitHub", 5020, 0.90'))
    with _gate(root) as gate, Sandbox() as sandbox:

        def compare_versions() -> None:
            found = gate.compare_with_approved("ingest", RUNS)
            assert (found.runs, found.count_changes("changed")) == (RUNS, RUNS * ROWS)

        def run_bare() -> None:
            for _ in range(2 * RUNS):
                bare()

        bare = empty_primitives(ROWS, sandbox)()
        before = read_pace()
        took, floor = interleave(lambda: compare_versions, lambda: run_bare, 1 if quick else 3)
        pace = (before + read_pace()) / 2
    return judge_time(
        f"what a change would have done in {RUNS} runs of {ROWS} rows / their scripts, primitives that return at once",
        PacedTime(took, took / pace),
        3,
        baseline=seconds(floor),
        ratio=took / floor,
    )


_CHILD = """
import resource, sys
from cleared.cli.command_runner import run
code = run(["agent", "check", "--all", "--json"])
sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
sys.exit(code)
"""


def many(quick: bool) -> Result:
    """The peak memory of ``cleared agent check --all`` over a hundred agents."""
    source = ingest_script()
    names = [f"agent{n:03d}" for n in range(10 if quick else AGENTS)]
    root = copy(workspace(agents={name: source.replace("Daily Ingest", name) for name in names}))
    done = subprocess.run([sys.executable, "-c", _CHILD], cwd=root, check=True, capture_output=True, text=True)
    unit = 1 if sys.platform == "darwin" else 1024
    peak = int(done.stderr.split()[-1]) * unit / 1e6
    return Result(
        f"the gate over {len(names)} agents in one process", f"{peak:.0f} MB", "—", None, "300 MB", peak <= 300
    )
