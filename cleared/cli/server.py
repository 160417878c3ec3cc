"""``cleared server``: the page in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, chosen_workspace, open_host
from cleared.terminal import print_json


def serve_pages(
    directories: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR…", help="Workspaces to serve (default: the current one).")
    ] = None,
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0: a free one.")] = 8765,
    code: Annotated[bool, typer.Option("--code", help="Print a code to type instead of a link.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Serve the page, where a person decides and looks into anything, to browsers of this machine.

    It prints a link that signs in once. Ctrl-C ends it. --json: print address and code as one object.
    """
    from cleared.cli.machine_errors import as_refusal
    from cleared.web import page_server
    from cleared.workspace.location import find_workspace

    page_server.require_packages()
    chosen: list[Path | None] = [*directories] if directories else [chosen_workspace(workspace)]
    roots = [find_workspace(each) for each in chosen]

    def print_place(place: dict[str, Any]) -> None:
        if json:
            print_json(place)
            sys.stdout.flush()

    page_server.serve_pages(
        roots, lambda root: open_host(root, _say_nothing), as_refusal, port, print_place, type_code=code
    )


def _say_nothing(text: str) -> None:
    """What the program tells on the way is for a terminal; the page shows what came of it."""
