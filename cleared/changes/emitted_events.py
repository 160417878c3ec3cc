"""What a commit holds for agents that listen for events: the events it emits, the files it handled, and trailers.

``logs/events.jsonl`` has a line for each event that a script emits. The program's own events (a run ended, a card was
resolved …) have no line: they are read from the commit's trailers where an agent listens for them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.base.csv_text import format_record
from cleared.changes.host import Host
from cleared.git import Repository, find_clone_id
from cleared.primitives.context import Context, taken_files
from cleared.sandbox.trigger_kinds import ON_DEMAND, WEBHOOK

ORIGIN: Final = "Origin"
"""The clone that made the commit; other clones deliver none of its events."""
EMITS: Final = "Emits"
IMPORTS: Final = "Imports"
RESOLVES: Final = "Resolves"
DEPTH: Final = "Depth"
DATA: Final = "Data"
_MAX_DATA: Final = 2_000
_FILES_HEADER: Final = ("sha256", "agent", "file", "run")


def format_event(run: str, number: int, agent: str, now: datetime, name: str, payload: Any) -> str:
    """One emitted event, as its line in ``logs/events.jsonl``."""
    return event_line(
        {"id": f"{run}/{number}", "run": run, "agent": agent, "at": format_iso(now), "name": name, "payload": payload}
    )


def event_line(event: Mapping[str, Any]) -> str:
    """The line of an event."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"


def payload_trailer(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The trailer with the payload that a person or a call gave a run, so that it can be repeated; other events need
    none."""
    if event["kind"] not in (ON_DEMAND.name, WEBHOOK.name) or event["payload"] is None:
        return []
    text = json.dumps(event["payload"], ensure_ascii=True, separators=(",", ":"), default=str)
    return [(DATA, text)] if len(text) <= _MAX_DATA else []


def parse_events(data: bytes | None) -> Iterator[dict[str, Any]]:
    """The events of ``logs/events.jsonl``, newest first; lines that cannot be read are left out."""
    for text in reversed((data or b"").splitlines()):
        try:
            event = json.loads(text)
        except ValueError:
            continue
        if isinstance(event, dict) and event.keys() >= {"id", "run", "name", "payload"}:
            yield event


def commit_trailers(repo: Repository, context: Context) -> list[tuple[str, str]]:
    """The trailers with which a commit tells what is in it."""
    counts = (
        (EMITS, len(context.events)),
        (IMPORTS, len(taken_files(context))),
        (RESOLVES, len(context.cards.resolved)),
        (DEPTH, context.event.get("depth", 0)),
    )
    trailers = [(key, str(count)) for key, count in counts if count]
    return [*trailers, (ORIGIN, find_clone_id(repo, make=True) or "")]


def handled_files(host: Host, context: Context) -> list[tuple[str, str, str, str]]:
    """Rows for the files that the run was for and that stay where they are, outside of ``import/``."""
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
    """SHA-256 → path, of the files for which the agent has had a run."""
    rows = csv.reader((data or b"").decode("utf-8", "replace").splitlines())
    return {row[0]: row[2] for row in rows if len(row) == len(_FILES_HEADER) and row[1] == agent}
