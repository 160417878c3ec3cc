"""Propose, approve, reject, roll back, run, commit by hand, tamper, clone, kill, in any order: nothing unapproved runs.

``python -m tests.properties.gate_campaign --examples 500`` goes on for longer.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import Forks
from gate_world import GateMachine
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

EXAMPLES = 9
STEPS = 25


def test_nothing_unapproved_runs(
    starting_point: Path, plain_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARED_HOME", "")  # the machine sets it; this puts it back afterwards
    with Forks() as forks:
        monkeypatch.setattr(GateMachine, "template", starting_point, raising=False)
        monkeypatch.setattr(GateMachine, "forks", forks, raising=False)
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            GateMachine,
            settings=settings(
                max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, derandomize=True, database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )  # fmt: skip
