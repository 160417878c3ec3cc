"""``cleared fleet``: many workspaces on many machines."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from cleared import __version__
from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError, UsageError
from cleared.base.terminal import count_noun, print_json, print_line, print_message, print_table
from cleared.cli.command_groups import new_group
from cleared.cli.fleet_requests import drop_files, look_at_workspaces, run_agent, withdraw_files
from cleared.cli.fleet_status import NameArgument, list_workspaces, open_fleet, read_status, show_queue, show_status
from cleared.cli.options import JsonOption, PrintOption, open_host, read_clock
from cleared.cli.server import (
    BindOption,
    CertificateOption,
    CodeOption,
    KeyOption,
    NameOption,
    PortOption,
    ProxyOption,
    make_server,
    place_printer,
)
from cleared.cli.service_manager import Launchd, Systemd, choose_manager, install_unit, uninstall_unit
from cleared.cli.showing import DigestOption
from cleared.cli.trust import require_trusted
from cleared.service.fleet import fleet_home, fleet_owner
from cleared.service.fleet.fleet_calls import FleetCalls, forget_calls, list_waiting_calls, restore_calls
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import Fleet
from cleared.service.fleet.fleet_tables import VERSION
from cleared.service.fleet.job_queue import PATIENCE, TURN_SECONDS
from cleared.service.fleet.kept_connections import KeptConnections
from cleared.service.fleet.object_store import FileStore
from cleared.service.fleet.owner_statements import read_workers
from cleared.service.fleet.worker_home import forget_workspace, introduce_worker
from cleared.service.unit_file import STOP_SECONDS
from cleared.trust.person_only import refuse_in_job
from cleared.workspace.fleet_clones import fleet_folder
from cleared.workspace.location import cleared_home
from cleared.workspace.watched_names import escape_name

app = new_group()
ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=64, help="Workspaces that are served at once.")
]
DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database", metavar="URL", envvar=fleet_home.DATABASE, help="Of PostgreSQL: postgresql://USER@HOST/NAME."
    ),
]
ServerOption = Annotated[bool, typer.Option("--server", help="The page (cleared fleet server), not a worker.")]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="DIR|URL", help="Where dropped files lie; every worker must reach it. s3://BUCKET/…"
    ),
]


@app.command("init")
def begin_fleet(database: DatabaseOption, store: StoreOption = None) -> None:
    """Begin a fleet, or look at one that there is: make its tables; its owner is whoever says this.

    The owner's approval key signs which workspaces and workers are in it. It never lies on a worker.
    """
    refuse_in_job()
    fleet_home.require_packages()
    fleet = fleet_owner.begin_fleet(database, fleet_home.choose_store(store))
    path = fleet_home.write_fleet(fleet)
    print_line(f"The fleet's owner is this user: {fleet.owner}")
    print_message(
        f"Kept in {path}. On each worker: cleared fleet join --database URL --store {quote(fleet.store)} "
        f"--owner {fleet.owner}"
    )


@app.command("join")
def join_fleet(
    database: DatabaseOption,
    owner: Annotated[str, typer.Option("--owner", metavar="KEY", help="As cleared fleet init has printed it.")],
    store: StoreOption = None,
) -> None:
    """Make this machine one of a fleet's workers: say which database, and whose word counts."""
    refuse_in_job()
    fleet_home.require_packages()
    fleet = Fleet(database, fleet_home.check_owner(owner), fleet_home.choose_store(store))
    FileStore(fleet.store)
    with FleetDatabase.connect(database) as opened:
        opened.check_version()
        introduce_worker(opened, read_clock())
    path = fleet_home.write_fleet(fleet)
    print_line(f"This machine belongs to the fleet of {owner} ({path}).")
    print_message("Start it: cleared fleet worker. The owner lets it in: cleared fleet trust NAME.")


# --- the owner -------------------------------------------------------------------------------------------------


@app.command("add")
def add_workspace(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the fleet calls it.")],
    url: Annotated[str, typer.Argument(metavar="GIT-URL", help="Where its history is pushed to.")],
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="The branch that is served, at first main.")
    ] = None,
    spread: Annotated[
        int | None,
        typer.Option("--spread", metavar="SECONDS", min=0, help="Spread its schedules over so long; 0: not."),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="SECONDS", min=0, help="Processor time a day; 0: as much as it needs."),
    ] = None,
    rewritten: Annotated[
        bool, typer.Option("--rewritten", help="Its history was rewritten, and counts as it is now.")
    ] = False,
    nobody_new: Annotated[
        bool, typer.Option("--nobody-new", help="Who is not trusted in your clone stays so; nobody is asked about.")
    ] = False,
    digest: DigestOption = "",
    json: JsonOption = False,
) -> None:
    """Let the workers serve a workspace, or say again what its name means.

    It is cloned here first. Whoever is trusted in this clone is trusted by the workers, so say who is, as with cleared
    trust. Where it is pushed to must forbid that commits are taken back: git config receive.denyNonFastForwards true,
    and receive.denyDeletes true. Branch, spread and budget stay as they are where they are not named.
    """
    refuse_in_job()
    with open_fleet() as (fleet, database):
        fleet_home.check_name(name)
        fleet_owner.require_owner(fleet)
        address = str(Path(url).absolute()) if Path(url).is_dir() else fleet_home.check_address(url)
        before = fleet_owner.find_statement(fleet, database, name)
        branch = branch or (before.branch if before else "main")
        root = fleet_owner.open_desk(name, address, branch, anew=rewritten)
        host = open_host(root)
        command = f"cleared fleet add {name} {url} --digest "
        require_trusted(host, digest, command, json=json, nobody_new=nobody_new)
        now = read_clock().now()
        said = fleet_owner.make_statement(
            host,
            name,
            address,
            branch,
            now,
            spread_seconds=spread if spread is not None else before.spread_seconds if before else 0,
            budget_seconds=budget if budget is not None else before.budget_seconds if before else 0,
            is_rewritten=rewritten,
        )
        is_new = fleet_owner.add_workspace(fleet, database, said, now)
        for problem in restore_calls(fleet, database, name, now):
            print_message(f"a call of a webhook is not restored: {problem}")
    if json:
        print_json(
            {"name": name, "books": said.books, "url": address, "branch": branch, "new": is_new, "clone": str(root)}
        )
        return
    print_line(f"{name} is {'in the fleet' if is_new else 'as it is said now'}. Your clone of it: {root}")


@app.command("remove")
def remove_workspace(
    name: NameArgument,
    forget: Annotated[
        bool, typer.Option("--forget", help="Also where files, runs or calls wait: they are not done any more.")
    ] = False,
) -> None:
    """Take a workspace out of the fleet. Its history stays where it is pushed to."""
    refuse_in_job()
    with open_fleet() as (fleet, database):
        fleet_owner.require_owner(fleet)
        waiting = [file.name for file in database.list_files(fleet_home.check_name(name))]
        waiting += [request.agent for request in database.list_requests(name)]
        waiting += [call.id for call in list_waiting_calls(database, name)[0]]
        if waiting and not forget:
            raise PolicyError(
                f"{count_noun(len(waiting), 'file, run or call', 'files, runs and calls')} of {name} wait still: "
                f"{escape_name(', '.join(waiting[:5]))}",
                remedy="Let a worker do them (cleared fleet worker), or forget them: --forget.",
            )
        fleet_owner.remove_workspace(fleet, database, name, read_clock())
        forget_calls(fleet, name)
    forget_workspace(fleet_folder(), name)
    print_line(f"{name} is not in the fleet any more.")


@app.command("trust")
def trust_worker(
    worker: Annotated[str, typer.Argument(metavar="[WORKER]", help="Its name, or how its key begins.")] = "",
    revoke: Annotated[
        bool, typer.Option("--revoke", help="It may do nothing any more; what it did before counts.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Let a worker run the workspaces, or not any more. Without a name: show the workers that were seen."""
    with open_fleet() as (fleet, database):
        if worker:
            refuse_in_job()
            found = fleet_owner.find_worker(database, worker)
            fleet_owner.trust_worker(fleet, database, found, read_clock(), revoke=revoke)
        said, seen = read_workers(fleet.owner, database, fleet_folder()), database.list_workers()
    rows = [
        {
            "name": each.name,
            "key": each.key,
            "version": each.version,
            "seen": format_iso(each.at),
            "trusted": each.key in said.keys,
            "revoked": each.key in said.revoked,
        }
        for each in seen
    ]
    if json:
        print_json(rows)
        return
    print_table(
        ["worker", "key", "version", "seen", "trusted"],
        (
            (
                row["name"],
                str(row["key"]).removeprefix("ed25519:")[:16],
                row["version"],
                row["seen"],
                "revoked" if row["revoked"] else "yes" if row["trusted"] else "no",
            )
            for row in rows
        ),
        empty="No worker has joined yet: cleared fleet join, on its machine.",
    )


@app.command("upgrade")
def upgrade_fleet() -> None:
    """Bring the database up to this version. Workers of the version before go on meanwhile."""
    refuse_in_job()
    fleet_home.require_packages()
    fleet = fleet_home.read_fleet()
    fleet_owner.require_owner(fleet)
    fleet_owner.begin_fleet(fleet.database, fleet.store)
    print_line(f"The database has the tables of version {VERSION}, of cleared {__version__}.")
    with open_fleet() as (fleet, database):
        old = fleet_owner.list_older_workers(fleet, database)
    if old:
        names = ", ".join(f"{worker.name} (cleared {worker.version})" for worker in old)
        print_line(f"Workers of an earlier version: {names}. They go on with what they can do; the rest waits.")
        print_message(
            f"On one after the other: end it, install cleared {__version__}, start it again (cleared fleet worker)."
        )


# --- workers ---------------------------------------------------------------------------------------------------


@app.command("worker")
def run_worker(
    concurrency: ConcurrencyOption = 1,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is due and nothing waits.")] = False,
    patience: Annotated[
        float,
        typer.Option("--patience", metavar="SECONDS", min=1, help="Silence after which another worker counts as dead."),
    ] = PATIENCE,
    turn: Annotated[
        float,
        typer.Option("--turn", metavar="SECONDS", min=0, help="After so long a job lets other workspaces go on."),
    ] = TURN_SECONDS,
) -> None:
    """Serve the workspaces of the fleet; any number of these, on any machine. Ctrl-C ends it after its jobs.

    Each job has a process of its own, with that workspace's trust and secrets alone: lines VARIABLE=value in
    fleet/secrets/NAME.env, below the folder of this user's keys.
    """
    from cleared.service.fleet.worker import FleetWorker

    refuse_in_job()
    fleet_home.require_packages()
    clock = read_clock()
    instant = os.environ.get("CLEARED_CLOCK")
    fleet = fleet_home.read_fleet()
    FleetWorker(fleet, clock, concurrency=concurrency, once=once, patience=patience, turn=turn, instant=instant).run()


@app.command("server")
def serve_pages(
    port: PortOption = 8765,
    code: CodeOption = False,
    bind: BindOption = None,
    name: NameOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    behind_proxy: ProxyOption = False,
    json: JsonOption = False,
) -> None:
    """Serve the page of all workspaces: one sign-in, what waits first. What is decided there is pushed.

    It shows this user's clones (cleared fleet add has made them), keeps them at what the workers push, and signs with
    this user's keys. Who may decide in a workspace is as its own settings say.
    """
    refuse_in_job()
    from cleared.service.fleet.desk_sync import DeskSync
    from cleared.web import page_server
    from cleared.web.client_file import ClientFile
    from cleared.web.exposure import read_exposure
    from cleared.web.fleet_pages import FleetPages

    page_server.require_packages("cleared fleet server")
    with open_fleet() as (fleet, database):
        roots = {each.name: fleet_owner.open_desk_of(fleet, each) for each in database.list_workspaces()}
    if not roots:
        raise UsageError("the fleet has no workspace yet", remedy="Add one: cleared fleet add NAME GIT-URL.")
    exposure = read_exposure(bind, name, tls_cert, tls_key, behind_proxy)
    connections, store = KeptConnections(fleet.database), FileStore(fleet.store)
    with closing(connections):
        keep_calls = partial(FleetCalls, fleet, connections, store)
        pages = FleetPages(keep_calls, partial(read_status, fleet, connections), ClientFile(None))
        server = make_server(list(roots.values()), port, code, exposure, fleet=pages)
        with DeskSync(fleet, roots, print_message, server):
            page_server.serve_pages(server, place_printer(json))


@app.command("demo")
def run_demo(
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Where to make it; new or empty (default: a temporary one).")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, max=16, help="How many workers.")] = 3,
    stay: Annotated[bool, typer.Option("--stay", help="Keep all of it up until Ctrl-C.")] = False,
) -> None:
    """Make a whole fleet on this machine, and use it: PostgreSQL in a folder, two workspaces, three workers."""
    refuse_in_job()
    fleet_home.require_packages()
    from cleared.cli.demo.fleet_walkthrough import run_fleet_demo

    run_fleet_demo(directory, workers, stay=stay)


@app.command("install")
def install_worker(
    concurrency: ConcurrencyOption = 1,
    server: ServerOption = False,
    port: PortOption = 8765,
    only_print: PrintOption = False,
    json: JsonOption = False,
) -> None:
    """Have the system start cleared fleet worker now and at each login, and again when it fails."""
    refuse_in_job()
    fleet_home.require_packages()
    fleet_home.read_fleet()
    arguments = ("server", "--port", str(port)) if server else ("worker", "--concurrency", str(concurrency))
    install_unit(_choose_manager(*arguments), only_print=only_print, json=json)


@app.command("uninstall")
def uninstall_worker(server: ServerOption = False, json: JsonOption = False) -> None:
    """Stop that worker, after the jobs that are on, and remove its file."""
    uninstall_unit(_choose_manager("server" if server else "worker"), json=json)


def _choose_manager(*arguments: str) -> Systemd | Launchd:
    """Of the worker or the server of this machine: each has a file of its own, named by its folder."""
    root, option = (fleet_folder(), "--server") if arguments[0] == "server" else (cleared_home(), "")
    given = ("fleet", *arguments)
    return choose_manager(root, STOP_SECONDS, arguments=given, installed_by="cleared fleet", named_by=option)


# --- everybody -------------------------------------------------------------------------------------------------


app.command("list")(list_workspaces)
app.command("status")(show_status)
app.command("queue")(show_queue)


app.command("run")(run_agent)
app.command("drop")(drop_files)
app.command("withdraw")(withdraw_files)
app.command("look")(look_at_workspaces)
