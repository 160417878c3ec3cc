"""The queue's files: ``queue/YYYY-MM.jsonl`` and its further parts, one JSON object a line, append-only.

    {"event": "open", "id": …, "kind": …, "title": …, "created_at": …, …}
    {"event": "resolve", "id": …, "at": …, "by": …, "resolution": …}      a question's: "key" and "signature", too
    {"event": "went_on", "id": …, "at": …, "by": …, "resolution": …, "run": …}
    {"event": "skip", "id": …, "at": …, "by": …}
    {"event": "unskip", "id": …, "at": …, "by": …, "of": …}    of: the time of the skip that is taken back
    {"event": "agree", "id": …, "at": …, "by": …, "decision": …, …}
    {"event": "disagree", "id": …, "at": …, "by": …, "decision": …}

Lines may come in any order and twice (two clones merged): an id is one card, and it is resolved once it was resolved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from cleared.base.file_source import FileSource
from cleared.cards.card import Card
from cleared.cards.card_events import CardEvents, parse_opened, read_events, render_line

SUFFIX: Final = ".jsonl"


def shard_path(queue: str, at: str) -> str:
    """The file that takes what happens at this time (``2025-01-31T…``), or its first part."""
    return f"{queue}/{at[:7]}{SUFFIX}"


def render_resolve(card_id: str, at: str, by: str, resolution: str, proof: Mapping[str, str] | None = None) -> str:
    return render_line(
        {"event": "resolve", "id": card_id, "at": at, "by": by, "resolution": resolution, **(proof or {})}
    )


def render_went_on(card_id: str, at: str, by: str, run: str) -> str:
    # "resolution": a version of the program that knows no such event takes the line for one that settles the card.
    return render_line(
        {"event": "went_on", "id": card_id, "at": at, "by": by, "resolution": f"went on: {run}", "run": run}
    )


def render_agree(card_id: str, data: Mapping[str, Any]) -> str:
    return render_line({"event": "agree", "id": card_id, **data})


def render_disagree(card_id: str, at: str, by: str, decision: str) -> str:
    return render_line({"event": "disagree", "id": card_id, "at": at, "by": by, "decision": decision})


def render_skip(card_id: str, at: str, by: str) -> str:
    return render_line({"event": "skip", "id": card_id, "at": at, "by": by})


def render_unskip(card_id: str, at: str, by: str, of: str) -> str:
    return render_line({"event": "unskip", "id": card_id, "at": at, "by": by, "of": of})


def load_cards(source: FileSource, queue: str, *, readable_only: bool = False) -> dict[str, Card]:
    """All cards by id, oldest first; those that were skipped behind all that were not.

    Raises ``WorkspaceError`` for a damaged line. ``readable_only``: such lines are passed over, for who asks only what
    the others say.
    """
    events = CardEvents()
    for path in list_queue_files(source, queue):
        read_events(path, source.read(path) or b"", events.add_event, readable_only=readable_only)
    return events.make_cards()


def list_queue_files(source: FileSource, queue: str) -> list[str]:
    """The files of the queue, in the order in which they are read."""
    paths = source.list_paths(queue)
    return [path for path in paths if path.endswith(SUFFIX) and "/" not in path[len(queue) + 1 :]]


def read_opened_cards(lines: Iterable[bytes]) -> Iterator[Card]:
    """The cards that these lines of the queue open; those that cannot be read are passed over."""
    for line in lines:
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            data = json.loads(line)
            if data["event"] == "open":
                yield parse_opened(data)
