"""The status tree: one file with all that a user interface shows of a loop (``single_agent_tree_v1``)."""

from __future__ import annotations

from typing import Any, Final

from cleared.base.clock import Clock, format_iso
from cleared.jobs import file_schemas
from cleared.jobs.records import LoopState
from cleared.jobs.runtime_directory import RuntimeDirectory

MAX_SHOWN: Final = 25


def build_tree(state: LoopState, clock: Clock) -> dict[str, Any]:
    """The tree of a state."""
    stop = state["stop"]
    running = state["running"]
    return {
        "schema_version": "single_agent_tree_v1",
        "generated_at": format_iso(clock.now()),
        "summary": {
            "instance": state["instance"],
            "status": state["status"],
            "paused": state["paused"],
            "stop_reason": stop["reason"] if stop else None,
            "cycles": state["cycles"],
            "queued": len(state["queue"]),
            "running": running["job_id"] if running else None,
            **state["counts"],
            "safety_stops": len(state["safety_stops"]),
            "last_job": state["jobs"][-1]["job_id"] if state["jobs"] else None,
            "updated_at": state["updated_at"],
        },
        "jobs": state["jobs"][-MAX_SHOWN:],
        "knowledge": state["knowledge"][-MAX_SHOWN:],
        "state": state,
    }


def export_tree(runtime: RuntimeDirectory, state: LoopState, clock: Clock) -> None:
    """Write the tree of a state that was just saved, which checked it. Raises ``WorkspaceError``."""
    file_schemas.write_record("tree", runtime.tree_path, build_tree(state, clock), checked="state")
