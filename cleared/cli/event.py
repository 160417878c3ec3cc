"""``cleared event …``: handing in events."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.terminal import print_json, print_line
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host_once, parse_payload
from cleared.triggers.external_events import submit_event

app = new_group()


@app.command("emit")
def emit_event(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as statement.received.")],
    data: Annotated[str, typer.Option("--data", metavar="JSON", help="What scripts get as its payload.")] = "null",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Hand in an event: one commit. Agents that listen to it run when the service is up."""
    event_id = submit_event(open_host_once(workspace, json=json), name, parse_payload(data))
    if json:
        print_json({"id": event_id, "name": name})
    else:
        print_line(event_id)
