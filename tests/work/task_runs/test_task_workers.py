"""Several tasks at once: side by side where their files do not meet, and the ledger right whatever ends them."""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest
from fake_engine import FakeEngine, result, wait_until
from harness import Workspace
from patience import PATIENCE
from tasking import Tasks, task

pytestmark = pytest.mark.slow

ENGINE = ("run", "--engine", "claude", "--allow-ai", "--workers", "2")
MEET = """
import pathlib, sys, time
home, me = pathlib.Path(sys.argv[1]), pathlib.Path.cwd().name
(home / me).touch()
until = time.monotonic() + 300
while not all((home / each).exists() for each in sys.argv[2:]) and time.monotonic() < until: time.sleep(0.02)
if time.monotonic() < until: pathlib.Path(f"docs/{me}.txt").write_text("x")
"""
"""Writes its file once the others have begun, too."""
ALONE = """
import pathlib, sys, time
home, me = pathlib.Path(sys.argv[1]), pathlib.Path.cwd().name
(home / "busy").open("x").close()
time.sleep(0.3)
pathlib.Path("docs/shared.txt").open("a").write(me)
(home / "busy").unlink()
"""
"""Fails where another one is at work."""


@pytest.fixture
def tasks(ws: Workspace, engine: FakeEngine) -> Tasks:
    ws.config("loop.ai.enabled=true", f"loop.ai.program_folders=[{sys.prefix}, {sys.base_prefix}]")
    return Tasks(ws)


def step(engine: FakeEngine, program: str, *argv: str) -> dict[str, Any]:
    return {"run": ["-c", program, str(engine.folder), *argv], "stdout": result()}


def test_tasks_whose_files_do_not_meet_run_side_by_side(tasks: Tasks, engine: FakeEngine) -> None:
    """Each in a clone of its own; what requires one of them comes after it."""
    tasks.planned(task(1), task(2), task(3, requires=["T-001"]))
    engine.plan(step(engine, MEET, "T-001", "T-002"))
    done = tasks(*ENGINE, "--json")
    assert done.code == 6, done
    assert sorted(t["id"] for t in done.json["tasks"]) == ["T-001", "T-002", "T-003"]
    assert len({call["cwd"] for call in engine.calls}) == 3
    assert tasks("check").code == 0 and tasks.ws("check").code == 0 and tasks.ws.git("status", "--porcelain") == ""
    assert tasks.ws.json("cycle", "status")["total_cost"] == "0.75"


def test_tasks_that_share_a_file_run_one_after_the_other(tasks: Tasks, engine: FakeEngine) -> None:
    """A folder meets what is in it, too."""
    one = {"verification_command": "test -s docs/shared.txt"}
    tasks.planned(*(task(n, files=[path], **one) for n, path in enumerate(["docs/shared.txt", "DOCS/shared.txt"], 1)))
    tasks.ws.ok("config", "set", "tasks.workers", "2")
    engine.plan(step(engine, ALONE))
    done = tasks("run", "--engine", "claude", "--allow-ai", "--json")
    assert done.json["tasks"][0]["status"] == "completed" and len(engine.calls) == 2, done
    assert not (engine.folder / "busy").exists()


def begin_two(tasks: Tasks, engine: FakeEngine) -> Any:
    tasks.planned(task(1), task(2))
    hang = "import pathlib, time; pathlib.Path(r'{}', pathlib.Path.cwd().name).touch(); time.sleep(600)"
    engine.plan({"run": ["-c", hang.format(engine.folder)]})
    process = tasks.ws.start("task", *ENGINE)
    wait_until(lambda: all((engine.folder / name).exists() for name in ("T-001", "T-002")), process)
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_ends_the_orchestrator_frees_all_of_them(tasks: Tasks, engine: FakeEngine, number: int) -> None:
    """G21: by a line each; the next one does them, and nothing is there twice."""
    process = begin_two(tasks, engine)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    engine.plan(step(engine, MEET))
    assert tasks(*ENGINE).code == 6
    for name in ("T-001", "T-002"):
        states = [line["status"] for line in tasks.lines() if line["id"] == name]
        assert states == ["pending", "in-progress", "pending", "in-progress", "completed"], tasks.lines()
    assert tasks("check").code == 0 and tasks.ws.git("status", "--porcelain") == ""


def test_a_limit_gives_all_of_them_back(tasks: Tasks, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMIT_WAIT_SECONDS", "1")
    tasks.planned(task(1), task(2))
    limit = {"stdout": result("You've hit your usage limit. Try again in 1 second.", error=True)}
    engine.plan(limit, limit, step(engine, MEET))
    done = tasks(*ENGINE, "--json")
    assert done.code == 6 and [t["status"] for t in done.json["tasks"]] == ["completed"] * 2, done


def test_most_counts_what_is_on(tasks: Tasks, engine: FakeEngine) -> None:
    tasks.planned(*(task(n) for n in range(1, 5)))
    engine.plan(step(engine, MEET))
    assert tasks(*ENGINE, "--max", "3").code == 0 and sorted(tasks.states().values()).count("completed") == 3


def test_agents_can_work_side_by_side(tasks: Tasks) -> None:
    """Each run in a sandbox of its own, and each a commit."""
    writer = 'task = ctx_event()["payload"]["task"]\n{"files": {task["context"]["files"][0]: task["title"] + "\\n"}}\n'
    tasks.ws.agent("writer", writer)
    tasks.planned(*(task(n) for n in range(1, 5)))
    done = tasks("run", "--agent", "writer", "--workers", "4", "--json")
    assert done.code == 6 and [tasks.ws.read(f"docs/T-00{n}.txt") for n in range(1, 5)] == [
        f"Task {n}\n" for n in range(1, 5)
    ], done
    assert tasks("check").code == 0 and tasks.ws("check").code == 0
