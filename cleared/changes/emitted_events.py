"""What a commit tells those who listen: the events it emits, the files it was about, and marks of the rest of it.

``logs/events.jsonl`` has a line for each emitted event. What the program itself can tell of a commit (a run ended, a
card was resolved …) has no line: it is read off the commit's trailers, where somebody listens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from cleared.changes.host import Host
from cleared.clock import format_iso
from cleared.ledger.csv_text import format_record
from cleared.primitives.context import Context
from cleared.vcs import Repository, find_clone_id

ORIGIN: Final = "Origin"
"""The clone that made the commit; others deliver none of its events."""
EMITS: Final = "Emits"
IMPORTS: Final = "Imports"
RESOLVES: Final = "Resolves"
DEPTH: Final = "Depth"
DATA: Final = "Data"
_MAX_DATA: Final = 2_000
_FILES_HEADER: Final = ("sha256", "agent", "file", "run")


def format_event(run: str, number: int, agent: str, now: datetime, name: str, payload: Any) -> str:
    """One emitted event as it is kept."""
    return event_line(
        {"id": f"{run}/{number}", "run": run, "agent": agent, "at": format_iso(now), "name": name, "payload": payload}
    )


def event_line(event: Mapping[str, Any]) -> str:
    """The line of an event."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"


def payload_trailer(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The payload that a person gave a run, so that it can be held again; other events have theirs elsewhere."""
    if event["kind"] != "on_demand" or event["payload"] is None:
        return []
    text = json.dumps(event["payload"], ensure_ascii=True, separators=(",", ":"), default=str)
    return [(DATA, text)] if len(text) <= _MAX_DATA else []


def parse_events(data: bytes | None) -> Iterator[dict[str, Any]]:
    """The events of ``logs/events.jsonl``, newest first; lines that are none are left out."""
    for text in reversed((data or b"").splitlines()):
        try:
            event = json.loads(text)
        except ValueError:
            continue
        if isinstance(event, dict) and event.keys() >= {"id", "run", "name", "payload"}:
            yield event


def commit_trailers(repo: Repository, context: Context) -> list[tuple[str, str]]:
    """What the commit of this context has to say of itself."""
    counts = (
        (EMITS, len(context.events)),
        (IMPORTS, len(context.imports.list_moves())),
        (RESOLVES, len(context.cards.resolved)),
        (DEPTH, context.event.get("depth", 0)),
    )
    found = [(key, str(count)) for key, count in counts if count]
    return [*found, (ORIGIN, find_clone_id(repo, make=True) or "")]


def handled_files(host: Host, context: Context) -> list[tuple[str, str, str, str]]:
    """Rows for the files the run was about that stay where they are, outside of ``import/``."""
    folder = f"{host.layout.import_dir}/"
    return [
        (digest, context.agent, path, context.run_id)
        for path, digest in context.event.get("files", ())
        if not path.startswith(folder)
    ]


def append_handled_files(data: bytes | None, rows: list[tuple[str, str, str, str]]) -> bytes:
    """``logs/files.csv`` with these rows at its end."""
    before = data if data is not None else format_record(_FILES_HEADER).encode()
    return before + "".join(format_record(row) for row in rows).encode("utf-8")


def files_handled_by(data: bytes | None, agent: str) -> dict[str, str]:
    """SHA-256 → file, of what the agent has had a run for."""
    import csv

    rows = csv.reader((data or b"").decode("utf-8", "replace").splitlines())
    return {row[0]: row[2] for row in rows if len(row) == len(_FILES_HEADER) and row[1] == agent}
