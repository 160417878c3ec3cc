"""Events that nobody should be able to hand in: from a job, or larger than what is bounded."""

from __future__ import annotations

import json

import pytest
from harness import Workspace, refused, unchanged

from cleared.triggers import external_events


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_hands_in_no_event(ws: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool) -> None:
    monkeypatch.setenv("CLEARED_JOB", "job_1")
    if wall:
        with unchanged(ws):
            refused(ws("event", "emit", "ping"), 3, "not for a job")
    else:
        monkeypatch.setattr(external_events, "refuse_in_job", lambda: None)
        head = ws.head()
        ws.ok("event", "emit", "ping")
        assert ws.head() != head


def test_a_payload_has_its_limit(ws: Workspace) -> None:
    largest = "x" * (65_536 - 2)  # and its quotes
    ws.ok("event", "emit", "ping", "--data", json.dumps(largest))
    with unchanged(ws):
        refused(ws("event", "emit", "ping", "--data", json.dumps(largest + "x")), 2, "larger than 64 kB")
    failed = ws.script('ctx_emit("ping", ["x" * 9_000] * 8)', code=1)
    assert "larger than 64 kB" in failed["error"]["message"]
