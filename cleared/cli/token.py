"""``cleared token …``: tokens of programs that call the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.terminal import print_json, print_line, print_message, print_table
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.web.client_file import ClientFile
from cleared.web.client_tokens import add_token, remove_token

app = new_group()

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The program's, such as monitor.")]


@app.command("add")
def add_client_token(
    name: NameArgument,
    scope: Annotated[str, typer.Option("--scope", metavar="read|run", help="run: run approved agents, too.")] = "read",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Make a token for a program that calls the HTTP API; it is printed once, and no token can decide.

    Only a digest of it is stored, beside your key and outside of git. It counts for this clone alone.
    """
    token = add_token(open_host(workspace), name, scope)
    if json:
        print_json({"name": name, "scope": scope, "token": token})
        return
    print_line(token)
    print_message(f"It is shown this once. {name} sends it as: Authorization: Bearer TOKEN")


@app.command("list")
def list_client_tokens(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the programs that have a token."""
    tokens = ClientFile(open_host(workspace).root).read_clients().tokens
    if json:
        print_json([{"name": each.name, "scope": each.scope, "made": each.made} for each in tokens])
        return
    print_table(
        ["name", "scope", "made"],
        ((each.name, each.scope, each.made) for each in tokens),
        empty="No program has a token. Make one: cleared token add NAME.",
    )


@app.command("remove")
def remove_client_token(name: NameArgument, workspace: WorkspaceOption = None) -> None:
    """Have a program's token count no more, at once."""
    remove_token(open_host(workspace), name)
    print_message(f"the token of {name} counts no more")
