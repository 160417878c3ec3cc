"""What a session tells while it works: one JSON object a step, in order.

``session_events.schema.json`` is their schema.
Every event has ``type``, ``session``, ``seq`` (1, 2, … over the session's whole life) and ``time`` (ISO 8601, UTC).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cleared.base.bounds import clip_text
from cleared.base.clock import Clock, format_iso
from cleared.meta.session_store import SessionStore

SCHEMA_FILE: Final = Path(__file__).with_name("session_events.schema.json")
_NOT_STORED: Final = frozenset({"message.delta"})
_MAX_TEXT_BYTES: Final = 10_000

EmitEvent = Callable[[dict[str, Any]], None]
"""Takes each event as it happens."""


class EventJournal:
    """Numbers events, hands them to ``emit``, and keeps them in the session's folder (text fragments are not kept).

    ``newest``: the type of the last one."""

    def __init__(self, store: SessionStore, clock: Clock, emit: EmitEvent | None = None) -> None:
        self._store, self._clock, self._emit = store, clock, emit
        self._number, self.newest = store.read_last_event()

    def report(self, kind: str, **values: Any) -> None:
        """Raises what ``emit`` raises."""
        self._number, self.newest = self._number + 1, kind
        event = {
            "type": kind,
            "session": self._store.info.id,
            "seq": self._number,
            "time": format_iso(self._clock.now()),
            **values,
        }
        if kind not in _NOT_STORED:
            self._store.append_event(event)
        if self._emit is not None:
            self._emit(event)


def read_event_schema() -> Mapping[str, Any]:
    """The JSON Schema of one event."""
    schema: Mapping[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return schema


def clip_for_event(text: str) -> str:
    """A text, shortened so that a line of events stays readable."""
    return clip_text(text, _MAX_TEXT_BYTES)
