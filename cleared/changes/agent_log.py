"""The agent log (``logs/agent-log-YYYY-MM.csv``), and its rows that wait for the next commit."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cleared.base.clock import format_iso
from cleared.base.csv_text import format_record
from cleared.base.file_source import choose_part
from cleared.base.safe_files import write_atomic
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import LocalMove
from cleared.primitives.context import Context
from cleared.workspace.location import Layout
from cleared.workspace.lock import ensure_state_dir

HEADER: Final = ("timestamp", "agent", "action", "details", "entry_id", "commit_hash")
_PREFIX: Final = f"{Layout.logs_dir}/agent-log"
WAITING_FILE: Final = "waiting-log.csv"
"""Rows of runs that made no commit, under ``.cleared/``; the next commit takes them along."""
MAX_WAITING_BYTES: Final = 1 << 20


def name_log(now: datetime) -> str:
    """The file for what is logged at a time, or its first part."""
    return f"{_PREFIX}-{format_iso(now)[:7]}.csv"


def choose_log(source: CommittedSource, now: datetime) -> str:
    """The file that takes what is logged now."""
    return choose_part(source, name_log(now), list_logs(source), format_record(HEADER))


def list_logs(source: CommittedSource) -> list[str]:
    """All files of the log, oldest first."""
    names = source.snapshot.list_folder(Layout.logs_dir)
    paths = sorted(f"{Layout.logs_dir}/{name}" for name, entry in names.items() if entry.is_file)
    return [path for path in paths if path.startswith(_PREFIX) and path.endswith(".csv")]


def format_rows(context: Context, now: datetime) -> str:
    """The run's rows as CSV. ``commit_hash`` is ``run:<id>``: a commit cannot hold its own hash."""
    at, clean = format_iso(now), context.env.redactor.redact_text
    return "".join(
        format_record((at, context.agent, row.action, clean(row.details), row.record_id, f"run:{context.run_id}"))
        for row in context.log
    )


def read_waiting_rows(host: Host) -> bytes:
    """The rows that wait; empty where they cannot be read."""
    path = host.layout.state_dir / WAITING_FILE
    try:
        data = b"" if path.is_symlink() else path.read_bytes()
        data.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return b""
    return data


def waiting_rows_move(host: Host, data: bytes) -> LocalMove:
    """The removal of the waiting rows ``data``, to be made with the commit that holds them.

    Were it made afterwards, a kill in between would put them into the next commit too.
    """
    return LocalMove(f"{host.layout.state_dir.name}/{WAITING_FILE}", None, data)


def add_waiting_rows(host: Host, text: str) -> None:
    """Keep rows for the next commit."""
    ensure_state_dir(host.layout.state_dir)
    data = read_waiting_rows(host) + text.encode("utf-8")
    if len(data) > MAX_WAITING_BYTES:
        # Runs that change nothing may go on for years: drop their oldest rows.
        cut = data.index(b"\n", -MAX_WAITING_BYTES) + 1
        while data.count(b'"', 0, cut) % 2:  # within a row: a quoted text can hold line ends
            cut = data.index(b"\n", cut) + 1
        data = data[cut:]
    write_atomic(host.layout.state_dir / WAITING_FILE, data, fsync=False)


def append_rows(data: bytes | None, text: str) -> bytes:
    """The log file ``data`` (``None``: there is none yet) with these rows at its end."""
    return (data if data is not None else format_record(HEADER).encode()) + text.encode("utf-8")
