"""``cleared work``: jobs, cycles and tasks are one list, with what is next and why it waits, and have one end."""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta

import pytest
from fake_engine import FakeEngine, begin_hanging, good, is_gone, result, wait_until
from harness import Workspace
from patience import PATIENCE
from running import Up, eventually
from tasking import Tasks, task

pytestmark = pytest.mark.slow


@pytest.fixture
def working(cyc: Workspace, engine: FakeEngine) -> Workspace:
    """The settings name the engine, as a loop is given none."""
    cyc.config("loop.ai.engine=claude", f"loop.ai.claude_bin={engine.binary}")
    return cyc


def rows(ws: Workspace, kind: str) -> list[tuple[str, str]]:
    """State and reason of what is listed of a kind."""
    return [(row["state"], row["why"]) for row in ws.json("work")["work"] if row["kind"] == kind]


def running(ws: Workspace) -> list[str]:
    return [each["works_on"] for each in ws.json("work", "status")["runners"] if each["up"]]


def pass_time(monkeypatch: pytest.MonkeyPatch, hours: float) -> str:
    now = datetime.fromisoformat(os.environ["CLEARED_CLOCK"]) + timedelta(hours=hours)
    monkeypatch.setenv("CLEARED_CLOCK", now.isoformat())
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def run_loop(ws: Workspace, *more: str, cycles: int = 1) -> None:
    ws.ok("loop", "run", "--sleep", "0", "--max-cycles", str(cycles), "--allow-ai", *more)


def test_all_work_is_one_list(working: Workspace, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = working
    assert ws.json("work")["work"] == [] and running(ws) == []
    assert "Nothing waits" in ws.ok("work").out
    tasks = Tasks(ws)
    tasks.planned(task(1), task(2, requires=["T-001"]), task(3))
    tasks.ok("claim", "T-003")
    tasks.ok("fail", "T-003", "--summary", "no good")
    ready, waits, failed = rows(ws, "task")
    assert ready == ("ready", "nobody works on tasks: cleared task run, or cleared loop enqueue task_turn")
    assert waits == ("waits", "it requires T-001 (pending)")
    assert failed == ("failed", "no good; try it again: cleared task retry T-003")
    ws.ok("loop", "enqueue", "books_check")
    assert rows(ws, "job") == [("queued", "no loop runs: cleared up --work, or cleared loop start")]
    ends = datetime.fromisoformat(os.environ["CLEARED_CLOCK"]) + timedelta(hours=2)
    words = f"Claude AI usage limit reached|{int(ends.timestamp())}"
    engine.plan({"stdout": result(words, error=True), "exit": 1}, good())
    run_loop(ws, "--enqueue", "ai_cycle", cycles=2)
    (cycle,) = [row for row in ws.json("work")["work"] if row["kind"] == "cycle"]
    assert (cycle["state"], cycle["next_at"], cycle["why"]) == ("waiting_limit", f"{ends:%Y-%m-%dT%H:%M:%SZ}", words)
    (job,) = [row for row in ws.json("work")["work"] if row["kind"] == "job"]
    assert job["next_at"] == cycle["next_at"] and job["title"].startswith("ai_cycle")
    assert words in ws.ok("work").out and "waiting_limit" in ws.ok("cycle", "status").out
    ws.ok("work", "pause")
    assert rows(ws, "cycle") == [("paused", "paused: cleared work resume")]
    pass_time(monkeypatch, 3)
    run_loop(ws)
    assert len(engine.calls) == 1, "paused is paused"
    ws.ok("work", "resume")
    run_loop(ws)
    assert len(engine.calls) == 2
    lines = ws.ok("work", "log", "-n", "100").out.splitlines()
    times = [line.lstrip("[")[:20] for line in lines]
    assert times == sorted(times) and any("T-003 failed: no good" in line for line in lines)
    assert any("ai_cycle_2 succeeded" in line for line in lines) and any("cycle 2: ok" in line for line in lines), lines
    with (ws.root / "docs/current/task-status.jsonl").open("a") as ledger:
        ledger.write('[1]\nnone\n{"id": 7}\n')
    assert ws("work", "log").code == 0


def test_one_stop_ends_all(working: Workspace, engine: FakeEngine) -> None:
    """The engine and the worker that are on end with --now; without, all are asked, and nothing further begins."""
    ws = working
    Tasks(ws).planned(task(1), task(2))
    engine.plan({"hang": True})
    cycles = begin_hanging(ws, engine)
    worker = ws.start("task", "run", "--command", "echo x > docs/T-001.txt; sleep 600")
    wait_until(lambda: running(ws) == ["cycles", "tasks"] and rows(ws, "task")[0][0] == "in-progress", worker)
    done = ws("work", "stop", "--wait", "0.2")
    assert done.code == 5 and "a run of tasks" in done.err and "cleared work stop --now" in done.err, done
    assert running(ws) == ["cycles", "tasks"]
    said = ws.ok("work", "stop", "--now").err
    assert "It has ended." in said and "The run of tasks has ended" in said and "No loop of jobs runs here" in said
    assert cycles.wait(PATIENCE) == 0 and worker.wait(PATIENCE) == 130 and running(ws) == []
    assert [state for state, _ in rows(ws, "task")] == ["ready", "ready"], "given back"
    assert ws.ok("work", "stop").err.splitlines()[-1] == "No tasks are run here."


def test_a_run_of_tasks_ends_after_its_task(working: Workspace) -> None:
    ws = working
    Tasks(ws).planned(task(1), task(2))
    (ws.root / ".cleared/task-run.stop").write_text("")  # of a request that nobody was there for
    worker = ws.start(
        "task", "run", "--command", "echo x > docs/T-001.txt; until test -e docs/go; do :; done; rm docs/go"
    )
    wait_until(lambda: (ws.root / ".cleared/task-work/T-001/docs/T-001.txt").exists(), worker)
    assert ws("work", "stop", "--wait", "0").code == 5
    (ws.root / ".cleared/task-work/T-001/docs/go").write_text("")
    said = worker.communicate(timeout=PATIENCE)
    assert [row["status"] for row in ws.json("task", "list")] == ["completed", "pending"], said
    assert worker.returncode == 0


def test_up_carries_the_loop(up: Up) -> None:
    """It is up as long as the service is, started again where it is killed, and not where somebody ended it."""
    ws = up.ws
    up.start("--work")
    eventually(lambda: "jobs" in running(ws))
    assert set(running(ws)) == {"agents", "jobs"}
    job = ws.ok("loop", "enqueue", "books_check").out.strip()
    eventually((ws.root / f".cleared/loop/jobs/{job}.result.json").exists)
    loop = ws.json("loop", "status")["pid"]
    os.kill(loop, signal.SIGKILL)
    eventually(lambda: is_gone(loop))
    second = ws("up", "--work")
    assert second.code == 5 and "cleared down" in second.err and up.process is not None
    os.utime(ws.put("import/wake.csv", ""))  # the service looks around when something is dropped
    eventually(lambda: ws.json("loop", "status")["pid"] not in (None, loop))
    assert up.stop()[0] == 0
    assert running(ws) == [], "who is no longer up carries nothing"
