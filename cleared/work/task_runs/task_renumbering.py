"""New ids for tasks of this clone where another one has made tasks of the same ids, too: before the two are merged.

What the other clone made keeps its id. All that this one has of its own gets the new one, its lines of the ledger too:
joined, the lines of two tasks could not be told apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host, current_user
from cleared.changes.record_sources import CommittedSource
from cleared.git import Repository, Snapshot, history
from cleared.git.repository import unfinished_error
from cleared.jobs.tasks.ledger_lines import parse_line, render_line
from cleared.jobs.tasks.task_definition import ARCHIVE, Task, list_free_ids, parse_task, task_path
from cleared.jobs.tasks.task_graph import sort_key
from cleared.jobs.tasks.task_ledger import LEDGER
from cleared.jobs.tasks.task_seals import TaskSeals
from cleared.jobs.tasks.task_states import IN_PROGRESS, StatusLine
from cleared.jobs.tasks.task_store import TaskSet, load_tasks
from cleared.trust.person_only import refuse_in_job
from cleared.work.task_runs.last_try import move_last_try
from cleared.work.task_runs.task_recording import MAX_COMMITTED, open_ledger, open_recorder, read_task_set


def renumber_tasks(host: Host, other: str) -> tuple[dict[str, str], str | None]:
    """Renumber the tasks that this clone and the one of the commit ``other`` have both made since they parted, in one
    commit: old id → new one, and the commit; empty and None where there are none.

    Raises ``UsageError`` where there is no such commit, ``PolicyError`` where one of them is worked on,
    ``WorkspaceError`` while a merge is under way.
    """
    refuse_in_job()
    commit = history.read_commit(host.root, other).id
    with host.open_for_reading() as repo:
        if (command := repo.find_unfinished()) is not None:
            raise unfinished_error(repo, command)
        known, theirs, taken = _compare(host, repo, commit)
    if not theirs:
        return {}, None
    with open_recorder(host, "task renumber") as recorder:
        free = list_free_ids({*known.tasks, *recorder.ledger.read_all(), *taken})
        ids = {name: next(free) for name in theirs}
        states = recorder.ledger.read_all()
        busy = [name for name in ids if name in states and states[name].status == IN_PROGRESS]
        if busy:
            raise PolicyError(
                f"{', '.join(busy)}: somebody works on it", remedy=f"Finish it, or: cleared task retry {busy[0]}."
            )
        before = recorder.ledger.read_bytes(MAX_COMMITTED) or b""
        if not _is_committed(host, before):
            recorder.commit([], commit_messages.task_lines_committed())
        files, changed = _rewrite_definitions(host, known, ids)
        now = format_iso(host.clock.now())
        lines = [
            _say_again(states[old], new, now, f"Renumbered: it was {old}, which another clone has made, too")
            for old, new in ids.items()
            if old in states
        ]
        files[LEDGER] = _rewrite_ledger(before, ids) + b"".join(map(render_line, lines))
        made = _commit(host, files, ids)
    open_ledger(host).index.drop()  # lines in the middle are others now
    seals = TaskSeals(host.root)
    for old, new in changed.items():
        if seals.describe_fault(old) is None:
            seals.seal(new, current_user(), now)
        if old.id != new.id:
            seals.put_back(old, None)
    for name, given in ids.items():
        move_last_try(host, name, given)
    return ids, made


def _compare(host: Host, repo: Repository, commit: str) -> tuple[TaskSet, list[str], set[str]]:
    """The tasks here, the ids of those that both have made, and all ids that are in use there."""
    head = repo.read_head()
    base = repo.find_common_ancestor(head, commit)
    before = load_tasks(CommittedSource(Snapshot(repo, base))).tasks if base is not None else {}
    there, known = Snapshot(repo, commit), read_task_set(host)
    known.refuse_faults()
    other = load_tasks(CommittedSource(there)).tasks
    twins = [name for name, task in known.tasks.items() if name in other and name not in before and other[name] != task]
    records = map(parse_line, (there.read_file(LEDGER) or b"").split(b"\n"))
    return known, sorted(twins, key=sort_key), {*other, *(record.id for record in records if record is not None)}


def _is_committed(host: Host, ledger: bytes) -> bool:
    with host.open_last_commit() as snapshot:
        return snapshot.read_file(LEDGER) == ledger


def _rewrite_definitions(
    host: Host, known: TaskSet, ids: Mapping[str, str]
) -> tuple[dict[str, bytes | None], dict[Task, Task]]:
    """The files of all tasks that have another id, or require one that has; and these tasks, as they were and are."""
    files: dict[str, bytes | None] = {}
    changed = {}
    for task in known.tasks.values():
        requires = tuple(ids.get(name, name) for name in task.requires)
        if task.id in ids or requires != task.requires:
            changed[task] = replace(task, id=ids.get(task.id, task.id), requires=requires)
    live = {old: new for old, new in changed.items() if old.id not in known.archived}
    files.update({task_path(old.id): None for old in live if old.id in ids})
    files.update({new.path: new.render_file() for new in live.values()})
    if len(live) < len(changed):
        archive = (host.root / ARCHIVE).read_bytes()
        by_id = {old.id: new for old, new in changed.items()}
        kept = [(line, parse_task(line, ARCHIVE)) for line in archive.splitlines() if line.strip()]
        files[ARCHIVE] = b"".join(by_id[t.id].render_line() if t.id in by_id else line + b"\n" for line, t in kept)
    return files, changed


def _rewrite_ledger(data: bytes, ids: Mapping[str, str]) -> bytes:
    """The ledger with the lines of these tasks under their new ids; all other lines as they are."""
    lines = []
    for line in data.splitlines(keepends=True):
        record = parse_line(line)
        if record is not None and record.id in ids:
            value: dict[str, Any] = {**record.data, "id": ids[record.id]}
            lines.append((json.dumps(value, ensure_ascii=True) + "\n").encode("ascii"))
        else:
            lines.append(line)
    return b"".join(lines)


def _say_again(line: StatusLine, task_id: str, at: str, summary: str) -> StatusLine:
    """The newest line of a task, said again under its new id."""
    return StatusLine(task_id, line.status, at, summary, line.delta, line.awaits)


def _commit(host: Host, files: Mapping[str, bytes | None], ids: Mapping[str, str]) -> str | None:
    tried: list[str] = []

    def stage(decision_context: DecisionContext) -> Decision:
        tried.append("once")
        return Decision(commit_messages.tasks_settled([(old, f"is {new}") for old, new in ids.items()]), files)

    return commit_decision(host, "task renumber", stage, collects=[tried])
