"""``cleared service …``: having the system keep ``cleared up`` running for a workspace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from cleared.base.errors import WorkspaceError
from cleared.base.terminal import print_json, print_line, print_message
from cleared.cli.command_groups import new_group
from cleared.cli.loop_options import AllowEngineOption
from cleared.cli.options import JsonOption, PrintOption, WorkspaceOption, chosen_workspace, open_host
from cleared.cli.service_manager import (
    CALL_SECONDS,
    Launchd,
    ManagerUnreachable,
    Systemd,
    choose_manager,
    install_unit,
    read_unit_file,
    uninstall_unit,
)
from cleared.cli.up import serving_arguments
from cleared.service.unit_file import STOP_SECONDS
from cleared.web import page_server
from cleared.workspace.location import find_workspace

app = new_group()
_SERVER_PORT: Final = re.compile(r"--server\b.*?--port\b[^0-9]*([0-9]{1,5})", re.DOTALL)
"""In the file of a service that was installed with ``--server``."""


def _open_service(workspace: Path | None, arguments: tuple[str, ...] | None = None) -> Systemd | Launchd:
    """The manager of a workspace, whose settings may be broken. ``arguments``: the command that is kept running; None:
    the one that is installed."""
    from math import ceil

    root = find_workspace(chosen_workspace(workspace))
    try:
        timeout = open_host(root, tells_waiting=False).config.sandbox.timeout
    except WorkspaceError:
        timeout = 0.0
    stop_seconds = max(STOP_SECONDS, ceil(timeout) + CALL_SECONDS)
    if arguments is None:
        installed = read_unit_file(choose_manager(root, stop_seconds).unit) or b""
        text = installed.decode("utf-8", "replace")
        port = _SERVER_PORT.search(text)
        has = {flag: re.search(rf'[">]{flag}["<]', text) is not None for flag in ("--work", "--allow-ai")}
        arguments = serving_arguments(int(port[1]) if port else None, has["--work"], has["--allow-ai"])
    return choose_manager(root, stop_seconds, arguments=arguments)


@app.command("install")
def install_service(
    server: Annotated[bool, typer.Option("--server", help="Serve the page as well: cleared up --server.")] = False,
    port: Annotated[int, typer.Option("--port", metavar="N", min=1, max=65535, help="With --server.")] = 8765,
    work: Annotated[bool, typer.Option("--work", help="Jobs, cycles, tasks as well: cleared up --work.")] = False,
    allow_ai: AllowEngineOption = False,
    only_print: PrintOption = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Start cleared up now and at each login, and again when it fails.

    With --allow-ai the file permits engines at each start. With --server a passkey signs in to the page, or a link of
    cleared server --link.
    """
    open_host(workspace)  # what cannot be opened cannot be served
    if server:
        page_server.require_packages("cleared up --server")
    arguments = serving_arguments(port if server else None, work, allow_ai)
    install_unit(_open_service(workspace, arguments), only_print=only_print, json=json)


@app.command("uninstall")
def uninstall_service(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Stop the service, after the run that is under way, and remove its file."""
    uninstall_unit(_open_service(workspace), json=json)


@app.command("status")
def show_service_status(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Say whether the service is installed, and whether it runs."""
    manager = _open_service(workspace)
    unit, before = manager.unit, read_unit_file(manager.unit)
    running: bool | None = False
    state = pid = problem = None
    if before is not None:
        try:
            running, state, pid = manager.read_state()
        except ManagerUnreachable as error:
            running, problem = None, str(error)
    current = before == unit.text.encode()
    if json:
        print_json(
            {
                "name": unit.name,
                "file": str(unit.path),
                "installed": before is not None,
                "current": current,
                "running": running,
                "state": state,
                "pid": pid,
                "problem": problem,
            }
        )
        return
    if before is None:
        print_line(f"{unit.name} is not installed.")
        return
    print_line(f"{unit.name} is installed ({unit.path}).")
    if running is None:
        print_line(f"Whether it runs could not be asked: {problem}")
    else:
        print_line(f"It {'runs' if running else 'does not run'}: {state}{f', process {pid}' if pid else ''}.")
    if not current:
        print_message("Its file is not what this version of cleared, from here, would write: cleared service install")
