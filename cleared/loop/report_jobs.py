"""The documented kinds of jobs that read and report."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from cleared.clock import format_iso
from cleared.loop.job_process import JobContext, NoInput
from cleared.vcs.git_process import Git

_DOCUMENTS: Final = {".md", ".txt", ".rst", ".json", ".yaml", ".yml", ".csv", ".jsonl"}
_MAX_LISTED: Final = 500
_MAX_FIELDS: Final = 40


def continuity_scan(job: JobContext) -> str:
    """List the documents that carry what is known from one day to the next, newest first."""
    places = [job.target] if job.target else list(job.default_paths)
    found = []
    for place in places:
        for path in job.files(place):
            if path.suffix.lower() in _DOCUMENTS:
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path.relative_to(job.root).as_posix()))
    if job.target and not (job.root / job.target).exists():
        raise NoInput(f"{job.target}: there is no such file or folder")
    found.sort(reverse=True)
    for changed, size, name in found[:_MAX_LISTED]:
        print(f"{format_iso(datetime.fromtimestamp(changed, UTC))} {size:>10,} {name}")  # noqa: T201  (a job's output)
    if not found:
        return f"no documents in {', '.join(places)}"
    size = sum(f[1] for f in found)
    noun = "document" if len(found) == 1 else "documents"
    return f"{len(found)} {noun}, {size:,} bytes; last changed: {found[0][2]}"


def akela_meta_summary(job: JobContext) -> str:
    """Say what the report says: the plain fields of a JSON object, or the first lines of a text."""
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
    plain = _flatten_fields(data, "")
    for key, value in plain[:_MAX_FIELDS]:
        print(f"{key}: {value}")  # noqa: T201
    said = data.get("summary") if isinstance(data, dict) else None
    return f"{name}: {said[:300] if isinstance(said, str) else _join_fields(plain)}"


def git_status_summary(job: JobContext) -> str:
    """What ``git status --short`` says, and a summary of it."""
    text = Git(job.root).run("status", "--short").decode("utf-8", "replace")
    print(text, end="")  # noqa: T201
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "clean: nothing differs from the last commit"
    new = sum(line.startswith("??") for line in lines)
    return f"{len(lines) - new} changed, {new} untracked"


def _flatten_fields(value: Any, path: str, depth: int = 0) -> list[tuple[str, str]]:
    if isinstance(value, dict) and depth < 4:
        return [
            row
            for key, inner in value.items()
            for row in _flatten_fields(inner, f"{path}.{key}".lstrip("."), depth + 1)
        ]
    if isinstance(value, dict | list):
        return [(path or "items", f"{len(value)} entries")]
    return [(path or "value", str(value)[:200])]


def _join_fields(plain: list[tuple[str, str]]) -> str:
    return ", ".join(f"{key} {value}" for key, value in plain[:5])[:300]
