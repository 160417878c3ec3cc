"""Questions about the past at size: replay of many runs of many versions, and a planted run among many."""

from __future__ import annotations

import random
import subprocess
import sys
from functools import cache
from pathlib import Path

from bench.measure import Result, cpu_since, cpu_so_far, seconds
from bench.versions import make_live
from bench.workspaces import NOW, copy, host, workspace
from cleared.gate.manual_runs import run_now
from cleared.gate.replay import replay_run
from cleared.runs.attempt import Event
from cleared.work.bisection import bisect_runs

RUNS = 500
VERSIONS = 20
COMMITS = 1_000
CHECKS = 11
"""More than log₂ of the runs, rounded up, and one for an end."""

_PROBE = '''"""
name: Probe
trigger: on_demand
"""
told = ctx_event()["payload"] or 0
journal_add_double(date=ctx_today(), description="version {0}", debit_account=5020, credit_account=1010,
    amount="{0}.00", status="auto-confirmed", confidence=0.99, evidence="probe")
len(journal_query(limit=3)) + told
'''


class _Opened:
    """The paths that are opened below a folder while it is watched."""

    def __init__(self) -> None:
        self.folder, self.paths = "", list[str]()
        sys.addaudithook(self._notice)

    def _notice(self, event: str, args: tuple[object, ...]) -> None:
        if self.folder and event == "open" and isinstance(args[0], str) and args[0].startswith(self.folder):
            path = args[0][len(self.folder) + 1 :]
            if not path.startswith((".git", ".cleared")):
                self.paths.append(path)


@cache
def _opened() -> _Opened:
    return _Opened()  # a hook cannot be taken out again


def replays(quick: bool) -> Result:
    """Every run once more, long after its version was replaced: is it the same, and is anything of today opened?"""
    runs, versions = (8, 2) if quick else (RUNS, VERSIONS)
    root, opened = workspace(), _opened()
    at, ids, began = host(root), list[str](), cpu_so_far()
    spent = 0.0
    with at.keep_executor():
        for number in range(runs):
            if number % (runs // versions) == 0:
                make_live(at, "probe", _PROBE.format(number // (runs // versions) + 1))
                began = cpu_so_far()
            ids.append(run_now(at, "probe", event=Event(payload=number)).run_id)
            if number % (runs // versions) == runs // versions - 1:
                spent += cpu_since(began)
        opened.folder, opened.paths = str(root), []
        began = cpu_so_far()
        same = sum(replay_run(at, each).is_same for each in ids)
        took = cpu_since(began)
        opened.folder = ""
    read = len(opened.paths)
    return Result(
        f"replay of {runs} runs of {versions} versions / the runs themselves, processor time",
        f"{same} the same, {read} host reads, {seconds(took / runs)} each",
        seconds(spent / runs),
        took / spent,
        "all the same, 0 reads",
        same == runs and not read,
    )


def bisecting(quick: bool) -> Result:
    """A planted run; which it is is drawn. The commits are empty: what costs is looking for it."""
    count = 20 if quick else COMMITS
    root, planted = workspace(), random.Random(1).randrange(count)
    good = _git(root, "rev-parse", "HEAD")
    _commit_runs(root, count, planted)
    check = ["test", "!", "-e", "planted"]
    began = cpu_so_far()
    found = bisect_runs(host(root), good, "HEAD", check, seconds=60, on_check=lambda _: None)
    ours = cpu_since(began)
    other = copy(root)
    began = cpu_so_far()
    _git(other, "bisect", "start", "HEAD", good)
    said = _git(other, "bisect", "run", *check)
    theirs = cpu_since(began)
    is_right = found.run == _name_run(planted) and f"Run: {_name_run(planted)}" in said
    return Result(
        f"bisect, a planted one of {count} runs / git bisect run, processor time",
        f"{'found' if is_right else 'wrong'}, {found.checks} checks, {seconds(ours)}",
        seconds(theirs),
        ours / theirs,
        f"≤ {CHECKS} checks",
        is_right and found.checks <= CHECKS,
    )


def _name_run(number: int) -> str:
    return f"bench-{number:05}"


def _commit_runs(root: Path, count: int, planted: int) -> None:
    """So many commits that say they are of runs; from the planted one on there is a file."""
    lines = []
    for number in range(count):
        marks = f"Run: {_name_run(number)}\nAgent: probe\nEvent: on_demand {number}\nClock: 2025-12-31T12:00:00Z\n"
        message = f"agent: probe\n\n{marks}"
        lines.append(
            f"commit refs/heads/main\ncommitter bench <bench@localhost> {int(NOW.timestamp()) + number} +0000\n"
            f"data {len(message)}\n{message}"
            + ("from refs/heads/main^0\n" if not number else "")
            + ("M 100644 inline planted\ndata 4\nbad\n\n" if number == planted else "\n")
        )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input="".join(lines), text=True, check=True)
    _git(root, "reset", "--quiet", "--hard")


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
