"""One turn at a task: claim → brief → work → verify → record."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from cleared.base.errors import BusyError, ClearedError
from cleared.base.terminal import escape_text
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.git import Repository
from cleared.git.history_copy import copy_files
from cleared.jobs.tasks.task_states import AWAITING, COMPLETED, IN_PROGRESS, PENDING
from cleared.work.cycles.engine_policy import EnginePolicy
from cleared.work.cycles.usage_limit import UsageLimit
from cleared.work.loop.private_clone import PrivateClone
from cleared.work.task_runs.assignment import Assignment
from cleared.work.task_runs.briefing import make_briefing
from cleared.work.task_runs.last_try import read_last_try, worker_output_path
from cleared.work.task_runs.task_claims import Claim, claim_task, drop_claim, read_claim
from cleared.work.task_runs.task_completion import TaskOutcome, complete_task, fail_task
from cleared.work.task_runs.task_recording import open_ledger, open_recorder, read_task_set, state_folder
from cleared.work.task_runs.workers import Worker


class TaskTurn(Struct, frozen=True):
    """How one turn at a task ended. ``outcome``: None where it was given back; ``limit``: of the worker's account."""

    outcome: TaskOutcome | None
    limit: UsageLimit | None = None


def take_turn(
    host: Host, worker: Worker, policy: EnginePolicy | None, task_id: str, should_stop: Callable[[], bool]
) -> TaskTurn:
    """Do one task. What it has used is counted. A task that is neither done nor failed by whatever comes is given back.

    Raises ``BusyError`` where the workspace stays locked, ``KeyboardInterrupt`` where it is to stop.
    """
    claim = claim_task(host, task_id, worker.name, worker_pid=os.getpid(), is_program=True)
    try:
        return _do_work(host, worker, policy, claim, should_stop)
    except BusyError:
        _give_back(host, task_id, claim, "the workspace was busy")
        raise
    except ClearedError as error:
        if not _is_still(host, claim):
            raise
        return TaskTurn(fail_task(host, task_id, str(error), by=claim.by))
    except BaseException:
        _give_back(host, task_id, claim, "the orchestrator was stopped")
        raise


def _do_work(
    host: Host, worker: Worker, policy: EnginePolicy | None, claim: Claim, should_stop: Callable[[], bool]
) -> TaskTurn:
    task = read_task_set(host).require_task(claim.task_id)
    folder = state_folder(host, "task-work") / task.id
    remove_tree(folder)
    with Repository.open(host.root, for_writing=False) as repo:
        copy_files(repo, claim.base, folder)
        briefing = make_briefing(repo, claim.base, task, read_last_try(host, task.id))
    host.report_step("task-briefed")
    host.show_message(briefing.size_note)
    output = worker_output_path(host, task.id)
    seconds = host.config.tasks.work_seconds
    assignment = Assignment(briefing, claim.base, folder.resolve(), seconds, output, should_stop)
    is_done, kept = False, state_folder(host, "task-kept") / task.id
    try:
        report = worker.work(host, assignment)
        if policy is not None:
            policy.record_use(report.used)
        if report.is_stopped:
            raise KeyboardInterrupt
        host.report_step("task-worked")
        if report.limit is not None:
            _give_back(host, task.id, claim, f"usage limit: {report.limit.words}")
            return TaskTurn(None, report.limit)
        if not report.is_finished:
            reason = report.summary or f"{worker.name} did not finish"
            return TaskTurn(fail_task(host, task.id, reason, by=claim.by))
        outcome = complete_task(
            host,
            task.id,
            summary=report.summary,
            clone=folder.resolve(),
            token=claim.token,
            should_stop=should_stop,
        )
        is_done = outcome.status in (COMPLETED, AWAITING)
        return TaskTurn(outcome)
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
        host.show_message(f"{task_id}: not kept: {escape_text(change.path)} ({change.problem})")


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
