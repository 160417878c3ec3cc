"""One job: a workspace is set to what was pushed, its service does what is due, and each run is pushed.

It is the service of one machine, a step at a time, with what that remembers brought along. A push that is rejected
means that somebody was faster: what was done is discarded, and done again on top of theirs. What tells the outside
world (mail, messages of scripts) does so after the push, from the pushed commits.
"""

from __future__ import annotations

import os
import resource
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from datetime import time as day_time
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from cleared.base.clock import Clock, clock_from
from cleared.base.errors import ClearedError, PolicyError, UsageError, WorkspaceError
from cleared.changes.consumed_events import AlreadyRun
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.workspace_opening import open_workspace
from cleared.domains.installed_domains import load_domains
from cleared.gate.manual_runs import run_command
from cleared.git import Snapshot
from cleared.sandbox.schedule import jitter_seconds
from cleared.service.fleet.earlier_ends import find_failure, find_question
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import Fleet, check_name
from cleared.service.fleet.fleet_records import DroppedFile, JobOutcome, Request, WorkspaceRecord
from cleared.service.fleet.fleet_tables import VERSION
from cleared.service.fleet.job_calls import JobCalls
from cleared.service.fleet.job_queue import (
    TURN_SECONDS,
    JobKind,
    JobTry,
    ask_for_job,
    count_outcome,
    drop_waiting_jobs,
    hold_job,
    open_queue,
)
from cleared.service.fleet.object_store import FileStore
from cleared.service.fleet.owner_statements import (
    WorkspaceStatement,
    read_statement,
    read_workers,
    refuse_older,
    require_said_of,
    require_trusted_worker,
)
from cleared.service.fleet.service_state import pack_state, unpack_state
from cleared.service.fleet.worker_clone import KnownHistory, WorkerClone
from cleared.service.fleet.worker_home import enter_home
from cleared.service.notify.notifications import Notifier
from cleared.service.notify.script_messages import ScriptMessages
from cleared.service.spans import SpanExporter
from cleared.service.status_report import find_unapproved
from cleared.service.waiting_cards import read_waiting_cards
from cleared.service.workspace_actions import WorkspaceActions
from cleared.service.workspace_service import WorkspaceService
from cleared.triggers.pending_deliveries import peek_deliveries
from cleared.triggers.service_log import ServiceLog
from cleared.triggers.service_notices import report_push_rejections
from cleared.trust.keys import run_public_key
from cleared.workspace.fleet_clones import CLONES
from cleared.workspace.lock import ensure_state_dir
from cleared.workspace.watched_names import escape_name

PUSH_TRIES: Final = 5
"""So often a job is done again where others push meanwhile."""
_FIRST_RETRY, _LONGEST_RETRY = timedelta(seconds=30), timedelta(hours=1)
_OFTEN_FAILED: Final = 2
"""After so many failures in a row the clone is made again: its disk may be damaged."""


class JobOrder(Struct, frozen=True):
    """What a worker tells the process of a job. ``folder``: where clones lie; ``home``: where the worker's key lies;
    ``instant``: what time it is, where it does not go by the machine's clock. ``turn_seconds``: after so long it lets
    other workspaces have their turn."""

    fleet: Fleet
    folder: str
    home: str
    workspace: str
    kind: JobKind
    key: str
    job: JobTry
    instant: str | None = None
    turn_seconds: float = TURN_SECONDS


class PushedMeanwhile(Exception):
    """Somebody has pushed to the workspace since the job began."""


class TakenOver(Exception):
    """Another worker has the job, as this one was still for so long that it was taken for dead."""


def do_job(order: JobOrder, say: Callable[[str], None]) -> None:
    """Do a job in this process. What is wrong with the workspace is written down, not raised; the next try is planned.

    Raises ``WorkspaceError`` where the database cannot be reached.
    """
    clock = clock_from(order.instant)
    with FleetDatabase.connect(order.fleet.database) as database:
        record = database.read_workspace(order.workspace)
        if record.written_by > VERSION:
            leave_to_newer(order, record)
            say(f"{order.workspace}: a newer worker has served it, so its job waits for one (cleared fleet upgrade)")
            return
        drop_waiting_jobs(database, order.workspace)
        try:
            count_outcome(database, WorkspaceJob(database, order, clock, say).serve_workspace(record))
        except (ClearedError, OSError, sqlite3.Error) as error:
            count_outcome(database, "failed")
            wait = min(_FIRST_RETRY * 2 ** min(record.failures, 10), _LONGEST_RETRY)
            database.note_problem(order.workspace, str(error), clock.now() + wait)
            say(f"{order.workspace}: {error}")
        finally:
            database.add_spending(order.workspace, clock.now(), _processor_seconds())


def leave_to_newer(order: JobOrder, record: WorkspaceRecord) -> None:
    """Ask for the job again, of a worker that knows what the last one has written down."""
    with open_queue(order.fleet.database) as queue:
        ask_for_job(queue, order.workspace, order.kind, order.key, record.written_by)


def _processor_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class WorkspaceJob:
    """A job in one workspace."""

    def __init__(self, database: FleetDatabase, order: JobOrder, clock: Clock, say: Callable[[str], None]) -> None:
        self._database, self._order, self._clock, self._tell = database, order, clock, say
        self._folder = Path(order.folder)
        self._files: list[tuple[DroppedFile, Path]] = []
        self._problems: list[str] = []
        self._waiting: list[DroppedFile] = []
        self._calls = JobCalls(database, order.workspace)
        self._store: FileStore | None = None
        self._spans: SpanExporter | None = None
        self._pushed = self._began_at = ""

    def _say(self, text: str) -> None:
        self._tell(f"{self._order.workspace}: {text}")

    def serve_workspace(self, record: WorkspaceRecord) -> JobOutcome:
        """How it ended. Raises ``ClearedError`` where it cannot be done as things are."""
        owner = self._order.fleet.owner
        said = read_statement(owner, record.signed, WorkspaceStatement)
        require_said_of(said, check_name(record.name))
        workers = read_workers(owner, self._database, self._folder)
        if said.at <= workers.removed.get(said.name, ""):
            raise PolicyError(
                f"the owner has taken {said.name} out of the fleet on {workers.removed[said.name]}, so nothing is run",
                remedy="Look who has changed the database. The owner takes it in again: cleared fleet add.",
            )
        memory = self._folder / "homes" / said.name / "said"
        refuse_older(owner, record.signed, WorkspaceStatement, memory, said.name)
        require_trusted_worker(workers, run_public_key(self._folder))
        now = self._clock.now()
        if said.budget_seconds and record.spent_day == now.date() and record.spent_seconds >= said.budget_seconds:
            tomorrow = datetime.combine(now.date() + timedelta(days=1), day_time(), now.tzinfo)
            self._database.note_problem(
                record.name,
                f"its {said.budget_seconds} processor seconds of today are used up",
                tomorrow,
                has_failed=False,
            )
            return "put_off"
        self._waiting = self._database.list_files(record.name)
        if self._waiting or self._calls:  # its keys are the worker's, and no job's
            self._store = FileStore(self._order.fleet.store)
        enter_home(self._folder, Path(self._order.home), said, workers)
        clone = WorkerClone(self._folder / CLONES / said.name, said.url, said.branch, said.books)
        known = KnownHistory(record.head, workers.revoked, said.rewritten)
        clone.make_if_missing(known, anew=record.failures >= _OFTEN_FAILED)
        for _ in range(PUSH_TRIES):
            try:
                self._try_once(record, said, known, clone)
                return "done"
            except PushedMeanwhile:
                self._say("somebody has pushed meanwhile; once more, on top of that")
                record = self._database.read_workspace(record.name)
                known = structs.replace(known, head=record.head)
            except TakenOver:
                self._say("another worker has taken this job over, and tells what is to be told")
                return "done"
        self._report_rejections(clone, known)
        raise WorkspaceError(
            f"others have pushed {PUSH_TRIES} times while a job was at work",
            remedy="It is tried again. Look who pushes so often: git log, in a clone of yours.",
        )

    def _report_rejections(self, clone: WorkerClone, known: KnownHistory) -> None:
        """A card, where it can be pushed; what the owner sees in any case is the problem of the workspace."""
        host = self._open_host(clone.root)
        self._pushed = clone.follow_pushed(host, known)
        self._files = []  # of what was discarded
        report_push_rejections(host, PUSH_TRIES, self._clock.now().date().isoformat())
        with suppress(PushedMeanwhile, TakenOver):
            self._push(host, clone)

    def _open_host(self, root: Path) -> Host:
        host = open_workspace(root, clock=self._clock, say=self._say)
        host.serves_all_clones = True
        return host

    def _try_once(
        self, record: WorkspaceRecord, said: WorkspaceStatement, known: KnownHistory, clone: WorkerClone
    ) -> None:
        spans = self._spans = SpanExporter.from_environment(os.environ, said.name)
        with (
            ExitStack() as ending,
            WorkspaceActions(clone.root, self._open_host, spans.record_run if spans is not None else None) as actions,
        ):
            if spans is not None:
                ending.callback(spans.close)
                about = {"cleared.job.kind": self._order.kind, "cleared.job.key": self._order.key}
                ending.enter_context(spans.spanning(f"job of {said.name}", self._clock, about))
            host = actions.open_host()
            self._pushed = self._began_at = clone.follow_pushed(host, known)
            host.close()
            host = actions.open_host()  # other settings may be in force
            state_dir = host.layout.state_dir
            ensure_state_dir(state_dir)
            unpack_state(record.state, state_dir)
            self._put_files(host, clone)
            self._problems += self._calls.put_calls(clone.root, self._store)
            ending.callback(self._calls.close)
            log = ServiceLog(state_dir, self._clock, self._say)
            log("job.begun", kind=self._order.kind, key=self._order.key)
            awake = self._database.read_awake_since() or self._clock.now()
            with ExitStack() as stack:
                service = WorkspaceService(clone.root, actions, log, lambda _: None, awake_since=awake)
                stack.callback(service.close)
                due = self._serve(service, actions, clone)
            self._save(record.name, host, due, said.spread_seconds)

    def _put_files(self, host: Host, clone: WorkerClone) -> None:
        """Put the dropped files that wait where the service looks for them; what cannot be read keeps no other back."""
        self._files, self._problems = [], []
        if self._store is None:
            return
        imported = self._list_imported(host)
        for file in self._waiting:
            if file.digest in imported:  # by a job that ended after its push
                self._database.settle_file(self._order.workspace, file, "imported")
                continue
            name = file.name if "/" not in file.name and not file.name.startswith(".") else file.digest
            try:
                data = self._store.read_file(file.digest)
            except WorkspaceError as error:
                self._problems.append(f"{escape_name(file.name)} was not handed in: {error}")
                continue
            self._files.append((file, clone.put_file(host.layout.import_dir, name, data, file.at)))

    def _list_imported(self, host: Host) -> set[str]:
        with host.open_for_reading() as repo:
            source = CommittedSource(Snapshot(repo, self._pushed))
            return {
                file.sha256 for domain in load_domains() for file in domain.read_imported_files(source, host.layout)
            }

    def _serve(self, service: WorkspaceService, actions: WorkspaceActions, clone: WorkerClone) -> datetime | None:
        """Do what is due; when there is something to do again."""
        answered = threading.Event()
        actions.on_answered = answered.set
        until = time.monotonic() + self._order.turn_seconds
        for request in self._database.list_requests(self._order.workspace):
            self._run_request(service, clone, request)
            if time.monotonic() > until:
                return self._clock.now()
        while True:
            worked = service.run_step()
            if service.problem is not None:
                raise WorkspaceError(service.problem)
            self._push(service.host, clone)
            if not worked and service.handler.agents_asking:
                answered.wait(1.0)
                answered.clear()
            elif not worked:
                return service.wake_at()
            if time.monotonic() > until and not service.handler.agents_asking:
                return self._clock.now()

    def _run_request(self, service: WorkspaceService, clone: WorkerClone, request: Request) -> None:
        """A run that a person asked for: once, however often the job is tried."""
        now = self._clock.now()
        if (failure := find_failure(service.host, self._pushed, request, now)) is not None:
            self._database.end_request(request, "failed", str(failure["cause"]), str(failure["commit"]), now)
            return
        self._database.begin_request(request, self._pushed)
        commit, status = "", ""
        try:
            result = run_command(service.host, request.agent, data=request.payload, key=request.id)
            status, said = result.status, str(result.error) if result.error is not None else result.message
            commit = result.commits[0] if result.commits else ""
            if status == "waiting":
                status, said = "asks", result.cards[0].title if result.cards else "it waits for an answer"
        except AlreadyRun as error:
            title = find_question(service.host, self._pushed, request)
            status, said = ("asks", title) if title is not None else ("succeeded", str(error))
        except (PolicyError, UsageError) as error:
            status, said = "refused", str(error)
        self._push(service.host, clone)
        self._database.end_request(request, status, said or "", commit, self._clock.now())

    def _push(self, host: Host, clone: WorkerClone) -> None:
        """What was done is pushed, and then written down. Raises ``PushedMeanwhile`` where somebody was faster."""
        with host.open_for_reading() as repo:
            head = repo.read_head()
        if head != self._pushed:
            self._push_new(host, clone, head)
        self._settle_files()
        self._problems += self._calls.save_results(self._store, self._clock.now())

    def _push_new(self, host: Host, clone: WorkerClone, head: str) -> None:
        with ExitStack() as stack:
            if self._spans is not None:
                stack.enter_context(self._spans.spanning("push", self._clock, {"cleared.commit": head}))
            head, is_there = clone.push_head(host)
        if not is_there:
            raise PushedMeanwhile
        self._pushed = head
        self._note(partial(self._database.save_head, self._order.workspace, head))

    def _note(self, write: Callable[[], None]) -> None:
        """Write down what this job has done. Raises ``TakenOver`` where it is another worker's now."""
        with self._database.transaction():
            if not hold_job(self._database, self._order.job):
                raise TakenOver
            write()

    def _settle_files(self) -> None:
        """What was pushed has taken these files in, or has set them aside."""
        for file, path in self._files:
            if not path.exists():
                self._database.settle_file(self._order.workspace, file, self._pushed)
        self._files = [(file, path) for file, path in self._files if path.exists()]

    def _save(self, name: str, host: Host, due: datetime | None, spread_seconds: int) -> None:
        """Keep what the service remembers, tell what is to be told, and plan the next look."""
        now = self._clock.now()
        with host.open_for_reading() as repo:
            cards = read_waiting_cards(host, Snapshot(repo, self._pushed)).open_cards
        if due is not None and due > now and spread_seconds:
            due += timedelta(seconds=jitter_seconds(name, due, spread_seconds))
        unapproved = find_unapproved(host)
        held = [
            f"{each.agent} waits: {each.why}"
            for each in peek_deliveries(host.layout.state_dir)[1]
            if each.state == "held" and each.agent not in unapproved
        ]
        problem = "; ".join([*self._problems, *unapproved.values(), *dict.fromkeys(held)])
        problem = problem.replace("cleared trust.", f"cleared fleet add {name} GIT-URL.")  # nobody sits at a worker
        if self._calls.has_more:
            due = now
        if self._problems:
            due = min(due or now + _LONGEST_RETRY, now + _LONGEST_RETRY)
        save = partial(self._database.save_job, name, head=self._pushed, now=now, cards=cards, problem=problem)
        notifier = Notifier(host)
        notifier.record_pushed_failures(self._pushed, self._began_at, now)
        notifier.prepare_messages(now)
        self._note(partial(save, state=pack_state(host.layout.state_dir), due=due))
        told = [sender.send_due_messages(now) for sender in (notifier, ScriptMessages(host))]
        due = min((at for at in (due, *told) if at is not None), default=None)
        self._note(partial(save, state=pack_state(host.layout.state_dir), due=due))
