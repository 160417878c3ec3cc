"""``cleared mcp``: this workspace for MCP clients."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from cleared.api.mcp_server import server_process
from cleared.base.terminal import print_json
from cleared.cli.machine_errors import as_refusal
from cleared.cli.options import JsonOption, WorkspaceOption, open_host


def serve_mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP on this machine, not on stdin and stdout.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="With --http; 0: a free one.")
    ] = 8756,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Serve this workspace to MCP clients: Claude Desktop, Claude Code, Cursor and others.

    They can read, check and propose; a person decides. --json (with --http): print where it answers, as one object.
    """
    if json and not http:
        raise typer.BadParameter("--json goes with --http: without it, stdout is for the client")
    server_process.require_sdk()
    if not http:
        server_process.serve_on_stdio(lambda: open_host(workspace, server_process.show_message), as_refusal)
        return

    def print_place(place: dict[str, Any]) -> None:
        if json:
            print_json(place)
            sys.stdout.flush()

    server_process.serve_on_http(
        lambda: open_host(workspace, server_process.show_message), as_refusal, port, print_place
    )
