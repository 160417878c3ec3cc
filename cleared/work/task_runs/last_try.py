"""What a task's last try came to, for the briefing of the next one.

It is kept beside git: what the ledger says of it, whoever can push may have written, and an engine does what it reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cleared.base.safe_files import write_atomic
from cleared.changes.host import Host
from cleared.work.task_runs.task_recording import state_folder

_MOST_REASON: Final = 2_000
_MOST_OUTPUT: Final = 4_000
"""Characters of the end of what was printed, where mostly the cause is."""


def output_path(host: Host, task_id: str) -> Path:
    """Where the output of a task's last verification is."""
    return state_folder(host, "task-output") / f"{task_id}.txt"


def worker_output_path(host: Host, task_id: str) -> Path:
    """Where that of its last worker is."""
    return state_folder(host, "task-output") / f"{task_id}.worker.txt"


def note_failure(host: Host, task_id: str, reason: str) -> None:
    """Keep why it failed, with the end of what was printed last."""
    outputs = [path for path in (output_path(host, task_id), worker_output_path(host, task_id)) if path.is_file()]
    last = max(outputs, key=lambda path: path.stat().st_mtime_ns, default=None)
    printed = last.read_text("utf-8", "replace")[-_MOST_OUTPUT:].strip() if last is not None else ""
    end = f"\n\nThe end of what was printed:\n\n{printed}" if printed else ""
    text = host.redactor.redact_text(reason).strip()[:_MOST_REASON]
    write_atomic(_path(host, task_id), f"{text}{end}\n".encode("utf-8", "replace"), mode=0o600)


def note_wish(host: Host, task_id: str, wish: str) -> None:
    """Put in front what a person says of the next try."""
    before = read_last_try(host, task_id)
    write_atomic(_path(host, task_id), f"{wish.strip()[:_MOST_REASON]}\n\n{before}".encode(), mode=0o600)


def read_last_try(host: Host, task_id: str) -> str:
    """All of it; empty where it was not tried yet."""
    path = _path(host, task_id)
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def forget_last_try(host: Host, task_id: str) -> None:
    """The task is done."""
    _path(host, task_id).unlink(missing_ok=True)


def move_last_try(host: Host, old_id: str, new_id: str) -> None:
    """The task has another id now."""
    for path_of in (_path, output_path, worker_output_path):
        old = path_of(host, old_id)
        if old.is_file():
            old.replace(path_of(host, new_id))


def _path(host: Host, task_id: str) -> Path:
    return state_folder(host, "task-output") / f"{task_id}.tried.txt"
