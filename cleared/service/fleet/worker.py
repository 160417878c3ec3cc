"""``cleared fleet worker``: takes jobs, each in a process of its own, asks for jobs that are due, and finds those of
workers that were killed."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from contextlib import ExitStack, suppress
from datetime import timedelta
from multiprocessing import connection, forkserver
from typing import TYPE_CHECKING, Any, Final

from cleared.base.clock import Clock, clock_from
from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.base.programs import blocked_signals
from cleared.base.terminal import print_message
from cleared.service.fleet.fleet_database import FleetDatabase, bound_waits
from cleared.service.fleet.fleet_home import Fleet
from cleared.service.fleet.fleet_records import JobOutcome
from cleared.service.fleet.job_queue import (
    PATIENCE,
    TURN_SECONDS,
    JobKind,
    JobTry,
    ask_for_due,
    count_outcome,
    list_queues,
    make_app,
)
from cleared.service.fleet.owner_statements import read_workers, require_trusted_worker
from cleared.service.fleet.temporary_folder import mark_folder
from cleared.service.fleet.worker_home import introduce_worker
from cleared.service.fleet.workspace_job import JobOrder, do_job
from cleared.trust.keys import run_public_key
from cleared.workspace.fleet_clones import fleet_folder
from cleared.workspace.location import cleared_home

if TYPE_CHECKING:
    from procrastinate import App

_LOOK_SECONDS: Final = 1.0
"""How often it is looked which workspaces are due."""
_POOL_SECONDS: Final = 10.0
"""So long the queue waits for a connection, each time that it asks, before the database counts as away."""
_PRELOADED: Final = ("cleared.service.fleet.preloaded",)


class FleetWorker:
    """One worker. ``clock``: what is due; ``instant``: what time it is in jobs, where they do not go by the machine's
    clock. ``once``: end when nothing is due and nothing waits."""

    def __init__(
        self,
        fleet: Fleet,
        clock: Clock,
        *,
        concurrency: int = 1,
        once: bool = False,
        patience: float = PATIENCE,
        turn: float = TURN_SECONDS,
        instant: str | None = None,
    ) -> None:
        self._fleet, self._clock, self._instant = fleet, clock, instant
        self._concurrency, self._once, self._patience, self._turn = concurrency, once, patience, turn
        self._processes: Any = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(list(_PRELOADED))
        self._folder = fleet_folder()
        self._refused: ClearedError | None = None
        self._database: FleetDatabase | None = None
        """What the looks for due workspaces use, one after the other."""

    def run(self) -> None:
        """Work until SIGTERM or Ctrl-C; jobs that are on end first. Raises ``ClearedError`` where the database cannot
        be used."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        show_library_log()
        with FleetDatabase.connect(self._fleet.database) as database:
            database.check_version()
            introduce_worker(database, self._clock)
            self._require_trust(database)
        self._start_forking()
        asyncio.run(self._run())
        if self._database is not None:
            self._database.close()
        if self._refused is not None:
            raise self._refused

    def _start_forking(self) -> None:
        """Start the process that jobs are forked off. The terminal's Ctrl-C is nothing to it, not while it imports
        either; this process hears it once that one is there."""
        mark_folder()
        with blocked_signals(signal.SIGINT):
            forkserver.ensure_running()

    def _require_trust(self, database: FleetDatabase) -> None:
        require_trusted_worker(read_workers(self._fleet.owner, database, self._folder), run_public_key(self._folder))

    async def _run(self) -> None:
        from procrastinate import PsycopgConnector

        url = bound_waits(self._fleet.database)
        app = make_app(PsycopgConnector(conninfo=url, timeout=_POOL_SECONDS), self._do_job)
        async with app.open_async():
            if self._once:
                await self._drain(app)
                return
            stopping, loop = asyncio.Event(), asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stopping.set)
            print_message("up; Ctrl-C ends it after the jobs that are on")
            rescue = asyncio.create_task(self._rescue_jobs(app))
            while not stopping.is_set():
                await self._take_jobs(app, stopping)
            rescue.cancel()

    async def _take_jobs(self, app: App, stopping: asyncio.Event) -> None:
        """Take jobs until this is to stop, or the database was away. procrastinate's worker does not get over that: its
        heartbeat ends, and a job that has just ended stays as it was. So another one takes its place."""
        from procrastinate.exceptions import ConnectorException

        working = app.run_worker_async(
            queues=list_queues(),
            concurrency=self._concurrency,
            delete_jobs="always",
            # Others may have less patience than this one, and so has who counts the workers that are alive.
            update_heartbeat_interval=min(self._patience, PATIENCE) / 6,
            stalled_worker_timeout=self._patience,
            fetch_job_polling_interval=2.0,
            install_signal_handlers=False,
        )
        tasks = [asyncio.create_task(each) for each in (working, self._look_for_due(stopping), _wait_for(stopping))]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()  # the first one ends its jobs
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, ConnectorException):
                await asyncio.sleep(_LOOK_SECONDS)
            elif isinstance(ended, BaseException) and not isinstance(ended, asyncio.CancelledError):
                raise ended

    async def _drain(self, app: App) -> None:
        """Do what is due and what waits, until there is nothing."""
        while True:
            asked = await asyncio.to_thread(self._ask_for_due)
            await app.run_worker_async(
                queues=list_queues(),
                concurrency=self._concurrency,
                wait=False,
                delete_jobs="always",
                install_signal_handlers=False,
            )
            if not asked:
                return

    # --- what is due -------------------------------------------------------------------------------------------

    async def _look_for_due(self, stopping: asyncio.Event) -> None:
        """Ask for what is due. Ends when the database is there again after it was away."""
        from procrastinate.exceptions import ConnectorException

        said = ""
        while True:
            try:
                await asyncio.to_thread(self._ask_for_due)
                if said:
                    return
            except (PolicyError, UsageError) as error:  # what is on is refused by each job itself
                self._refused = error
                stopping.set()
                return
            except (ClearedError, ConnectorException) as error:
                if not said:
                    print_message(f"what is due cannot be seen: {error}")
                said = str(error)
            await asyncio.sleep(_LOOK_SECONDS)

    def _ask_for_due(self) -> int:
        """Ask for the jobs that are due; how many."""
        now, database = self._clock.now(), self._database or FleetDatabase.connect(self._fleet.database)
        self._database = None  # until this look was well: else the next one connects anew
        with ExitStack() as unless_well:
            unless_well.callback(database.close)
            database.check_version()
            self._require_trust(database)
            database.note_awake(now)
            asked = ask_for_due(database, now)
            unless_well.pop_all()
        self._database = database
        return asked

    async def _rescue_jobs(self, app: App) -> None:
        """Have jobs of workers that died done by others."""
        from procrastinate.exceptions import ConnectorException

        while True:
            await asyncio.sleep(self._patience / 3)
            with suppress(ConnectorException):  # the database is away: look again
                await app.job_manager.prune_stalled_workers(self._patience)
                for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=self._patience):
                    if await retry_job(app, job):
                        await asyncio.to_thread(self._count_lost)
                        print_message(f"{job.lock}: a worker died at its job, which is done again")

    # --- jobs --------------------------------------------------------------------------------------------------

    async def _do_job(self, workspace: str, kind: JobKind, key: str, job: JobTry) -> None:
        """A process for each job: what it knows of one workspace's secrets ends with it."""
        home, instant = str(cleared_home()), self._instant
        order = JobOrder(self._fleet, str(self._folder), home, workspace, kind, key, job, instant, self._turn)
        process = self._processes.Process(target=run_in_process, args=(order,), name=f"job of {workspace}")
        await asyncio.to_thread(process.start)
        await asyncio.to_thread(process.join)
        if process.exitcode:
            how = f"by signal {-process.exitcode}" if process.exitcode < 0 else f"with {process.exitcode}"
            problem = (
                f"a job's process ended {how} on {os.uname().nodename}; the job is done again. Look there what ends "
                "processes: memory that is used up, or what the worker has said."
            )
            await asyncio.to_thread(note_end, order, "killed", problem, self._clock)

    def _count_lost(self) -> None:
        with suppress(ClearedError), FleetDatabase.connect(self._fleet.database) as database:
            count_outcome(database, "lost")


async def retry_job(app: App, job: Any) -> bool:
    """Put the job of a dead worker back into the queue; False where it is there, or the same was asked again."""
    from procrastinate.exceptions import ConnectorException, UniqueViolation
    from procrastinate.jobs import Status

    try:
        await app.job_manager.retry_job(job)
        return True
    except UniqueViolation:  # the same was asked again, and waits
        with suppress(ConnectorException):
            await app.job_manager.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)
    except ConnectorException:  # another has done so, and it waits; or the database is away
        pass
    return False


class _LineHandler(logging.Handler):
    """A line for each thing that a library has to say, without its traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        print_message(f"{record.name}: {record.getMessage().strip().splitlines()[0]}")


def show_library_log() -> None:
    """Have the libraries of the queue say what is wrong, as this program does."""
    for name, level in (
        ("procrastinate", logging.CRITICAL),
        ("procrastinate.worker", logging.WARNING),
        ("asyncio", logging.ERROR),  # such as a job whose end could not be written down, as the database was away
    ):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [_LineHandler(level)], False
    logging.getLogger("psycopg.pool").disabled = True  # what is away is said once, by who looks for what is due


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()


def run_in_process(order: JobOrder) -> None:
    """A job, in a process that was made for it. It ends with its worker."""
    os.setsid()  # the terminal's Ctrl-C is the worker's
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    try:
        do_job(order, print_message)
    except ClearedError as error:  # such as a database that was away, and may be there again
        print_message(f"{order.workspace}: {error}")
        note_end(order, "failed", str(error), clock_from(order.instant))


def note_end(order: JobOrder, outcome: JobOutcome, problem: str, clock: Clock) -> None:
    """Write down, where the database is there, that a job could not write down itself how it ended."""
    with suppress(ClearedError), FleetDatabase.connect(order.fleet.database) as database:
        count_outcome(database, outcome)
        database.note_problem(order.workspace, problem, clock.now() + timedelta(seconds=30))


def _end_with(sentinel: Any) -> None:
    connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGKILL)
