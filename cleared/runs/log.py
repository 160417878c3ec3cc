"""The agent log (``logs/agent-log.csv``) and the rows that wait for the next commit."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cleared.clock import iso
from cleared.ledger.csvtext import record
from cleared.primitives.context import Context
from cleared.runs.host import Host
from cleared.workspace.files import write_atomic
from cleared.workspace.lock import ensure_state_dir

HEADER: Final = ("timestamp", "agent", "action", "details", "entry_id", "commit_hash")
WAITING: Final = "waiting-log.csv"
"""Rows of runs that made no commit, under ``.cleared/``; they join the next one."""
MAX_WAITING: Final = 1 << 20


def rows(context: Context, now: datetime) -> str:
    """The run's rows. ``commit_hash`` is ``run:<id>``: a commit cannot hold its own hash."""
    at = iso(now)
    return "".join(
        record((at, context.agent, row.action, row.details, row.entry_id, f"run:{context.run_id}"))
        for row in context.log
    )


def waiting(host: Host) -> str:
    path = host.layout.state_dir / WAITING
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def wait(host: Host, text: str) -> None:
    """Keep rows for the next commit."""
    ensure_state_dir(host.layout.state_dir)
    data = (waiting(host) + text).encode("utf-8")
    if len(data) > MAX_WAITING:
        # Runs that do nothing may go on for years; their oldest rows are the least of a loss.
        data = data[-MAX_WAITING:].split(b"\n", 1)[-1]
    write_atomic(host.layout.state_dir / WAITING, data, fsync=False)


def clear(host: Host) -> None:
    (host.layout.state_dir / WAITING).unlink(missing_ok=True)


def append(data: bytes | None, text: str) -> bytes:
    """The log file with these rows at its end."""
    return (data if data is not None else record(HEADER).encode()) + text.encode("utf-8")
