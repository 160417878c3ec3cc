"""What ``cleared task`` prints."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from cleared.base.errors import ExitCode
from cleared.base.terminal import escape_lines, print_json, print_line, print_message
from cleared.jobs.tasks.task_states import COMPLETED, FAILED
from cleared.work.task_runs.task_planning import Planned

if TYPE_CHECKING:
    from cleared.work.task_runs.task_completion import TaskOutcome


def print_planned(planned: Planned, json: bool) -> None:
    if json:
        print_json(
            {
                "added": list(planned.added),
                "changed": list(planned.changed),
                "sealed": list(planned.sealed),
                "commit": planned.commit,
            }
        )
        return
    for noun, ids in (("added", planned.added), ("changed", planned.changed), ("sealed", planned.sealed)):
        if ids:
            print_line(f"{noun}: {', '.join(ids)}")
    if not (planned.added or planned.changed or planned.sealed):
        print_line("nothing was to be done")
    print_message("Next: cleared task next.")


def print_recorded(recorded: Any, json: bool) -> None:
    line = recorded.lines[0]
    if json:
        print_json({**line.to_json_object(), "commit": recorded.commit})
    else:
        print_line(f"{line.id} is {line.status} ({str(recorded.commit)[:10]})")


def print_outcome(outcome: TaskOutcome, json: bool) -> None:
    """What became of a task; exits 1 where it failed."""
    if json:
        print_json(outcome_data(outcome))
    else:
        print_line(f"{outcome.task_id} is {outcome.status} ({str(outcome.commit)[:10]})")
        if outcome.status != COMPLETED:
            print_message(outcome.summary)
        if outcome.proposal:
            print_message(f"Next: cleared agent diff {outcome.proposal}, then approve or reject it.")
    sys.stdout.flush()
    raise typer.Exit(ExitCode.FAILED if outcome.status == FAILED else ExitCode.DONE)


def outcome_data(outcome: TaskOutcome) -> dict[str, Any]:
    return {
        "id": outcome.task_id,
        "status": outcome.status,
        "summary": outcome.summary,
        "delta": dict(outcome.delta),
        "commit": outcome.commit,
        "proposal": outcome.proposal,
        "branch": outcome.branch,
        "warnings": list(outcome.warnings),
    }


def safe_output(text: str) -> str:
    return escape_lines(text.rstrip("\n")) + "\n" if text.strip() else ""
