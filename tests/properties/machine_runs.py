"""State machines of hypothesis, run in the same way each time."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run_machine(machine: type[RuleBasedStateMachine], examples: int, steps: int, **more: Any) -> None:
    """``more``: of hypothesis' settings."""
    always = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
    chosen = settings(max_examples=examples, stateful_step_count=steps, **{**always, "derandomize": True, **more})
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[no-untyped-call]
