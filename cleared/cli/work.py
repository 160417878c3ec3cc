"""``cleared work``: jobs, cycles and tasks in one list, and one way to end, pause and follow them."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.terminal import print_json, print_line, print_message, print_table
from cleared.cli.command_groups import DefaultingGroup
from cleared.cli.log_following import follow_logs
from cleared.cli.loop_options import open_loop
from cleared.cli.options import FollowOption, JsonOption, LinesOption, WaitOption, WorkspaceOption


class WorkGroup(DefaultingGroup):
    """``cleared work`` alone shows the list."""

    default = "status"


app = typer.Typer(cls=WorkGroup, rich_markup_mode=None)


@app.command("status")
def show_work(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show who works, and every job, cycle and task that is not done: its state, what is next, why it waits."""
    from cleared.work.overview import read_overview

    found = read_overview(*open_loop(workspace))
    if json:
        print_json(found)
        return
    for runner in found["runners"]:
        state = f"up since {runner['since']} (process {runner['pid']})" if runner["up"] else "not running"
        print_line(f"{runner['works_on']:<7} {runner['command']}: {state}")
    print_line("")
    print_table(
        ["kind", "id", "state", "next", "what", "why it waits"],
        ((r["kind"], r["id"], r["state"], r["next_at"] or "", r["title"], r["why"]) for r in found["work"]),
        wrap=["why it waits", "what", "next"],
        empty="Nothing waits and nothing is on: cleared loop enqueue, cleared cycle start, cleared task plan.",
    )


@app.command("stop")
def stop_all_work(
    now: Annotated[bool, typer.Option("--now", help="End what is on, too: an engine, a job, a task.")] = False,
    wait: WaitOption = 60.0,
    workspace: WorkspaceOption = None,
) -> None:
    """Have jobs, cycles and tasks end after what is on; what waits stays in its queue. Agents go on: cleared down."""
    from cleared.work.work_control import stop_work

    host, settings = open_loop(workspace)
    for line in stop_work(host, settings, now=now, wait=wait):
        print_message(line)


@app.command("pause")
def pause_all_work(workspace: WorkspaceOption = None) -> None:
    """Let no further job or cycle begin until cleared work resume, also after a restart of the machine."""
    from cleared.work.work_control import pause_work

    pause_work(*open_loop(workspace))
    print_message("Paused: no further job or cycle begins. Go on with: cleared work resume.")


@app.command("resume")
def resume_all_work(workspace: WorkspaceOption = None) -> None:
    """Let jobs and cycles begin again."""
    from cleared.work.work_control import resume_work

    resume_work(*open_loop(workspace))
    print_message("Jobs and cycles begin again.")


@app.command("log")
def show_work_log(follow: FollowOption = False, lines: LinesOption = 50, workspace: WorkspaceOption = None) -> None:
    """Show the logs of jobs, cycles and tasks together, in the order of time."""
    from cleared.work.overview import list_logs

    follow_logs(list_logs(*open_loop(workspace)), lines, follow=follow)
