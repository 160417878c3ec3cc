"""``cleared fleet list``, ``status`` and ``queue``: how a fleet is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from msgspec import to_builtins

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.base.terminal import print_json, print_line, print_table
from cleared.cli.options import JsonOption, read_clock
from cleared.service.fleet import fleet_home
from cleared.service.fleet.fleet_calls import list_waiting_calls
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import Fleet
from cleared.service.fleet.fleet_records import WorkspaceRecord
from cleared.service.fleet.fleet_status import FleetStatus, read_fleet_status
from cleared.service.fleet.job_queue import count_jobs
from cleared.service.fleet.kept_connections import KeptConnections
from cleared.service.fleet.owner_statements import WorkspaceStatement, read_statement
from cleared.workspace.watched_names import escape_name

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As cleared fleet list shows it.")]


@contextmanager
def open_fleet() -> Iterator[tuple[Fleet, FleetDatabase]]:
    """The fleet that this machine belongs to, and its database. Raises ``ClearedError`` where there is none."""
    fleet_home.require_packages()
    fleet = fleet_home.read_fleet()
    with FleetDatabase.connect(fleet.database) as database:
        database.check_version()
        yield fleet, database


def list_workspaces(json: JsonOption = False) -> None:
    """List the workspaces: what is wrong first, then what waits for a person."""
    with open_fleet() as (fleet, database):
        records, jobs = database.list_workspaces(), count_jobs(database)
        rows = [_describe(fleet, record, jobs) for record in records]
    if json:
        print_json(rows)
        return
    print_table(
        ["workspace", "cards", "jobs", "last look", "next look", "problem"],
        (
            (
                row["name"],
                row["cards"] or "",
                row["waiting"] + row["doing"] or "",
                row["looked_at"] or "",
                row["due"] or "",
                row["problem"],
            )
            for row in rows
        ),
        wrap=["problem"],
        empty="The fleet has no workspace yet: cleared fleet add NAME GIT-URL.",
    )


def _describe(fleet: Fleet, record: WorkspaceRecord, jobs: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    waiting, doing = jobs.get(record.name, (0, 0))
    try:
        said = read_statement(fleet.owner, record.signed, WorkspaceStatement)
        about: dict[str, Any] = {"url": said.url, "branch": said.branch, "books": said.books}
        about |= {"spread_seconds": said.spread_seconds, "budget_seconds": said.budget_seconds}
        problem = record.problem
    except PolicyError as error:
        about, problem = {}, str(error)
    return {
        "name": record.name,
        "cards": record.cards,
        "waiting": waiting,
        "doing": doing,
        "head": record.head,
        "looked_at": format_iso(record.looked_at) if record.looked_at else None,
        "due": format_iso(record.due) if record.due else None,
        "problem": problem,
        "spent_seconds": round(record.spent_seconds, 3),
        **about,
    }


def show_status(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="One workspace; without, the whole fleet.")] = "",
    json: JsonOption = False,
) -> None:
    """Show how the fleet is, or one workspace with its files that wait."""
    with open_fleet() as (fleet, database):
        if name:
            row = _describe(fleet, database.read_workspace(name), count_jobs(database))
            row["files"] = [
                {"name": f.name, "sha256": f.digest, "at": format_iso(f.at)} for f in database.list_files(name)
            ]
            row["calls"] = [
                {"id": call.id, "agent": call.agent, "at": format_iso(call.received)}
                for call in list_waiting_calls(database, name)[0]
            ]
        else:
            row = to_builtins(read_fleet_status(fleet, database, read_clock().now()))
    if json:
        print_json(row)
        return
    for key, value in row.items():
        if key == "neediest":
            continue
        if key == "ended":
            value = ", ".join(f"{jobs} {outcome.replace('_', ' ')}" for outcome, jobs in value.items())
        if isinstance(value, list):
            value = ", ".join(map(_name_waiting, value)) or "none wait"
        print_line(f"{key.replace('_', ' ')}: {value if value is not None else '-'}")


def _name_waiting(each: Mapping[str, str]) -> str:
    """A dropped file, or a call of a webhook."""
    if "sha256" in each:
        return f"{escape_name(each['name'])} ({each['sha256'][:8]})"
    return f"{escape_name(each['id'])} ({escape_name(each['agent'])})"


def read_status(fleet: Fleet, connections: KeptConnections) -> FleetStatus:
    """How the fleet is now."""
    with connections.connected() as database:
        return read_fleet_status(fleet, database, read_clock().now())


def show_queue(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Only this workspace's.")] = "", json: JsonOption = False
) -> None:
    """Show the jobs that wait, and those that are on."""
    with open_fleet() as (_, database):
        if name:
            database.read_workspace(name)
        rows = [
            {"workspace": workspace, "waiting": waiting, "doing": doing}
            for workspace, (waiting, doing) in sorted(count_jobs(database).items())
            if name in ("", workspace)
        ]
    if json:
        print_json(rows)
        return
    print_table(
        ["workspace", "waiting", "being done"],
        ((row["workspace"], row["waiting"], row["doing"]) for row in rows),
        empty="No job waits.",
    )
