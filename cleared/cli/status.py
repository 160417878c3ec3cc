"""``cleared status``, ``logs`` and ``schedule``: what agents that run by themselves did and will do."""

from __future__ import annotations

import json as jsonlib
import sys
import time
from typing import Annotated, Any

import typer

from cleared.base.growing_file import GrowingFile
from cleared.base.terminal import count_noun, escape_text, print_fields, print_json, print_line, print_table
from cleared.books.decisions.bank_agreement import describe_completeness, list_completeness
from cleared.cli.options import (
    AgentOption,
    FollowOption,
    JsonOption,
    LinesOption,
    WorkspaceOption,
    chosen_workspace,
    open_host,
    open_readable_host,
    tell_directory,
)
from cleared.service import status_report
from cleared.triggers.service_log import FILE_NAME, parse_rows, read_last_rows
from cleared.workspace.location import Layout, find_workspace


def show_status(
    check: Annotated[
        bool, typer.Option("--check", help="For monitors: exit 1 where a person should look, and say why.")
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show what is up, what each agent did last and does next, and what waits."""
    host = open_readable_host(workspace)
    status = status_report.service_status(host)
    if not check:
        status["accounts"] = list_completeness(host)
    if json:
        print_json(status)
    elif check:
        for line in status["trouble"] or ["healthy"]:
            print_line(line)
    else:
        _print_status(status)
    if check and status["trouble"]:
        raise typer.Exit(1)


def _print_status(status: dict[str, Any]) -> None:
    service = f"up since {status['since']} (process {status['pid']})" if status["up"] else "down (cleared up)"
    if status["fleet"] and not status["up"]:
        service = f"the workers of a fleet (cleared fleet status {status['fleet']})"
    if status["stopping"]:
        service += ", ends after the current run"
    on = status["running"]
    lock = status["lock"]
    waiting = status["deliveries"]["held"]
    print_fields(
        [
            ("service", service if status["ready"] or not status["up"] else f"{service}, starting"),
            ("running", f"{on['agent']} for {on['kind']} {on['key']}, since {on['since']}" if on else "nothing"),
            ("waiting", count_noun(status["deliveries"]["waiting"], "run") + (f", {waiting} held" if waiting else "")),
            (
                "queue",
                f"{count_noun(status['cards'], 'card')} to decide (cleared review)" if status["cards"] else "empty",
            ),
            ("lock", f"{lock['what']} (process {lock['pid']}, since {lock['since']})" if lock else "free"),
            ("confinement", status["confinement"] or "known while it is up"),
            ("notifications", _notification_text(status["notifications"], status["phones"])),
            ("backup", status["backup"]["summary"]),
            *([("not pushed", unpushed)] if (unpushed := status["backup"]["unpushed_summary"]) else []),
        ]
    )
    print_line("")
    for account in status["accounts"]:
        print_line(escape_text(describe_completeness(account)))
    print_table(
        ["agent", "starts on", "state", "last run", "ended", "next"],
        (
            (
                a["name"],
                ", ".join(a["on"]),
                "held" if a["held"] else a["state"],
                a["last_run"]["at"] if a["last_run"] else "never",
                a["last_run"]["status"] if a["last_run"] else "",
                a["next_due"] or "",
            )
            for a in status["agents"]
        ),
        wrap=["starts on", "next", "last run"],
        empty="No agent starts by itself: see trigger: in its header.",
    )
    if status["trouble"]:
        print_line("")
    for line in status["trouble"]:
        print_line(f"! {line}")
    tell_directory(status["trouble"])


def _notification_text(state: dict[str, Any], phones: dict[str, Any]) -> str:
    ways = []
    if state and state.get("method") not in (None, "none"):
        waiting = f", {state['waiting']} to be sent" if state.get("waiting") else ""
        ways.append(f"{state['method']}, {_last_text(state)}{waiting}")
    if phones:
        ways.append(f"{count_noun(phones['phones'], 'phone')}, {_last_text(phones)}")
    return "; ".join(ways) or "off"


def _last_text(state: dict[str, Any]) -> str:
    return f"last sent {state['last_sent_at']}" if state.get("last_sent_at") else "nothing sent yet"


def show_logs(
    follow: FollowOption = False,
    lines: LinesOption = 50,
    json: Annotated[bool, typer.Option("--json", help="As they are kept: one JSON object a line.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the service's log."""
    state_dir = find_workspace(chosen_workspace(workspace)) / Layout.state
    log = GrowingFile(state_dir / FILE_NAME)
    log.read_last(0)
    for row in read_last_rows(state_dir, lines):
        _print_log_row(row, json)
    while follow:
        sys.stdout.flush()
        time.sleep(0.2)
        for row in parse_rows(log.read_new()):
            _print_log_row(row, json)


def _print_log_row(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_line(jsonlib.dumps(row, ensure_ascii=True))
        return
    rest = " ".join(f"{k}={v}" for k, v in row.items() if k not in ("at", "level", "what", "text"))
    mark = {"error": "! ", "warning": "? "}.get(str(row.get("level")), "  ")
    print_line(escape_text(f"{mark}{row.get('at')} {row.get('what')} {row.get('text') or rest}".rstrip()))


def show_schedule(
    days: Annotated[float, typer.Option("--days", min=0.01, max=3660, help="How far ahead.")] = 7.0,
    agent: AgentOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many times.")] = 100,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show when agents come due in the coming days, in the schedule's own time and in UTC."""

    schedule = status_report.upcoming_runs(open_host(workspace), days, agent, limit)
    if json:
        print_json(schedule)
        return
    print_table(
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
            for r in schedule
        ),
        wrap=["schedule", "time zone", "UTC"],
        empty=f"Nothing comes due in the next {days:g} days.",
    )
