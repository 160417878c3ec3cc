"""Jobs: that something has happened to a workspace. procrastinate keeps them in PostgreSQL.

A job's arguments are the kind and the key of what happened, never data that decides what may run. Its *lock* is the
workspace: its jobs are done one after another, on whichever machine. Its *queueing lock* is the workspace with kind and
key: the same is asked once. Its *queue* is the version that it needs: a worker takes those of its own version and of
earlier ones, so that a job waits for a worker that can do it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from cleared.base.errors import BusyError
from cleared.service.fleet.fleet_database import FleetDatabase, bound_waits, explain_unreachable
from cleared.service.fleet.fleet_records import JobOutcome
from cleared.service.fleet.fleet_tables import VERSION

if TYPE_CHECKING:
    from procrastinate import App
    from procrastinate.connector import BaseConnector
    from procrastinate.job_context import JobContext
    from procrastinate.jobs import Job

_QUEUE: Final = "cleared"
TASK: Final = "serve_workspace"
MAX_WAITING: Final = 10_000
"""Jobs that may wait in the whole fleet. A person who asks for more is told so."""
MOST_DUE: Final = 200
"""Jobs of what is due that may wait before a look asks for more. The others wait in their table: whoever asks for
a job has not all of a morning's schedules before them."""
PATIENCE: Final = 30.0
"""Seconds without a sign of life after which a worker is taken for dead: others do its jobs. Where it is not, what it
pushes later is rejected."""
TURN_SECONDS: Final = 30.0
"""After this long, a job lets other workspaces have their turn."""
JobKind = Literal["due", "file", "run", "push", "call"]
"""What happened: a time came, a file was dropped, a person asked for a run, somebody pushed, a program called."""
JobTry = tuple[int, int]
"""The number of a job, and how often it was given up before."""
Serve = Callable[[str, JobKind, str, JobTry], Awaitable[None]]


def name_queue(version: int) -> str:
    """The queue of the jobs that need this version."""
    return _QUEUE if version == 1 else f"{_QUEUE}-{version}"


def list_queues() -> list[str]:
    """The queues whose jobs this program can do."""
    return [name_queue(version) for version in range(1, VERSION + 1)]


def make_app(connector: BaseConnector, serve: Serve | None = None) -> App:
    """``serve``: does a job; who only asks for jobs needs none."""
    from procrastinate import App

    app = App(connector=connector)
    if serve is not None:
        app.task(name=TASK, pass_context=True)(_as_task(serve))
    return app


def _as_task(serve: Serve) -> Callable[..., Awaitable[None]]:
    async def serve_workspace(context: JobContext, workspace: str, kind: JobKind, key: str) -> None:
        assert context.job.id is not None
        await serve(workspace, kind, key, (context.job.id, context.job.attempts))

    return serve_workspace


@contextmanager
def open_queue(url: str) -> Iterator[App]:
    """The queue, to ask for jobs. Raises ``WorkspaceError`` where the database cannot be reached."""
    from procrastinate import SyncPsycopgConnector
    from procrastinate.exceptions import ConnectorException
    from psycopg import OperationalError

    FleetDatabase.connect(url).close()  # says at once that it is away: a pool of connections tries for half a minute
    try:
        with make_app(SyncPsycopgConnector(conninfo=bound_waits(url), min_size=1, max_size=1)).open() as app:
            yield app
    except ConnectorException as error:
        raise explain_unreachable(error.__cause__ if isinstance(error.__cause__, Exception) else error) from None
    except OperationalError as error:  # of the pool itself
        raise explain_unreachable(error) from None


def ask_for_job(app: App, workspace: str, kind: JobKind, key: str, version: int = VERSION) -> bool:
    """Ask for a job; False where the same waits already. ``version``: what its worker must be able to do."""
    from procrastinate.exceptions import AlreadyEnqueued

    try:
        app.job_manager.defer_job(_make_job(app, workspace, kind, key, version))
    except AlreadyEnqueued:
        return False
    return True


def _make_job(app: App, workspace: str, kind: JobKind, key: str, version: int = VERSION) -> Job:
    asked = f"{workspace} {kind} {key}"
    task = app.configure_task(TASK, queue=name_queue(version), lock=workspace, queueing_lock=asked)
    return task.make_new_job(workspace=workspace, kind=kind, key=key)


def ask_for_due(database: FleetDatabase, now: datetime) -> int:
    """Ask for the jobs of workspaces that are due, longest due first; how many. Of a due time it is asked once, but
    where its job is gone. Workers that look at the same time ask one after the other."""
    from procrastinate import SyncPsycopgConnector
    from procrastinate.exceptions import AlreadyEnqueued

    app = make_app(SyncPsycopgConnector())
    # Where a dead worker's job was just put back, the next look asks.
    with suppress(AlreadyEnqueued), database.transaction() as connection:
        database.run("SELECT pg_advisory_xact_lock(hashtext('cleared fleet due'))")
        due = database.run(
            "SELECT name, due FROM fleet_workspaces WHERE due <= %s AND (asked_due IS DISTINCT FROM due "
            "OR NOT EXISTS (SELECT FROM procrastinate_jobs WHERE lock = name)) AND NOT EXISTS (SELECT FROM "
            "procrastinate_jobs WHERE lock = name AND status = 'todo' AND args ->> 'kind' = 'due') "
            "ORDER BY due, name LIMIT greatest(0, %s - (SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo' "
            "AND queue_name = ANY (%s) AND args ->> 'kind' = 'due')) FOR NO KEY UPDATE SKIP LOCKED",
            now,
            MOST_DUE,
            list_queues(),
        )
        if due:
            jobs = [_make_job(app, name, "due", at.isoformat()) for name, at in due]
            app.job_manager.batch_defer_jobs(jobs, connection)
            database.run("UPDATE fleet_workspaces SET asked_due = due WHERE name = ANY (%s)", [name for name, _ in due])
        return len(due)
    return 0


def drop_waiting_jobs(database: FleetDatabase, workspace: str) -> None:
    """A job begins, which does all that waits in its workspace. The others that were asked for need not be done: one
    that has a thousand files would keep all other workspaces waiting."""
    database.run(
        "DELETE FROM procrastinate_jobs WHERE lock = %s AND task_name = %s AND status = 'todo' "
        "AND queue_name = ANY (%s)",
        workspace,
        TASK,
        list_queues(),
    )


def hold_job(database: FleetDatabase, job: JobTry) -> bool:
    """Whether a job is still whose try this is; nobody takes it over before the transaction ends."""
    query = "SELECT 1 FROM procrastinate_jobs WHERE id = %s AND attempts = %s AND status = 'doing' FOR SHARE"
    return bool(database.run(query, *job))


def apply_schema(url: str) -> None:
    """Make procrastinate's tables, where there are none."""
    from procrastinate import SyncPsycopgConnector
    from procrastinate.schema import SchemaManager

    with make_app(SyncPsycopgConnector(conninfo=bound_waits(url), min_size=1, max_size=1)).open() as app:
        connector = app.connector
        there = connector.get_sync_connector().execute_query_one("SELECT to_regclass('procrastinate_jobs') AS found")
        if there["found"] is None:
            SchemaManager(connector=connector).apply_schema()


def count_jobs(database: FleetDatabase) -> dict[str, tuple[int, int]]:
    """Workspace → its jobs that wait, and that are being done."""
    rows = database.run(
        "SELECT lock, count(*) FILTER (WHERE status = 'todo'), count(*) FILTER (WHERE status = 'doing') "
        "FROM procrastinate_jobs WHERE status IN ('todo', 'doing') GROUP BY lock"
    )
    return {str(lock): (waiting, doing) for lock, waiting, doing in rows}


def count_outcome(database: FleetDatabase, outcome: JobOutcome) -> None:
    """A job has ended so."""
    database.run(
        "INSERT INTO fleet_outcomes VALUES (%s, 1) ON CONFLICT (outcome) DO UPDATE SET jobs = fleet_outcomes.jobs + 1",
        outcome,
    )


def refuse_full_queue(database: FleetDatabase) -> None:
    """Raises ``BusyError`` where so much waits that a person should not add to it."""
    waiting = sum(count for count, _ in count_jobs(database).values())
    if waiting >= MAX_WAITING:
        raise BusyError(
            f"{waiting:,} jobs wait in the fleet",
            remedy="Start more workers, or wait: cleared fleet status shows them.",
        )
