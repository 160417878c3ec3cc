"""The archive: completed tasks whose files leave ``docs/tasks`` for one file with a line each."""

from __future__ import annotations

from typing import Final

from cleared.changes import commit_messages
from cleared.changes.host import Host
from cleared.jobs.tasks.task_definition import ARCHIVE
from cleared.jobs.tasks.task_graph import sort_key
from cleared.jobs.tasks.task_states import COMPLETED
from cleared.jobs.tasks.task_store import TaskFiles
from cleared.work.task_runs.task_recording import open_recorder, read_states, read_task_set

MOST_COMPLETED: Final = 10
"""So many completed tasks may lie in ``docs/tasks`` (spec, 4)."""


def archive_tasks(host: Host) -> tuple[list[str], str | None]:
    """Move the completed tasks into the archive, where there are more than ten; their ids, and the commit.

    One commit does it: after a kill each task is in one of the two places. Raises ``WorkspaceError`` where a task's
    file is not as committed.
    """
    if len(_list_completed(host)) <= MOST_COMPLETED:
        return [], None
    with open_recorder(host, "task archive") as recorder:
        states = {name: line.status for name, line in recorder.ledger.read_all().items()}
        live = read_task_set(host).live
        moved = sorted((name for name in live if states.get(name) == COMPLETED), key=sort_key)
        if len(moved) <= MOST_COMPLETED:
            return [], None
        before = TaskFiles(host.root).read(ARCHIVE) or b""
        if before and not before.endswith(b"\n"):
            before += b"\n"
        files: dict[str, bytes | None] = {live[name].path: None for name in moved}
        files[ARCHIVE] = before + b"".join(live[name].render_line() for name in moved)
        recorded = recorder.commit([], commit_messages.tasks_archived(len(moved)), files, by="orchestrator")
    return moved, recorded.commit


def _list_completed(host: Host) -> list[str]:
    states = read_states(host)
    return [name for name in read_task_set(host).live if states.get(name) == COMPLETED]
