"""``cleared bisect``: the run since which something is wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.terminal import count_noun, print_fields, print_json, print_message
from cleared.cli.options import JsonOption, WorkspaceOption, open_host


def bisect_past_runs(
    check: Annotated[
        list[str],
        typer.Argument(metavar="CHECK…", help="After --: check, or a command; it ends with 0 where all is well."),
    ],
    good: Annotated[str, typer.Option("--good", metavar="RUN", help="A run, or a commit, at which all was well.")],
    bad: Annotated[str, typer.Option("--bad", metavar="RUN", help="One at which it is not; the last commit.")] = "HEAD",
    timeout: Annotated[float, typer.Option("--timeout", min=1, metavar="SECONDS", help="For each check.")] = 300.0,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Find the first run at which a check fails, by halving; the workspace is not touched.

    The check is the word check (every invariant of the records), or a command, such as cleared report or a program of
    yours. It runs in a private clone, confined, and ends with 0 (good), 125 (cannot tell) or anything else (bad).
    """
    from cleared.work.bisection import bisect_runs

    def say(text: str) -> None:
        print_message(text)

    found = bisect_runs(open_host(workspace), good, bad, check, seconds=timeout, on_check=say)
    if json:
        print_json(found.to_dict())
        return
    rows = found.to_dict() | {"checks": f"{found.checks} of {count_noun(found.runs, 'run')}"}
    del rows["runs"]
    rows["attested"] = "" if found.attested else "no: nothing shows that it is a run of a machine that counts here"
    print_fields(
        (name, ", ".join(value) if isinstance(value, list) else value) for name, value in rows.items() if value
    )
