"""Tasks and what they require: a graph without cycles, and which task comes next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from cleared.base.short_text import parse_count
from cleared.jobs.tasks.task_definition import Task
from cleared.jobs.tasks.task_states import AWAITING, BLOCKED, COMPLETED, FAILED, IN_PROGRESS, PENDING


class NextTask(Struct, frozen=True):
    """What is to be done next. ``task_id``: where one is ready; ``reasons``: why none is, one a line; ``ready``: all
    that are."""

    state: Literal["ready", "done", "blocked"]
    task_id: str | None = None
    reasons: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()


def list_graph_faults(tasks: Mapping[str, Task]) -> Iterator[tuple[str, str]]:
    """Each fault of the requirements as the task's id and what is wrong: itself, an unknown task, a cycle."""
    for task in tasks.values():
        for name in task.requires:
            if name == task.id:
                yield task.id, f"it requires itself: {task.id} → {task.id}"
            elif name not in tasks:
                yield task.id, f"it requires {name}, and there is no such task"
    cycle = find_cycle(tasks)
    if cycle:
        yield cycle[0], f"the requirements lead in a circle: {' → '.join(cycle)}"


def find_cycle(tasks: Mapping[str, Task]) -> list[str]:
    """A circle of two tasks or more, its first one repeated at the end; empty where there is none."""
    finished: set[str] = set()
    for first in tasks:
        path: list[str] = []
        waiting: list[tuple[str, Iterable[str]]] = [] if first in finished else [(first, iter(tasks[first].requires))]
        if waiting:
            path.append(first)
        while waiting:
            name, left = waiting[-1]
            following = next((r for r in left if r in tasks and r != name and r not in finished), None)
            if following is None:
                finished.add(name)
                waiting.pop()
                path.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            else:
                path.append(following)
                waiting.append((following, iter(tasks[following].requires)))
    return []


def choose_next(tasks: Mapping[str, Task], states: Mapping[str, str]) -> NextTask:
    """The first pending task that waits for none, by id.

    ``states``: id → newest state; a task that has none is not in the ledger and is passed over.
    """
    if not tasks:
        return NextTask("done", None, ("There are no tasks yet: cleared task plan FILE.",))
    reasons, ready = [], []
    for task_id, task in sorted(tasks.items(), key=lambda item: sort_key(item[0])):
        state = states.get(task_id)
        if state == PENDING:
            waits = list_blockers(task, tasks, states)
            if waits:
                reasons.append(f"{task_id} waits for {', '.join(waits)}")
            else:
                ready.append(task_id)
        elif state == IN_PROGRESS:
            reasons.append(f"{task_id} is being worked on")
        elif state == AWAITING:
            reasons.append(f"{task_id} awaits your approval: cleared task show {task_id}")
        elif state in (FAILED, BLOCKED):
            reasons.append(f"{task_id} {'has failed' if state == FAILED else 'is blocked'}")
        elif state is None:
            reasons.append(f"{task_id} is not in the ledger")
    if ready:
        return NextTask("ready", ready[0], ready=tuple(ready))
    return NextTask("blocked", None, tuple(reasons)) if reasons else NextTask("done")


def list_blockers(task: Task, tasks: Mapping[str, Task], states: Mapping[str, str]) -> list[str]:
    """What a task still waits for, each with its state: what it requires, and those of which a file that it changes,
    too, is not live yet."""
    required = [f"{name} ({states.get(name, 'unknown')})" for name in task.requires if states.get(name) != COMPLETED]
    awaited = [tasks[name] for name, state in states.items() if state == AWAITING and name in tasks]
    others = [other.id for other in awaited if other.id not in (task.id, *task.requires) and task.meets(other)]
    return [*required, *(f"{name} ({AWAITING}, and changes the same files)" for name in others)]


def sort_key(task_id: str) -> tuple[int, str]:
    """Orders ids by their number."""
    return (parse_count(task_id.removeprefix("T-")) or 0, task_id)
