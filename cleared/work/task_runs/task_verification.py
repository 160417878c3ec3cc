"""Verification: the host runs a task's command over exactly the files that would be committed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cleared.base.safe_files import write_atomic
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.git import Repository
from cleared.git.history_copy import copy_history
from cleared.jobs.tasks.task_definition import Task
from cleared.jobs.tasks.task_seals import TaskSeals
from cleared.work.loop.private_clone import write_file
from cleared.work.task_runs.fenced_command import CommandResult, run_fenced
from cleared.work.task_runs.task_delta import TaskDelta
from cleared.work.task_runs.task_recording import state_folder


def verify_delta(host: Host, task: Task, delta: TaskDelta, *, commit: str) -> CommandResult:
    """Run the task's verification command in a fresh tree: ``commit`` with the delta on it.

    What is ignored by git is not in it. The output is kept in ``.cleared/task-output/``. Raises ``PolicyError`` where
    nobody has taken the task on this machine as it is now.
    """
    TaskSeals(host.root).require_sealed(task)
    with Repository.open(host.root, for_writing=False) as repo, fresh_tree(host, repo, commit, task.id) as folder:
        for change in delta.changes:
            write_file(folder, change.path, change.new)
        host.report_step("verify-ready")
        result = run_fenced(
            host,
            ["/bin/sh", "-c", task.verification_command],
            folder,
            name=f"verification of {task.id}",
            seconds=host.config.tasks.verify_seconds,
        )
    write_atomic(output_path(host, task.id), f"{result.output}\n[{result.summary}]\n".encode(), mode=0o600)
    return result


def output_path(host: Host, task_id: str) -> Path:
    """Where the output of a task's last verification is."""
    return state_folder(host, "task-output") / f"{task_id}.txt"


@contextmanager
def fresh_tree(host: Host, repo: Repository, commit: str, name: str) -> Iterator[Path]:
    """A private clone at ``commit``, removed afterwards."""
    folder = state_folder(host, "task-trees") / f"{name}-{secrets.token_hex(4)}"
    try:
        copy_history(repo, commit, folder)
        yield folder.resolve()
    finally:
        remove_tree(folder)
