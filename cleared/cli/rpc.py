"""``cleared rpc`` and ``cleared bridge``: for programs, as lines of JSON-RPC 2.0."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cleared.api.rpc.workspace_server import serve_socket, serve_stdio
from cleared.cli.options import WorkspaceOption, open_host
from cleared.sandbox.bridge.server import serve_bridge


def run_bridge() -> None:
    """Run scripts for whoever holds the primitives: JSON-RPC 2.0 lines on stdin and stdout."""
    import sys

    serve_bridge(sys.stdin.buffer, sys.stdout.buffer)


def serve_rpc(
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve on stdin and stdout.")] = False,
    socket: Annotated[
        Path | None, typer.Option("--socket", metavar="PATH", help="Serve on a Unix socket, for this user only.")
    ] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Offer this workspace's reading primitives and commands as JSON-RPC 2.0 lines; never decisions."""
    if stdio == (socket is not None):
        raise typer.BadParameter("give exactly one of --stdio and --socket PATH")
    open_host(workspace)
    if socket is not None:
        serve_socket(lambda: open_host(workspace), socket)
    else:
        serve_stdio(lambda: open_host(workspace))
