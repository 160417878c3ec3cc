"""``cleared test …``: what agents must go on doing."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.short_text import parse_count
from cleared.base.terminal import print_json, print_line, print_table
from cleared.cli.command_groups import new_group
from cleared.cli.completion import complete_runs
from cleared.cli.options import JsonOption, WorkspaceOption, open_host

app = new_group()


@app.command("add")
def add_test(
    run: Annotated[
        str, typer.Argument(metavar="RUN", autocompletion=complete_runs, help="A committed run (cleared run list).")
    ],
    why: Annotated[str, typer.Option("-m", "--message", metavar="TEXT", help="What must stay so.")] = "",
    correct: Annotated[
        list[str] | None,
        typer.Option("--correct", metavar="ENTRY=ACCOUNT", help="What should have been; only that is held to then."),
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Keep what a run did as a test: a change that does otherwise is blocked from now on."""
    from cleared.gate.proposals.recorded_tests import add_test as do

    corrections = {}
    for text in correct or ():
        entry, _, account = text.partition("=")
        number = parse_count(account)
        if number is None:
            raise typer.BadParameter(f"{text!r} is not ENTRY=ACCOUNT", param_hint="--correct")
        corrections[entry] = number
    case, commit = do(open_host(workspace), run, why=why, corrections=corrections)
    if json:
        print_json({"name": case.name, "path": case.path, "agent": case.agent, "commit": commit})
    else:
        print_line(f"{case.path} ({commit[:10]})")


@app.command("list")
def list_tests(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the tests, and whether each is as it was approved."""
    from cleared.gate.proposals.proposal_history import list_tests

    tests = list_tests(open_host(workspace))
    if json:
        print_json(tests)
        return
    print_table(
        ["test", "agent", "run", "state", "why"],
        ((t["name"], t["agent"], t["run"], t["state"], t["why"]) for t in tests),
        wrap=["why", "run"],
        empty="There are no tests yet: cleared test add RUN.",
    )
