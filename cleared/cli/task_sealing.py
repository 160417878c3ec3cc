"""Taking tasks: their verification commands are shown first, as this machine will run them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from cleared.base.terminal import count_noun, print_line
from cleared.changes.host import Host
from cleared.cli.showing import Subject, taking_shown
from cleared.jobs.tasks.task_definition import Task
from cleared.work.task_runs.task_planning import SHOWN, digest_tasks, is_committed, is_draft, list_unsealed
from cleared.work.task_runs.task_recording import read_task_set


def sealing_shown(
    host: Host,
    tasks: Sequence[Task] | None,
    typed: str,
    command: str,
    *,
    json: bool,
    file: str = "",
    is_new: bool = False,
) -> AbstractContextManager[None]:
    """What is sealed here are these tasks (None: those that lie in ``docs/tasks``), just as they were shown.

    ``command``: takes them; ``file``: where they come from. In a script what nobody has committed is taken, but not
    what a program wrote. ``is_new``: a program has just written it, so that nobody has asked for this very list.
    Raises as ``taking_shown`` does.
    """
    given = read_task_set(host).live.values() if tasks is None else tasks
    unsealed = list_unsealed(host, given)
    if not unsealed:
        return nullcontext()
    path = Path(file) if file not in ("", "-") else None
    is_own = not is_committed(host, unsealed, path) and not (path is not None and is_draft(host, path))
    digest = digest_tasks(given)
    subject = Subject(
        name=SHOWN,
        title=count_noun(len(unsealed), "task"),
        digest=digest,
        command=f"{command} --digest ",
        question="May this machine run these commands?",
        parts={"tasks": lambda: _print_tasks(unsealed)},
        asks_always=is_new,
    )
    return taking_shown(host.root, subject, typed, json=json, is_own=is_own)


def _print_tasks(tasks: Sequence[Task]) -> None:
    for task in tasks:
        print_line(f"{task.id}  {task.title}")
        print_line(f"  is verified by: {task.verification_command}")
        for name, values in (("changes", task.files), ("reads", (*task.docs, *task.skills))):
            if values:
                print_line(f"  {name}: {', '.join(values)}")
        print_line(f"  {task.description}")
        for criterion in task.acceptance_criteria:
            print_line(f"  - {criterion}")
