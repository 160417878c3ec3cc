"""Jobs: that something has happened to a workspace. procrastinate keeps them in PostgreSQL.

A job's arguments are the kind and the key of what happened, never data that decides what may run. Its *lock* is the
workspace: its jobs are done one after another, on whichever machine. Its *queueing lock* is the workspace with kind and
key: the same is asked once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from cleared.base.errors import BusyError
from cleared.service.fleet.fleet_database import FleetDatabase

if TYPE_CHECKING:
    from procrastinate import App
    from procrastinate.connector import BaseConnector

QUEUE: Final = "cleared"
TASK: Final = "serve_workspace"
MAX_WAITING: Final = 10_000
"""Jobs that may wait in the whole fleet. A person who asks for more is told so; schedules wait by themselves."""
JobKind = Literal["due", "file", "run", "push"]
"""What happened: a time came, a file was dropped, a person asked for a run, somebody pushed."""
Serve = Callable[[str, JobKind, str], Awaitable[None]]


def make_app(connector: BaseConnector, serve: Serve | None = None) -> App:
    """``serve``: does a job; who only asks for jobs needs none."""
    from procrastinate import App

    app = App(connector=connector)
    if serve is not None:
        app.task(name=TASK, queue=QUEUE)(_as_task(serve))
    return app


def _as_task(serve: Serve) -> Callable[..., Awaitable[None]]:
    async def serve_workspace(workspace: str, kind: JobKind, key: str) -> None:
        await serve(workspace, kind, key)

    return serve_workspace


@contextmanager
def open_queue(url: str) -> Iterator[App]:
    """The queue, to ask for jobs."""
    from procrastinate import SyncPsycopgConnector

    with make_app(SyncPsycopgConnector(conninfo=url, min_size=1, max_size=1)).open() as app:
        yield app


def ask_for_job(app: App, workspace: str, kind: JobKind, key: str) -> bool:
    """Ask for a job; False where the same waits already."""
    from procrastinate.exceptions import AlreadyEnqueued

    job = app.configure_task(TASK, queue=QUEUE, lock=workspace, queueing_lock=f"{workspace} {kind} {key}")
    try:
        job.defer(workspace=workspace, kind=kind, key=key)
    except AlreadyEnqueued:
        return False
    return True


def apply_schema(url: str) -> None:
    """Make procrastinate's tables, where there are none."""
    from procrastinate import SyncPsycopgConnector
    from procrastinate.schema import SchemaManager

    with make_app(SyncPsycopgConnector(conninfo=url, min_size=1, max_size=1)).open() as app:
        connector = app.connector
        there = connector.get_sync_connector().execute_query_one("SELECT to_regclass('procrastinate_jobs') AS found")
        if there["found"] is None:
            SchemaManager(connector=connector).apply_schema()


def refuse_full_queue(database: FleetDatabase) -> None:
    """Raises ``BusyError`` where so much waits that a person should not add to it."""
    waiting = sum(count for count, _ in database.count_jobs().values())
    if waiting >= MAX_WAITING:
        raise BusyError(
            f"{waiting:,} jobs wait in the fleet",
            remedy="Start more workers, or wait: cleared fleet status shows them.",
        )
