"""The delta of a task: what it has changed since its claim, as the host sees it, and what may become of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from cleared.base.errors import ClearedError, Place, PolicyError
from cleared.base.safe_files import read_stable
from cleared.base.safe_names import relative_problem
from cleared.base.short_text import list_first
from cleared.base.terminal import escape_text
from cleared.changes.host import Host
from cleared.gate.program_changes import find_repositories, is_inside, is_task_file, sort_change
from cleared.git import Repository, Snapshot, blob_id, find_differences
from cleared.git.untracked_files import list_unignored_files
from cleared.jobs.tasks.task_definition import MAX_EXISTING_FILES, Task
from cleared.work.loop.private_clone import IN_REPOSITORY, MAX_ALL_BYTES, TOO_MUCH

MAX_FILE: Final = 32 << 20
MAX_FILES: Final = 2_000

ChangeKind = Literal["added", "modified", "deleted"]


class TaskChange(Struct, frozen=True):
    """One file that the task changed. ``new``: None where it is deleted; ``is_gated``: it becomes a proposal."""

    path: str
    kind: ChangeKind
    new: bytes | None
    is_gated: bool = False


class TaskDelta(Struct, frozen=True):
    """All that a task changed, sorted by path."""

    changes: tuple[TaskChange, ...]
    refused: tuple[tuple[str, str], ...] = ()
    """Path and reason of what no task may change."""

    @property
    def is_empty(self) -> bool:
        return not self.changes and not self.refused

    @property
    def existing(self) -> list[str]:
        """The files that were there before."""
        return [change.path for change in self.changes if change.kind != "added"]

    def to_json_object(self) -> dict[str, list[str]]:
        """As a line of the ledger has it."""
        kinds: tuple[tuple[str, ChangeKind], ...] = (
            ("files_added", "added"),
            ("files_modified", "modified"),
            ("files_deleted", "deleted"),
        )
        found = {key: [c.path for c in self.changes if c.kind == kind] for key, kind in kinds}
        return {key: paths for key, paths in found.items() if paths}

    def files_for_gate(self) -> dict[str, bytes | None]:
        """What becomes a proposal: scripts, settings, cases, rules, templates."""
        return {change.path: change.new for change in self.changes if change.is_gated}

    def plain_files(self) -> dict[str, bytes | None]:
        """What is committed with the task, or waits on a branch."""
        return {change.path: change.new for change in self.changes if not change.is_gated}

    def refuse_faults(self, task: Task) -> None:
        """Raises ``PolicyError`` where the work cannot be taken: nothing changed, too much, or what is not its own."""
        if self.refused:
            shown = list_first([f"{path} {reason}" for path, reason in self.refused], 10, "; ")
            raise PolicyError(f"{task.id} changed what no task may change: {shown}", place=Place(self.refused[0][0]))
        if not self.changes:
            raise PolicyError(
                f"{task.id} changed nothing since its claim, and a completed task has a delta",
                remedy="If it is not needed: cleared task skip.",
            )
        if len(self.existing) > MAX_EXISTING_FILES:
            raise PolicyError(
                f"{task.id} changed {len(self.existing)} files that exist, and a task changes at most "
                f"{MAX_EXISTING_FILES}: {', '.join(self.existing[:10])}",
                remedy="Split it into smaller tasks.",
            )

    def refuse_undeclared(self, task: Task) -> None:
        """Raises ``PolicyError`` where a file was changed that exists and that the task does not name: by it, what
        verifies the task could be changed, too."""
        found = [change.path for change in self.changes if change.kind != "added" and change.path not in task.files]
        if found:
            raise PolicyError(
                f"{task.id} changed what exists and context.files does not name: {list_first(found, 10)}",
                place=Place(found[0]),
                remedy=f"Put it back, or name it in the task: cleared task show {task.id}, cleared task plan.",
            )

    def list_undeclared(self, task: Task) -> list[str]:
        """The changed files that the task does not name."""
        return [change.path for change in self.changes if change.path not in task.files]

    def keep_declared(self, task: Task) -> TaskDelta:
        """What the task may change of it."""
        return TaskDelta(tuple(change for change in self.changes if change.path in task.files))

    def leave_out(self, paths: Collection[str]) -> TaskDelta:
        """All but these."""
        return TaskDelta(tuple(change for change in self.changes if change.path not in paths), self.refused)


def compute_delta(
    host: Host,
    repo: Repository,
    base: str,
    root: Path,
    *,
    is_clone: bool,
    dirty: Mapping[str, str | None] | None = None,
) -> TaskDelta:
    """What is different in ``root`` from the commit ``base``. ``dirty``: what was so at the claim and still is, is not
    the task's.

    In a clone everything is the worker's. In the workspace itself what the host writes is not looked at, nor what
    others had approved meanwhile.
    """
    snapshot, head = Snapshot(repo, base), Snapshot(repo, repo.read_head())
    changes: list[TaskChange] = []
    refused: list[tuple[str, str]] = []
    room = MAX_ALL_BYTES
    differences = _list_differences(repo, snapshot, root)
    present = {*snapshot.list_entries(), *(path for path, _ in differences)}
    repositories = find_repositories(present)
    for path, kind in differences:
        if is_clone and kind == "deleted" and snapshot.find_blob_id(path) is None:
            continue  # a link: no clone has it
        if not is_clone and (is_task_file(path) or _is_of_host(host, path)):
            continue
        reason = IN_REPOSITORY if is_inside(path, repositories) else _refuse_path(host, path, kind)
        if reason:
            refused.append((escape_text(path), reason))
            continue
        try:
            new = None if kind == "deleted" else read_stable(root / path, MAX_FILE, shown=path)[0]
        except ClearedError as error:
            refused.append((escape_text(path), error.message))
            continue
        oid = None if new is None else blob_id(new, repo.hash_name)
        if dirty is not None and path in dirty and dirty[path] == oid:
            continue
        is_gated = sort_change(host, path) == "proposable"
        if not is_clone and is_gated and head.find_blob_id(path) == oid:
            continue
        if len(new or b"") > room:
            refused.append((path, TOO_MUCH))
            continue
        room -= len(new or b"")
        changes.append(TaskChange(path, kind, new, is_gated))
    if len(changes) > MAX_FILES:
        raise PolicyError(f"more than {MAX_FILES:,} files were changed", remedy="Have what is made ignored by git.")
    return TaskDelta(tuple(changes), tuple(refused))


def list_dirty_files(host: Host, repo: Repository, base: str) -> dict[str, str | None]:
    """The files of the workspace that differ from the commit: path → blob id, None for deleted ones."""
    dirty: dict[str, str | None] = {}
    for path, kind in _list_differences(repo, Snapshot(repo, base), host.root):
        if is_task_file(path) or _is_of_host(host, path):
            continue
        try:
            data = None if kind == "deleted" else read_stable(host.root / path, MAX_FILE, shown=path)[0]
        except ClearedError:
            continue
        dirty[path] = None if data is None else blob_id(data, repo.hash_name)
    return dirty


def find_conflicts(repo: Repository, base: str, head: str, paths: Iterable[str]) -> list[str]:
    """The paths of which the two commits have other contents: somebody changed them meanwhile."""
    before, after = Snapshot(repo, base), Snapshot(repo, head)
    return [path for path in paths if before.find_blob_id(path) != after.find_blob_id(path)]


def _list_differences(repo: Repository, snapshot: Snapshot, root: Path) -> list[tuple[str, Any]]:
    others = list_unignored_files(repo, root)
    folders = {path[: at + 1] for path in others for at, c in enumerate(path) if c == "/"}

    def is_ignored(path: str) -> bool:
        return path not in folders and path not in others if path.endswith("/") else path not in others

    kinds = {"untracked": "added", "modified": "modified", "deleted": "deleted"}
    found = [(d.path, kinds.get(d.kind, d.kind)) for d in find_differences(snapshot, root, [""], is_ignored)]
    nested = [(path, "type") for path in others if path.endswith("/")]
    return [*found, *nested]


def _refuse_path(host: Host, path: str, kind: str) -> str | None:
    """Why no task may change this file; None where it may."""
    problem = relative_problem(path)
    if problem:
        return f"has a name that {problem}"
    if is_task_file(path):
        return "is the orchestrator's: a worker writes neither the ledger nor tasks"
    if _is_of_host(host, path):
        return "is the host's: books, accounts, queue, logs, approvals and bank files change by runs and decisions"
    if kind not in ("added", "modified", "deleted"):
        return "is no plain file"
    return None


def _is_of_host(host: Host, path: str) -> bool:
    return sort_change(host, path) == "refused"
