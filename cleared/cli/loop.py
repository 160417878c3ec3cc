"""``cleared loop …``: runs jobs, one at a time, in the order they are asked for. ``up`` runs agents by triggers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cleared.base.terminal import print_json, print_line, print_message
from cleared.changes.host_cache import HostCache
from cleared.cli import loop_status
from cleared.cli.command_groups import new_group
from cleared.cli.loop_options import (
    AllowEngineOption,
    AllowOption,
    CyclesOption,
    DryOption,
    InitOption,
    LogOption,
    RotateOption,
    RuntimeOption,
    SessionOption,
    SleepOption,
    open_loop,
)
from cleared.cli.options import JsonOption, WaitOption, WorkspaceOption, open_host

app = new_group()


@app.command("init")
def init_loop(runtime_dir: RuntimeOption = None, workspace: WorkspaceOption = None) -> None:
    """Make a fresh state. The state that was there is archived, jobs that waited with it."""
    from cleared.work.loop.control import init_loop as do

    host, knobs = open_loop(workspace, runtime_dir=runtime_dir)
    do(host, knobs)
    print_line(str(knobs.runtime.state_path))


@app.command("run")
def run_loop(
    once: Annotated[bool, typer.Option("--once", help="One cycle: at most one job.")] = False,
    loop: Annotated[bool, typer.Option("--loop", help="Go on until told to end (as without --once).")] = False,
    auto_rotate: RotateOption = None,
    sleep: SleepOption = None,
    max_cycles: CyclesOption = None,
    init: InitOption = None,
    enqueue: Annotated[
        str | None, typer.Option("--enqueue", metavar="TYPE", help="Enqueue a job of this type first.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="T", help="What that job is for.")] = None,
    allow_ai_turn: AllowOption = None,
    ai_dry_run: DryOption = None,
    allow_ai: AllowEngineOption = False,
    runtime_dir: RuntimeOption = None,
    log_dir: LogOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Be the loop, in the foreground. Ctrl-C ends it after the job that is on; a second one ends that job too.

    Exits 0 after its cycles, also where jobs failed; 1 where a loop without an end stopped because a kind kept failing;
    3 where something was asked for that may not be run; 5 where a loop runs in that directory already.
    """
    from cleared.work.loop import control
    from cleared.work.loop.runner import run_loop as do

    if once and (loop or max_cycles is not None):
        raise typer.BadParameter("--once is one cycle: it goes with neither --loop nor --max-cycles")
    if target is not None and enqueue is None:
        raise typer.BadParameter("--target is for --enqueue TYPE")
    host, knobs = open_loop(
        workspace,
        auto_rotate=auto_rotate,
        sleep_seconds=sleep,
        max_cycles=max_cycles,
        init_on_start=init,
        allow_ai_turn=allow_ai_turn,
        ai_dry_run=ai_dry_run,
        allow_ai=allow_ai,
        runtime_dir=runtime_dir,
        log_dir=log_dir,
    )
    fresh = knobs.init_on_start
    if fresh and enqueue is not None:
        control.init_loop(host, knobs)
        fresh = False
    if enqueue is not None:
        print_message(f"enqueued {control.enqueue_job(host, knobs, enqueue, target)}")
    stop = do(host, HostCache(lambda: open_host(host.root)), knobs, once=once, init=fresh)
    if stop is not None and stop["code"] == "safety_stop":
        raise typer.Exit(3)
    if stop is not None and stop["code"] == "repeated_failure" and not once and knobs.max_cycles is None:
        raise typer.Exit(1)


@app.command("enqueue")
def enqueue_job(
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="As cleared loop job-types shows it; or agent:NAME.")],
    target: Annotated[str | None, typer.Option("--target", metavar="T", help="What it is for.")] = None,
    runtime_dir: RuntimeOption = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Ask the loop for a job; prints its id. Something that may not be run is refused (3), and a running loop stops."""
    from cleared.work.loop.control import enqueue_job as do

    host, knobs = open_loop(workspace, runtime_dir=runtime_dir)
    job = do(host, knobs, kind, target)
    if json:
        print_json({"job_id": job})
    else:
        print_line(job)


@app.command("start")
def start_loop(
    auto_rotate: RotateOption = None,
    sleep: SleepOption = None,
    max_cycles: CyclesOption = None,
    init: InitOption = None,
    allow_ai_turn: AllowOption = None,
    ai_dry_run: DryOption = None,
    allow_ai: AllowEngineOption = False,
    session: SessionOption = None,
    runtime_dir: RuntimeOption = None,
    log_dir: LogOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Run the loop in the background; in a tmux session where one is named. Exits 5 where one runs already."""
    from cleared.work.loop.control import start_loop as do

    host, knobs = open_loop(
        workspace,
        auto_rotate=auto_rotate,
        sleep_seconds=sleep,
        max_cycles=max_cycles,
        init_on_start=init,
        allow_ai_turn=allow_ai_turn,
        ai_dry_run=ai_dry_run,
        allow_ai=allow_ai,
        tmux_session=session,
        runtime_dir=runtime_dir,
        log_dir=log_dir,
    )
    started = do(host, knobs)
    if started is None:
        print_message("the loop has done its cycles and ended. See: cleared loop status.")
    else:
        where = f" in the tmux session {knobs.tmux_session}" if knobs.tmux_session else ""
        print_message(
            f"the loop is up: process {started.pid}{where}. See: cleared loop status. Stop it: cleared loop stop."
        )


@app.command("stop")
def stop_loop(
    now: Annotated[bool, typer.Option("--now", help="End the job that is on, too; it is recorded as failed.")] = False,
    wait: WaitOption = 60.0,
    session: SessionOption = None,
    runtime_dir: RuntimeOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Have the loop end after the job that is on."""
    from cleared.work.loop.control import stop_loop as do

    host, knobs = open_loop(workspace, tmux_session=session, runtime_dir=runtime_dir)
    ending = do(host, knobs, now=now, wait=wait)
    print_message(f"the loop has ended (process {ending.pid})" if ending else "no loop was running")


@app.command("pause")
def pause_loop(runtime_dir: RuntimeOption = None, workspace: WorkspaceOption = None) -> None:
    """Have no further job started until cleared loop resume; the loop stays up."""
    _set_pause("pause", runtime_dir, workspace)


@app.command("resume")
def resume_loop(runtime_dir: RuntimeOption = None, workspace: WorkspaceOption = None) -> None:
    """Go on after cleared loop pause."""
    _set_pause("resume", runtime_dir, workspace)


def _set_pause(what: Literal["pause", "resume"], runtime_dir: Path | None, workspace: Path | None) -> None:
    from cleared.work.loop.control import set_paused as do

    host, knobs = open_loop(workspace, runtime_dir=runtime_dir)
    do(host, knobs, what)
    print_message("paused: no further job is started" if what == "pause" else "resumed")


@app.command("serve")
def serve_loop_status(
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Where; 0 takes a port that is free.")
    ] = 8642,
    runtime_dir: RuntimeOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the loop in a browser of this machine, and as JSON for programs; to be read only. Ctrl-C ends it.

    cleared server shows it as one of its pages. Without its packages: cleared loop tree --json.
    """
    from cleared.web.loop_server import serve_loop
    from cleared.web.page_server import require_packages

    require_packages("cleared loop serve", "cleared loop tree --json prints the same tree without them.")
    _, knobs = open_loop(workspace, runtime_dir=runtime_dir)
    serve_loop(knobs.runtime, port)


loop_status.register_status_commands(app)
