"""What an engine says and does while it works, a line each, from the events that it prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

_MOST_LINES: Final = 1_000
"""Of one run that are shown."""
_MOST_EVENTS: Final = 50_000
"""Lines of one run that are looked at: a program may print without end."""
_LONGEST_EVENT: Final = 256 * 1024
_LONGEST_TEXT: Final = 200


class LiveView:
    """Takes bytes and shows lines. ``describe``: what an event is in words, empty where it is not worth a line."""

    def __init__(self, describe: Callable[[Mapping[str, Any]], str], show: Callable[[str], None]) -> None:
        self._describe, self._show = describe, show
        self._lines_left, self._events_left = _MOST_LINES, _MOST_EVENTS
        self._pending = bytearray()

    def feed_bytes(self, data: bytes) -> None:
        """Add output of the engine."""
        if not self._lines_left or not self._events_left:
            return
        self._pending += data
        *lines, rest = self._pending.split(b"\n")
        self._pending = rest[:_LONGEST_EVENT]  # the rest of a longer one is no JSON
        for line in lines:
            self._events_left -= 1
            if not self._lines_left or not self._events_left:
                return
            if line.startswith(b"{"):
                self._show_event(line)

    def _show_event(self, line: bytes | bytearray) -> None:
        try:
            event = json.loads(line)
            text = self._describe(event) if isinstance(event, dict) else ""
        except (ValueError, RecursionError):
            return
        if text := " ".join(text.split()):
            self._lines_left -= 1
            self._show(text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…")
            if not self._lines_left:
                self._show("what else it does is in its log only")
