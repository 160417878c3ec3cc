"""The loop: how soon it runs a job, what a cycle costs beside the job, what it costs while it waits."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Result, cpu_seconds, interleave, seconds
from bench.startup import CLEARED
from bench.workspaces import host, place, workspace
from cleared.base.clock import SystemClock
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.proposals.setting_changes import set_setting
from cleared.jobs import inbox, loop_state, status_tree
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.loop_reader import find_running_loop
from cleared.jobs.runtime_directory import own_runtime
from cleared.processes.fenced_start import start_fenced
from cleared.work.loop.job_confinement import job_fence

JOBS = 50
PAST = 10_000
IDLE_SECONDS = 30.0
PLUGIN = "from cleared.jobs.job_types import JobType\nNOOP = JobType('noop', 'Nothing.', command=('true',), reads=())\n"


def overhead(quick: bool) -> Result:
    """Jobs that do nothing, each confined, with all its files: what so many more of them take a loop longer."""
    root = _with_noop()
    set_setting(host(root), "loop.rotation", "[noop]")
    runtime = own_runtime(root, host(root).config)

    def loop(count: int) -> float:
        began = time.perf_counter()
        subprocess.run(
            [CLEARED, "loop", "run", "--auto-rotate", "--max-cycles", str(count), "--sleep", "0"],
            cwd=root,
            check=True,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - began

    def bare() -> float:
        began = time.perf_counter()
        for _ in range(JOBS):
            subprocess.run(["true"], check=True)
        return time.perf_counter() - began

    loop(1)
    took = [(loop(JOBS + 1) - loop(1), bare()) for _ in range(3 if quick else 11)]
    more, base = (statistics.median(side) / JOBS for side in zip(*took, strict=True))
    ended = loop_state.peek_state(runtime)
    assert ended is not None and ended["counts"]["failed"] == 0 and ended["counts"]["succeeded"] >= JOBS
    return Result(
        "a cycle with a job that does nothing / subprocess.run of it",
        seconds(more),
        seconds(base),
        more / base,
        "≤ 8×",
        more / base <= 8,
    )


def floor(quick: bool) -> Result:
    """What a cycle cannot do without, in plain steps: the program confined, and its nine files put into place."""
    root = _with_noop()
    set_setting(host(root), "loop.rotation", "[noop]")
    subprocess.run(
        [CLEARED, "loop", "run", "--auto-rotate", "--max-cycles", "50", "--sleep", "0"],
        cwd=root,
        check=True,
        stderr=subprocess.DEVNULL,
    )
    runtime = own_runtime(root, host(root).config)
    job = next(path.name.split(".")[0] for path in runtime.jobs_folder.iterdir())
    paths = [
        runtime.manifest_path(job),
        runtime.state_path,
        runtime.backup_path,
        runtime.manifest_path(job),
        runtime.result_path(job),
        runtime.wakeup_path,
        runtime.result_path(job),
        runtime.state_path,
        runtime.tree_path,
    ]
    files = [(str(path), path.read_bytes()) for path in paths]
    fence = job_fence(ForbiddenFiles(root, ()), (), (), (), trust=False)
    assert fence is not None

    def cycle() -> None:
        for path, data in files:
            with open(f"{path}.tmp", "wb") as file:
                file.write(data)
            os.rename(f"{path}.tmp", path)
        start_fenced(fence, ["/bin/true"]).wait()

    took, base = interleave(lambda: cycle, lambda: lambda: subprocess.run(["true"], check=True), 15 if quick else 501)
    return Result(
        "the nine files of a job put into place, and true confined / subprocess.run of it",
        seconds(took),
        seconds(base),
        took / base,
        "—",
        True,
    )


def enqueued(quick: bool) -> Result:
    """A loop that sleeps is woken; the job's first act is to make its output file."""
    root = _with_noop()
    opened = open_workspace(root, clock=SystemClock())
    runtime = own_runtime(root, opened.config)
    took, bare = [], []
    with _sleeping(root):
        for _ in range(11 if quick else 101):
            time.sleep(0.1)
            began = time.perf_counter()
            job = inbox.enqueue_job(runtime, opened.config, "noop", None, "bench", SystemClock())
            while not runtime.output_path(job).exists():
                time.sleep(0.0002)
            took.append(time.perf_counter() - began)
            while not runtime.result_path(job).exists():
                time.sleep(0.002)
            began = time.perf_counter()
            subprocess.run(["true"], check=True)
            bare.append(time.perf_counter() - began)
    median, base = statistics.median(took[1:]), statistics.median(bare[1:])
    return Result(
        f"enqueue → the job runs, a loop that slept, p50 of {len(took) - 1} / subprocess.run of true",
        seconds(median),
        seconds(base),
        median / base,
        "≤ 50 ms",
        median <= 0.05,
        f"slowest {seconds(max(took[1:]))}",
    )


def export(quick: bool) -> Result:
    """The tree after ten thousand jobs, against the writing of as many bytes in one step."""
    root = _with_noop()
    opened = host(root)
    runtime = own_runtime(root, opened.config)
    runtime.make_folders()
    now = loop_state.fresh_state(opened.clock.now())
    for n in range(PAST):
        job = f"job_20250101T000000Z_noop_{n}"
        runtime.result_path(job).write_bytes(b"{}")
        now["jobs"].append(
            {
                "job_id": job,
                "kind": "noop",
                "target": "",
                "by": "bench",
                "status": "succeeded",
                "started_at": "2025-01-01T00:00:00Z",
                "ended_at": "2025-01-01T00:00:00Z",
                "duration_sec": 0.1,
                "exit_code": 0,
                "summary": "x" * 200,
            }
        )
    loop_state.save_state(runtime, now, opened.clock)
    status_tree.export_tree(runtime, now, opened.clock)
    data = runtime.tree_path.read_bytes()

    def bare() -> object:
        staged = runtime.tree_path.with_name("bare.tmp")
        staged.write_bytes(data)
        return staged.replace(runtime.tree_path.with_name("bare"))

    took, base = interleave(
        lambda: lambda: status_tree.export_tree(runtime, now, opened.clock), lambda: bare, 5 if quick else 51
    )
    return Result(
        f"the tree written after {PAST:,} jobs / its {len(data):,} bytes written",
        seconds(took),
        seconds(base),
        took / base,
        "≤ 50 ms",
        took <= 0.05,
    )


def idle(quick: bool) -> Result:
    """User and system time of a loop that sleeps."""
    root, span = _with_noop(), IDLE_SECONDS / 3 if quick else IDLE_SECONDS
    with _sleeping(root) as pid:
        time.sleep(2)
        before = cpu_seconds(pid)
        time.sleep(span)
        share = (cpu_seconds(pid) - before) / span
    return Result(f"a sleeping loop over {span:g} s", f"{share:.2%} CPU", "—", None, "≤ 0.2%", share <= 0.002)


def _with_noop() -> Path:
    """A workspace that has a plug-in with a job type that does nothing."""
    folder = place()
    info = folder / "cleared_bench_noop-1.dist-info"
    info.mkdir(parents=True)
    (folder / "cleared_bench_noop.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cleared-bench-noop\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[cleared.jobs]\nnoop = cleared_bench_noop:NOOP\n")
    sys.path.append(str(folder))
    os.environ["PYTHONPATH"] = str(folder)
    root = workspace()
    set_setting(host(root), "loop.plugins", "[noop]")
    return root


@contextmanager
def _sleeping(root: Path) -> Iterator[int]:
    """``cleared loop run``, asleep; its process id."""
    process = subprocess.Popen([CLEARED, "loop", "run", "--sleep", "3600"], cwd=root, stderr=subprocess.DEVNULL)
    try:
        runtime = own_runtime(root, open_workspace(root).config)
        while (
            (now := loop_state.peek_state(runtime)) is None
            or now["status"] != "sleeping"
            or find_running_loop(runtime) is None
        ):
            time.sleep(0.02)
        yield process.pid
    finally:
        process.terminate()
        process.wait()
