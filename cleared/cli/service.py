"""``cleared service …``: having the system keep ``cleared up`` running for a workspace."""

from __future__ import annotations

from pathlib import Path

from cleared.base.errors import WorkspaceError
from cleared.base.terminal import print_json, print_line, print_message
from cleared.cli.command_groups import new_group
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
from cleared.service.unit_file import STOP_SECONDS
from cleared.workspace.location import find_workspace

app = new_group()


def _open_service(workspace: Path | None) -> Systemd | Launchd:
    """The manager of a workspace, whose settings may be broken."""
    from math import ceil

    root = find_workspace(chosen_workspace(workspace))
    try:
        timeout = open_host(root, tells_waiting=False).config.sandbox.timeout
    except WorkspaceError:
        timeout = 0.0
    return choose_manager(root, max(STOP_SECONDS, ceil(timeout) + CALL_SECONDS))


@app.command("install")
def install_service(
    only_print: PrintOption = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Start cleared up now and at each login, and again when it fails."""
    open_host(workspace)  # what cannot be opened cannot be served
    install_unit(_open_service(workspace), only_print=only_print, json=json)


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
