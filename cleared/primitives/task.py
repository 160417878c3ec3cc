"""``task_*``: the tasks as of the last commit, and proposing one. No script writes the ledger."""

from __future__ import annotations

from typing import Any, Final, cast

from cleared.base.errors import Place, PrimitiveError
from cleared.cards.kinds import TASK
from cleared.primitives.context import Context
from cleared.primitives.registry.dict_shapes import NextTaskInfo, TaskInfo
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Json, Line

_MAX_LEDGER: Final = 64 << 20


@primitive(effect=Effect.READ, grant="task.read")
def task_next(ctx: Context) -> NextTaskInfo:
    """The task that comes next: ``{"state", "id", "reasons"}``; state is ready, done or blocked."""
    from cleared.jobs.tasks.task_graph import choose_next

    tasks, lines = _load(ctx)
    found = choose_next(tasks, {name: line.status for name, line in lines.items()})
    return {"state": found.state, "id": found.task_id, "reasons": list(found.reasons)}


@primitive(effect=Effect.READ, grant="task.read")
def task_get(ctx: Context, id: Line) -> TaskInfo:
    """One task with its newest state. A claim counts once it is committed with what follows it."""
    tasks, lines = _load(ctx)
    if id not in tasks:
        raise PrimitiveError(f"there is no task {id[:60]!r}", place=Place(field="id"), remedy="task_list() has all.")
    return _describe(tasks[id], lines.get(id))


@primitive(effect=Effect.READ, grant="task.read")
def task_list(ctx: Context, status: Line | None = None) -> list[TaskInfo]:
    """All tasks by id, or those of one state: pending, in-progress, completed, failed, blocked or
    awaiting-approval."""
    from cleared.jobs.tasks.task_graph import sort_key
    from cleared.jobs.tasks.task_states import ALIASES, STATES

    wanted = ALIASES.get(status, status) if status is not None else None
    if wanted is not None and wanted not in STATES:
        raise PrimitiveError(
            f"{wanted[:60]!r} is no state", place=Place(field="status"), remedy=f"Use {', '.join(STATES)}."
        )
    tasks, lines = _load(ctx)
    rows = [_describe(tasks[name], lines.get(name)) for name in sorted(tasks, key=sort_key)]
    return [row for row in rows if wanted is None or row["status"] == wanted]


@primitive(effect=Effect.STAGE, grant="task.propose")
def task_propose(ctx: Context, task: Json) -> str:
    """Propose a task, with the fields of a task file (without ``id`` it gets the next one); gives the card's id.

    A person who takes it (``cleared task add --card CARD``) makes it a task; until then it is none.
    """
    from cleared.jobs.tasks.task_definition import TaskRefused, check_task

    try:
        checked = check_task(task, "task", optional_id=True)
    except TaskRefused as error:
        raise PrimitiveError(str(error), place=Place(field="task"), remedy=error.remedy) from None
    definition: dict[str, Any] = checked.to_json_object()
    if "id" not in task:
        del definition["id"]
    ctx.log_action("task_propose", checked.title)
    return ctx.stage_card(
        TASK.name,
        (checked.digest,),
        f"{definition.get('id', 'a task')}: {checked.title}",
        task=definition,
        description=checked.description[:2_000],
        command=checked.verification_command,
    )


def _load(ctx: Context) -> tuple[Any, Any]:
    """Tasks and newest lines, by id, as of the run's commit. Raises ``PrimitiveError`` where there is no ledger."""
    from cleared.jobs.tasks.ledger_lines import parse_line
    from cleared.jobs.tasks.task_ledger import LEDGER
    from cleared.jobs.tasks.task_store import load_tasks

    data = ctx.source.read(LEDGER)
    if data is None or len(data) > _MAX_LEDGER:
        raise PrimitiveError(
            "no ledger of tasks is committed" if data is None else "the ledger of tasks is too large for a script",
            remedy="Make one: cleared task init." if data is None else "Use cleared task show.",
        )
    lines = {record.id: record for record in map(parse_line, data.split(b"\n")) if record is not None}
    return load_tasks(ctx.source).tasks, lines


def _describe(task: Any, line: Any) -> TaskInfo:
    known = (line.status, line.updated_at, line.summary) if line is not None else (None, None, "")
    info = {**task.to_json_object(), "status": known[0], "updated_at": known[1], "summary": known[2]}
    return cast(TaskInfo, info)
