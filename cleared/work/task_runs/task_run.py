"""``cleared task run``: which tasks are begun, how many at once, and what follows on each."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.jobs.tasks.task_definition import Task
from cleared.jobs.tasks.task_graph import NextTask
from cleared.jobs.tasks.task_states import FAILED, PENDING
from cleared.work.cycles.engine_policy import EnginePolicy, Following
from cleared.work.task_runs.read_only_folders import find_folders
from cleared.work.task_runs.task_archive import archive_tasks
from cleared.work.task_runs.task_completion import TaskOutcome
from cleared.work.task_runs.task_planning import refuse_task_faults
from cleared.work.task_runs.task_recording import open_ledger, read_task_set, state_folder
from cleared.work.task_runs.task_reports import find_next
from cleared.work.task_runs.task_turn import TaskTurn
from cleared.work.task_runs.task_wait import TaskWait, note_wait, read_wait
from cleared.work.task_runs.turn_pool import TurnPool
from cleared.work.task_runs.workers import Worker
from cleared.workspace.location import Layout
from cleared.workspace.runners import Runner

LOCK_NAME: Final = "task-orchestrator.lock"
_KINDS: Final = {"waiting_limit": "usage limit", "cooldown": "cooling down", "failed": "ended"}
_PAUSE_SECONDS: Final = 0.5

EndState = Literal["done", "blocked", "limit", "ended"]
"""``ended``: by the policy of the worker's account, before all are done."""


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


def run_tasks(
    host: Host, worker: Worker, *, most: int | None = None, waits: bool = True, workers: int = 1
) -> RunReport:
    """Have ``worker`` do the ready tasks, until all are done, none is ready, or ``most`` were tried.

    Up to ``workers`` tasks are done at once, each in a clone of its own, where no file of the one is the other's. A
    task that fails stays failed, and the others go on. ``cleared work stop`` ends it after what is on. Ctrl-C gives
    claimed tasks back, and so does a usage limit of the worker's account, which fails nothing. What follows on a task
    says the policy of the worker's account; without ``waits`` it is noted for the next turn. Raises ``PolicyError``
    where a ready task is not sealed on this machine, ``BusyError`` where another orchestrator is at work.
    """
    runner = tasks_of(host.root)
    with runner.hold(host.clock):
        runner.forget_request()
        for left in state_folder(host, "task-work").iterdir():
            remove_tree(left)  # its orchestrator was killed, and the worker could write its git settings
        policy = worker.begin(host)
        with host.open_for_reading() as repo:
            find_folders(host, repo, repo.read_head())  # what is wrong with the settings fails no task
        if policy is not None and not waits:
            policy.failures = read_wait(host.root).failures
        note_wait(host, TaskWait())
        with TurnPool(host, worker, policy, workers) as pool:
            return _Orchestrator(host, runner, pool, policy, most, waits).run()


class _Orchestrator:
    """Begins turns, and sees to what follows on them."""

    def __init__(
        self, host: Host, runner: Runner, pool: TurnPool, policy: EnginePolicy | None, most: int | None, waits: bool
    ) -> None:
        self._host, self._runner, self._pool, self._policy = host, runner, pool, policy
        self._most, self._waits = most, waits
        self._outcomes: list[TaskOutcome] = []
        self._wait: Following | None = None
        """Once nothing runs any more."""

    def run(self) -> RunReport:
        """Go on until there is an end."""
        end: RunReport | None = None
        while True:
            while end is None and self._wait is None and self._pool.has_room:
                found, ready = self._list_ready()
                if not ready:
                    is_over = self._pool.is_idle
                    end = (
                        RunReport("done" if found.state == "done" else "blocked", (), found.reasons)
                        if is_over
                        else None
                    )
                    break
                end = self._find_end()
                if end is None:
                    self._pool.begin(ready[0])
            if not self._pool.is_idle:
                end = self._settle(self._pool.take_ended()) or end
            elif end is not None:
                return RunReport(end.state, tuple(self._outcomes), end.reasons)
            elif self._wait is not None and self._policy is not None:
                self._sit_out(self._wait)
                self._policy.end_wait(self._wait)
                self._wait = None

    def _list_ready(self) -> tuple[NextTask, list[Task]]:
        """What comes next, and the ready tasks of which no file is one of a task that is on."""
        host = self._host
        archive_tasks(host)
        tasks = read_task_set(host)
        tasks.refuse_faults()
        refuse_task_faults(host, tasks.tasks, {n: t for n, t in tasks.live.items() if not _has_begun(host, n)})
        found = find_next(host)
        ready, on = [tasks.tasks[name] for name in found.ready], self._pool.tasks
        return found, [task for task in ready if not any(task.id == other.id or task.meets(other) for other in on)]

    def _find_end(self) -> RunReport | None:
        """The end, where no further task is to begin."""
        begun = len(self._outcomes) + len(self._pool.tasks)
        if self._runner.is_asked_to_end() or (self._most is not None and begun >= self._most):
            return RunReport("limit", ())
        reached = self._policy.find_cap() if self._policy is not None else ""
        return self._end_by_policy(reached) if reached else None

    def _end_by_policy(self, reason: str) -> RunReport:
        """The end, until a person has seen to it. The loop looks again later."""
        if not self._waits and self._policy is not None:
            _note_following(self._host, self._policy, Following("failed", reason, self._policy.limit_wait_seconds))
        return RunReport("ended", (), (reason,))

    def _settle(self, turn: TaskTurn) -> RunReport | None:
        """See to what follows on a turn; the end, where that does."""
        host, policy = self._host, self._policy
        if turn.outcome is not None:
            self._outcomes.append(turn.outcome)
            host.show_message(f"{turn.outcome.task_id} {turn.outcome.status}: {turn.outcome.summary}")
        if policy is None:
            return None
        failed = turn.outcome is not None and turn.outcome.status == FAILED
        following = policy.find_following(failed=failed, limit=turn.limit)
        if following is not None and following.status == "failed":
            return self._end_by_policy(following.reason or "")
        if not self._waits:
            _note_following(host, policy, following)
            return RunReport("blocked", (), (_describe_wait(host, following),)) if following is not None else None
        if following is not None and (self._wait is None or following.seconds > self._wait.seconds):
            self._wait = following
        return None

    def _sit_out(self, following: Following) -> None:
        """Until it is over, also where the machine sleeps meanwhile, or somebody asks it to end."""
        host = self._host
        host.show_message(f"waiting: {_describe_wait(host, following)}")
        began, until = host.clock.monotonic(), host.clock.now() + timedelta(seconds=following.seconds)
        while host.clock.now() < until and (left := following.seconds - (host.clock.monotonic() - began)) > 0:
            if self._runner.is_asked_to_end():
                return
            time.sleep(min(_PAUSE_SECONDS, left))


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
    return f"{_KINDS[following.status]} until {until}: {following.reason}"


def _has_begun(host: Host, task_id: str) -> bool:
    """Whether it is no longer pending: what it names may have changed by what it did."""
    latest = open_ledger(host).read_latest(task_id)
    return latest is not None and latest.status != PENDING
