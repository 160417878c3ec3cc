"""The loop of cycles over time: breaker, cooldown, limits, intervals, pause, cost cap, counters. The clock is fake,
engines and files are real. (F13–F15, F17, F18, F21–F23, F27, F29, F32–F36)"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from fake_engine import FakeEngine, good, result
from harness import Workspace
from patience import PATIENCE

from cleared.base.clock import FixedClock
from cleared.changes.workspace_opening import open_workspace
from cleared.work.cycles import cycle_log
from cleared.work.cycles.cycle_log import CycleLog, remove_old_logs
from cleared.work.cycles.cycle_loop import CycleLoop
from cleared.work.cycles.cycle_settings import read_cycle_settings
from cleared.work.cycles.cycle_state import STATUSES, initial_state, read_state
from cleared.work.cycles.engines import load_engine
from cleared.workspace.lock import writer_lock

pytestmark = pytest.mark.slow

START = datetime.fromisoformat("2025-02-10T06:00:00+00:00")
LONGEST_PAUSE = 20.0
"""Seconds that pass at once."""


class _Clock(FixedClock):
    """Stands still but in waits, unless it leaps."""

    def __init__(self) -> None:
        super().__init__(START)
        self.passed = 0.0
        self.leap = timedelta()
        """By how much it is set to another time whenever somebody looks."""
        self.leapt = timedelta()
        self.waits: list[tuple[str, float]] = []

    def now(self) -> datetime:
        self.leapt += self.leap
        return START + self.leapt + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed


class _Run:
    """A loop in this process whose waits take no time. ``at``: called with each status while it waits."""

    def __init__(self, ws: Workspace, engine: FakeEngine, name: str = "claude", **flags: Any) -> None:
        self.clock = _Clock()
        self.statuses: list[str] = []
        self.waits: dict[str, float] = {}
        self.during: Callable[[str], None] = lambda status: None
        host = open_workspace(ws.root, clock=self.clock, say=lambda text: None)
        values = {"engine": name, "max_cycles": 1, f"{name}_bin": str(engine.binary), **flags}
        self.ws, self.settings = ws, read_cycle_settings(host.config, values, {})
        self.loop = CycleLoop(host, self.settings, engine.binary, pause=self._pause)

    def _pause(self, seconds: float) -> None:
        told = read_state(self.ws.root)
        status = told["status"]
        if told["until"]:  # an hour is not passed in fifths of a second
            left = (datetime.fromisoformat(told["until"]) - self.clock.now()).total_seconds()
            seconds = max(seconds, min(left, LONGEST_PAUSE))
        self.statuses.append(status)
        self.waits[status] = self.waits.get(status, 0) + seconds
        self.clock.passed += seconds
        self.during(status)

    def run(self) -> int:
        return self.loop.run()


def state(ws: Workspace) -> dict[str, Any]:
    return read_state(ws.root)


def test_f13_the_breaker_opens_cools_down_and_begins_anew(cyc: Workspace, engine: FakeEngine) -> None:
    """F13, F21: five failures, then the cooldown, then it resumes with a count of none; intervals as set."""
    engine.plan({"exit": 1}, {"exit": 1}, {"exit": 1}, {"exit": 1}, {"exit": 1}, good(), {"exit": 1})
    run = _Run(cyc, engine, max_cycles=7, interval_seconds=30.0)
    counts: list[int] = []
    run.during = lambda status: counts.append(state(cyc)["consecutive_errors"]) if status == "cooldown" else None
    assert run.run() == 1
    assert run.waits["cooldown"] == pytest.approx(300) and run.waits["sleeping"] == pytest.approx(5 * 30)
    assert set(counts) == {5} and state(cyc)["consecutive_errors"] == 1
    assert len(engine.calls) == 7


def test_f14_a_success_resets_the_count(cyc: Workspace, engine: FakeEngine) -> None:
    """F14: two failures, a success, a failure: one is counted."""
    engine.plan({"exit": 1}, {"exit": 1}, good(), {"exit": 1})
    assert _Run(cyc, engine, max_cycles=4, interval_seconds=0.0).run() == 1
    assert state(cyc)["consecutive_errors"] == 1


@pytest.mark.parametrize(
    ("step", "seconds"),
    [
        ({"stdout": result("You've hit your usage limit", error=True), "exit": 1}, 3600),
        ({"stdout": result("You've hit your usage limit", error=True)}, 3600),  # F17: exit 0
        ({"stdout": "Claude AI usage limit reached\n"}, 3600),  # F17: exit 0 and nothing structured
        ({"stderr": "HTTP 429 Too Many Requests\n", "exit": 1}, 3600),
        ({"stdout": result("You've hit your limit. Resets 9am", error=True)}, 3 * 3600),  # F18, UTC
        ({"stdout": result("You've hit your limit. Try again in 0 seconds", error=True)}, 60),  # not on and on
    ],
)
def test_f15_f17_f18_a_limit_is_waited_for(
    cyc: Workspace, engine: FakeEngine, step: dict[str, Any], seconds: float
) -> None:
    """F15, F17, F18: it is no failure, and the wait is as said or 3600 s."""
    engine.plan(step, good())
    run = _Run(cyc, engine, max_cycles=2, interval_seconds=0.0)
    until: list[str] = []
    run.during = lambda status: until.append(state(cyc)["until"])
    assert run.run() == 0
    assert run.waits["waiting_limit"] == pytest.approx(seconds)
    assert state(cyc)["consecutive_errors"] == 0 and len(engine.calls) == 2
    assert until[0] == (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_machine_that_sleeps_waits_no_longer_for_it(cyc: Workspace, engine: FakeEngine) -> None:
    """What counts seconds stands still meanwhile; the account does not."""
    engine.plan({"stdout": result("You've hit your limit. Resets 9am", error=True)}, good())
    run = _Run(cyc, engine, max_cycles=2, interval_seconds=0.0)
    run.during = lambda status: setattr(run.clock, "leapt", timedelta(hours=8))
    assert run.run() == 0
    assert run.waits["waiting_limit"] == LONGEST_PAUSE and len(engine.calls) == 2


def test_f18_a_disabled_account_stops_it(cyc: Workspace, engine: FakeEngine) -> None:
    words = "Your organization has been disabled; usage limit 0. Resets 9pm"
    engine.plan({"stdout": result(words, error=True), "exit": 1})
    run = _Run(cyc, engine, max_cycles=9)
    assert run.run() == 1 and run.waits == {}
    assert (state(cyc)["status"], len(engine.calls)) == ("failed", 1)
    assert "needs a person" in state(cyc)["reason"]


def test_who_is_not_let_in_stops_at_once(cyc: Workspace, engine: FakeEngine) -> None:
    """Row F41: WORK 1: without a key that counts, no cycle comes further than this one."""
    engine.plan({"stdout": result("invalid x-api-key", error=True, api_error_status=401), "exit": 1})
    run = _Run(cyc, engine, max_cycles=9)
    assert run.run() == 1 and len(engine.calls) == 1
    assert state(cyc)["status"] == "failed" and "invalid x-api-key" in state(cyc)["reason"]


def test_cycles_without_progress_end_by_themselves(cyc: Workspace, engine: FakeEngine) -> None:
    """Row F41: WORK 1: three in a row that leave the consensus as it was; progress between them counts anew."""
    idle = {"stdout": result("nothing to do")}
    engine.plan(idle, idle, good(), idle, idle, idle, good())
    assert _Run(cyc, engine, max_cycles=20, interval_seconds=0.0).run() == 0
    assert len(engine.calls) == 6 and state(cyc)["reason"] == "3 cycles in a row made no progress"


def test_a_goal_that_is_reached_ends_the_cycles(cyc: Workspace, engine: FakeEngine) -> None:
    """Row F41: WORK 1: the Next Action is DONE."""
    engine.plan(good(), good(action="DONE"), good())
    assert _Run(cyc, engine, max_cycles=20, interval_seconds=0.0).run() == 0
    assert len(engine.calls) == 2 and "all is done" in state(cyc)["reason"]


def test_f36_the_cost_cap_stops_with_a_reason(cyc: Workspace, engine: FakeEngine) -> None:
    """F36: costs of all cycles since the reset are counted, over restarts too."""
    engine.plan(good(action="a"), good(action="b"), good(action="c"))
    assert _Run(cyc, engine, interval_seconds=0.0, cost_cap=0.75).run() == 0
    assert _Run(cyc, engine, max_cycles=9, interval_seconds=0.0, cost_cap=0.75).run() == 1
    assert (state(cyc)["status"], state(cyc)["total_cost"], len(engine.calls)) == ("failed", "0.75", 3)
    assert "cost cap of 0.75 USD" in state(cyc)["reason"] and '"total_cost_usd"' in cyc.ok("cycle", "last").out
    cyc.ok("cycle", "reset-consensus", "--yes")
    assert state(cyc)["total_cost"] == "0"


def test_tokens_and_minutes_are_caps_too(cyc: Workspace, engine: FakeEngine) -> None:
    """Row F41: what a plan pays for has no price: these can be counted of it, over restarts too."""
    cyc.config("loop.ai.max_tokens=2000", "loop.ai.max_minutes=3")
    usage = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 100, "total_tokens": 1_100}
    engine.plan(*({**good(action=each), "stdout": result(usage=usage)} for each in "abc"))
    assert _Run(cyc, engine, interval_seconds=0.0).run() == 0
    assert _Run(cyc, engine, max_cycles=9, interval_seconds=0.0).run() == 1
    assert len(engine.calls) == 2 and "cap of 2,000 tokens is reached (2,200 used)" in state(cyc)["reason"]
    cyc.ok("cycle", "reset-consensus", "--yes")
    assert (state(cyc)["total_tokens"], state(cyc)["total_seconds"]) == (0, 0)
    cyc.put(".cleared/engine-spending.json", '{"seconds": 180}')
    assert _Run(cyc, engine, max_cycles=9, interval_seconds=0.0).run() == 1
    assert len(engine.calls) == 2 and "cap of 3 minutes" in state(cyc)["reason"]


def test_a_limit_again_and_again_ends_at_the_cap(cyc: Workspace, engine: FakeEngine) -> None:
    """What an engine has used before it says so counts, too."""
    engine.plan({"stdout": result("usage limit reached", error=True, cost=0.5)})
    assert _Run(cyc, engine, max_cycles=9, cost_cap=1.0).run() == 1
    assert len(engine.calls) == 2 and "cost cap of 1.0 USD" in state(cyc)["reason"]


def test_minutes_of_work_count_whatever_the_clock_is_set_to(cyc: Workspace, engine: FakeEngine) -> None:
    """A clock that is set back would give minutes to a cap, one that is set forth would end it."""
    for days in (-1, 1):
        run = _Run(cyc, engine)
        run.clock.leap = timedelta(days=days)
        assert run.run() == 0
        assert state(cyc)["total_seconds"] == state(cyc)["last_cycle"]["seconds"] == 0


def test_work_that_cannot_be_taken_over_waits_and_no_engine_works_meanwhile(
    cyc: Workspace, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else holds the workspace for the time of two cycles; what is done is not lost, nor counted twice."""
    cyc.config("lock.wait_seconds=0")
    engine.plan(good("One.", write={"docs/one.md": "1"}), good("Two.", write={"docs/two.md": "2"}))
    run = _Run(cyc, engine, max_cycles=3, interval_seconds=0.0)
    begin, end = Event(), Event()

    def hold() -> None:
        with writer_lock(cyc.root / ".cleared", 0.0, "another", clock=run.clock):
            begin.set()
            end.wait(PATIENCE)

    def follow(text: str) -> None:
        if "cycle 1 begins" in text:
            holder.start()
            begin.wait(PATIENCE)
        elif "cycle 2: failed" in text:
            assert len(engine.calls) == 1 and "another" in text
            end.set()
            holder.join(PATIENCE)

    holder = Thread(target=hold, daemon=True)
    monkeypatch.setattr(run.loop, "_say", follow)
    assert run.run() == 0
    assert len(engine.calls) == 2 and state(cyc)["total_cost"] == "0.50"
    (card,) = cyc.cards()
    assert card["details"]["cycles"] == ["claude-0001", "claude-0003"], card
    assert not [name for name in ("clone", "handover.json") if (cyc.root / ".cleared/cycles" / name).exists()]


def test_f29_a_pause_begins_no_cycle_also_after_a_restart(cyc: Workspace, engine: FakeEngine) -> None:
    engine.plan(good())
    cyc.ok("cycle", "pause")
    run = _Run(cyc, engine, interval_seconds=5.0)
    paused = 0

    def resume(status: str) -> None:
        nonlocal paused
        paused += status == "paused"
        assert engine.calls == []
        if paused == 100:
            cyc.ok("cycle", "resume")

    run.during = resume
    assert run.run() == 0
    assert paused >= 100 and len(engine.calls) == 1


def test_f22_f23_the_stop_file_ends_every_wait(cyc: Workspace, engine: FakeEngine) -> None:
    """F22, F23: the next look at it, a fifth of a second later, ends the wait; the exit code is 0."""
    engine.plan(good(), {"exit": 1}, {"stdout": result("usage limit reached", error=True)})
    for wanted in ("sleeping", "cooldown", "waiting_limit"):
        run = _Run(cyc, engine, max_cycles=99, max_consecutive_errors=1, interval_seconds=60.0)
        at: list[float] = []

        def stop(status: str, wanted: str = wanted, run: _Run = run, at: list[float] = at) -> None:
            if status == wanted and not at:
                at.append(run.clock.passed)
                (cyc.root / ".auto-loop-stop").touch()

        run.during = stop
        assert run.run() == 0
        assert run.clock.passed - at[0] < 2 and state(cyc)["status"] == "stopped"
        assert not (cyc.root / ".auto-loop-stop").exists() and not (cyc.root / ".auto-loop-claude.pid").exists()


def test_f27_every_status_is_seen(cyc: Workspace, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """F27: by the shipped schema, each time the file is written."""
    from cleared.work.cycles import cycle_state

    seen: list[str] = []
    write = cycle_state.write_state

    def note(root: Path, data: dict[str, Any]) -> None:
        write(root, data)
        seen.append(json.loads((root / ".auto-loop-state").read_text())["status"])

    monkeypatch.setattr(cycle_state, "write_state", note)
    engine.plan(good(), {"exit": 1}, {"stdout": result("usage limit reached", error=True)}, good("x", action="y"))
    cyc.ok("cycle", "pause")
    run = _Run(cyc, engine, max_cycles=4, max_consecutive_errors=1, interval_seconds=1.0)
    run.during = lambda status: cyc.ok("cycle", "resume") and None if status == "paused" else None
    assert run.run() == 0
    engine.plan({"stdout": result("organization has been disabled", error=True)})
    assert _Run(cyc, engine).run() == 1
    engine.plan({"write": {str(cyc.root / "unused"): "x"}, "stdout": result()})
    run = _Run(cyc, engine, max_cycles=9)
    stop_file = cyc.root / ".auto-loop-stop"
    monkeypatch.setattr(run.loop, "_say", lambda text: stop_file.touch() if "begins" in text else None)
    assert run.run() == 0 and len(engine.calls) == 6
    assert set(seen) == set(STATUSES), set(STATUSES) - set(seen)


def test_f28_cycles_go_by_their_number(cyc: Workspace) -> None:
    """F28: several cycles within one second, of several engines, and a clock that was set back."""
    names = [
        "qwen-0001-20250210-060000",
        "claude-0002-20250210-060000",
        "claude-0003-20250210-055959",
        "codex-0010-20250210-060000",
    ]
    for name in reversed(names):
        cyc.put(f"logs/cycle-{name}.log", f"said by {name}\n")
    assert [row["number"] for row in cyc.json("cycle", "cycles")] == [1, 2, 3, 10]
    assert cyc.ok("cycle", "last").out == f"said by {names[-1]}\n"
    assert remove_old_logs(cyc.root, 2) == 2
    assert [row["number"] for row in cyc.json("cycle", "cycles")] == [3, 10]


def test_f33_f34_logs_and_the_counter_over_restarts(cyc: Workspace, engine: FakeEngine) -> None:
    """F33, F34: the newest logs stay; the number goes on, also where the state is lost."""
    engine.plan(good())
    for _ in range(3):
        assert _Run(cyc, engine, max_cycles=2, interval_seconds=0.0, max_logs=3).run() == 0
        (cyc.root / ".auto-loop-state").unlink()
    rows = cyc.json("cycle", "cycles")
    assert [row["number"] for row in rows] == [4, 5, 6]
    assert _Run(cyc, engine, max_cycles=1, max_logs=3).run() == 0
    assert [row["number"] for row in cyc.json("cycle", "cycles")] == [5, 6, 7]
    cyc.put("logs/cycle-mine.log", "kept")
    cyc.ok("cycle", "clean-logs")
    assert cyc.json("cycle", "cycles") == [] and cyc.read("logs/cycle-mine.log") == "kept"
    assert remove_old_logs(cyc.root, 0) == 0


def test_f32_the_main_log_rotates(cyc: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """F32: at ten megabytes."""
    assert cycle_log.ROTATE_BYTES == 10 << 20
    monkeypatch.setattr(cycle_log, "ROTATE_BYTES", 1_000)
    host = open_workspace(cyc.root)
    log = CycleLog(cyc.root, load_engine("qwen"), host.clock, host.redactor)
    for number in range(100):
        log.write(f"line {number} \x1b[2J")
    files = sorted(cyc.root.glob("logs/auto-loop-qwen.log*"))
    assert len(files) > 1 and all(path.stat().st_size <= 1_100 for path in files)
    assert "line 99" in (cyc.root / "logs/auto-loop-qwen.log").read_text()
    assert all("\x1b" not in path.read_text() for path in files)


@pytest.mark.parametrize("number", ["9" * 4_300, "1" + "0" * 30, "1e999", "NaN"])
@pytest.mark.parametrize("key", ["cycle", "consecutive_errors", "total_seconds"])
def test_a_number_of_the_state_can_be_counted_on(cyc: Workspace, engine: FakeEngine, key: str, number: str) -> None:
    """Whoever can push writes the file: one with more digits than Python prints ended the loop with a traceback."""
    state = json.dumps(initial_state() | {key: 7}).replace(f'"{key}": 7', f'"{key}": {number}')
    cyc.put(".auto-loop-state", state)
    for argv in (["cycle", "status"], engine.argv()):
        done = cyc(*argv)
        assert done.code == 4 and "Remove it" in done.err and "rm .auto-loop-state" in done.err, done
    assert engine.calls == [] and cyc.read(".auto-loop-state") == state


def test_a_whole_number_of_the_state_may_have_a_point(cyc: Workspace, engine: FakeEngine) -> None:
    """JSON knows no integers, and the name of a log does."""
    cyc.put(".auto-loop-state", json.dumps(initial_state() | {"cycle": 7.0}))
    engine.plan(good())
    assert cyc(*engine.argv()).code == 0
    assert [row["number"] for row in cyc.json("cycle", "cycles")] == [8]


def test_a_damaged_state_is_named(cyc: Workspace, engine: FakeEngine) -> None:
    cyc.put(".auto-loop-state", '{"status": "running"}')
    for argv in (
        ["status"],
        ["stop"],
        ["start", "--allow-ai", "--engine", "claude", "--claude-bin", str(engine.binary)],
    ):
        refusal = cyc("cycle", *argv)
        assert refusal.code == 4 and ".auto-loop-state" in refusal.err, refusal
    assert engine.calls == [] and os.path.lexists(cyc.root / ".auto-loop-state")
