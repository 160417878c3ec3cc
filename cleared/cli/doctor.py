"""``cleared doctor``: what this machine and this workspace are fit for, each thing with its remedy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import asdict

from cleared.base.errors import ExitCode
from cleared.base.terminal import print_json, print_line, print_message
from cleared.changes.consumed_events import INDEX
from cleared.changes.trace import TraceStore
from cleared.cli.doctor_machine import check_machine
from cleared.cli.doctor_row import Row
from cleared.cli.doctor_workspace import check_workspace
from cleared.cli.options import JsonOption, WorkspaceOption, open_host, tell_directory


def run_doctor(
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Complete an interrupted commit and begin the trace database anew.")
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Check this machine and workspace: git, sandbox, confinement, locks, stale files.

    Each row is ok, warn or fail, with its remedy; a check that fails never stops the others. Exits 4 where one fails.
    With --rebuild the old trace database is kept beside the new one.
    """
    rebuilt = _rebuild_state(workspace) if rebuild else []
    rows = [*check_machine(), *rebuilt, *check_workspace(workspace)]
    failed = [row for row in rows if row.status == "fail"]
    if json:
        print_json({"ok": not failed, "checks": [asdict(row) for row in rows]})
    else:
        width = max(len(row.name) for row in rows)
        for row in rows:
            first, *more = row.detail.split("\n")
            print_line(f"{row.status:<4}  {row.name:<{width}}  {first}")
            for line in [*more, *([row.remedy] if row.remedy else [])]:
                print_line(f"{'':<{width + 8}}{line}")
        warned = sum(row.status == "warn" for row in rows)
        tell_directory(row.remedy for row in rows)
        print_message(
            f"{len(rows)} checks: {len(failed)} failed, {warned} to look at" if failed or warned else "All is well."
        )
    if failed:
        sys.stdout.flush()
        raise typer.Exit(int(ExitCode.UNUSABLE))


def _rebuild_state(workspace: Path | None) -> list[Row]:
    """Complete what was interrupted, then replace what is only operational."""
    host = open_host(workspace, despite_fault=True)
    with host.open_for_writing("doctor --rebuild"):
        aside = TraceStore(host.layout.state_dir).rebuild()
        (host.layout.state_dir / INDEX).unlink(missing_ok=True)  # read off the history again when it is asked for
    old_state = f"; the old one is {aside.relative_to(host.root).as_posix()}" if aside else ""
    return [Row("rebuild", "ok", f"the trace database is new{old_state}")]
