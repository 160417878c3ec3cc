"""The briefing of a worker: the task, and of the workspace only the files, docs and skills that it names."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cleared.base.errors import PolicyError
from cleared.git import Repository, Snapshot
from cleared.jobs.tasks.task_definition import Task, skill_path

WARN_LINES: Final = 1_000
"""A longer briefing is warned of: it is no longer one small piece of work."""
MAX_BYTES: Final = 8 << 20


class Briefing(Struct, frozen=True):
    """What a worker is told. ``paths``: the files whose contents are in it."""

    task: Task
    text: str
    paths: tuple[str, ...]

    @property
    def line_count(self) -> int:
        return self.text.count("\n")

    @property
    def size_note(self) -> str:
        """Its size, and a warning where it is large."""
        note = f"{self.task.id}: the briefing has {self.line_count:,} lines, {len(self.text.encode()):,} bytes"
        return f"{note}; more than {WARN_LINES:,} is a lot: split the task" if self.line_count > WARN_LINES else note


def make_briefing(repo: Repository, commit: str, task: Task, last_try: str = "") -> Briefing:
    """The briefing of ``task`` as of a commit. ``last_try``: what came of it before. Raises ``PolicyError`` where it is
    larger than 8 MB."""
    snapshot = Snapshot(repo, commit)
    parts = [f"# {task.id}: {task.title}\n\n{task.description}\n\n## Acceptance criteria\n"]
    parts += [f"- {criterion}\n" for criterion in task.acceptance_criteria]
    parts.append(
        f"\n## Verification\n\nThe host will run this; it must exit 0:\n\n    "
        f"{task.verification_command.replace(chr(10), chr(10) + '    ')}\n"
    )
    parts.append(
        "\n## Rules\n\nChange only the files below, at most three that exist: the verification sees no other change, "
        "and where another file that exists is changed the task fails. Never write the task ledger or "
        "task files. Work in the current directory; nothing else can be written.\n"
    )
    if last_try:
        parts.append(f"\n## What came of the last try\n{_fence(last_try)}")
    named: list[str] = []
    groups = (("Files", task.files), ("Docs", task.docs), ("Skills", tuple(skill_path(s) for s in task.skills)))
    for title, paths in groups:
        if paths:
            parts.append(f"\n## {title}\n")
        for path in paths:
            data = snapshot.read_file(path)
            named += [path] if data is not None else []
            parts.append(_render_file(path, data))
    text = "".join(parts)
    if len(text) > MAX_BYTES:
        raise PolicyError(f"the briefing of {task.id} is larger than {MAX_BYTES >> 20} MB", remedy="Split the task.")
    return Briefing(task, text, tuple(named))


def _render_file(path: str, data: bytes | None) -> str:
    if data is None:
        return f"\n### {path}\n\nNot there yet.\n"
    return f"\n### {path}\n{_fence(data.decode('utf-8', 'replace'))}"


def _fence(text: str) -> str:
    """A text in marks that it cannot end."""
    fence = "```"
    while fence in text:
        fence += "`"
    end = "" if text.endswith("\n") else "\n"
    return f"\n{fence}\n{text}{end}{fence}\n"
