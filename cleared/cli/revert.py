"""``cleared revert RUN|IMPORT``: what a run did is taken back, and what rests on it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun, print_json, print_line, print_message
from cleared.cli.completion import complete_runs
from cleared.cli.options import JsonOption, ReasonOption, WorkspaceOption, open_host, open_host_once
from cleared.review.reverting import RevertPlan, revert_run, run_readers_again

_MAX_SHOWN = 20


def revert_past_run(
    name: Annotated[
        str,
        typer.Argument(metavar="RUN|FILE", autocompletion=complete_runs, help="A run, or a file that was imported."),
    ],
    reason: ReasonOption = "",
    plan: Annotated[bool, typer.Option("--plan", help="Show what it would come to; change nothing.")] = False,
    alone: Annotated[bool, typer.Option("--alone", help="What later runs made of it stays.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Then run again, over what is left, the agents that had read it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take back what a run did, and what later runs did that had read it: one commit.

    The plan names every run, record and decision. What people have decided stays. It is refused where some of it lies
    in a closed period. With --again the agents whose runs had read it run once more, each in a commit of its own; what
    had read nothing of it is left alone. Killed in between, the same command goes on.
    """
    found = revert_run(open_host(workspace), name, reason=reason, dry_run=True, alone=alone, again=again)
    before = found.commit  # where it was taken back already, and was killed before all ran again
    if not json:
        _print_plan(found, found.readers if again else [])
    if not plan:
        if not yes and not (sys.stdin.isatty() and typer.confirm("Take it back?", err=True)):
            print_message("Nothing was taken back. To do it: the same with --yes.")
            sys.stdout.flush()
            raise typer.Exit(3)
        # With --again it is done once the last agent ran: what was killed before goes on, and does nothing twice.
        host = open_host(workspace) if again else open_host_once(workspace, json=json)
        if not before:
            found = revert_run(host, name, reason=reason, alone=alone, again=again)
        if again:
            run_readers_again(open_host(workspace), found)
    if json:
        print_json(found.to_dict())
    elif found.commit:
        print_line(f"Taken back {'before ' if found.commit == before else ''}({found.commit[:10]}).")
        for run in found.reran:
            print_line(f"{run['agent']} ran again: {_describe_rerun(run)}")
        for command in found.again:
            print_message(f"To do it again: {command}")
    if any(run["status"] not in ("succeeded", "waiting") for run in found.reran):
        raise typer.Exit(1)


def _describe_rerun(run: Mapping[str, Any]) -> str:
    if run["status"] == "succeeded":
        return f"committed as {run['commits'][0][:10]}" if run["commits"] else "nothing has changed"
    error = run.get("error") or {}
    return str(error.get("message") or run["status"])


def _print_plan(plan: RevertPlan, readers: Sequence[str]) -> None:
    for run in plan.runs:
        rests = f", because {run.why}" if run.why else ""
        print_line(f"{run.run} {run.agent}: {run.what}{rests}")
        for verb, records in (("goes", run.voided), ("stays, as it was decided or changed since", run.kept)):
            if records:
                print_line(f"  {verb}: {list_first(records, _MAX_SHOWN)}")
    if readers:
        print_line(f"runs again: {', '.join(readers)}")
    for made in plan.decisions:
        print_line(f"decided by {made['by']}: {made['what']} ({made['about']})")
    for doubt in plan.may_have_read[:_MAX_SHOWN]:
        print_message(f"{doubt['run']} {doubt['agent']} may have read it, and stays: {doubt['why']}")
    if len(plan.may_have_read) > _MAX_SHOWN:
        print_message(f"and {count_noun(len(plan.may_have_read) - _MAX_SHOWN, 'more run')}")
