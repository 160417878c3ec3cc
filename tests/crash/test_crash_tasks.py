"""kill -9 at the steps of a claim, an append, a record and an archive: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from forked import Forks
from harness import Workspace, take_ok
from tasking import Tasks, task

pytestmark = pytest.mark.slow

CLAIM_STEPS = ("ledger-locked", "ledger-mended", "claim-noted", "ledger-written", "ledger-synced", "claim-made")
RECORD_STEPS = (
    "verify-ready",
    "task-noted",
    "objects",
    "index",
    "ref",
    "file",
    "task-committed",
    "ledger-written",
    "task-recorded",
)
ARCHIVE_STEPS = ("task-noted", "ref", "file", "task-committed", "task-recorded")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as found:
        yield found


@pytest.fixture
def tasks(ws: Workspace) -> Tasks:
    return Tasks(ws)


def check(tasks: Tasks) -> None:
    """The ledger is whole, every reader takes it, and what is committed is a beginning of it."""
    assert tasks("check").code == 0, tasks("check")
    if shutil.which("jq"):
        assert subprocess.run(["jq", "-c", ".", str(tasks.ledger)], capture_output=True, check=False).returncode == 0
    assert tasks.ledger.read_text().startswith(tasks.ws.git("show", "HEAD:docs/current/task-status.jsonl"))
    for name, lines in by_task(tasks).items():
        assert lines.count("completed") <= 1 and lines[0] == "pending" and lines.count("pending") <= 2, (name, lines)


def by_task(tasks: Tasks) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in tasks.lines():
        found.setdefault(line["id"], []).append(line["status"])
    return found


def test_kills_of_a_claim(tasks: Tasks, forks: Forks) -> None:
    """G22: a claim is made or not."""
    tasks.planned(*(task(n) for n in range(1, len(CLAIM_STEPS) + 1)))
    for number, step in enumerate(CLAIM_STEPS, 1):
        name = f"T-{number:03d}"
        assert forks.killed_at(tasks.ws.root, ["task-claim", name], step), step
        if tasks.states()[name] == "pending":
            tasks.ok("claim", name)
        assert tasks.states()[name] == "in-progress", step
        tasks.ws.put(f"docs/{name}.txt", "x")
        tasks.ok("done", name)
        check(tasks)


def test_kills_of_a_record(tasks: Tasks, forks: Forks) -> None:
    """G15: a task is completed exactly where its commit is made."""
    tasks.planned(*(task(n) for n in range(1, len(RECORD_STEPS) + 1)))
    for number, step in enumerate(RECORD_STEPS, 1):
        name = f"T-{number:03d}"
        tasks.ok("claim", name)
        tasks.ws.put(f"docs/{name}.txt", "x")
        assert forks.killed_at(tasks.ws.root, ["task-done", name], step), step
        made = step in RECORD_STEPS[RECORD_STEPS.index("ref") :]
        assert tasks.states()[name] == ("completed" if made else "in-progress"), step
        if not made:
            tasks.ok("done", name)
        assert tasks.ws.git("status", "--porcelain", "docs/T*.txt") == "", step
        check(tasks)


def test_kills_of_a_worker(tasks: Tasks, forks: Forks) -> None:
    """G21: the claim of a killed orchestrator is given back, and the task is done by the next one."""
    tasks.planned(task(1), task(2), task(3))
    command = "echo x > docs/$CLEARED_TASK.txt"
    for number, step in enumerate(("task-briefed", "task-worked", "task-committed"), 1):
        name = f"T-{number:03d}"
        assert forks.killed_at(tasks.ws.root, ["task-run", command], step)
        if step != "task-committed":
            assert tasks.ok("next").out == f"{name}\n"
            assert tasks("run", "--command", command, "--max", "1").code in (0, 6)
        assert tasks.states()[name] == "completed"
        check(tasks)


def test_kills_of_workers_side_by_side(tasks: Tasks, forks: Forks) -> None:
    """G21: whichever of two is how far; each task is done once, by this orchestrator or the next."""
    steps = (("task-worked", 2), ("task-noted", 1), ("ref", 2), ("task-committed", 1), ("ledger-written", 2))
    tasks.planned(*(task(n) for n in range(1, 2 * len(steps) + 1)))
    command = "echo x > docs/$CLEARED_TASK.txt"
    for number, (step, nth) in enumerate(steps):
        names = [f"T-{number * 2 + n:03d}" for n in (1, 2)]
        assert forks.killed_at(tasks.ws.root, ["task-run-two", command], step, nth), (step, nth)
        while {tasks.states()[name] for name in names} != {"completed"}:
            assert tasks("run", "--command", command, "--workers", "2", "--max", "1").code in (0, 6), (step, nth)
        states = by_task(tasks)
        for name in names:
            assert states[name].count("completed") == 1 and states[name][-1] == "completed", (step, nth, states)
        assert tasks("check").code == 0 and tasks.ws.git("status", "--porcelain", "docs/T*.txt") == "", (step, nth)


def test_kills_where_an_approval_is_recorded(tasks: Tasks, forks: Forks) -> None:
    """G27: a task that awaited it is completed once."""
    steps = ("task-noted", "ref", "task-committed", "ledger-written", "task-recorded")
    for number, step in enumerate(steps, 1):
        name, path = f"T-{number:03d}", f"src/{number}.sh"
        tasks.planned(task(number, files=[path], verification_command=f"test -s {path}"))
        assert tasks("run", "--command", f"mkdir -p src; echo x > {path}").code == 7
        (card,) = tasks.ws.cards()
        tasks.ws.ok("queue", "answer", card["id"], "merge")
        assert forks.killed_at(tasks.ws.root, ["task-settle"], step), step
        assert tasks.states()[name] == "completed"
        check(tasks)


def test_kills_of_a_plan(tasks: Tasks, forks: Forks) -> None:
    """All of a plan is taken, or nothing; said again it is, without being shown once more."""
    steps = ("tasks-sealed", "task-noted", "ref", "file", "task-committed", "ledger-written")
    for number, step in enumerate(steps, 1):
        names = [number * 2 - 1, number * 2]
        file = tasks.file([task(n) for n in names])
        assert forks.killed_at(tasks.ws.root, ["task-plan", file], step), step
        assert len({n for n in tasks.states() if int(n[2:]) in names}) in (0, 2), step
        tasks.ok("plan", file)
        assert all(tasks.states()[f"T-{n:03d}"] == "pending" for n in names)
        check(tasks)


def test_kills_of_an_archive(tasks: Tasks, forks: Forks) -> None:
    """G24: each task is in one of the two places."""
    done = 0
    for step in ARCHIVE_STEPS:
        names = [f"T-{n:03d}" for n in range(done + 1, done + 12)]
        tasks.planned(*(task(int(name[2:])) for name in names))
        tasks.complete(*names)
        done += 11
        assert forks.killed_at(tasks.ws.root, ["task-archive"], step), step
        assert len(tasks.states()) == done
        tasks.ok("archive")
        files = sorted(path.name for path in (tasks.ws.root / "docs/tasks").iterdir())
        archived = [json.loads(line)["id"] for line in tasks.ws.read("docs/tasks/ARCHIVE.jsonl").splitlines()]
        assert files == [".gitattributes", "ARCHIVE.jsonl"] and sorted(archived) == sorted(tasks.states()), step
        check(tasks)


def test_a_kill_after_the_proposal_leaves_one_to_decide(tasks: Tasks, forks: Forks) -> None:
    """G27: the next orchestrator has the task done again; what it proposes takes the place of what nobody waits for."""
    agent = '"""\\nname: greet\\ntrigger: on_demand\\n"""\\nctx_log("hello")\\n'
    command = f"printf '{agent}' > agents/greet.py; mkdir -p src; echo x > src/a.sh"
    tasks.planned(task(1, files=["agents/greet.py", "src/a.sh"], verification_command="test -s agents/greet.py"))
    assert forks.killed_at(tasks.ws.root, ["task-run", command], "task-proposed")
    assert tasks("run", "--command", command).code == 7 and tasks.states() == {"T-001": "awaiting-approval"}
    kinds = sorted(card["kind"] for card in tasks.ws.cards())
    assert kinds == ["branch", "proposal"], tasks.ws.cards()
    awaits = tasks.lines()[-1]["awaits"]
    take_ok(tasks.ws, "agent", "approve", awaits["proposal"])
    assert tasks.states() == {"T-001": "awaiting-approval"}
    tasks.ws.ok("queue", "answer", awaits["card"], "merge")
    assert tasks.states() == {"T-001": "completed"}
