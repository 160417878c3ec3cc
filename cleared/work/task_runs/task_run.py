"""``cleared task run``: plan → claim → brief → work → verify → record, one task at a time."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import BusyError, ClearedError
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.git import Repository
from cleared.git.history_copy import copy_files
from cleared.jobs.tasks.task_states import AWAITING, COMPLETED, FAILED, IN_PROGRESS, PENDING
from cleared.work.cycles.engine_policy import EnginePolicy, Following, Spending
from cleared.work.cycles.usage_limit import UsageLimit
from cleared.work.loop.private_clone import PrivateClone
from cleared.work.task_runs.assignment import Assignment
from cleared.work.task_runs.briefing import make_briefing
from cleared.work.task_runs.last_try import read_last_try, worker_output_path
from cleared.work.task_runs.task_archive import archive_tasks
from cleared.work.task_runs.task_claims import Claim, claim_task, drop_claim, read_claim
from cleared.work.task_runs.task_completion import TaskOutcome, complete_task, fail_task
from cleared.work.task_runs.task_planning import refuse_task_faults
from cleared.work.task_runs.task_recording import open_ledger, open_recorder, read_task_set, state_folder
from cleared.work.task_runs.task_reports import find_next
from cleared.work.task_runs.task_wait import TaskWait, note_wait, read_wait
from cleared.work.task_runs.workers import Worker
from cleared.workspace.location import Layout
from cleared.workspace.runners import Runner

LOCK_NAME: Final = "task-orchestrator.lock"
_PAUSE_SECONDS: Final = 0.5

EndState = Literal["done", "blocked", "limit"]


class RunReport(Struct, frozen=True):
    """How a run of the orchestrator ended. ``reasons``: why no task is ready."""

    state: EndState
    outcomes: tuple[TaskOutcome, ...]
    reasons: tuple[str, ...] = ()


def tasks_of(root: Path) -> Runner:
    """The run of tasks of a workspace."""
    folder = root / Layout.state
    stop_file = folder / "task-run.stop"
    return Runner(
        "a run of tasks", folder, LOCK_NAME, "task run", "cleared work status", "cleared work stop", stop_file
    )


def run_tasks(host: Host, worker: Worker, *, most: int | None = None, waits: bool = True) -> RunReport:
    """Have ``worker`` do the ready tasks, until all are done, none is ready, or ``most`` were tried.

    A task that fails stays failed, and the others go on. ``cleared work stop`` ends it after a task. Ctrl-C gives the
    claimed task back, and so does a usage limit of the worker's account, which fails nothing. What follows on a task
    says the policy of the worker's account; without ``waits`` it is noted for the next turn. Raises ``PolicyError``
    where a ready task is not sealed on this machine, ``BusyError`` where another orchestrator is at work.
    """
    outcomes: list[TaskOutcome] = []
    runner = tasks_of(host.root)
    with runner.hold(host.clock):
        runner.forget_request()
        for left in state_folder(host, "task-work").iterdir():
            remove_tree(left)  # its orchestrator was killed, and the worker could write its git settings
        policy = worker.begin(host)
        if policy is not None and not waits:
            policy.failures = read_wait(host.root).failures
        note_wait(host, TaskWait())
        while True:
            archive_tasks(host)
            tasks = read_task_set(host)
            tasks.refuse_faults()
            refuse_task_faults(host, tasks.tasks, {n: t for n, t in tasks.live.items() if not _has_begun(host, n)})
            found = find_next(host)
            if found.task_id is None:
                return RunReport("done" if found.state == "done" else "blocked", tuple(outcomes), found.reasons)
            if runner.is_asked_to_end() or (most is not None and len(outcomes) >= most):
                return RunReport("limit", tuple(outcomes))
            if policy is not None and (reached := policy.find_cap()):
                return RunReport("blocked", tuple(outcomes), (reached,))
            turn = _run_task(host, worker, found.task_id)
            if turn.outcome is not None:
                outcomes.append(turn.outcome)
                host.show_message(f"{turn.outcome.task_id} {turn.outcome.status}: {turn.outcome.summary}")
            following = _find_following(policy, turn)
            if following is not None and following.status == "failed":
                return RunReport("blocked", tuple(outcomes), (following.reason or "",))
            if policy is not None and not waits:
                _note_following(host, policy, following)
            if following is not None and not waits:
                return RunReport("blocked", tuple(outcomes), (_describe_wait(host, following),))
            if following is not None and policy is not None:
                _wait(host, runner, following)
                policy.end_wait(following)


class _Turn(Struct, frozen=True):
    """How one turn at a task ended. ``outcome``: None where it was given back; ``limit``: of the worker's account."""

    outcome: TaskOutcome | None
    limit: UsageLimit | None = None
    used: Spending = Spending()


def _find_following(policy: EnginePolicy | None, turn: _Turn) -> Following | None:
    """What follows, once what was used is counted; None: the next task."""
    if policy is None:
        return None
    policy.record_use(turn.used)
    failed = turn.outcome is not None and turn.outcome.status == FAILED
    return policy.find_following(failed=failed, limit=turn.limit)


def _note_following(host: Host, policy: EnginePolicy, following: Following | None) -> None:
    """For the loop's next turn."""
    if following is None:
        note_wait(host, TaskWait(policy.failures))
        return
    until = host.clock.now() + timedelta(seconds=following.seconds)
    failures = 0 if following.status == "cooldown" else policy.failures
    note_wait(host, TaskWait(failures, until, _describe_wait(host, following)))


def _describe_wait(host: Host, following: Following) -> str:
    until = format_iso(host.clock.now() + timedelta(seconds=following.seconds))
    kind = "usage limit" if following.status == "waiting_limit" else "cooling down"
    return f"{kind} until {until}: {following.reason}"


def _wait(host: Host, runner: Runner, following: Following) -> None:
    """Until it is over, also where the machine sleeps meanwhile, or somebody asks it to end."""
    host.show_message(f"waiting: {_describe_wait(host, following)}")
    began, until = host.clock.monotonic(), host.clock.now() + timedelta(seconds=following.seconds)
    while host.clock.now() < until and (left := following.seconds - (host.clock.monotonic() - began)) > 0:
        if runner.is_asked_to_end():
            return
        time.sleep(min(_PAUSE_SECONDS, left))


def _run_task(host: Host, worker: Worker, task_id: str) -> _Turn:
    claim = claim_task(host, task_id, worker.name, worker_pid=os.getpid(), is_program=True)
    try:
        return _do_work(host, worker, claim)
    except BusyError:
        _give_back(host, task_id, claim, "the workspace was busy")
        raise
    except ClearedError as error:
        if not _is_still(host, claim):
            raise
        return _Turn(fail_task(host, task_id, str(error), by=claim.by))
    except BaseException:
        _give_back(host, task_id, claim, "the orchestrator was stopped")
        raise


def _do_work(host: Host, worker: Worker, claim: Claim) -> _Turn:
    task = read_task_set(host).require_task(claim.task_id)
    folder = state_folder(host, "task-work") / task.id
    remove_tree(folder)
    with Repository.open(host.root, for_writing=False) as repo:
        copy_files(repo, claim.base, folder)
        briefing = make_briefing(repo, claim.base, task, read_last_try(host, task.id))
    host.report_step("task-briefed")
    host.show_message(briefing.size_note)
    output = worker_output_path(host, task.id)
    assignment = Assignment(briefing, claim.base, folder.resolve(), host.config.tasks.work_seconds, output)
    is_done, kept = False, state_folder(host, "task-kept") / task.id
    try:
        report = worker.work(host, assignment)
        host.report_step("task-worked")
        if report.limit is not None:
            _give_back(host, task.id, claim, f"usage limit: {report.limit.words}")
            return _Turn(None, report.limit, report.used)
        if not report.is_finished:
            reason = report.summary or f"{worker.name} did not finish"
            return _Turn(fail_task(host, task.id, reason, by=claim.by), used=report.used)
        outcome = complete_task(host, task.id, summary=report.summary, clone=folder.resolve(), token=claim.token)
        is_done = outcome.status in (COMPLETED, AWAITING)
        return _Turn(outcome, used=report.used)
    finally:
        remove_tree(kept)
        if not is_done:
            _keep_work(host, task.id, PrivateClone(host, folder, claim.base), kept)
        remove_tree(folder)


def _keep_work(host: Host, task_id: str, clone: PrivateClone, kept: Path) -> None:
    """Keep for a person what the worker had changed: not its clone, whose git settings it could write."""
    try:
        left_out = clone.keep_changes(kept)
    except (ClearedError, OSError) as error:
        remove_tree(kept)
        host.show_message(f"{task_id}: what was changed is not kept: {error}")
        return
    for change in left_out:
        host.show_message(f"{task_id}: not kept: {change.path} ({change.problem})")


def _give_back(host: Host, task_id: str, claim: Claim, reason: str) -> None:
    """The task is pending again, where the claim is still the one."""
    with open_recorder(host, f"task release {task_id}") as recorder:
        latest = recorder.ledger.read_latest(task_id)
        known = read_claim(host, task_id)
        if latest is not None and latest.status == IN_PROGRESS and known is not None and known.token == claim.token:
            recorder.append(recorder.make_line(task_id, PENDING, f"Given back by {claim.by}: {reason}"))
            drop_claim(host, task_id)


def _is_still(host: Host, claim: Claim) -> bool:
    latest, known = open_ledger(host).read_latest(claim.task_id), read_claim(host, claim.task_id)
    return latest is not None and latest.status == IN_PROGRESS and known is not None and known.token == claim.token


def _has_begun(host: Host, task_id: str) -> bool:
    """Whether it is no longer pending: what it names may have changed by what it did."""
    latest = open_ledger(host).read_latest(task_id)
    return latest is not None and latest.status != PENDING
