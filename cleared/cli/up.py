"""``cleared up`` and ``cleared down``: the service that runs agents by themselves."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from cleared.base.terminal import print_message
from cleared.cli.loop_options import AllowEngineOption, open_loop
from cleared.cli.options import WaitOption, WorkspaceOption, chosen_workspace, open_host, read_clock
from cleared.cli.server import make_server, print_link
from cleared.service.serving import serve
from cleared.web import page_server
from cleared.web.exposure import Exposure
from cleared.work.loop.carried_loop import CarriedLoop, carry_loops
from cleared.workspace.location import Layout, find_workspace
from cleared.workspace.process_lock import service_of
from cleared.workspace.process_lock import start_in_background as start


def serve_workspaces(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR", help="Workspaces to serve in one process; with --detach in one each (default: this one)."
        ),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Serve in the background.")] = False,
    server: Annotated[bool, typer.Option("--server", help="Be cleared server as well, in the same process.")] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="With --server; 0: a free one.")
    ] = 8765,
    no_link: Annotated[
        bool, typer.Option("--no-link", help="With --server: print no link that signs in; cleared server --link does.")
    ] = False,
    work: Annotated[bool, typer.Option("--work", help="Be cleared loop as well: jobs, cycles, tasks.")] = False,
    allow_ai: AllowEngineOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Run agents by themselves: on their schedules, on dropped files, on events. Ctrl-C ends it.

    cleared up runs agents when their triggers fire; cleared loop runs jobs, one at a time, in the order they are
    asked for. With --work the service carries that loop, which is up as long as the service is.

    The first Ctrl-C (or SIGTERM) lets the run that is on end, a second one breaks it off with nothing of it done.
    Only one service serves a workspace (exit code 5); other commands work beside it.
    """
    if directories and workspace is not None:
        raise typer.BadParameter("give the workspaces as DIR…, or one with -C")
    named: list[Path | None] = [*directories] if directories else [chosen_workspace(workspace)]
    roots = list(dict.fromkeys(find_workspace(directory) for directory in named))
    if allow_ai and not work:
        raise typer.BadParameter("it lets the jobs of --work run an engine", param_hint="--allow-ai")
    if detach:
        if server and (len(roots) > 1 or not port):
            raise typer.BadParameter("with --detach it needs one workspace, and a --port", param_hint="--server")
        if server:
            page_server.require_packages("cleared up --server")
        for root in roots:
            open_host(root)  # what is wrong with it is said here
            service = start(root, root / Layout.state, serving_arguments(port if server else None, work, allow_ai))
            print_message(
                f"up: process {service.pid} serves {root}. See: cleared status, cleared logs -f. Stop it: cleared down."
            )
        if server and not no_link:
            print_link(port)
        return
    loops = [CarriedLoop(*open_loop(root, allow_ai=allow_ai)) for root in roots] if work else []
    with _serve_pages(roots, port, has_link=not no_link) if server else nullcontext(), carry_loops(loops):
        serve(roots, read_clock(), print_message, [loop.keep_up for loop in loops])


def serving_arguments(port: int | None, work: bool = False, allow_ai: bool = False) -> tuple[str, ...]:
    """The command that serves where nobody reads what it prints. ``port``: of the page, None: without it."""
    server = () if port is None else ("--server", "--port", str(port), "--no-link")
    return ("up", *server, *(("--work",) if work else ()), *(("--allow-ai",) if allow_ai else ()))


def _serve_pages(roots: list[Path], port: int, *, has_link: bool) -> AbstractContextManager[Any]:
    """The page of these workspaces, in a thread of this process."""
    page_server.require_packages("cleared up --server")
    return page_server.serve_in_background(make_server(roots, port, False, Exposure(), has_link=has_link))


def stop_service(
    now: Annotated[bool, typer.Option("--now", help="Break off the run that is on, with nothing of it done.")] = False,
    wait: WaitOption = 60.0,
    workspace: WorkspaceOption = None,
) -> None:
    """Stop the service after the current run."""
    ended = service_of(find_workspace(chosen_workspace(workspace)) / Layout.state).end(now=now, wait=wait)
    print_message(f"down: process {ended.pid} has ended" if ended else "the service was not up")
