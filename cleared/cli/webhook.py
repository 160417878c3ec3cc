"""``cleared webhook …``: secrets of the calls that start agents."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.terminal import print_json, print_line, print_message, print_table
from cleared.cli.command_groups import new_group
from cleared.cli.options import AgentName, JsonOption, WorkspaceOption, open_host
from cleared.web.client_file import ClientFile
from cleared.web.webhook_secrets import add_webhook, remove_webhooks
from cleared.workspace.fleet_clones import find_served

app = new_group()


@app.command("add")
def add_webhook_secret(agent: AgentName, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Make a secret with which another program signs the calls that start this agent; it is printed once.

    It is stored beside your key, outside of git, and counts for this clone alone. Secrets that were made before go on
    counting, so that a program can change over; then remove those.
    """
    host = open_host(workspace)
    made = add_webhook(host, agent)
    served = find_served(host.root)
    path = f"{f'/w/{served}' if served else ''}/hooks/{made.agent}"
    if json:
        print_json({"id": made.id, "agent": made.agent, "secret": made.secret, "path": path})
        return
    print_line(made.secret)
    server = "cleared fleet server" if served else "cleared server"
    print_message(f"It is shown this once. Signed calls go to {path} of {server}.")


@app.command("list")
def list_webhook_secrets(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the webhooks, without their secrets."""
    webhooks = ClientFile(open_host(workspace).root).read_clients().webhooks
    if json:
        print_json([{"id": each.id, "agent": each.agent, "made": each.made} for each in webhooks])
        return
    print_table(
        ["id", "agent", "made"],
        ((each.id, each.agent, each.made) for each in webhooks),
        empty="There is no webhook. Make one: cleared webhook add AGENT.",
    )


@app.command("remove")
def remove_webhook_secrets(
    which: Annotated[str, typer.Argument(metavar="ID", help="As cleared webhook list shows it; or an agent: all its.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Have a secret count no more, at once."""
    for each in remove_webhooks(open_host(workspace), which):
        print_message(f"the secret {each.id} of {each.agent} counts no more")
