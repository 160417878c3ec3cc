"""``up``, ``down``, ``status``, ``logs``, ``schedule``, ``event``: agents that run by themselves."""

from __future__ import annotations

import json as jsonlib
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, chosen, host_of, payload_of
from cleared.cli.output import fields, out, out_json, safe, say, table

event_app = typer.Typer(help="Hand in events for agents.", no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    app.command("up")(up)
    app.command("down")(down)
    app.command("status")(status)
    app.command("logs")(logs)
    app.command("schedule")(schedule)


def up(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR", help="Workspaces to serve in one process; with --detach in one each (default: this one)."
        ),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Serve in the background.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Run agents by themselves: on their schedules, on dropped files, on events. Ctrl-C ends it.

    The first Ctrl-C (or SIGTERM) lets the run that is on end, a second one breaks it off with nothing of it done.
    Only one service serves a workspace (exit code 5); other commands work beside it.
    """
    from cleared.clock import clock_from
    from cleared.workspace.location import Layout, find

    if directories and workspace is not None:
        raise typer.BadParameter("give the workspaces as DIR…, or one with -C")
    named: list[Path | None] = [*directories] if directories else [chosen(workspace)]
    roots = list(dict.fromkeys(find(directory) for directory in named))
    if detach:
        from cleared.service.process_lock import detach as start

        for root in roots:
            host_of(root)  # what is wrong with it is said here
            found = start(root, root / Layout.state)
            say(f"up: process {found.pid} serves {root}. See: cleared status, cleared logs -f. Stop it: cleared down.")
        return
    from cleared.app import serve

    serve(roots, clock_from(os.environ.get("CLEARED_CLOCK")), say)


def down(
    now: Annotated[bool, typer.Option("--now", help="Break off the run that is on, with nothing of it done.")] = False,
    wait: Annotated[float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for it.")] = 60.0,
    workspace: WorkspaceOption = None,
) -> None:
    """Stop the service after the run that is on."""
    from cleared.service.process_lock import stop
    from cleared.workspace.location import Layout, find

    found = stop(find(chosen(workspace)) / Layout.state, now=now, wait=wait)
    say(f"down: process {found.pid} has ended" if found else "the service was not up")


def status(
    check: Annotated[
        bool, typer.Option("--check", help="For monitors: exit 1 where a person should look, and say why.")
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show what is up, what each agent did last and does next, and what waits."""
    from cleared.service.status_report import status as read

    found = read(host_of(workspace))
    if json:
        out_json(found)
    elif check:
        for line in found["trouble"] or ["healthy"]:
            out(line)
    else:
        _show(found)
    if check and found["trouble"]:
        raise typer.Exit(1)


def _show(found: dict[str, Any]) -> None:
    service = f"up since {found['since']} (process {found['pid']})" if found["up"] else "down (cleared up)"
    if found["stopping"]:
        service += ", ends after the run that is on"
    on = found["running"]
    lock = found["lock"]
    held = found["deliveries"]["held"]
    fields(
        [
            ("service", service if found["ready"] or not found["up"] else f"{service}, starting"),
            ("running", f"{on['agent']} for {on['kind']} {on['key']}, since {on['since']}" if on else "nothing"),
            ("waiting", _count(found["deliveries"]["waiting"], "run") + (f", {held} held" if held else "")),
            ("queue", f"{_count(found['cards'], 'card')} to decide (cleared review)" if found["cards"] else "empty"),
            ("lock", f"{lock['what']} (process {lock['pid']}, since {lock['since']})" if lock else "free"),
            ("confinement", found["confinement"] or "known while it is up"),
            ("notifications", _notified(found["notifications"])),
        ]
    )
    out("")
    table(
        ["agent", "starts on", "state", "last run", "ended", "next"],
        (
            (a["name"], ", ".join(a["on"]), "held" if a["held"] else a["state"],
             a["last_run"]["at"] if a["last_run"] else "never", a["last_run"]["status"] if a["last_run"] else "",
             a["next_due"] or "")
            for a in found["agents"]
        ),
        empty="No agent starts by itself: see trigger: in its header.",
    )  # fmt: skip
    if found["trouble"]:
        out("")
    for line in found["trouble"]:
        out(f"! {line}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _notified(state: dict[str, Any]) -> str:
    if not state or state.get("method") in (None, "none"):
        return "off"
    last = f"last sent {state['last_sent_at']}" if state.get("last_sent_at") else "nothing sent yet"
    return f"{state['method']}, {last}" + (f", {state['waiting']} to be sent" if state.get("waiting") else "")


def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="How many of the newest.")] = 50,
    json: Annotated[bool, typer.Option("--json", help="As they are kept: one JSON object a line.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the service's log."""
    from cleared.triggers.service_log import Follower, tail
    from cleared.workspace.location import Layout, find

    state_dir = find(chosen(workspace)) / Layout.state
    follower = Follower(state_dir)
    for row in tail(state_dir, lines):
        _line(row, json)
    while follow:
        sys.stdout.flush()
        time.sleep(0.2)
        for row in follower.read():
            _line(row, json)


def _line(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        out(jsonlib.dumps(row, ensure_ascii=True))
        return
    rest = " ".join(f"{k}={v}" for k, v in row.items() if k not in ("at", "level", "what", "text"))
    mark = {"error": "! ", "warning": "? "}.get(str(row.get("level")), "  ")
    out(safe(f"{mark}{row.get('at')} {row.get('what')} {row.get('text') or rest}".rstrip()))


def schedule(
    days: Annotated[float, typer.Option("--days", min=0.01, max=3660, help="How far ahead.")] = 7.0,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent's.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many times.")] = 100,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show when agents come due in the coming days, in the schedule's own time and in UTC."""
    from cleared.service.status_report import schedule as read

    found = read(host_of(workspace), days, agent, limit)
    if json:
        out_json(found)
        return
    table(
        ["local", "UTC", "agent", "schedule", "time zone", "state"],
        (
            (
                r["local"],
                r["utc"],
                r["agent"],
                r["schedule"],
                r["timezone"],
                r["state"] if r["state"] in ("approved", "starter") else f"{r['state']}: not run",
            )
            for r in found
        ),
        empty=f"Nothing comes due in the next {days:g} days.",
    )


@event_app.command("emit")
def emit(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as statement.received.")],
    data: Annotated[str, typer.Option("--data", metavar="JSON", help="What scripts get as its payload.")] = "null",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Hand in an event: one commit. Agents that listen to it run when the service is up."""
    from cleared.triggers.external_events import emit as do

    identity = do(host_of(workspace), name, payload_of(data))
    if json:
        out_json({"id": identity, "name": name})
    else:
        out(identity)
