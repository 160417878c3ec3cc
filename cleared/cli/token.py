"""``cleared token …``: tokens of programs that call the HTTP API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from cleared.base.clock import Clock
from cleared.base.terminal import print_json, print_line, print_message, print_table
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host, read_clock
from cleared.service.fleet.fleet_home import read_fleet
from cleared.web.client_file import ClientFile
from cleared.web.client_tokens import add_token, remove_token
from cleared.workspace.fleet_clones import fleet_folder
from cleared.workspace.lock import writer_lock

app = new_group()

FleetOption = Annotated[bool, typer.Option("--fleet", help="Of the whole fleet: for /metrics of cleared fleet server.")]
_WAIT_SECONDS: Final = 10.0
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The program's, such as monitor.")]


@app.command("add")
def add_client_token(
    name: NameArgument,
    scope: Annotated[str, typer.Option("--scope", metavar="read|run", help="run: run approved agents, too.")] = "read",
    json: JsonOption = False,
    fleet: FleetOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Make a token for a program that calls the HTTP API; it is printed once, and no token can decide.

    Only a digest of it is stored, beside your key and outside of git. It counts for this clone alone; one of the fleet
    counts for /metrics of cleared fleet server.
    """
    with _opened(workspace, fleet, "token add") as (file, clock):
        token = add_token(file, name, scope, clock.now())
    if json:
        print_json({"name": name, "scope": scope, "token": token})
        return
    print_line(token)
    print_message(f"It is shown this once. {name} sends it as: Authorization: Bearer TOKEN")


@app.command("list")
def list_client_tokens(json: JsonOption = False, fleet: FleetOption = False, workspace: WorkspaceOption = None) -> None:
    """List the programs that have a token."""
    tokens = _find_file(workspace, fleet).read_clients().tokens
    if json:
        print_json([{"name": each.name, "scope": each.scope, "made": each.made} for each in tokens])
        return
    print_table(
        ["name", "scope", "made"],
        ((each.name, each.scope, each.made) for each in tokens),
        empty="No program has a token. Make one: cleared token add NAME.",
    )


@app.command("remove")
def remove_client_token(name: NameArgument, fleet: FleetOption = False, workspace: WorkspaceOption = None) -> None:
    """Have a program's token count no more, at once."""
    with _opened(workspace, fleet, "token remove") as (file, _):
        remove_token(file, name)
    print_message(f"the token of {name} counts no more")


@contextmanager
def _opened(workspace: Path | None, fleet: bool, what: str) -> Iterator[tuple[ClientFile, Clock]]:
    """The file of the programs, which nobody else changes meanwhile. ``what``: is done."""
    if fleet:
        file, clock = _find_file(workspace, fleet), read_clock()
        with writer_lock(fleet_folder(), _WAIT_SECONDS, what, clock=clock, name="clients.lock"):
            yield file, clock
        return
    host = open_host(workspace)
    with host.open_for_writing(what):
        yield ClientFile(host.root), host.clock


def _find_file(workspace: Path | None, fleet: bool) -> ClientFile:
    """Raises ``UsageError`` where this machine belongs to no fleet."""
    if fleet:
        read_fleet()
        return ClientFile(None)
    return ClientFile(open_host(workspace).root)
