"""Which calls of a run stay whole, and that no call is lost from the sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from cleared.base.errors import Place
from cleared.changes.trace import TraceStore
from cleared.changes.traced_calls import TracedCalls
from cleared.primitives.dispatch import Call


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.changes.traced_calls.MAX_FIRST_CALLS", 20)
    monkeypatch.setattr("cleared.changes.traced_calls.MAX_LAST_CALLS", 10)


def make_call(number: int, name: str = "journal_add", *, line: int = 5, depth: int = 0) -> Call:
    return Call(number, name, (number,), {}, Place("agents/a.py", line, 1), depth, float(number), 0.5, {"n": number})


def fill(calls: TracedCalls, numbers: range) -> list[Call]:
    return [gone for n in numbers if (gone := calls.add_call(make_call(n))) is not None]


def test_first_and_last_stay_whole() -> None:
    calls = TracedCalls()
    dropped = fill(calls, range(1, 1_001))
    numbers = [call.number for call in calls]
    assert (
        numbers == sorted(numbers) and numbers[:20] == list(range(1, 21)) and numbers[-10:] == list(range(991, 1_001))
    )
    (rest,) = calls.sums
    assert calls.total == 1_000 == len(numbers) + rest.calls and rest.calls == len(dropped)
    assert (rest.first.args, rest.first.result, rest.last_number) == ((), None, 990)
    assert rest.duration == rest.calls * 0.5


def test_what_failed_and_what_is_rare_stays_whole() -> None:
    calls = TracedCalls()
    fill(calls, range(1, 101))
    failed = make_call(101)
    failed.error = "no such account"
    calls.add_call(failed)
    calls.add_call(make_call(102, "queue_ask", line=9))
    fill(calls, range(103, 500))
    whole = {call.number for call in calls}
    assert {101, 102} <= whole and len(whole) < 60


def test_a_call_that_is_running_stays() -> None:
    """A shared script makes many calls before the call that runs it ends."""
    calls = TracedCalls()
    fill(calls, range(1, 200))
    outer = make_call(200, "script_run")
    calls.add_call(outer)
    for n in range(201, 400):
        calls.add_call(make_call(n, depth=1))
    outer.error = "it failed at last"
    assert outer in list(calls)


def test_places_are_bounded() -> None:
    calls = TracedCalls()
    for n in range(1, 2_001):
        calls.add_call(make_call(n, line=n))
    assert len(calls.sums) <= 200 and sum(s.calls for s in calls.sums) + len(list(calls)) == 2_000


def test_the_database_gives_calls_and_sums(tmp_path: Path) -> None:
    calls = TracedCalls()
    fill(calls, range(1, 501))
    traces = TraceStore(tmp_path)
    traces.begin_run(
        {"id": "r", "agent": "a", "dry_run": False, "started_at": "", "event": {}, "script": "", "head": ""}
    )
    keys = ("duration_ms", "result", "error", "message", "commits", "entries", "cards")
    traces.end_run("r", {**dict.fromkeys(keys), "status": "succeeded", "log": []}, calls, 0.0, calls.sums)
    run = traces.find_run("r")
    assert run is not None and [c["number"] for c in run["calls"]] == [c.number for c in calls]
    (rest,) = run["more_calls"]
    assert (rest["name"], rest["line"], rest["last_number"]) == ("journal_add", 5, 490)
    assert rest["calls"] + len(run["calls"]) == 500 and rest["duration_ms"] == rest["calls"] * 500
