"""Job types that read files and report on them.

A job imports what it needs when it runs, so that the job types can be listed without loading any of it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.base.terminal import count_noun
from cleared.git.git_process import Git
from cleared.jobs.job_process import JobContext, NoInput
from cleared.jobs.job_types import JobType

_DOCUMENTS: Final = {".md", ".txt", ".rst", ".json", ".yaml", ".yml", ".csv", ".jsonl"}
_MAX_LISTED: Final = 500
_MAX_FIELDS: Final = 40


def continuity_scan(job: JobContext) -> str:
    """List the continuity documents (``loop.continuity``), newest first."""
    places = [job.target] if job.target else list(job.default_paths)
    documents = []
    for place in places:
        for path in job.files(place):
            if path.suffix.lower() in _DOCUMENTS:
                status = path.stat()
                documents.append((status.st_mtime, status.st_size, path.relative_to(job.root).as_posix()))
    if job.target and not (job.root / job.target).exists():
        raise NoInput(f"{job.target}: there is no such file or folder")
    documents.sort(reverse=True)
    for changed, size, name in documents[:_MAX_LISTED]:
        print(f"{format_iso(datetime.fromtimestamp(changed, UTC))} {size:>10,} {name}")  # noqa: T201  (a job's output)
    if not documents:
        return f"no documents in {', '.join(places)}"
    size = sum(document[1] for document in documents)
    return f"{count_noun(len(documents), 'document')}, {size:,} bytes; last changed: {documents[0][2]}"


def akela_meta_summary(job: JobContext) -> str:
    """Summarise the report (``loop.akela_report``): the plain fields of a JSON object, or the first lines of a text."""
    name = job.target or job.default_paths[0]
    try:
        text = job.read(name).decode("utf-8", "replace")
    except NoInput:
        raise NoInput(f"the report {name} is not there (loop.akela_report)") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        print("\n".join(lines[:_MAX_FIELDS]))  # noqa: T201
        return f"{name}: {lines[0].lstrip('# ')[:200] if lines else 'empty'} ({len(lines)} lines)"
    fields = _flatten_fields(data, "")
    for key, value in fields[:_MAX_FIELDS]:
        print(f"{key}: {value}")  # noqa: T201
    summary = data.get("summary") if isinstance(data, dict) else None
    return f"{name}: {summary[:300] if isinstance(summary, str) else _join_fields(fields)}"


def git_status_summary(job: JobContext) -> str:
    """Print ``git status --short``, and count its lines."""
    text = Git(job.root).run("status", "--short").decode("utf-8", "replace")
    print(text, end="")  # noqa: T201
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "clean: nothing differs from the last commit"
    untracked = sum(line.startswith("??") for line in lines)
    return f"{len(lines) - untracked} changed, {untracked} untracked"


def _flatten_fields(value: Any, path: str, depth: int = 0) -> list[tuple[str, str]]:
    """Path and text of each plain field below ``value``; lists, and objects that lie deep, only by their size."""
    if isinstance(value, dict) and depth < 4:
        return [
            row
            for key, inner in value.items()
            for row in _flatten_fields(inner, f"{path}.{key}".lstrip("."), depth + 1)
        ]
    if isinstance(value, dict | list):
        return [(path or "items", count_noun(len(value), "entry", "entries"))]
    return [(path or "value", str(value)[:200])]


def _join_fields(fields: list[tuple[str, str]]) -> str:
    return ", ".join(f"{key} {value}" for key, value in fields[:5])[:300]


JOB_TYPES: Final = (
    JobType(
        "continuity_scan",
        "Which documents there are, how large, and when each was last changed.",
        function="cleared.work.loop.report_jobs:continuity_scan",
        target="path",
        default_target="continuity documents",
        reads=(),
        reads_setting="continuity",
    ),
    JobType(
        "akela_meta_summary",
        "What the report named in loop.akela_report says.",
        function="cleared.work.loop.report_jobs:akela_meta_summary",
        target="path",
        default_target="Akela meta report",
        reads=(),
        reads_setting="akela_report",
    ),
    JobType(
        "git_status_summary",
        "Which files differ from the last commit (git status --short).",
        function="cleared.work.loop.report_jobs:git_status_summary",
        default_target="git status",
    ),
)
