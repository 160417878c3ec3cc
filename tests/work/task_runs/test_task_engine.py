"""A coding engine as the worker of tasks: the story of both protocols in one."""

from __future__ import annotations

import json
import signal
import sys

import pytest
from fake_engine import FakeEngine, result, start, wait_until
from harness import Workspace, take_ok, unchanged
from patience import PATIENCE
from running import has_ended
from tasking import Tasks, task

pytestmark = pytest.mark.slow

AGENT = '"""\nname: greet\ntrigger: on_demand\n"""\nctx_log("hello")\n'


@pytest.fixture
def tasks(ws: Workspace, engine: FakeEngine) -> Tasks:
    ws.config("loop.ai.enabled=true", f"loop.ai.program_folders=[{sys.prefix}, {sys.base_prefix}]")
    return Tasks(ws)


def work(files: dict[str, str], text: str = "did it") -> dict[str, object]:
    return {"write": files, "stdout": result(text)}


def test_three_tasks_by_an_engine_one_retried_its_script_approved_and_live(tasks: Tasks, engine: FakeEngine) -> None:
    """G15, F38: what the engine claims counts for nothing; its script is live once a person approved it."""
    tasks.planned(
        task(1),
        task(2, requires=["T-001"], verification_command="grep -q right docs/T-002.txt"),
        task(3, requires=["T-002"], files=["agents/greet.py"], verification_command="grep -q hello agents/greet.py"),
    )
    engine.plan(
        work({"docs/T-001.txt": "one\n"}),
        work({"docs/T-002.txt": "wrong\n"}, "all is right"),
        work({"docs/T-002.txt": "right\n"}),
        work({"agents/greet.py": AGENT}),
    )
    argv = ("run", "--engine", "claude", "--allow-ai", "--json")
    first = tasks(*argv)
    assert first.code == 7, first
    assert [t["status"] for t in first.json["tasks"]] == ["completed", "failed"]
    tasks.ok("retry", "T-002", "--summary", "Write right, not wrong")
    second = tasks(*argv)
    assert second.code == 7, second
    assert [t["status"] for t in second.json["tasks"]] == ["completed", "awaiting-approval"]
    assert not (tasks.ws.root / "agents/greet.py").exists()
    (card,) = tasks.ws.json("queue", "list")
    assert card["kind"] == "proposal" and "engine claude" in json.dumps(card["details"])
    take_ok(tasks.ws, "agent", "approve", second.json["tasks"][1]["proposal"])
    assert tasks.ws.run("greet")["status"] == "succeeded" and tasks("next").code == 6
    third = engine.calls[2]["prompt"].partition("## What came of the last try")[2]
    assert (
        "Write right, not wrong" in third and "exit code 1" in third and "What came of" not in engine.calls[3]["prompt"]
    )
    prompt = engine.calls[1]["prompt"]
    assert "T-002" in prompt and "grep -q right" in prompt and len(engine.calls) == 4
    assert all(call["cwd"] != str(tasks.ws.root) for call in engine.calls)


@pytest.mark.parametrize(
    "step",
    [
        {"exit": 3},
        {"stdout": result(permission_denials=[{"tool_name": "Bash"}])},
    ],
)
def test_an_engine_that_fails_fails_the_task(tasks: Tasks, engine: FakeEngine, step: dict[str, object]) -> None:
    tasks.planned(task(1))
    engine.plan({"write": {"docs/T-001.txt": "one\n"}, **step})
    done = tasks("run", "--engine", "claude", "--allow-ai", "--json")
    assert [t["status"] for t in done.json["tasks"]] == ["failed"], done
    assert not (tasks.ws.root / "docs/T-001.txt").exists()


def test_a_usage_limit_waits_and_fails_no_task(
    tasks: Tasks, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G28"""
    monkeypatch.setenv("LIMIT_WAIT_SECONDS", "1")
    tasks.planned(task(1))
    engine.plan(
        {"stdout": result("You've hit your usage limit. Try again in 1 second.", error=True)},
        work({"docs/T-001.txt": "one\n"}),
    )
    done = tasks("run", "--engine", "claude", "--allow-ai", "--json")
    assert done.code == 6 and [t["status"] for t in done.json["tasks"]] == ["completed"], done
    assert "waiting: usage limit until 2025-02-10T06:00:01Z" in done.err and len(engine.calls) == 2


def test_failures_in_a_row_cool_down(tasks: Tasks, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """WORK 2: as of cycles, with their settings; a task between that goes well counts anew."""
    monkeypatch.setenv("MAX_CONSECUTIVE_ERRORS", "2")
    monkeypatch.setenv("COOLDOWN_SECONDS", "1")
    tasks.planned(*(task(n) for n in range(1, 6)))
    engine.plan({"exit": 1}, work({"docs/T-002.txt": "x"}), {"exit": 1}, {"exit": 1}, work({"docs/T-005.txt": "x"}))
    done = tasks("run", "--engine", "claude", "--allow-ai", "--json")
    assert [t["status"] for t in done.json["tasks"]] == ["failed", "completed", "failed", "failed", "completed"], done
    assert done.err.count("waiting: cooling down until 2025-02-10T06:00:01Z: 2 failures in a row") == 1, done


def test_cycles_and_tasks_spend_from_one_purse(tasks: Tasks, engine: FakeEngine) -> None:
    """WORK 2: the cost cap counts both; at the cap neither starts an engine, and no task fails."""
    tasks.ws.config("loop.ai.cost_cap=0.5")
    tasks.planned(*(task(n) for n in range(1, 4)))
    engine.plan(*(work({f"docs/T-00{n}.txt": "x"}) for n in range(1, 4)))
    done = tasks("run", "--engine", "claude", "--allow-ai", "--json")
    (reason,) = done.json["reasons"]
    assert done.code == 7 and reason.startswith("the cost cap of 0.5 USD is reached (0.50 spent); raise it"), done
    assert tasks.states() == {"T-001": "completed", "T-002": "completed", "T-003": "pending"}
    assert tasks.ws.json("cycle", "status")["total_cost"] == "0.50"
    again = tasks("run", "--engine", "claude", "--allow-ai", "--json")
    assert again.code == 7 and again.json["tasks"] == []
    tasks.ws.ok("cycle", "reset-consensus", "--yes")
    assert tasks.ws.git("status", "--porcelain") == "", "no cycles are run here"
    assert tasks("run", "--engine", "claude", "--allow-ai").code == 6 and len(engine.calls) == 3
    tasks.ws.config("loop.ai.cost_cap=0.25")
    tasks.ws.ok("cycle", "init")
    cycle = start(tasks.ws, engine)
    assert cycle.code == 1 and "the cost cap of 0.25 USD is reached" in cycle.err and len(engine.calls) == 3, cycle


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_a_stopped_engine_has_used_counts(tasks: Tasks, engine: FakeEngine, workers: str) -> None:
    """Else whoever stops and starts again spends past the cap."""
    tasks.planned(task(1))
    engine.plan({"stdout": result(cost=0.25), "hang": True})
    run = tasks.ws.start("task", "run", "--engine", "claude", "--allow-ai", "--workers", workers)
    wait_until(lambda: (engine.folder / "hangs").exists(), run)
    state = tasks.ws.root / ".cleared"  # what it printed was taken: nobody counts what was not
    wait_until(lambda: any(b"0.25" in f.read_bytes() for f in state.rglob("T-001*") if f.is_file()), run)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=PATIENCE)
    assert tasks.states() == {"T-001": "pending"}
    assert tasks.ws.json("cycle", "status")["total_cost"] == "0.25"


def test_the_loops_turns_wait_for_the_account(tasks: Tasks, engine: FakeEngine) -> None:
    """WORK 2: the loop starts no engine before the time that the account named, nor does its rotation."""
    tasks.ws.config("tasks.engine=claude", "loop.rotation=[task_turn]")
    tasks.planned(task(1))
    engine.plan({"stdout": result("You've hit your usage limit. Try again in 2 hours.", error=True)})
    tasks.ws.ok("loop", "run", "--once", "--enqueue", "task_turn", "--allow-ai")
    tasks.ws.ok("loop", "run", "--max-cycles", "3", "--sleep", "0", "--auto-rotate", "--allow-ai")
    assert len(engine.calls) == 1 and tasks.states() == {"T-001": "pending"}
    tasks.ws.ok("loop", "enqueue", "task_turn")
    (waiting,) = tasks.ws.json("loop", "status")["queued"]
    assert waiting["not_before"] == "2025-02-10T08:00:00Z"


def test_the_loops_turns_end_where_a_person_is_needed(tasks: Tasks, engine: FakeEngine) -> None:
    """WORK 2: the job fails, and the next turn waits an hour: neither a task nor the loop fails by it."""
    tasks.ws.config("tasks.engine=claude", "loop.rotation=[task_turn]", "loop.max_failures=1")
    tasks.planned(task(1))
    engine.plan({"stdout": result("Invalid API key", error=True, api_error_status=401)})
    tasks.ws.ok("loop", "run", "--max-cycles", "3", "--sleep", "0", "--auto-rotate", "--allow-ai")
    assert len(engine.calls) == 1 and tasks.states() == {"T-001": "pending"}
    assert "needs a person" in tasks.ws.json("loop", "status")["last_job"]["summary"]
    tasks.ws.ok("loop", "enqueue", "task_turn")
    (waiting,) = tasks.ws.json("loop", "status")["queued"]
    assert waiting["not_before"] == "2025-02-10T07:00:00Z"


def test_an_engine_that_is_not_there_fails_no_task(
    tasks: Tasks, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.planned(task(1))
    monkeypatch.setenv("CLAUDE_BIN", "no-such-program")
    done = tasks("run", "--engine", "claude", "--allow-ai")
    assert done.code == 4 and "is not installed" in done.err and tasks.states() == {"T-001": "pending"}, done


@pytest.mark.parametrize("said", ["Your organization has been disabled", "Invalid API key"])
def test_an_account_that_needs_a_person_ends_it(tasks: Tasks, engine: FakeEngine, said: str) -> None:
    tasks.planned(task(1), task(2))
    engine.plan({"stdout": result(said, error=True, api_error_status=401)})
    done = tasks("run", "--engine", "claude", "--allow-ai", "--json")
    assert done.code == 7 and done.json["tasks"] == [] and len(engine.calls) == 1, done
    assert done.json["reasons"] == [f"the account needs a person: {said}"]
    assert [row["status"] for row in tasks.ok("list", "--json").json] == ["pending", "pending"]


def test_the_loop_takes_a_turn_with_an_engine(tasks: Tasks, engine: FakeEngine) -> None:
    """F39: no fence but the engine's; a loop that was not started for it refuses it, and so do the settings."""
    tasks.ws.config("tasks.engine=claude")
    tasks.planned(task(1))
    engine.plan(work({"docs/T-001.txt": "one\n"}))
    refusal = tasks.ws("loop", "run", "--once", "--enqueue", "task_turn")
    assert refusal.code == 3 and "--allow-ai" in refusal.err and engine.calls == []
    done = tasks.ws("loop", "run", "--once", "--enqueue", "task_turn", "--allow-ai")
    assert done.code == 0 and tasks.states() == {"T-001": "completed"}, done
    tasks.ws.config("loop.ai.enabled=false")
    assert tasks.ws("loop", "enqueue", "task_turn").code == 3
    tasks.ws.config("loop.rotation=[task_turn]")
    done = tasks.ws("loop", "run", "--max-cycles", "2", "--sleep", "0", "--auto-rotate", "--allow-ai")
    assert done.code == 3 and tasks.ws.json("loop", "status")["status"] == "stopped"


def test_an_engine_ends_with_the_orchestrator(tasks: Tasks, engine: FakeEngine) -> None:
    """G21: killed while its engine works; nothing of the engine is left, and the claim is recovered."""
    tasks.planned(task(1))
    engine.plan({"hang": True, "ignore_term": True, "grandchild": "detached"}, work({"docs/T-001.txt": "one\n"}))
    run = tasks.ws.start("task", "run", "--engine", "claude", "--allow-ai")
    wait_until(lambda: (engine.folder / "hangs").exists(), run)
    run.kill()
    run.communicate(timeout=PATIENCE)
    left = [engine.folder / name for name in ("grandchild", "hangs")]
    wait_until(lambda: all(has_ended(mark) for mark in left))
    assert tasks("run", "--engine", "claude", "--allow-ai").code == 6


def test_a_killed_verification_leaves_no_tree(tasks: Tasks) -> None:
    """The next one removes it, and none that somebody else is at."""
    tasks.planned(task(1), task(2, verification_command="test -s docs/T-002.txt && sleep 600"))
    trees = tasks.ws.root / ".cleared/task-trees"
    for name in ("T-001", "T-002"):
        tasks.ws.put(f"docs/{name}.txt", "done\n")
    verifying = [tasks.ws.start("task", "verify", "T-002") for _ in range(2)]
    wait_until(lambda: len(list(trees.glob("T-002-*/docs/T-002.txt"))) == 2)
    verifying[0].kill()
    verifying[0].communicate(timeout=PATIENCE)
    tasks.ok("verify", "T-001")
    (left,) = trees.iterdir()
    assert left.name.endswith(f"-{verifying[1].pid}")
    verifying[1].kill()
    verifying[1].communicate(timeout=PATIENCE)


def test_f39_an_engine_needs_the_opt_in_of_cycles(tasks: Tasks, engine: FakeEngine) -> None:
    tasks.planned(task(1))
    with unchanged(tasks.ws):
        assert tasks("run", "--engine", "claude").code == 3
        assert tasks("run", "--engine", "claude", "--allow-ai", "--agent", "ingest").code == 2
    tasks.ws.config("loop.ai.enabled=false")
    with unchanged(tasks.ws):
        assert tasks("run", "--engine", "claude", "--allow-ai").code == 3
    assert engine.calls == []


def test_half_a_character_in_its_last_words_is_said_as_far_as_it_can(tasks: Tasks, engine: FakeEngine) -> None:
    """JSON can name it, and no file can hold it: the run ended with a traceback, and no further task was done."""
    tasks.planned(task(1), task(2))
    words = "\ud800 so far"
    engine.plan({"stdout": result(words, error=True), "exit": 1}, work({"docs/T-002.txt": "x"}, words))
    done = tasks("run", "--engine", "claude", "--allow-ai")
    assert done.code == 7 and done.out == "T-001 failed\nT-002 completed\n", done
    assert tasks.states() == {"T-001": "failed", "T-002": "completed"}
    assert tasks.lines()[-1]["summary"] == "? so far" and tasks.ws.ok("check").code == 0
