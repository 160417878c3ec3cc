"""What the loop's state keeps: the newest of each list, so that it never grows over what its schema allows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cleared.base.clock import format_iso
from cleared.jobs import loop_state
from cleared.jobs.records import EndedJob, Knowledge, SafetyStop
from cleared.jobs.runtime_directory import RuntimeDirectory

NOW = datetime(2025, 2, 3, 8, 30, tzinfo=UTC)
AT = format_iso(NOW)


class StoppedClock:
    """The clock of one moment."""

    def now(self) -> datetime:
        return NOW


def job_id(number: int) -> str:
    return f"job_20250203T083000Z_{number}"


def ended(number: int) -> EndedJob:
    return {
        "job_id": job_id(number),
        "kind": "continuity_scan",
        "target": "",
        "by": "person",
        "status": "succeeded",
        "started_at": AT,
        "ended_at": AT,
        "duration_sec": 0.1,
        "exit_code": 0,
        "summary": f"{number}",
    }


def learned(number: int) -> Knowledge:
    return {"at": AT, "kind": "continuity_scan", "target": "", "job_id": job_id(number), "text": f"{number}"}


def stopped(number: int) -> SafetyStop:
    return {"at": AT, "kind": "shell", "target": "", "by": "person", "reason": f"{number}"}


def test_the_state_keeps_the_newest_of_each_list(tmp_path: Path) -> None:
    runtime = RuntimeDirectory(tmp_path, tmp_path, tmp_path)
    state, clock = loop_state.fresh_state(NOW), StoppedClock()
    state["jobs"] = [ended(n) for n in range(loop_state.MAX_JOBS + 3)]
    state["knowledge"] = [learned(n) for n in range(loop_state.MAX_KNOWLEDGE + 3)]
    state["safety_stops"] = [stopped(n) for n in range(loop_state.MAX_SAFETY_STOPS + 3)]
    for n in range(loop_state.MAX_NOTICES + 3):
        loop_state.add_notice(state, f"{n}", clock)
    loop_state.save_state(runtime, state, clock)
    kept = loop_state.peek_state(runtime)
    assert kept is not None
    assert [each["summary"] for each in kept["jobs"]] == [str(n) for n in range(3, loop_state.MAX_JOBS + 3)]
    assert [each["text"] for each in kept["knowledge"]] == [str(n) for n in range(3, loop_state.MAX_KNOWLEDGE + 3)]
    reasons = [each["reason"] for each in kept["safety_stops"]]
    assert reasons == [str(n) for n in range(3, loop_state.MAX_SAFETY_STOPS + 3)]
    assert [each["text"] for each in kept["notices"]] == [str(n) for n in range(3, loop_state.MAX_NOTICES + 3)]
