"""``cleared run …``: what ran, and every call it made."""

from __future__ import annotations

import json as jsonlib
import sys
from typing import Annotated

import typer

from cleared.base.short_text import shorten_text
from cleared.base.terminal import print_fields, print_json, print_line, print_table
from cleared.cli.command_groups import new_group
from cleared.cli.options import AgentOption, JsonOption, RunArgument, WorkspaceOption, open_host
from cleared.runs.run_queries import read_run, read_runs

app = new_group()


@app.command("list")
def list_runs(
    agent: AgentOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 20,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List the newest runs first."""
    runs = read_runs(open_host(workspace), limit, agent)
    if json:
        print_json(runs)
        return
    print_table(
        ["run", "agent", "status", "started", "ms", "entries", "cards", "message"],
        (
            (
                r["run_id"],
                r["agent"],
                r["status"],
                r["started_at"],
                r["duration_ms"],
                r["entries"],
                r["cards"],
                r["error"] or r["message"],
            )
            for r in runs
        ),
        right=["ms", "entries", "cards"],
        wrap=["message", "started", "ms", "agent"],
        empty="Nothing has run yet: cleared agent run NAME",
    )


@app.command("show")
def show_past_run(
    run_id: RunArgument,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show a run: each primitive call, its script line, its result, its time."""
    run = read_run(open_host(workspace), run_id)
    if json:
        print_json(run)
        return
    skip = ("calls", "log", "entries", "cards", "commits", "event", "result", "error", "dry_run")
    print_fields((k, v) for k, v in run.items() if k not in skip)
    for key in ("commits", "entries", "cards"):
        if run.get(key):
            value = run[key]
            print_line(
                f"{key}: {', '.join(map(str, value[:20]))}{' …' if len(value) > 20 else ''}"
                if isinstance(value, list)
                else f"{key}: {value}"
            )
    if run.get("result") is not None:
        print_line(f"result: {jsonlib.dumps(run['result'], ensure_ascii=True)}")
    if run.get("error"):
        error = run["error"]
        print_line(f"error: {error['message'] if isinstance(error, dict) else error}")
    if run["calls"]:
        print_line("")
    print_table(
        ["#", "line", "call", "result", "ms"],
        (
            (
                c["number"],
                f"{c['file']}:{c['line']}",
                "  " * c["depth"] + c["name"] + _preview(_call_arguments(c["arguments"]), 92),
                c["error"] or _preview(c["result"] or "", 60),
                f"{c['duration_ms']:.2f}",
            )
            for c in run["calls"]
        ),
        right=["#", "ms"],
        wrap=["result", "call"],
        empty=run.get("note") or "It made no calls.",
    )
    for s in run.get("more_calls", ()):
        print_line(
            f"and {s['calls']:,} more calls of {s['name']} at {s['file']}:{s['line']}, between "
            f"#{s['first_number']} and #{s['last_number']}: {s['duration_ms']:,.0f} ms"
        )


def _preview(text: str, width: int) -> str:
    """The beginning of a long value on a terminal; in a pipe or a file all of it."""
    return shorten_text(text, width) if sys.stdout.isatty() else text


def _call_arguments(text: str) -> str:
    try:
        data = jsonlib.loads(text)
    except ValueError:
        return f"({text})"
    parts = [jsonlib.dumps(a, ensure_ascii=False) for a in data["args"]]
    parts += [f"{k}={jsonlib.dumps(v, ensure_ascii=False)}" for k, v in data["kwargs"].items()]
    return f"({', '.join(parts)})"
