"""``cleared fleet run``, ``drop``, ``withdraw`` and ``look``: what a person asks of a fleet."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from cleared.base.errors import BusyError, UsageError
from cleared.base.terminal import count_noun, print_json, print_line
from cleared.changes.host import current_user
from cleared.cli.fleet_status import NameArgument, open_fleet
from cleared.cli.options import JsonOption, parse_payload, read_clock
from cleared.service.fleet import job_queue
from cleared.service.fleet.fleet_calls import KeptCall, calls_folder, list_waiting_calls, save_call_result
from cleared.service.fleet.fleet_records import DroppedFile, Request
from cleared.service.fleet.object_store import FileStore
from cleared.triggers.webhook_calls import CallState
from cleared.trust.person_only import refuse_in_job
from cleared.workspace.watched_names import escape_name

_POLL_SECONDS: Final = 0.2


def run_agent(
    name: NameArgument,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The stem of its file in agents/.")],
    data: Annotated[str | None, typer.Option("--data", metavar="JSON", help="The event's payload.")] = None,
    key: Annotated[str, typer.Option("--key", metavar="TEXT", help="With the same key it runs once.")] = "",
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for its end.")
    ] = 60.0,
    json: JsonOption = False,
) -> None:
    """Have an agent run in a workspace, and wait for its end; exits 1 where it failed, 3 where it was refused."""
    refuse_in_job()
    with open_fleet() as (fleet, database):
        database.read_workspace(name)
        job_queue.refuse_full_queue(database)
        identity = key or f"fleet-{secrets.token_hex(8)}"
        payload = parse_payload(data) if data is not None else None
        request = Request(identity, name, agent, payload, "waiting", "", "")
        database.add_request(request, current_user(), read_clock().now())
        with job_queue.open_queue(fleet.database) as queue:
            job_queue.ask_for_job(queue, name, "run", identity)
        until = time.monotonic() + wait
        while (ended := database.read_request(request)) is not None and ended.status == "waiting":
            if time.monotonic() > until:
                raise BusyError(
                    f"{agent} of {name} has not had its run within {wait:g} seconds; it waits for a worker",
                    remedy=f"See: cleared fleet status {name}. To ask again for the same run: --key {identity}.",
                )
            time.sleep(_POLL_SECONDS)
    if ended is None:
        raise UsageError(f"{name} was taken out of the fleet meanwhile; {agent} has not had its run")
    if json:
        print_json({"key": identity, "status": ended.status, "said": ended.said, "commit": ended.commit or None})
    else:
        status = "waits for your answer" if ended.status == "asks" else ended.status
        commit = f" ({ended.commit[:10]})" if ended.commit else ""
        print_line(f"{agent}: {status}{commit}{f': {ended.said}' if ended.said else ''}")
    if ended.status in ("failed", "refused"):
        raise typer.Exit(1 if ended.status == "failed" else 3)


def look_at_workspaces(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="As cleared fleet list shows them.")],
) -> None:
    """Have a worker look at workspaces now: somebody has pushed. For a person, and for the git host's post-receive."""
    with open_fleet() as (fleet, database), job_queue.open_queue(fleet.database) as queue:
        for name in names:
            database.read_workspace(name)
        for name in names:
            job_queue.ask_for_job(queue, name, "push", "")
    print_line(f"{count_noun(len(names), 'workspace')} will be looked at.")


def drop_files(
    name: NameArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Bank files, as for cleared import.")],
    again: Annotated[
        bool, typer.Option("--again", help="Also what was dealt with before, such as an import that was undone.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Hand files in to a workspace: kept at once, imported by the next worker. The same file twice is one."""
    refuse_in_job()
    with open_fleet() as (fleet, database):
        database.read_workspace(name)
        job_queue.refuse_full_queue(database)
        store, dropped = FileStore(fleet.store), []
        try:  # all of them before the first is handed in
            contents = [(path.name, path.read_bytes()) for path in files]
        except OSError as error:
            raise UsageError(
                f"{error.filename} cannot be read: {error.strerror or error}; nothing was handed in",
                remedy="Name files that are there, and yours to read.",
            ) from None
        for file_name, data in contents:
            file = DroppedFile(store.put_file(data), file_name, read_clock().now())
            dropped.append((file, database.add_file(name, file, current_user(), again=again)))
        with job_queue.open_queue(fleet.database) as queue:
            for file, _ in dropped:
                job_queue.ask_for_job(queue, name, "file", file.digest)
    if json:
        print_json([{"name": file.name, "sha256": file.digest, "was": was} for file, was in dropped])
        return
    new = sum(was == "new" for _, was in dropped)
    known = [escape_name(file.name) for file, was in dropped if was == "known"]
    before = f"; handed in before: {', '.join(known)}" if known else ""
    print_line(f"{count_noun(new, 'file')} handed in to {name}{before}")
    for file, was in dropped:
        if was == "renamed":
            print_line(f"{escape_name(file.name)} waits under this name now")


def withdraw_files(
    name: NameArgument,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="A name, the beginning of a digest (status), or the id of a call."),
    ],
) -> None:
    """Take back files that were handed in and wait still; the same content may be handed in again.

    A call of a webhook that waits, too, such as one whose body is lost: it is not run any more.
    """
    refuse_in_job()
    with open_fleet() as (fleet, database):
        database.read_workspace(name)
        named: list[tuple[list[DroppedFile], list[KeptCall]]] = []
        for text in files:
            found = [f for f in database.list_files(name) if f.name == text or (text and f.digest.startswith(text))]
            calls = [call for call in list_waiting_calls(database, name)[0] if call.id == text]
            if len(found) + len(calls) != 1:
                what = "several files or calls" if found or calls else "no file and no call"
                raise UsageError(
                    f"{what} of {name} that wait are called {escape_name(text)!r}",
                    remedy=f"See: cleared fleet status {name}. Nothing was taken back.",
                )
            named.append((found, calls))
        for found, calls in named:
            for file in found:
                database.remove_file(name, file)
            for call in calls:
                save_call_result(database, name, call, CallState(True, None), read_clock().now())
                FileStore(fleet.store).remove_file(call.digest, calls_folder(name))
    print_line(f"{count_noun(len(files), 'file or call', 'files and calls')} of {name} taken back")
