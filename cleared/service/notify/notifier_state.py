"""What the notifier keeps on disk (``notify.json``): messages to be sent, and failures that no message reports yet."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, to_builtins

from cleared.base.clock import format_iso
from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import read_stable, write_atomic
from cleared.service.notify.channels import Message, escape_text
from cleared.workspace.lock import ensure_state_dir

STATE_FILE: Final = "notify.json"
"""Under ``.cleared/``."""
MAX_LISTED_FAILURES: Final = 20
"""Failures that are kept with their cause; further ones are only counted."""
_MAX_BYTES: Final = 1 << 22


class QueuedMessage(Struct):
    """A message that no channel has accepted yet."""

    message: Message
    attempts: int = 0
    next: str = ""
    """When it is sent, or sent again; UTC, ISO 8601."""


class NotifierState(Struct):
    """The notifier's state, which outlives the process. Times are UTC, ISO 8601, which sort as texts do."""

    digest_at: str | None = None
    """When the last digest was made, or would have been if anything had waited."""
    failures_at: str | None = None
    """When failures were last made a message."""
    failures: list[dict[str, str]] = []
    """Runs that no message reports yet: run_id, agent, cause, at."""
    more: int = 0
    """How many failed runs there are beside ``failures``."""
    outbox: list[QueuedMessage] = []
    last_sent_at: str | None = None
    last_error: str | None = None
    cursor: str | None = None
    """In a fleet, the commit up to which failed runs were read."""
    failed: dict[str, int] = {}
    """In a fleet, agent → how many of its runs failed since the last digest, by what was pushed."""


def read_state(path: Path) -> NotifierState:
    """The state in this file; an empty one where there is no file, or it is damaged."""
    try:
        data = json.loads(read_stable(path, _MAX_BYTES)[0])
        outbox = [parse_queued(queued) for queued in data["outbox"]]
        failures = [{key: str(row[key]) for key in ("run_id", "agent", "cause", "at")} for row in data["failures"]]
        for failure in failures:
            check_time(failure["at"])
        return NotifierState(
            data["digest_at"] and check_time(data["digest_at"]),
            data["failures_at"] and check_time(data["failures_at"]),
            failures,
            int(data["more"]),
            outbox,
            data["last_sent_at"] and check_time(data["last_sent_at"]),
            data["last_error"] and escape_text(data["last_error"]),
            str(data["cursor"]) if data.get("cursor") else None,
            {str(agent): int(count) for agent, count in data.get("failed", {}).items()},
        )
    except (WorkspaceError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return NotifierState()


def write_state(path: Path, state: NotifierState) -> None:
    """Raises ``WorkspaceError`` where the disk does not take it."""
    ensure_state_dir(path.parent)
    write_atomic(path, json.dumps(to_builtins(state), ensure_ascii=True).encode())


def parse_queued(data: Any) -> QueuedMessage:
    """A message as it was written. Raises ``ValueError``, ``KeyError``, ``TypeError`` or ``AttributeError`` for
    anything else."""
    lines = tuple(map(str, data["message"]["lines"]))
    message = Message(**{**data["message"], "lines": lines})
    check_time(message.at)
    texts = (message.key, message.kind, message.subject)
    if not isinstance(message.data, dict) or not all(isinstance(text, str) for text in texts):
        raise ValueError("not a message")
    return QueuedMessage(message, int(data["attempts"]), check_time(data["next"]))


def check_time(text: str) -> str:
    """The text, if it is a time as ``format_iso`` writes it; else raises ``ValueError``."""
    if format_iso(datetime.fromisoformat(text)) != text:
        raise ValueError(text)
    return text
