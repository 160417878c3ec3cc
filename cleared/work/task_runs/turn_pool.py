"""Turns at tasks, several at once: a thread each, as what they wait for are programs and files.

One turn at a time is done by the thread that asks for it: Ctrl-C then ends whatever it does.
"""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType

from msgspec.structs import replace

from cleared.base.errors import ClearedError
from cleared.changes.host import Host
from cleared.jobs.tasks.task_definition import Task
from cleared.work.cycles.engine_policy import EnginePolicy
from cleared.work.task_runs.task_turn import TaskTurn, take_turn
from cleared.work.task_runs.workers import Worker


class TurnPool:
    """Up to ``size`` turns at once. A context manager: none is left at its end. What is on then comes to its end where
    a ``ClearedError`` is the cause, and is stopped and given back else."""

    def __init__(self, host: Host, worker: Worker, policy: EnginePolicy | None, size: int) -> None:
        self._host, self._worker, self._policy, self._size = host, worker, policy, size
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(size)
        self._running: dict[Future[TaskTurn], Task] = {}

    def __enter__(self) -> TurnPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, ClearedError):
            self._stop.set()
        self._threads.shutdown()

    @property
    def tasks(self) -> list[Task]:
        """Those that are on."""
        return list(self._running.values())

    @property
    def has_room(self) -> bool:
        return len(self._running) < self._size

    @property
    def is_idle(self) -> bool:
        return not self._running

    def begin(self, task: Task) -> None:
        """Begin a turn at a task."""
        if self._size == 1:
            turn: Future[TaskTurn] = Future()
            turn.set_result(take_turn(self._host, self._worker, self._policy, task.id, bool))
        else:
            own = replace(self._host)  # its repository and traces are not for two threads
            turn = self._threads.submit(take_turn, own, self._worker, self._policy, task.id, self._stop.is_set)
        self._running[turn] = task

    def take_ended(self) -> TaskTurn:
        """Wait for a turn to end. Raises what ended it, where something did."""
        ended, _ = wait(self._running, return_when=FIRST_COMPLETED)
        turn = ended.pop()
        del self._running[turn]
        return turn.result()
