"""Taking tasks in: the ledger is begun, definitions are checked as a whole, sealed, and committed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, Place, PolicyError, UsageError, WorkspaceError
from cleared.base.safe_files import write_new
from cleared.base.safe_names import resolve_inside
from cleared.base.terminal import count_noun
from cleared.cards.kinds import TASK
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import (
    Decision,
    DecisionContext,
    commit_decision,
    undo_unless_decided,
)
from cleared.changes.decisions.shown_cards import digest_shown, require_shown
from cleared.changes.host import Host, current_user
from cleared.git import Repository, Snapshot
from cleared.jobs.tasks.task_definition import (
    MAX_EXISTING_FILES,
    TASKS_FOLDER,
    Task,
    TaskRefused,
    check_task,
    list_free_ids,
    parse_json,
    parse_task,
    skill_path,
)
from cleared.jobs.tasks.task_graph import list_graph_faults
from cleared.jobs.tasks.task_ledger import LEDGER
from cleared.jobs.tasks.task_seals import TaskSeals
from cleared.jobs.tasks.task_states import AWAITING, COMPLETED, IN_PROGRESS, PENDING, StatusLine
from cleared.jobs.tasks.task_store import MAX_TASKS
from cleared.review.queue_cards import read_card
from cleared.trust.person_only import refuse_in_job
from cleared.work.task_runs.task_recording import open_ledger, open_recorder, read_task_set

SHOWN: Final = "tasks"
"""As ``changes.decisions.shown_cards`` names tasks that are to be taken."""
MAX_PLAN_BYTES: Final = 16 << 20
DRAFTS: Final = "task-plans"
"""Folder of ``.cleared`` with lists that a program wrote."""
INDEXER_SKILL: Final = "docs/skills/task-indexer.md"
_MERGING: Final = {
    "docs/current/.gitattributes": b"# Only ever appended to: a merge keeps the lines of both.\n"
    b"task-status.jsonl -text merge=union\n",
    "docs/tasks/.gitattributes": b"# Only ever appended to: a merge keeps the lines of both.\n"
    b"ARCHIVE.jsonl -text merge=union\n",
}


class Planned(Struct, frozen=True):
    """What ``plan`` and ``add`` did. ``added``: new in the ledger; ``sealed``: taken on this machine."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    sealed: tuple[str, ...]
    commit: str | None


def begin_ledger(host: Host) -> tuple[bool, str | None]:
    """Make the empty ledger, the folders and the shipped skill; whether the ledger is new, and the commit.

    What is there stays as it is. Raises ``WorkspaceError`` where something else is in the way.
    """
    refuse_in_job()
    ledger = open_ledger(host)
    path = ledger.path
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise WorkspaceError("something else than a file is there", place=Place(LEDGER), remedy="Move it away.")
    skill = package_files("cleared.jobs.tasks").joinpath("task-indexer.md").read_bytes()
    wanted = {**_MERGING, INDEXER_SKILL: skill}
    files: dict[str, bytes | None] = {
        name: data for name, data in wanted.items() if not os.path.lexists(resolve_inside(host.root, name))
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists() and write_new(path, b"")
    made: list[str] = []

    def stage_beginning(decision_context: DecisionContext) -> Decision | None:
        content = path.read_bytes()
        if decision_context.snapshot.read_file(LEDGER) is None:
            files[LEDGER] = content
        return Decision(commit_messages.task_ledger_created(), files) if files else None

    def remove_ledger() -> None:
        if is_new and not path.stat().st_size:
            path.unlink()

    with undo_unless_decided(remove_ledger):
        commit = commit_decision(host, "task init", stage_beginning, collects=[made])
    return is_new, commit


def read_plan(data: bytes, file: str) -> list[Task]:
    """The tasks of a JSON list, or the one of an object. Raises ``TaskRefused`` with the faults of all."""
    value = parse_json(data, file)
    entries = value if isinstance(value, list) else [value]
    tasks: list[Task] = []
    faults: list[tuple[Place, str]] = []
    for number, entry in enumerate(entries, 1):
        name = entry.get("id") if isinstance(entry, dict) else None
        where = f"{file}: {name}" if isinstance(name, str) else f"{file}: item {number}"
        try:
            tasks.append(check_task(entry, where))
        except TaskRefused as error:
            faults += error.faults
    names = [task.id for task in tasks]
    faults += [
        (Place(file, field="id"), f"{name} is there twice") for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    if not entries:
        faults.append((Place(file), "it holds no tasks"))
    if faults:
        raise TaskRefused(faults, remedy="Nothing was taken. Correct it, and say it again.")
    return tasks


def list_unsealed(host: Host, tasks: Iterable[Task]) -> list[Task]:
    """Which of these tasks nobody has taken on this machine as they are."""
    seals = TaskSeals(host.root)
    return [task for task in tasks if seals.describe_fault(task)]


def digest_tasks(tasks: Iterable[Task]) -> str:
    """The digest by which tasks are taken: of all that are given, as a killed command may have sealed some already."""
    return digest_shown(sorted([task.id, task.digest] for task in tasks))


def is_committed(host: Host, tasks: Iterable[Task], file: Path | None = None) -> bool:
    """Whether the last commit has one of these definitions, or the ``file`` that they were read from."""
    with host.open_last_commit() as snapshot:
        inner = file.resolve() if file is not None else None
        if inner is not None and inner.is_relative_to(host.root.resolve()):
            path = inner.relative_to(host.root.resolve()).as_posix()
            if snapshot.read_file(path) == inner.read_bytes():
                return True
        for task in tasks:
            committed = snapshot.read_file(task.path)
            with suppress(TaskRefused):
                if committed is not None and parse_task(committed, task.path) == task:
                    return True
    return False


def is_draft(host: Host, file: Path) -> bool:
    """Whether a program wrote the list in this file, and no person."""
    return file.resolve().is_relative_to((host.layout.state_dir / DRAFTS).resolve())


def plan_tasks(host: Host, tasks: Sequence[Task] | None, *, card: str | None = None) -> Planned:
    """Take tasks in, all or none; without ``tasks``: those that lie in ``docs/tasks``, as they are there.

    ``card``: the id of an open card that is settled by it. A definition of a task that is neither worked on nor
    completed may be replaced. Raises ``PolicyError`` where those that nobody has taken here are not as a person was
    shown them, ``TaskRefused`` with every fault, ``WorkspaceError`` where there is no ledger, and inside a job.
    """
    refuse_in_job()
    with open_recorder(host, "task plan") as recorder:
        known = read_task_set(host)
        known.refuse_faults()
        states = {name: line.status for name, line in recorder.ledger.read_all().items()}
        given = {task.id: task for task in (known.live.values() if tasks is None else tasks)}
        refuse_task_faults(host, {**known.tasks, **given}, given)
        if len(known.live.keys() | given.keys()) > MAX_TASKS:
            raise TaskRefused(
                [(Place(TASKS_FOLDER), f"it would hold more than {MAX_TASKS:,} tasks")],
                remedy="Nothing was taken. Take fewer, and have those that are done archived: cleared task archive.",
            )
        unsealed = list_unsealed(host, given.values())
        _refuse_replaced(known.tasks, given, states, known.archived)
        if unsealed:
            require_shown(SHOWN, count_noun(len(unsealed), "task"), digest_tasks(given.values()), "cleared task plan")
        files: dict[str, bytes | None] = {}
        for task in given.values():
            if tasks is not None and known.tasks.get(task.id) != task:
                files[task.path] = task.render_file()
            elif task.id not in known.archived:
                files[task.path] = resolve_inside(host.root, task.path).read_bytes()
        lines = [
            recorder.make_line(task.id, PENDING, f"Task initialized by {current_user()}")
            for task in given.values()
            if task.id not in states
        ]
        seals = TaskSeals(host.root)
        before = {task: seals.read(task) for task in unsealed}

        def put_back_seals() -> None:
            for task, seal in before.items():
                seals.put_back(task, seal)

        # Sealed first: what a kill leaves committed without a seal would have to be shown to a person once more.
        with undo_unless_decided(put_back_seals):
            for task in unsealed:
                seals.seal(task, current_user(), format_iso(host.clock.now()))
            host.report_step("tasks-sealed")
            commit = _commit_plan(host, recorder, lines, files, list(given), card)
    changed = tuple(name for name, task in given.items() if name in known.tasks and known.tasks[name] != task)
    return Planned(tuple(line.id for line in lines), changed, tuple(task.id for task in unsealed), commit)


def refuse_plan_faults(host: Host, tasks: Sequence[Task]) -> None:
    """Raises as ``plan_tasks`` does where these could not be taken, whoever was shown them."""
    known = read_task_set(host)
    given = {task.id: task for task in tasks}
    refuse_task_faults(host, {**known.tasks, **given}, given)
    taken = [name for name in given if name in known.tasks]
    if taken:
        raise TaskRefused([(Place(field="id"), f"{name} is there already") for name in taken])


def add_task(host: Host, task: Task, *, card: str | None = None) -> Planned:
    """Take one new task in, and settle the card that proposed it. Raises as ``plan_tasks`` does, and ``UsageError``
    where there is one of that id."""
    _refuse_twin(host, task)
    return plan_tasks(host, [task], card=card)


def _refuse_twin(host: Host, task: Task) -> None:
    known = read_task_set(host)
    if task.id in known.tasks or task.id in open_ledger(host).read_all():
        raise UsageError(
            f"there is a task {task.id} already",
            place=Place(field="id"),
            remedy=f"Use {next_task_id(host)}, or change that one: cleared task plan FILE.",
        )


def read_proposed_task(host: Host, card_text: str) -> tuple[Task, str]:
    """The task that a script has proposed, with the id that it would have, and its card. Raises ``UsageError`` where it
    is no such card, or is settled, ``PolicyError`` where nothing vouches for it."""
    card = read_card(host, card_text)
    definition = card["details"].get("task") if card["kind"] == TASK.name and card["status"] == "open" else None
    if not isinstance(definition, dict):
        raise UsageError(f"{card['id']} does not propose a task, or is settled", remedy="See: cleared queue list.")
    if card["held"]:
        raise PolicyError(f"the card {card['id']} is held: {card['held']}")
    return check_task({"id": next_task_id(host), **definition}, f"card {card['id']}"), str(card["id"])


def next_task_id(host: Host) -> str:
    """The first one that is free."""
    return next(list_free_ids([*read_task_set(host).tasks, *open_ledger(host).read_all()]))


def refuse_task_faults(host: Host, tasks: Mapping[str, Task], subjects: Mapping[str, Task]) -> None:
    """Raises ``TaskRefused`` with every fault of ``subjects`` among all ``tasks``."""
    faults = list(list_task_faults(host, tasks, subjects))
    if faults:
        raise TaskRefused(faults, remedy="Nothing was taken. Correct it, and say it again.")


def list_task_faults(
    host: Host, tasks: Mapping[str, Task], subjects: Mapping[str, Task]
) -> Iterator[tuple[Place, str]]:
    """What is wrong with ``subjects``: their requirements, how many files they change, what they name."""
    for name, text in list_graph_faults(tasks):
        if name in subjects or "circle" in text:
            yield Place(f"docs/tasks/{name}.json", field="requires"), text
    for task in subjects.values():
        existing = [path for path in task.files if _is_file(host, path)]
        if len(existing) > MAX_EXISTING_FILES:
            yield Place(task.path, field="context.files"), _describe_split(existing)
        for number, path in enumerate(task.docs):
            if not _is_file(host, path):
                yield Place(task.path, field=f"context.docs[{number}]"), f"there is no file {path}"
        for number, skill in enumerate(task.skills):
            if not _is_file(host, skill_path(skill)):
                yield Place(task.path, field=f"context.skills[{number}]"), f"there is no {skill_path(skill)}"


def _describe_split(existing: Sequence[str]) -> str:
    parts = [existing[at : at + MAX_EXISTING_FILES] for at in range(0, len(existing), MAX_EXISTING_FILES)]
    shown = "; ".join(f"one for {', '.join(part)}" for part in parts)
    return (
        f"it changes {len(existing)} files that exist, and a task changes at most {MAX_EXISTING_FILES}. Split it into "
        f"{len(parts)} tasks, each requiring the one before: {shown}"
    )


def _is_file(host: Host, path: str) -> bool:
    try:
        return resolve_inside(host.root, path).is_file()
    except ClearedError:
        return False


def _refuse_replaced(
    known: Mapping[str, Task], given: Mapping[str, Task], states: Mapping[str, str], archived: frozenset[str]
) -> None:
    """Raises ``UsageError`` where a definition would be replaced that is worked on, or has been."""
    for name, task in given.items():
        if (
            name in known
            and known[name] != task
            and (name in archived or states.get(name) in (IN_PROGRESS, AWAITING, COMPLETED))
        ):
            raise UsageError(
                f"{name} is {states.get(name, 'archived')}, and its definition cannot be replaced",
                remedy="Make a new task with another id.",
            )


def _commit_plan(
    host: Host,
    recorder: Any,
    lines: Sequence[StatusLine],
    files: Mapping[str, bytes | None],
    names: Sequence[str],
    card: str | None,
) -> str | None:
    """Commit the definitions and the lines; None where all is committed so."""
    with Repository.open(host.root, for_writing=False) as repo:
        snapshot = Snapshot(repo, repo.find_head())
        changed = {path: data for path, data in files.items() if snapshot.read_file(path) != data}
    if not lines and not changed:
        return None

    def settle_card(decision_context: DecisionContext) -> None:
        if card is not None:
            at = format_iso(decision_context.context.now)
            decision_context.context.cards.resolve_card(card, at, decision_context.by, f"taken as {', '.join(names)}")

    shown = [line.id for line in lines] or [path.rsplit("/", 1)[1].removesuffix(".json") for path in changed]
    subject = commit_messages.tasks_planned(shown or names)
    commit: str | None = recorder.commit(lines, subject, changed, stage=settle_card).commit
    return commit
