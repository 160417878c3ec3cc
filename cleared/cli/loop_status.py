"""``cleared loop status|tree|jobs|show|job-types|tail|monitor``: what the loop does and did."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer

from cleared.base.terminal import print_fields, print_json, print_line, print_table
from cleared.cli.log_following import follow_logs
from cleared.cli.loop_options import JobArgument, LogOption, RuntimeOption, open_loop
from cleared.cli.options import FollowOption, JsonOption, LinesOption, WorkspaceOption, open_host
from cleared.jobs import loop_reader
from cleared.jobs.loop_reader import read_tree


def register_status_commands(app: typer.Typer) -> None:
    """Put these commands into the group ``cleared loop``."""
    for name, function in (
        ("status", show_loop_status),
        ("tree", show_tree),
        ("jobs", list_jobs),
        ("show", show_job),
        ("job-types", list_job_types),
        ("tail", show_loop_log),
        ("monitor", monitor_loop),
    ):
        app.command(name)(function)


def show_loop_status(
    runtime_dir: RuntimeOption = None, json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Show how the loop is: what runs, what waits, why it stopped."""
    _, knobs = open_loop(workspace, runtime_dir=runtime_dir)
    status = loop_reader.read_status(knobs.runtime)
    if json:
        print_json(status)
    else:
        _print_status(status)


def _print_status(status: dict[str, Any]) -> None:
    on, stop, counts, last = status["running"], status["stop"], status["counts"], status["last_job"]
    print_fields(
        [
            ("loop", f"up since {status['since']} (process {status['pid']})" if status["up"] else "not running"),
            ("state", f"{status['status']}: {stop['reason']}" if stop else status["status"]),
            ("cycles", status["cycles"]),
            ("running", f"{on['job_id']} since {on['started_at']}" if on else "nothing"),
            ("waiting", ", ".join(_describe_waiting(i) for i in status["queued"][:10]) or "nothing"),
            (
                "ended",
                f"{counts['succeeded']} succeeded, {counts['failed']} failed, "
                f"{counts['failed_or_no_result']} without a result",
            ),
            ("last", f"{last['job_id']} {last['status']}: {last['summary']}" if last else "none"),
            ("files", status["runtime_dir"]),
        ]
    )
    for item in status["safety_stops"][-3:]:
        print_line(f"! {item['at']} refused {item['kind']}: {item['reason']}")
    for item in status["notices"][-3:]:
        print_line(f"! {item['at']} {item['text']}")


def _describe_waiting(job: dict[str, Any]) -> str:
    if job.get("is_held"):
        return f"{job['kind']} (held)"
    return f"{job['kind']} (not before {job['not_before']})" if job.get("not_before") else str(job["kind"])


def show_tree(runtime_dir: RuntimeOption = None, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show the tree as it was last written: summary, jobs, what is known."""
    _, knobs = open_loop(workspace, runtime_dir=runtime_dir)
    tree = read_tree(knobs.runtime)
    if json:
        print_json(tree)
        return
    print_fields([(k.replace("_", " "), v if v is not None else "none") for k, v in tree["summary"].items()])
    print_line("")
    _print_jobs(list(reversed(tree["jobs"])))
    if tree["knowledge"]:
        print_line("")
    for item in reversed(tree["knowledge"]):
        print_line(f"{item['at']} {item['kind']}: {item['text']}")


def list_jobs(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many.")] = 25,
    runtime_dir: RuntimeOption = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List jobs, newest first: waiting, running, ended."""

    _, knobs = open_loop(workspace, runtime_dir=runtime_dir)
    jobs = loop_reader.list_jobs(knobs.runtime, limit)
    if json:
        print_json(jobs)
    else:
        _print_jobs(jobs)


def _print_jobs(jobs: list[dict[str, Any]]) -> None:
    print_table(
        ["job", "target", "status", "ended", "seconds", "summary"],
        (
            (
                r["job_id"],
                r["target"],
                r["status"],
                r["ended_at"] or "",
                "" if r["duration_sec"] is None else f"{r['duration_sec']:.1f}",
                r["summary"],
            )
            for r in jobs
        ),
        right=["seconds"],
        wrap=["summary", "ended", "seconds", "target"],
        empty="No jobs yet. Enqueue one: cleared loop enqueue KIND.",
    )


def show_job(
    job: JobArgument, runtime_dir: RuntimeOption = None, json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Show a job: how it ended, what it was allowed, what it printed."""

    _, knobs = open_loop(workspace, runtime_dir=runtime_dir)
    details = loop_reader.read_job(knobs.runtime, job)
    if json:
        print_json(details)
        return
    result, manifest = details["result"], details["manifest"]
    print_fields([(k, v) for k, v in result.items() if k not in ("schema_version", "manifest_path", "wakeup_written")])
    if manifest is not None:
        ran = " ".join(manifest["command"]) or manifest["function"]
        print_fields(
            [
                ("asked for by", manifest["by"]),
                ("ran", ran),
                ("might read", ", ".join(manifest["reads"]) or "its target"),
                ("might write", ", ".join(manifest["writes"]) or "nothing"),
            ]
        )
    if details["output"]:
        print_line("")
        print_line(details["output"].rstrip("\n"))


def list_job_types(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the job types there are. Nothing else can be run."""
    from cleared.jobs.job_types import load_job_types

    host = open_host(workspace)
    turn = host.config.loop.rotation
    job_types = list(load_job_types(host.config).values())
    if json:
        print_json(
            [
                {
                    "name": k.name,
                    "about": k.about,
                    "target": k.target,
                    "command": list(k.command),
                    "function": k.function or None,
                    "reads": list(k.reads),
                    "writes": list(k.writes),
                    "timeout": k.timeout,
                    "max_output": k.max_output,
                    "in_rotation": k.name in turn,
                }
                for k in job_types
            ]
        )
        return
    print_table(
        ["kind", "target", "limit", "rotates", "what it does"],
        (
            (
                k.name,
                "" if k.target == "none" else k.target,
                f"{k.timeout:g} s",
                str(turn.index(k.name) + 1) if k.name in turn else "",
                k.about,
            )
            for k in job_types
        ),
        wrap=["what it does"],
        empty="",
    )


def show_loop_log(
    follow: FollowOption = False,
    lines: LinesOption = 50,
    runtime_dir: RuntimeOption = None,
    log_dir: LogOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the loop's log."""
    _, knobs = open_loop(workspace, runtime_dir=runtime_dir, log_dir=log_dir)
    follow_logs([knobs.runtime.log_path], lines, follow=follow)


def monitor_loop(
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.2, max=3600, help="How often.")] = 1.0,
    runtime_dir: RuntimeOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the status and the last jobs over and over, until Ctrl-C; on anything but a terminal, once."""
    _, knobs = open_loop(workspace, runtime_dir=runtime_dir)
    terminal = sys.stdout.isatty()
    while True:
        status, rows = loop_reader.read_status(knobs.runtime), loop_reader.list_jobs(knobs.runtime, 10)
        if terminal:
            sys.stdout.write("\x1b[H\x1b[2J")
        _print_status(status)
        print_line("")
        _print_jobs(rows)
        sys.stdout.flush()
        if not terminal:
            return
        time.sleep(every)
