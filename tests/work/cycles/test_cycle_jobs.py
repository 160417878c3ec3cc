"""AI cycles as jobs of ``cleared loop``: the job type ``ai_cycle``, its opt-in, its waits, its failures, its end.

The clock stands still, engines and processes are real."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from fake_engine import FakeEngine, begin_hanging, good, is_gone, result, start, wait_until
from harness import Workspace, unchanged
from patience import PATIENCE
from running import has_ended

from cleared.base.clock import FixedClock
from cleared.changes.workspace_opening import open_workspace
from cleared.work.cycles.cycle_jobs import read_pace
from cleared.work.cycles.cycle_loop import CycleLoop
from cleared.work.cycles.cycle_settings import read_cycle_settings
from cleared.work.cycles.cycle_state import read_state, write_state

pytestmark = pytest.mark.slow


@pytest.fixture
def looped(cyc: Workspace, engine: FakeEngine) -> Workspace:
    """The settings name the engine, as a loop is given none."""
    cyc.config("loop.ai.engine=claude", f"loop.ai.claude_bin={engine.binary}")
    return cyc


def run(ws: Workspace, *flags: str, cycles: int = 1, code: int = 0) -> str:
    """Run the loop, which may run AI cycles; what it says."""
    done = ws("loop", "run", "--sleep", "0", "--max-cycles", str(cycles), "--allow-ai", *flags)
    assert done.code == code, done
    return done.err


def jobs(ws: Workspace) -> list[tuple[str, str, str]]:
    rows = json.loads((ws.root / ".cleared/loop/single_agent_state.json").read_bytes())["jobs"]
    return [(row["kind"], row["by"], row["status"]) for row in rows]


def waiting(ws: Workspace) -> list[dict[str, Any]]:
    queued: list[dict[str, Any]] = ws.json("loop", "status")["queued"]
    return queued


def at(seconds: float) -> str:
    return (now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def now() -> datetime:
    return datetime.fromisoformat(os.environ["CLEARED_CLOCK"])


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setenv("CLEARED_CLOCK", (now() + timedelta(seconds=seconds)).isoformat())


def test_a_cycle_as_a_job(looped: Workspace, engine: FakeEngine) -> None:
    """F38, F27: what the engine changed is proposed, never live; the next cycle waits as a job; a stop ends that."""
    script = looped.read("agents/review_reminder.py").replace("Nothing waits for review", "Nothing waits")
    engine.plan(good("New.", write={"agents/review_reminder.py": script}))
    run(looped, "--enqueue", "ai_cycle")
    last = read_state(looped.root)["last_cycle"]
    assert (last["outcome"], bool(last["proposal"])) == ("ok", True)
    assert looped.read("agents/review_reminder.py") != script and "New." in looped.read("memories/consensus.md")
    environment = engine.calls[0]["environment"]
    assert environment["HOME"] == os.environ["HOME"] and "CLEARED_JOB" not in environment
    assert jobs(looped) == [("ai_cycle", "person", "succeeded")]
    assert "runs any command in its clone" in looped.ok("loop", "show", looped.json("loop", "jobs")[1]["job_id"]).out
    (following,) = waiting(looped)
    assert (following["by"], following["not_before"]) == ("follow-up", at(30))
    assert f"ai_cycle (not before {at(30)})" in looped.ok("loop", "status").out
    assert looped.json("cycle", "status")["status"] == "sleeping"
    assert not (looped.root / ".auto-loop-claude.pid").exists()
    manifest = looped.json("loop", "show", looped.json("loop", "status")["last_job"]["job_id"])["manifest"]
    assert manifest["timeout_sec"] == 1800 + 900
    assert "does not begin" in looped.ok("cycle", "stop").err
    run(looped)
    assert jobs(looped)[1:] == [("ai_cycle", "follow-up", "succeeded")] and waiting(looped) == []
    assert len(engine.calls) == 1 and read_state(looped.root)["status"] == "stopped"


def test_other_jobs_run_while_a_cycle_waits(
    looped: Workspace, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F15, F29: a usage limit is a not-before time; so is nothing held up by it, and a pause holds the cycle longer."""
    engine.plan({"stdout": result("You've hit your usage limit", error=True), "exit": 1}, good())
    looped.ok("loop", "enqueue", "ai_cycle")
    looped.ok("loop", "enqueue", "git_status_summary")
    run(looped, cycles=4)
    assert jobs(looped) == [("ai_cycle", "person", "failed"), ("git_status_summary", "person", "succeeded")]
    assert [item["not_before"] for item in waiting(looped)] == [at(3600)]
    state = looped.json("cycle", "status")
    assert (state["status"], state["until"], state["consecutive_errors"]) == ("waiting_limit", at(3600), 0)
    pass_time(monkeypatch, 3601)
    looped.ok("cycle", "pause")
    run(looped)
    assert waiting(looped)[0]["is_held"] and looped.json("cycle", "status")["status"] == "paused"
    looped.ok("cycle", "resume")
    monkeypatch.setenv("CLEARED_ALLOW_AI", "1")
    assert looped("loop", "run", "--once").code == 0
    assert jobs(looped)[2:] == [("ai_cycle", "follow-up", "succeeded")] and len(engine.calls) == 2


def test_f39_the_job_needs_both_permissions(looped: Workspace, engine: FakeEngine) -> None:
    """F39: refused without the approved setting, and by a loop that was not started with --allow-ai."""
    refusal = looped("loop", "run", "--once", "--enqueue", "ai_cycle")
    assert refusal.code == 3 and "--allow-ai" in refusal.err and "CLEARED_ALLOW_AI=1" in refusal.err
    looped.ok("loop", "init")
    looped.config("loop.ai.enabled=false")
    with unchanged(looped):
        refusal = looped("loop", "enqueue", "ai_cycle")
        assert refusal.code == 3 and "loop.ai.enabled" in refusal.err and "config set" in refusal.err
    assert engine.calls == [] and jobs(looped) == []


def test_f13_failures_count_for_the_breaker_alone(
    looped: Workspace, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F13: the loop does not stop for them; the breaker opens, cools down, and begins anew."""
    looped.config("loop.max_failures=1", "loop.ai.max_consecutive_errors=1")
    engine.plan({"exit": 1}, good())
    run(looped, "--enqueue", "ai_cycle", cycles=2)
    assert [row[2] for row in jobs(looped)] == ["failed"]
    status = looped.json("loop", "status")
    assert status["stop"] is None and status["failures"] == {} and status["queued"][0]["not_before"] == at(300)
    assert (read_state(looped.root)["status"], read_state(looped.root)["consecutive_errors"]) == ("cooldown", 1)
    pass_time(monkeypatch, 301)
    run(looped)
    assert jobs(looped)[-1][2] == "succeeded" and read_state(looped.root)["consecutive_errors"] == 0


def test_f24_the_engine_ends_with_a_killed_loop(looped: Workspace, engine: FakeEngine) -> None:
    """F24, F26: nothing of it is left, and the next loop goes on; meanwhile nobody else begins a cycle."""
    engine.plan({"hang": True, "ignore_term": True, "grandchild": "detached"}, good())
    looped.ok("loop", "enqueue", "ai_cycle")
    loop = looped.start("loop", "run", "--allow-ai")
    wait_until(lambda: (engine.folder / "hangs").exists(), loop)
    assert start(looped, engine).code == 5
    left = [read_state(looped.root)["pid"], looped.json("loop", "status")["running"]["pid"]]
    loop.kill()
    loop.communicate(timeout=PATIENCE)
    marks = [engine.folder / name for name in ("grandchild", "hangs")]
    wait_until(lambda: all(is_gone(pid) for pid in left) and all(has_ended(mark) for mark in marks))
    assert "the cycle before was cut off" in run(looped)
    assert [row[2] for row in jobs(looped)] == ["failed", "failed"] and len(engine.calls) == 1
    assert (read_state(looped.root)["status"], read_state(looped.root)["consecutive_errors"]) == ("sleeping", 1)
    assert waiting(looped)[0]["by"] == "follow-up"


def test_f26_one_cycle_at_a_time(looped: Workspace, engine: FakeEngine) -> None:
    """F26, F25: a job waits while ``cycle start`` runs; ``cycle stop --now`` ends the engine of a job too."""
    engine.plan({"hang": True})
    foreground = begin_hanging(looped, engine)
    run(looped, "--enqueue", "ai_cycle")
    assert jobs(looped) == [] and waiting(looped)[0]["is_held"]
    looped.ok("cycle", "stop", "--now")
    foreground.communicate(timeout=PATIENCE)
    (engine.folder / "hangs").unlink()
    loop = looped.start("loop", "run", "--once", "--allow-ai")
    wait_until(lambda: (engine.folder / "hangs").exists(), loop)
    assert "It has ended" in looped.ok("cycle", "stop", "--now").err
    loop.communicate(timeout=PATIENCE)
    assert has_ended(engine.folder / "hangs")
    assert jobs(looped) == [("ai_cycle", "person", "failed")] and waiting(looped) == []
    assert read_state(looped.root)["status"] == "stopped"


def test_cycles_of_jobs_end(looped: Workspace, engine: FakeEngine) -> None:
    """``loop.ai.max_cycles``, the cost cap and a disabled account end them, and so does what a person must see to."""
    looped.config("loop.ai.max_cycles=2")
    host = open_workspace(looped.root, clock=FixedClock(now()), say=lambda text: None)

    def cycle(*, is_follow_up: bool = True, **flags: Any) -> tuple[bool, str]:
        settings = read_cycle_settings(host.config, flags, {})
        return CycleLoop(host, settings, engine.binary).run_one(is_follow_up=is_follow_up)

    engine.plan(good("A"), good("B"), {"stdout": result("Your organization is disabled", error=True)})
    assert cycle(is_follow_up=False)[0] and read_pace(looped.root).goes_on_since == now()
    assert cycle()[0] and read_pace(looped.root).goes_on_since is None
    assert read_state(looped.root)["reason"] == "the last of 2 cycles is done"
    assert cycle() == (True, "the cycles have ended meanwhile; none was run") and len(engine.calls) == 2
    assert cycle(is_follow_up=False, max_cycles=9, cost_cap=Decimal("0.5"))[1].startswith("failed: the cost cap")
    went_well, summary = cycle(is_follow_up=False)
    assert not went_well and "needs a person" in summary and read_state(looped.root)["status"] == "failed"
    for status, goes_on in (("running", True), ("stopping", False)):
        write_state(looped.root, read_state(looped.root) | {"status": status, "pid": 2, "pid_started": "killed"})
        assert (read_pace(looped.root).goes_on_since is not None) == goes_on
    (looped.root / ".auto-loop-state").write_text("[]")
    assert read_pace(looped.root).not_before is None


def test_a_job_that_cannot_begin_ends_the_cycles(looped: Workspace, engine: FakeEngine) -> None:
    """F3, F6: without its prompt or its program no cycle follows, and the state says why."""
    write_state(looped.root, read_state(looped.root) | {"status": "sleeping", "until": at(-1), "updated_at": at(-1)})
    engine.binary.unlink()
    looped.config("loop.max_failures=1")
    said = run(looped, "--enqueue", "ai_cycle", cycles=2)
    assert "is not installed" in said and jobs(looped) == [("ai_cycle", "person", "failed")]
    state = read_state(looped.root)
    assert state["status"] == "failed" and "is not installed" in state["reason"] and waiting(looped) == []
