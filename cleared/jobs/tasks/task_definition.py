"""A task as its file defines it: parsed, and checked against the shipped schema."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import CheckFailed, Place, WorkspaceError
from cleared.base.safe_names import fold_path, relative_problem
from cleared.jobs.tasks.schema_faults import list_faults, load_task_schema

TASKS_FOLDER: Final = "docs/tasks"
SKILLS_FOLDER: Final = "docs/skills"
ARCHIVE: Final = "docs/tasks/ARCHIVE.jsonl"
MAX_TASK_BYTES: Final = 256 << 10
MAX_EXISTING_FILES: Final = 3
"""How many files that exist one task may change (spec, 3A)."""
TASK_ID: Final = re.compile(r"T-[0-9]{3,6}", re.ASCII)
_LAST_NUMBER: Final = 999_999
_MAX_FAULTS: Final = 20
_MADE_TWICE: Final = (
    "two clones have made a task of this id, and git cannot join them: git merge --abort (or git rebase --abort), then "
    "cleared task renumber, and merge again"
)


class TaskRefused(CheckFailed):
    """A task that is not as a task must be. ``faults``: all that is wrong, as (place, sentence)."""

    def __init__(self, faults: Iterable[tuple[Place, str]], remedy: str | None = None) -> None:
        self.faults = list(faults)
        first, *others = self.faults
        more = [f"{place}: {text}" for place, text in others[: _MAX_FAULTS - 1]]
        left = len(self.faults) - _MAX_FAULTS
        message = "; ".join([first[1], *more]) + (f"; and {left} more" if left > 0 else "")
        super().__init__(message, place=first[0], remedy=remedy)


class Task(Struct, frozen=True):
    """One atomic unit of work."""

    id: str
    title: str
    description: str
    requires: tuple[str, ...]
    files: tuple[str, ...]
    """What it changes or makes, relative to the workspace."""
    docs: tuple[str, ...]
    skills: tuple[str, ...]
    acceptance_criteria: tuple[str, ...]
    verification_command: str

    @property
    def path(self) -> str:
        """Its file, relative to the workspace."""
        return task_path(self.id)

    @property
    def digest(self) -> str:
        """Of all that the task says; how its file is spaced plays no part."""
        text = json.dumps(self.to_json_object(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"

    def meets(self, other: Task) -> bool:
        """Whether a file that it changes is one of the other's, or lies in it."""
        ours, theirs = ([f"{fold_path(path)}/" for path in task.files] for task in (self, other))
        return any(one.startswith(two) or two.startswith(one) for one in ours for two in theirs)

    def to_json_object(self) -> dict[str, Any]:
        """As in its file, in the order of the specification."""
        return {
            "id": self.id,
            "title": self.title,
            "description": self.description,
            "requires": list(self.requires),
            "context": {"files": list(self.files), "docs": list(self.docs), "skills": list(self.skills)},
            "acceptance_criteria": list(self.acceptance_criteria),
            "verification_command": self.verification_command,
        }

    def render_file(self) -> bytes:
        """Its file."""
        return (json.dumps(self.to_json_object(), indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")

    def render_line(self) -> bytes:
        """Its line in the archive."""
        return (json.dumps(self.to_json_object(), ensure_ascii=True) + "\n").encode("ascii")


def task_path(task_id: str) -> str:
    """The file of a task."""
    return f"{TASKS_FOLDER}/{task_id}.json"


def list_free_ids(used: Iterable[str]) -> Iterator[str]:
    """Ids that no task has: those after all that are ``used``, then those between them, as whoever can push may have
    used the last one. Raises ``WorkspaceError`` where none is left."""
    numbers = {int(name.removeprefix("T-")) for name in used}
    after = max(numbers, default=0) + 1
    for number in chain(range(after, _LAST_NUMBER + 1), range(1, after)):
        if number not in numbers:
            yield f"T-{number:03d}"
    raise WorkspaceError("every id of a task is in use", place=Place(TASKS_FOLDER))


def skill_path(name: str) -> str:
    """The file of a skill."""
    return f"{SKILLS_FOLDER}/{name}.md"


def parse_task(data: bytes, file: str, *, expected_id: str | None = None) -> Task:
    """The task that a file defines. Raises ``TaskRefused`` with every fault."""
    return check_task(parse_json(data, file), file, expected_id=expected_id)


def parse_json(data: bytes, file: str) -> Any:
    """The value of a JSON text from outside, in which no key stands twice. Raises ``TaskRefused``."""

    def refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            raise ValueError("a key stands twice in one object")
        return value

    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=refuse_twins)
    except (ValueError, RecursionError) as error:
        if b"\n<<<<<<< " in b"\n" + data:
            raise TaskRefused([(Place(file), _MADE_TWICE)]) from None
        raise TaskRefused([(Place(file), f"it is not JSON: {str(error)[:200]}")]) from None


def check_task(value: Any, file: str, *, expected_id: str | None = None, optional_id: bool = False) -> Task:
    """The task that a JSON value is. ``optional_id``: one without an id is given T-000.

    Raises ``TaskRefused`` with every fault.
    """
    if optional_id and isinstance(value, dict) and "id" not in value:
        value = {"id": "T-000", **value}
    faults = [
        (Place(file, field=field or None), f"it {text}") for field, text in list_faults(load_task_schema("task"), value)
    ]
    if not faults:
        faults = [(Place(file, field=field), text) for field, text in _list_text_problems(value)]
        if expected_id is not None and value["id"] != expected_id:
            faults.append((Place(file, field="id"), f"it is {value['id']}, and its file is named {expected_id}"))
    if faults:
        raise TaskRefused(faults, remedy="The fields are in docs/work/tasks.md; cleared task check looks at all.")
    context = value["context"]
    return Task(
        value["id"],
        value["title"],
        value["description"],
        tuple(value["requires"]),
        tuple(context["files"]),
        tuple(context["docs"]),
        tuple(context["skills"]),
        tuple(value["acceptance_criteria"]),
        value["verification_command"],
    )


def _list_text_problems(value: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """What the schema cannot say: paths that lead elsewhere, texts that are no text."""
    for key in ("files", "docs"):
        for number, path in enumerate(value["context"][key]):
            problem = relative_problem(path) or _path_problem(path)
            if problem:
                yield f"context.{key}[{number}]", f"the path {path[:100]!r} {problem}"
    texts = [("title", value["title"]), ("description", value["description"])]
    texts += [("verification_command", value["verification_command"])]
    texts += [(f"acceptance_criteria[{n}]", text) for n, text in enumerate(value["acceptance_criteria"])]
    for field, text in texts:
        if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
            yield field, "it holds characters that no text has"
    if "\n" in value["title"]:
        yield "title", "it has more than one line"


def _path_problem(path: str) -> str | None:
    parts = path.split("/")
    if any(part in ("", ".") for part in parts):
        return "has an empty part or a dot as one"
    if parts[0] in (".git", ".cleared"):
        return f"lies in {parts[0]}, which no task changes"
    return None
