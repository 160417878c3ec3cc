"""``loop``: runs jobs, one at a time, in the order they are asked for. ``up`` runs agents when their triggers fire."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.terminal import escape_text, print_fields, print_json, print_line, print_message, print_table

if TYPE_CHECKING:
    from cleared.changes.host import Host
    from cleared.loop.loop_settings import LoopSettings

app = typer.Typer(
    help="Run jobs one at a time: reports, checks, agent runs.\n\n"
    "cleared up runs agents when their triggers fire; cleared loop runs jobs, one at a time, in the order they are "
    "asked for.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RuntimeOption = Annotated[
    Path | None,
    typer.Option(
        "--runtime-dir", metavar="DIR", show_default=False,
        help="Where the loop's files are (SINGLE_AGENT_RUNTIME_DIR, loop.runtime_dir; else .cleared/loop).",
    ),
]  # fmt: skip
LogOption = Annotated[
    Path | None, typer.Option("--log-dir", metavar="DIR", help="Where its log is (SINGLE_AGENT_LOG_DIR).")
]
SleepOption = Annotated[
    float | None,
    typer.Option("--sleep", metavar="S", min=0, max=86_400, help="Seconds between cycles when no job waits "
                 "(SINGLE_AGENT_SLEEP_SECONDS)."),
]  # fmt: skip
CyclesOption = Annotated[
    int | None, typer.Option("--max-cycles", metavar="N", min=1, help="End after N cycles (SINGLE_AGENT_MAX_CYCLES).")
]
RotateOption = Annotated[
    bool | None,
    typer.Option("--auto-rotate/--no-auto-rotate", help="When no job waits, enqueue the next of loop.rotation.",
                 show_default=False),
]  # fmt: skip
InitOption = Annotated[
    bool | None,
    typer.Option("--init/--no-init", help="Begin with a fresh state; the old one is archived "
                 "(SINGLE_AGENT_INIT_ON_START).", show_default=False),
]  # fmt: skip
AllowOption = Annotated[
    bool | None,
    typer.Option("--allow-ai-turn/--no-allow-ai-turn", help="Let ai_single_turn_bridge do anything at all "
                 "(SINGLE_AGENT_ALLOW_AI_TURN).", show_default=False),
]  # fmt: skip
DryOption = Annotated[
    bool | None,
    typer.Option("--ai-dry-run/--no-ai-dry-run", help="Have it write what it would ask, and ask nobody "
                 "(SINGLE_AGENT_AI_DRY_RUN).", show_default=False),
]  # fmt: skip
SessionOption = Annotated[
    str | None,
    typer.Option("--session", metavar="NAME", help="The tmux session to run in (SINGLE_AGENT_TMUX_SESSION)."),
]
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Its id, as cleared loop jobs shows it.")]


def _open_loop(workspace: Path | None, **flags: Any) -> tuple[Host, LoopSettings]:
    from cleared.loop.loop_settings import read_settings

    host = open_host(workspace)
    for name in ("runtime_dir", "log_dir"):  # as typed: below the directory one is in, not below the workspace
        if flags.get(name) is not None:
            flags[name] = Path(flags[name]).absolute()
    return host, read_settings(host.root, host.config, flags)


@app.command("init")
def init_loop(runtime_dir: RuntimeOption = None, workspace: WorkspaceOption = None) -> None:
    """Make a fresh state. The state that was there is archived, jobs that waited with it."""
    from cleared.loop.control import init_loop as do

    host, knobs = _open_loop(workspace, runtime_dir=runtime_dir)
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
        str | None, typer.Option("--enqueue", metavar="KIND", help="Enqueue a job of this type first.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="T", help="What that job is for.")] = None,
    allow_ai_turn: AllowOption = None,
    ai_dry_run: DryOption = None,
    runtime_dir: RuntimeOption = None,
    log_dir: LogOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Be the loop, in the foreground. Ctrl-C ends it after the job that is on; a second one ends that job too.

    Exits 0 after its cycles, also where jobs failed; 1 where a loop without an end stopped because a kind kept failing;
    3 where something was asked for that may not be run; 5 where a loop runs in that directory already.
    """
    from cleared.changes.host_cache import HostCache
    from cleared.loop import control
    from cleared.loop.runner import run_loop as do

    if once and (loop or max_cycles is not None):
        raise typer.BadParameter("--once is one cycle: it goes with neither --loop nor --max-cycles")
    if target is not None and enqueue is None:
        raise typer.BadParameter("--target is for --enqueue KIND")
    host, knobs = _open_loop(
        workspace, auto_rotate=auto_rotate, sleep_seconds=sleep, max_cycles=max_cycles, init_on_start=init,
        allow_ai_turn=allow_ai_turn, ai_dry_run=ai_dry_run, runtime_dir=runtime_dir, log_dir=log_dir,
    )  # fmt: skip
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
    kind: Annotated[str, typer.Argument(metavar="KIND", help="As cleared loop kinds shows it; or agent:NAME.")],
    target: Annotated[str | None, typer.Option("--target", metavar="T", help="What it is for.")] = None,
    runtime_dir: RuntimeOption = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Ask the loop for a job; prints its id. Something that may not be run is refused (3), and a running loop stops."""
    from cleared.loop.control import enqueue_job as do

    host, knobs = _open_loop(workspace, runtime_dir=runtime_dir)
    job = do(host, knobs, kind, target)
    if json:
        print_json({"job_id": job})
    else:
        print_line(job)


@app.command("status")
def show_loop_status(
    runtime_dir: RuntimeOption = None, json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Show how the loop is: what runs, what waits, why it stopped."""
    from cleared.jobs.loop_reader import read_status as read

    _, knobs = _open_loop(workspace, runtime_dir=runtime_dir)
    found = read(knobs.runtime)
    if json:
        print_json(found)
    else:
        _print_status(found)


def _print_status(found: dict[str, Any]) -> None:
    on, stop, counts, last = found["running"], found["stop"], found["counts"], found["last_job"]
    print_fields(
        [
            ("loop", f"up since {found['since']} (process {found['pid']})" if found["up"] else "not running"),
            ("state", f"{found['status']}: {stop['reason']}" if stop else found["status"]),
            ("cycles", found["cycles"]),
            ("running", f"{on['job_id']} since {on['started_at']}" if on else "nothing"),
            ("waiting", ", ".join(i["kind"] for i in found["queued"][:10]) or "nothing"),
            ("ended", f"{counts['succeeded']} succeeded, {counts['failed']} failed, "
                      f"{counts['failed_or_no_result']} without a result"),
            ("last", f"{last['job_id']} {last['status']}: {last['summary']}" if last else "none"),
            ("files", found["runtime_dir"]),
        ]
    )  # fmt: skip
    for item in found["safety_stops"][-3:]:
        print_line(f"! {item['at']} refused {item['kind']}: {item['reason']}")
    for item in found["notices"][-3:]:
        print_line(f"! {item['at']} {item['text']}")


@app.command("tree")
def show_tree(runtime_dir: RuntimeOption = None, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show the tree as it was last written: summary, jobs, what is known."""
    from cleared.jobs.loop_reader import read_tree

    _, knobs = _open_loop(workspace, runtime_dir=runtime_dir)
    found = read_tree(knobs.runtime)
    if json:
        print_json(found)
        return
    print_fields([(k.replace("_", " "), v if v is not None else "none") for k, v in found["summary"].items()])
    print_line("")
    _print_jobs(list(reversed(found["jobs"])))
    if found["knowledge"]:
        print_line("")
    for item in reversed(found["knowledge"]):
        print_line(f"{item['at']} {item['kind']}: {item['text']}")


@app.command("jobs")
def list_jobs(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many.")] = 25,
    runtime_dir: RuntimeOption = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List jobs, newest first: waiting, running, ended."""
    from cleared.jobs.loop_reader import list_jobs as read

    _, knobs = _open_loop(workspace, runtime_dir=runtime_dir)
    found = read(knobs.runtime, limit)
    if json:
        print_json(found)
    else:
        _print_jobs(found)


def _print_jobs(found: list[dict[str, Any]]) -> None:
    print_table(
        ["job", "target", "status", "ended", "seconds", "summary"],
        (
            (r["job_id"], r["target"], r["status"], r["ended_at"] or "",
             "" if r["duration_sec"] is None else f"{r['duration_sec']:.1f}", r["summary"][:100])
            for r in found
        ),
        right=["seconds"],
        empty="No jobs yet. Enqueue one: cleared loop enqueue KIND.",
    )  # fmt: skip


@app.command("show")
def show_job(
    job: JobArgument, runtime_dir: RuntimeOption = None, json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Show a job: how it ended, what it was allowed, what it printed."""
    from cleared.jobs.loop_reader import read_job as read

    _, knobs = _open_loop(workspace, runtime_dir=runtime_dir)
    found = read(knobs.runtime, job)
    if json:
        print_json(found)
        return
    result, manifest = found["result"], found["manifest"]
    print_fields([(k, v) for k, v in result.items() if k not in ("schema_version", "manifest_path", "wakeup_written")])
    if manifest is not None:
        ran = " ".join(manifest["command"]) or manifest["function"]
        print_fields([("asked for by", manifest["by"]), ("ran", ran),
                ("might read", ", ".join(manifest["reads"]) or "its target"),
                ("might write", ", ".join(manifest["writes"]) or "nothing")])  # fmt: skip
    if found["output"]:
        print_line("")
        print_line(found["output"].rstrip("\n"))


@app.command("kinds")
def list_job_types(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the job types there are. Nothing else can be run."""
    from cleared.jobs.job_types import load_job_types as read

    host = open_host(workspace)
    turn = host.config.loop.rotation
    found = list(read(host.config).values())
    if json:
        print_json(
            [
                {"name": k.name, "about": k.about, "target": k.target, "command": list(k.command),
                 "function": k.function or None, "reads": list(k.reads), "writes": list(k.writes),
                 "timeout": k.timeout, "max_output": k.max_output, "in_rotation": k.name in turn}
                for k in found
            ]
        )  # fmt: skip
        return
    print_table(
        ["kind", "target", "limit", "rotates", "what it does"],
        ((k.name, "" if k.target == "none" else k.target, f"{k.timeout:g} s", str(turn.index(k.name) + 1)
          if k.name in turn else "", k.about) for k in found),
        empty="",
    )  # fmt: skip


@app.command("start")
def start_loop(
    auto_rotate: RotateOption = None,
    sleep: SleepOption = None,
    max_cycles: CyclesOption = None,
    init: InitOption = None,
    allow_ai_turn: AllowOption = None,
    ai_dry_run: DryOption = None,
    session: SessionOption = None,
    runtime_dir: RuntimeOption = None,
    log_dir: LogOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Run the loop in the background; in a tmux session where one is named. Exits 5 where one runs already."""
    from cleared.loop.control import start_loop as do

    host, knobs = _open_loop(
        workspace, auto_rotate=auto_rotate, sleep_seconds=sleep, max_cycles=max_cycles, init_on_start=init,
        allow_ai_turn=allow_ai_turn, ai_dry_run=ai_dry_run, tmux_session=session, runtime_dir=runtime_dir,
        log_dir=log_dir,
    )  # fmt: skip
    found = do(host, knobs)
    if found is None:
        print_message("the loop has done its cycles and ended. See: cleared loop status.")
    else:
        where = f" in the tmux session {knobs.tmux_session}" if knobs.tmux_session else ""
        print_message(
            f"the loop is up: process {found.pid}{where}. See: cleared loop status. Stop it: cleared loop stop."
        )


@app.command("stop")
def stop_loop(
    now: Annotated[bool, typer.Option("--now", help="End the job that is on, too; it is recorded as failed.")] = False,
    wait: Annotated[float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for it.")] = 60.0,
    session: SessionOption = None,
    runtime_dir: RuntimeOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Have the loop end after the job that is on."""
    from cleared.loop.control import stop_loop as do

    host, knobs = _open_loop(workspace, tmux_session=session, runtime_dir=runtime_dir)
    found = do(host, knobs, now=now, wait=wait)
    print_message(f"the loop has ended (process {found.pid})" if found else "no loop was running")


@app.command("pause")
def pause_loop(runtime_dir: RuntimeOption = None, workspace: WorkspaceOption = None) -> None:
    """Have no further job started until cleared loop resume; the loop stays up."""
    _set_pause("pause", runtime_dir, workspace)


@app.command("resume")
def resume_loop(runtime_dir: RuntimeOption = None, workspace: WorkspaceOption = None) -> None:
    """Go on after cleared loop pause."""
    _set_pause("resume", runtime_dir, workspace)


def _set_pause(what: Literal["pause", "resume"], runtime_dir: Path | None, workspace: Path | None) -> None:
    from cleared.loop.control import set_paused as do

    host, knobs = _open_loop(workspace, runtime_dir=runtime_dir)
    do(host, knobs, what)
    print_message("paused: no further job is started" if what == "pause" else "resumed")


@app.command("tail")
def show_loop_log(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="How many of the newest.")] = 50,
    runtime_dir: RuntimeOption = None,
    log_dir: LogOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the loop's log."""
    _, knobs = _open_loop(workspace, runtime_dir=runtime_dir, log_dir=log_dir)
    from cleared.jobs.loop_reader import read_log

    shown, at = read_log(knobs.runtime, lines)
    for line in shown:
        print_line(escape_text(line))
    while follow:
        sys.stdout.flush()
        time.sleep(0.2)
        shown, at = read_log(knobs.runtime, None, at)
        for line in shown:
            print_line(escape_text(line))


@app.command("monitor")
def monitor_loop(
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.2, max=3600, help="How often.")] = 1.0,
    runtime_dir: RuntimeOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the status and the last jobs over and over, until Ctrl-C; on anything but a terminal, once."""
    from cleared.jobs.loop_reader import list_jobs as read_jobs
    from cleared.jobs.loop_reader import read_status as read

    _, knobs = _open_loop(workspace, runtime_dir=runtime_dir)
    terminal = sys.stdout.isatty()
    while True:
        found, rows = read(knobs.runtime), read_jobs(knobs.runtime, 10)
        if terminal:
            sys.stdout.write("\x1b[H\x1b[2J")
        _print_status(found)
        print_line("")
        _print_jobs(rows)
        sys.stdout.flush()
        if not terminal:
            return
        time.sleep(every)


@app.command("serve")
def serve_loop_status(
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Where; 0 takes a port that is free.")
    ] = 8642,
    runtime_dir: RuntimeOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the loop in a browser of this machine, and as JSON for programs; to be read only. Ctrl-C ends it."""
    from cleared.loop.status_server import serve_status as do

    host, knobs = _open_loop(workspace, runtime_dir=runtime_dir)
    do(knobs.runtime, port, host.clock, print_message)
