"""Questions about the past, at size: ``python -m bench --past``. Replay of many runs of many versions, a planted commit
among many runs, and how often a good version would be taken back."""

from __future__ import annotations

import contextlib
import io
import os
import random
import tempfile
import time
from pathlib import Path

from cleared.base.clock import clock_from
from cleared.changes.workspace_opening import open_workspace
from cleared.cli.command_runner import run
from cleared.gate.change_evidence import MAX_BEFORE, ChangeEvidence, RunEvidence, find_reasons
from cleared.gate.replay import replay_run
from cleared.runs.execution import run_agent
from cleared.work.bisection import bisect_runs
from cleared.workspace.settings.model import AutoRevert

_POST = (
    'journal_add_double(date="2025-01-03", description="version {0}", debit_account=5020, credit_account=1010, '
    'amount="{0}.00")\nlen(journal_query(limit=3))'
)


def measure_past(quick: bool) -> str:
    """The figures, as lines of a table."""
    runs, versions = (20, 4) if quick else (500, 20)
    with tempfile.TemporaryDirectory(prefix="cleared-bench-") as name, _environment(Path(name)):
        root = Path(name) / "books"
        _cleared("init", str(root), "--name", "Bench")
        host = open_workspace(root, clock=clock_from("2025-02-10T06:00:00Z"), say=lambda _: None)
        ids = []
        with host.keep_executor():
            for number in range(runs):
                if number % (runs // versions) == 0:
                    _approve(root, number // (runs // versions) + 1)
                ids.append(run_agent(host, "probe").run_id)
            began = time.perf_counter()
            same = sum(replay_run(host, each).is_same for each in ids)
            took = time.perf_counter() - began
        lines = [f"replay: {same} of {runs} runs of {versions} versions the same, {1000 * took / runs:.0f} ms each"]
        lines.append(_bisect(root, 20 if quick else 1_000))
    return "\n".join([*lines, *_judge(50 if quick else 2_000)]) + "\n"


def _bisect(root: Path, count: int) -> str:
    """A planted run among ``count``: which it is is drawn. The commits are empty: what costs is looking for it."""
    from git import Repo

    with Repo(root) as repo:
        good, planted = repo.head.commit.hexsha, random.Random(1).randrange(count)
        for number in range(count):
            marks = f"Run: bench-{number:05}\nAgent: probe\nEvent: on_demand {number}\nClock: 2025-02-10T06:00:00Z"
            if number == planted:
                (root / "planted").write_text("bad")
                repo.index.add(["planted"])
            repo.index.commit(f"agent: probe\n\n{marks}")
    host = open_workspace(root, say=lambda _: None)
    began = time.perf_counter()
    words = ["test", "!", "-e", "planted"]
    found = bisect_runs(host, good, "HEAD", words, seconds=60, on_check=lambda _: None)
    took = time.perf_counter() - began
    right = "found" if found.run == f"bench-{planted:05}" else f"wrong: {found.run}"
    return f"bisect: the planted one of {count} runs {right}, {found.checks} checks, {took:.1f} s"


def _judge(count: int) -> list[str]:
    """How many of ``count`` changes are taken back within 20 runs, by what they do."""
    kinds = {
        "as before": {},
        "twice the cards": {"share": 0.2},
        "three times the cards": {"share": 0.3},
        "fails half the time": {"fails": 0.5},
    }
    return [f"taken back, {name}: {_count_taken(name, count, **does)} of {count}" for name, does in kinds.items()]


def _count_taken(name: str, count: int, share: float = 0.1, fails: float = 0.02) -> int:
    taken = 0
    for number in range(count):
        chance = random.Random(f"{name} {number}")
        before = [_make_run(chance, f"b{n}", 0.1, 0.02) for n in range(MAX_BEFORE)]
        since = [_make_run(chance, f"s{n}", share, fails) for n in range(20)]
        taken += any(find_reasons(ChangeEvidence(before, since[:n]), AutoRevert()) for n in range(1, 21))
    return taken


def _make_run(chance: random.Random, name: str, share: float, fails: float) -> RunEvidence:
    made, failed = chance.randint(5, 40), chance.random() < fails
    cards = 0 if failed else sum(chance.random() < share for _ in range(made))
    return RunEvidence(name, "", f"file-watch {name}", "a@1", failed, 0, cards, made)


def _approve(root: Path, version: int) -> None:
    text = f'"""\nname: Probe\ntrigger: on_demand\n"""\n{_POST.format(version)}\n'
    (root / "agents/probe.py").write_text(text)
    _cleared("agent", "propose", "probe", "-C", str(root))
    told = _cleared("agent", "approve", f"P{version}", "-C", str(root))
    for word in [each for each in told.split() if each.startswith(f"P{version}-")][-1:]:  # where it was not shown yet
        _cleared("agent", "approve", word.rstrip(".,"), "-C", str(root))


def _cleared(*words: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        run(list(words))
    return said.getvalue()


@contextlib.contextmanager
def _environment(folder: Path):  # type: ignore[no-untyped-def]
    """A home of its own, and a fixed clock."""
    ours = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "CLEARED_CLOCK": "2025-02-10T06:00:00Z"}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
