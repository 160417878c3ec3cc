"""What the owner of a fleet does: begin it, say which workspaces and which workers are in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from cleared.base.clock import Clock
from cleared.base.errors import Place, PolicyError, UsageError, WorkspaceError
from cleared.changes.host import Host, current_user
from cleared.git import Snapshot
from cleared.git.remote_branch import RemoteBranch, refuse_unfenced
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import Fleet
from cleared.service.fleet.fleet_records import Worker, WorkspaceRecord
from cleared.service.fleet.fleet_tables import VERSION
from cleared.service.fleet.job_queue import apply_schema
from cleared.service.fleet.object_store import FileStore
from cleared.service.fleet.owner_statements import (
    WorkersStatement,
    WorkspaceStatement,
    read_remembered_workers,
    read_statement,
    read_workers,
    require_said_of,
    restore_workers,
    sign_statement,
    sign_workers,
)
from cleared.service.fleet.worker_clone import REMOTE, clone_books, follow_address
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.keys import Key, own_key, run_public_key
from cleared.trust.trust_store import is_workspace_id, load_trust
from cleared.workspace.fleet_clones import DESK, fleet_folder
from cleared.workspace.location import CONFIG_NAME

_OWNER: Final = "owner"
"""The fact of whose fleet the database has. It decides nothing."""


def begin_fleet(database_url: str, store: str) -> Fleet:
    """Make the tables, where there are none. Raises ``ClearedError`` where that cannot be done."""
    key = _owner_key(create=True)
    FileStore(store)
    with FleetDatabase.connect(database_url) as database:
        apply_schema(database_url)
        database.make_tables()
        if (owner := database.read_fact(_OWNER) or key.public) != key.public:
            raise PolicyError(
                f"the database has the fleet of another owner: {owner}",
                remedy="Take a database of its own. To be a worker of that fleet: cleared fleet join.",
            )
        database.write_fact(_OWNER, key.public)
        restore_workers(database, fleet_folder())
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


def open_desk(name: str, url: str, branch: str, *, anew: bool = False) -> Path:
    """The owner's clone of a workspace, made where there is none. One of the same books follows that address from now
    on; one of others, which may hold what was pushed nowhere, is set aside; ``anew``: one of the same books, too.
    Raises ``WorkspaceError`` where no books lie at that address."""
    root = fleet_folder() / DESK / name
    fleet_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    fleet_folder().chmod(0o700)
    if root.exists() and (anew or not follow_address(root, url, branch)):
        number = next(n for n in count(1) if not root.with_name(f"{name}.before-{n}").exists())
        root.rename(root.with_name(f"{name}.before-{number}"))
    is_new = clone_books(root, url, branch)
    if not (root / CONFIG_NAME).is_file():
        if is_new:
            shutil.rmtree(root)
        raise WorkspaceError(
            f"there are no books on its branch {branch}: config.yaml is missing",
            place=Place(url),
            remedy="Make a workspace (cleared init), and push it there first.",
        )
    return root


def open_desk_of(fleet: Fleet, record: WorkspaceRecord) -> Path:
    """The owner's clone of a workspace in the fleet. Raises ``PolicyError`` where it is not the owner's word that it
    is."""
    said = read_statement(fleet.owner, record.signed, WorkspaceStatement)
    require_said_of(said, record.name)
    return open_desk(said.name, said.url, said.branch)


def find_statement(fleet: Fleet, database: FleetDatabase, name: str) -> WorkspaceStatement | None:
    """What the owner has said of a workspace; None where they have not."""
    with suppress(UsageError, PolicyError):  # there is none, or somebody else wrote it, and it counts nowhere
        said = read_statement(fleet.owner, database.read_workspace(name).signed, WorkspaceStatement)
        require_said_of(said, name)
        return said
    return None


def make_statement(
    host: Host,
    name: str,
    url: str,
    branch: str,
    now: datetime,
    *,
    spread_seconds: int,
    budget_seconds: int,
    is_rewritten: bool = False,
) -> WorkspaceStatement:
    """What the owner says of a workspace: that whoever is trusted in their clone of it is trusted by workers, too.
    ``is_rewritten``: and that its history counts, though it was rewritten."""
    with host.open_for_reading() as repo:
        head = repo.read_head()
        data, rewritten = Snapshot(repo, head).read_file(WORKSPACE), head if is_rewritten else ""
        refuse_unfenced(repo, RemoteBranch(REMOTE, branch, url))
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
        rewritten=rewritten,
        at=_format_time(now),
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
            said = replace(said, at=_right_after(other.at))
        if record.name != said.name and other.books == said.books:
            raise UsageError(
                f"the fleet has these books already, as {record.name}: two workers would run them at once",
                remedy=f"Take the other away first: cleared fleet remove {record.name}.",
            )
    workers = read_workers(fleet.owner, database, fleet_folder())
    if said.at <= workers.removed.get(said.name, ""):
        said = replace(said, at=_right_after(workers.removed[said.name]))
    is_new = database.add_workspace(said.name, sign_statement(key, said), now)
    if said.rewritten:
        database.save_head(said.name, "")
    trust_runs_here(said.books, workers)
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


def list_older_workers(fleet: Fleet, database: FleetDatabase) -> list[Worker]:
    """The workers that are let in and have not been seen with this version."""
    trusted = read_workers(fleet.owner, database, fleet_folder()).keys
    return [each for each in database.list_workers() if each.key in trusted and each.fleet_version < VERSION]


def trust_worker(fleet: Fleet, database: FleetDatabase, worker: Worker, clock: Clock, *, revoke: bool = False) -> None:
    """Let a worker run the workspaces; ``revoke``: not any more. What it pushed before goes on counting."""

    def change(said: WorkersStatement) -> WorkersStatement:
        keys = {k: name for k, name in said.keys.items() if k != worker.key}
        revoked = {k: name for k, name in said.revoked.items() if k != worker.key}
        (revoked if revoke else keys)[worker.key] = worker.name
        return replace(said, keys=keys, revoked=revoked)

    said = _say_of_workers(fleet, database, clock, change)
    for record in database.list_workspaces():
        with suppress(PolicyError):  # somebody else wrote it, and it counts nowhere
            trust_runs_here(read_statement(fleet.owner, record.signed, WorkspaceStatement).books, said)


def remove_workspace(fleet: Fleet, database: FleetDatabase, name: str, clock: Clock) -> None:
    """Take a workspace out; what was said of it before counts no more."""
    at = _format_time(clock.now())
    with suppress(PolicyError):
        at = max(at, read_statement(fleet.owner, database.read_workspace(name).signed, WorkspaceStatement).at)

    def change(said: WorkersStatement) -> WorkersStatement:
        return replace(said, removed={**said.removed, name: at})

    with database.transaction():
        _say_of_workers(fleet, database, clock, change)
        database.remove_workspace(name)


def _say_of_workers(
    fleet: Fleet, database: FleetDatabase, clock: Clock, change: Callable[[WorkersStatement], WorkersStatement]
) -> WorkersStatement:
    """Change what the owner has said last; where the database has lost it, what this machine remembers."""
    key, folder = require_owner(fleet), fleet_folder()
    with database.transaction():
        try:
            before = read_workers(fleet.owner, database, folder)
        except PolicyError:
            before = read_remembered_workers(fleet.owner, folder)
        at = _format_time(clock.now())
        if at <= before.at:  # of two, the later counts
            at = _right_after(before.at)
        said = replace(change(before), at=at)
        sign_workers(key, database, said, folder)
    return said


def _format_time(at: datetime) -> str:
    """So that of two texts the later is the greater."""
    return at.isoformat(timespec="microseconds")


def _right_after(at: str) -> str:
    return _format_time(datetime.fromisoformat(at) + timedelta(microseconds=1))
