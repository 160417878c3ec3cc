"""``cleared definition …``: what says what records are, such as the columns of a table."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated

import typer

from cleared.base.terminal import print_json, print_line, print_message, print_table
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.cli.showing import DigestOption, Subject, taking_shown
from cleared.gate.proposals.definition_approval import (
    WaitingDefinition,
    approve_definition,
    list_known_definitions,
    read_definition,
)

app = new_group()


@app.command("list")
def list_all(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List what the last commit has, and whether it counts."""
    found = list_known_definitions(open_host(workspace))
    if json:
        print_json([{"path": path, "counts": not doubt, "why": doubt} for path, doubt in found])
        return
    print_table(
        ["file", "state", "why"],
        ((path, "waits" if doubt else "approved", doubt) for path, doubt in found),
        wrap=["why", "file"],
        empty="There are none yet. A table begins with its columns: docs/howto/price-lists.md.",
    )


@app.command("approve")
def approve(
    path: Annotated[str, typer.Argument(metavar="FILE", help="Such as records/prices.yaml.")],
    digest: DigestOption = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Approve a file as it lies there: shows what it changes, and asks. It is committed along, with what follows.

    In a script you name the digest of what was shown.
    """
    host = open_host(workspace)
    waiting = read_definition(host, path)
    subject = Subject(
        name=path,
        title=path,
        digest=waiting.digest,
        command=f"cleared definition approve {path} --digest ",
        question=f"Approve {path}?",
        parts={"change": _printer(waiting)},
    )
    changes = waiting.before != waiting.after
    with taking_shown(host.root, subject, digest, json=json) if changes else nullcontext():
        commit = approve_definition(host, path)
    if json:
        print_json({"path": path, "commit": commit})
    else:
        print_message(f"Approved ({commit[:10]})." if commit else "It was approved before.")


def _printer(waiting: WaitingDefinition) -> Callable[[], None]:
    def show() -> None:
        old, new = ((text or b"").decode("utf-8", "replace").splitlines() for text in (waiting.before, waiting.after))
        for line in list(difflib.unified_diff(old, new, lineterm=""))[2:]:
            print_line(line)
        for line in waiting.lines:
            print_line(line)

    return show
