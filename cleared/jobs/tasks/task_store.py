"""The tasks of a workspace: their files, and those in the archive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from cleared.base.errors import ClearedError, Place, UsageError, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.base.safe_names import resolve_inside
from cleared.jobs.tasks.task_definition import (
    ARCHIVE,
    MAX_TASK_BYTES,
    TASK_ID,
    TASKS_FOLDER,
    Task,
    TaskRefused,
    parse_task,
    task_path,
)

MAX_TASKS: Final = 10_000
"""That have a file of their own."""
_MAX_ARCHIVE: Final = 256 << 20


class TaskSource(Protocol):
    """Where task files are read from: a commit, or the working tree."""

    def read(self, path: str) -> bytes | None: ...

    def list_paths(self, prefix: str) -> Iterable[str]: ...


class TaskFiles:
    """The working tree as a source: only the files of tasks, of bounded size, no links followed out of it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        full = resolve_inside(self._root, str(Path(path).parent)) / Path(path).name
        if not full.is_symlink() and not full.exists():
            return None
        return read_stable(full, _MAX_ARCHIVE if path == ARCHIVE else MAX_TASK_BYTES, shown=path)[0]

    def list_paths(self, prefix: str) -> list[str]:
        folder = resolve_inside(self._root, prefix)
        return sorted(f"{prefix}/{entry.name}" for entry in folder.iterdir()) if folder.is_dir() else []


class TaskSet(Struct, frozen=True):
    """All tasks. ``faults``: files that are no tasks, and why; ``archived``: ids of those in the archive."""

    tasks: Mapping[str, Task]
    archived: frozenset[str] = frozenset()
    faults: tuple[tuple[Place, str], ...] = ()

    @property
    def live(self) -> dict[str, Task]:
        """Those that have a file of their own."""
        return {name: task for name, task in self.tasks.items() if name not in self.archived}

    def require_task(self, task_id: str) -> Task:
        """One task. Raises ``UsageError`` where there is none, ``TaskRefused`` where its file is wrong."""
        check_task_id(task_id)
        if task_id in self.tasks:
            return self.tasks[task_id]
        faults = [fault for fault in self.faults if fault[0].file == task_path(task_id)]
        if faults:
            raise TaskRefused(faults)
        raise UsageError(f"there is no task {task_id}", remedy="See: cleared task list.")

    def refuse_faults(self) -> None:
        """Raises ``TaskRefused`` where a file is no task."""
        if self.faults:
            raise TaskRefused(self.faults, remedy="Correct them, then: cleared task plan.")


def check_task_id(text: str) -> None:
    """Raises ``UsageError`` where it cannot be one."""
    if not TASK_ID.fullmatch(text):
        raise UsageError(f"{text[:60]!r} is no id of a task", remedy="Write it like T-001.")


def load_tasks(source: TaskSource) -> TaskSet:
    """Every task of a source."""
    tasks: dict[str, Task] = {}
    faults: list[tuple[Place, str]] = []
    paths = [path for path in source.list_paths(TASKS_FOLDER) if path.endswith(".json")]
    if len(paths) > MAX_TASKS:
        raise WorkspaceError(
            f"there are more than {MAX_TASKS:,} tasks",
            place=Place(TASKS_FOLDER),
            remedy="Remove the files of some, or take back the commit that brought them: git revert.",
        )
    for path in paths:
        name = path.removeprefix(f"{TASKS_FOLDER}/").removesuffix(".json")
        try:
            if not TASK_ID.fullmatch(name):
                raise TaskRefused([(Place(path), "its name is no id of a task (T-001.json)")])
            tasks[name] = parse_task(source.read(path) or b"", path, expected_id=name)
        except TaskRefused as error:
            faults += error.faults
        except ClearedError as error:
            faults.append((error.place or Place(path), error.message))
    archived, wrong = _read_archive(source)
    faults += wrong
    faults += [
        (Place(task_path(name), field="id"), f"{name} is in the archive too") for name in archived if name in tasks
    ]
    return TaskSet({**archived, **tasks}, frozenset(archived.keys() - tasks.keys()), tuple(faults))


def _read_archive(source: TaskSource) -> tuple[dict[str, Task], list[tuple[Place, str]]]:
    try:
        data = source.read(ARCHIVE) or b""
    except ClearedError as error:
        return {}, [(error.place or Place(ARCHIVE), error.message)]
    archived: dict[str, Task] = {}
    faults: list[tuple[Place, str]] = []
    for number, line in _numbered_lines(data):
        try:
            task = parse_task(line, ARCHIVE)
            archived[task.id] = task
        except TaskRefused as error:
            faults += [(Place(ARCHIVE, line=number, field=place.field), text) for place, text in error.faults]
    return archived, faults


def _numbered_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip())
