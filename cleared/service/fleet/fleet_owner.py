"""What the owner of a fleet does: begin it, say which workspaces and which workers are in it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import Place, PolicyError, UsageError, WorkspaceError
from cleared.changes.host import Host, current_user
from cleared.git import Snapshot
from cleared.git.remote_branch import RemoteBranch, refuse_unfenced
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import Fleet, fleet_folder
from cleared.service.fleet.fleet_records import Worker
from cleared.service.fleet.job_queue import apply_schema
from cleared.service.fleet.owner_statements import (
    WorkersStatement,
    WorkspaceStatement,
    read_statement,
    read_workers,
    sign_statement,
    sign_workers,
)
from cleared.service.fleet.worker_clone import REMOTE, clone_books
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.keys import Key, own_key, run_public_key
from cleared.trust.trust_store import is_workspace_id, load_trust

DESK: Final = "desk"
"""The folder of the owner's own clones: they are looked at, and decided in, here."""


def begin_fleet(database_url: str, store: str) -> Fleet:
    """Make the tables, where there are none. Raises ``ClearedError`` where that cannot be done."""
    key = _owner_key(create=True)
    with FleetDatabase.connect(database_url) as database:
        apply_schema(database_url)
        database.make_tables()
    return Fleet(database_url, key.public, store)


def _owner_key(*, create: bool = False) -> Key:
    key = own_key(fleet_folder(), create=create)
    if key is None:
        raise PolicyError("this user has no approval key", remedy="Whoever has said cleared fleet init has one.")
    return key


def require_owner(fleet: Fleet) -> Key:
    """The owner's key, ready to sign. Raises ``PolicyError`` where this user is not the fleet's owner."""
    key = _owner_key()
    if key.public != fleet.owner:
        raise PolicyError(
            "only the owner of the fleet says which workspaces and workers are in it",
            remedy="Ask whoever has said cleared fleet init.",
        )
    key.unlock()
    return key


# --- workspaces ------------------------------------------------------------------------------------------------


def open_desk(name: str, url: str, branch: str) -> Path:
    """The owner's clone of a workspace, made where there is none of that address."""
    root = fleet_folder() / DESK / name
    clone_books(root, url, branch)
    return root


def make_statement(
    host: Host, name: str, url: str, branch: str, now: datetime, *, spread_seconds: int, budget_seconds: int
) -> WorkspaceStatement:
    """What the owner says of a workspace: that whoever is trusted in their clone of it is trusted by workers, too."""
    with host.open_for_reading() as repo:
        data = Snapshot(repo, repo.read_head()).read_file(WORKSPACE)
        refuse_unfenced(repo, RemoteBranch(REMOTE, branch))
    books = (data or b"").decode("ascii", "replace").strip()
    if not is_workspace_id(books):
        raise WorkspaceError(
            "nothing was approved in these books yet, so nothing could run",
            place=Place(url),
            remedy="Approve their settings and agents in a clone, and push that: cleared config approve.",
        )
    trust, own_run = load_trust(books), run_public_key(host.root)
    return WorkspaceStatement(
        name=name,
        url=url,
        branch=branch,
        books=books,
        keys={**trust.keys, _owner_key().public: current_user()},
        runs={**trust.runs, **({own_run: current_user()} if own_run else {})},
        withdrawn=tuple(sorted(trust.withdrawn)),
        barred=trust.barred,
        newest=trust.newest,
        spread_seconds=spread_seconds,
        budget_seconds=budget_seconds,
        at=now.isoformat(),
    )


def add_workspace(fleet: Fleet, database: FleetDatabase, said: WorkspaceStatement, now: datetime) -> bool:
    """Let the workers serve it; whether it is new. Raises ``UsageError`` where the fleet has these books already."""
    key = require_owner(fleet)
    for record in database.list_workspaces():
        try:
            other = read_statement(fleet.owner, record.signed, WorkspaceStatement)
        except PolicyError:  # somebody else wrote it, and it counts nowhere
            continue
        if record.name == said.name and said.at <= other.at:  # of two, the later counts
            said = replace(said, at=(datetime.fromisoformat(other.at) + timedelta(microseconds=1)).isoformat())
        if record.name != said.name and other.books == said.books:
            raise UsageError(
                f"the fleet has these books already, as {record.name}: two workers would run them at once",
                remedy=f"Take the other away first: cleared fleet remove {record.name}.",
            )
    is_new = database.add_workspace(said.name, sign_statement(key, said), now)
    trust_runs_here(said.books, read_workers(fleet.owner, database))
    return is_new


def trust_runs_here(books: str, workers: WorkersStatement) -> None:
    """Let what the workers push count on this machine, too."""
    trust = load_trust(books)
    runs = {**trust.runs, **workers.keys, **workers.revoked}
    if runs != trust.runs:
        trust.runs = runs
        trust.save()


# --- workers ---------------------------------------------------------------------------------------------------


def find_worker(database: FleetDatabase, text: str) -> Worker:
    """The worker with this name, or whose key begins so. Raises ``UsageError`` where there is not just one."""
    begins = text.removeprefix("ed25519:")
    found = [w for w in database.list_workers() if w.name == text or w.key.removeprefix("ed25519:").startswith(begins)]
    if len(found) != 1 or not begins:
        what = "several workers are" if found else "no worker that was seen is"
        raise UsageError(f"{what} called {text!r}", remedy="See: cleared fleet trust. Name one by its key.")
    return found[0]


def trust_worker(fleet: Fleet, database: FleetDatabase, worker: Worker, clock: Clock, *, revoke: bool = False) -> None:
    """Let a worker run the workspaces; ``revoke``: not any more. What it pushed before goes on counting."""
    key = require_owner(fleet)
    with database.transaction():
        workers = read_workers(fleet.owner, database)
        keys = {k: name for k, name in workers.keys.items() if k != worker.key}
        revoked = {k: name for k, name in workers.revoked.items() if k != worker.key}
        (revoked if revoke else keys)[worker.key] = worker.name
        said = WorkersStatement(keys=keys, revoked=revoked, at=format_iso(clock.now()))
        sign_workers(key, database, said)
        records = database.list_workspaces()
    for record in records:
        trust_runs_here(read_statement(fleet.owner, record.signed, WorkspaceStatement).books, said)
