"""Tasks of two clones: definitions by their ids, and the lines of the ledger by the task that each is about."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from cleared.base.errors import ClearedError
from cleared.domains.renamed_records import RenamedRecords, WorkConflict
from cleared.git import Snapshot
from cleared.jobs.tasks.ledger_lines import parse_line
from cleared.jobs.tasks.task_definition import ARCHIVE, TASK_ID, TASKS_FOLDER, parse_task
from cleared.jobs.tasks.task_ledger import LEDGER


def list_added_tasks(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """The ids of the tasks that a commit defines first."""
    for path in after.list_changes(before):
        if (name := _name_task(path)) and before.find_entry(path) is None:
            yield name


def join_task_file(
    path: str, old: bytes | None, mine: bytes | None, theirs: bytes | None, renamed: RenamedRecords
) -> bytes | None:
    """A file of tasks with what both did; None for any other file, and for one that joins as others do.

    Raises ``WorkConflict`` where both did something about the same task, or about one that was left out.
    """
    if mine is None:
        return None
    if name := _name_task(path):
        try:
            required = parse_task(mine, path).requires
        except ClearedError:
            return None
        for each in required:
            renamed.find(each)
        if theirs == old:
            return mine
        raise WorkConflict(f"{name} is another task there")
    if path not in (LEDGER, ARCHIVE):
        return None
    return _join_lines(path, old or b"", mine, theirs or b"", renamed)


def _join_lines(path: str, old: bytes, mine: bytes, theirs: bytes, renamed: RenamedRecords) -> bytes:
    if not mine.startswith(old) or not all(data.endswith(b"\n") for data in (old, theirs) if data):
        raise WorkConflict(f"{path}: it was not only added to")
    added = mine[len(old) :].splitlines(keepends=True)
    own = _group_lines(path, added)
    others = _group_lines(path, (Counter(theirs.splitlines(keepends=True)) - Counter(old.splitlines(keepends=True))))
    for name, lines in own.items():
        if name:
            renamed.find(name)
        if name in others and others[name] != lines:
            raise WorkConflict(f"others have done something about {name or 'a line'} of {path}, too")
    return theirs + b"".join(line for name, lines in own.items() if name not in others for line in lines)


def _group_lines(path: str, lines: Iterable[bytes]) -> Mapping[str, list[bytes]]:
    """Id of a task → the lines about it; those about none stand under an empty id."""
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    for line in lines:
        if path == LEDGER:
            record = parse_line(line)
            name = record.id if record is not None else ""
        else:
            try:
                name = parse_task(line, path).id
            except ClearedError:
                name = ""
        found[name].append(line)
    return found


def _name_task(path: str) -> str:
    """The id of the task that a file defines; empty for any other file."""
    name = path.removeprefix(f"{TASKS_FOLDER}/").removesuffix(".json")
    return name if path == f"{TASKS_FOLDER}/{name}.json" and TASK_ID.fullmatch(name) else ""
