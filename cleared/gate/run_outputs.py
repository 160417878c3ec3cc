"""What a person would see of a run beside its records: messages, questions, the result, the log, what it starts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cleared.base.short_text import list_lines
from cleared.primitives.ctx import LOOP_ENQUEUE_EVENT, NOTIFY_SEND_EVENT, ORDER_EVENTS
from cleared.runs.attempt import Attempt

KINDS: Final = {
    "change": "Changes what was there",
    "message": "A message to you",
    "question": "Asks you",
    "job": "Has the loop run",
    "event": "Starts what waits for the event",
    "result": "Its result",
    "log": "Its log",
}
"""In this order → what stands above it."""
_MOST_TEXTS: Final = 20
"""Of one kind."""
_MESSAGE_CHARS: Final = 6_000
_LINE_CHARS: Final = 300


def list_outputs(
    attempt: Attempt, statuses: Mapping[str, str], result: Any, log: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    """Kind → texts, without what differs each time. ``statuses``: committed record → the one that it gets; ``log``: its
    lines, as they were shown."""
    context, redact = attempt.context, attempt.host.redactor.redact_text
    prefix = f"{attempt.script.name}: "
    lines = [line.removeprefix(prefix) for text in log for line in text.splitlines()]
    lines += "".join(attempt.printed).splitlines()
    texts: dict[str, list[str]] = {
        "change": [f"{name} becomes {status}" for name, status in statuses.items()],
        "message": [_write_message(attempt, e["payload"]) for e in context.events if e["name"] == NOTIFY_SEND_EVENT],
        "question": [  # what is asked about a record stands with it
            card.title for card in context.cards.added.values() if card.record_id is None
        ],
        "job": [_in_one_line(e["payload"]) for e in context.events if e["name"] == LOOP_ENQUEUE_EVENT],
        "event": [f"{e['name']} {_in_one_line(e['payload'])}" for e in context.events if e["name"] not in ORDER_EVENTS],
        "result": [] if result is None else [_in_one_line(result)],
        "log": [" ".join(line.split()) for line in lines],
    }
    cleaned = {kind: [redact(t).replace(attempt.run_id, "(this run)") for t in found] for kind, found in texts.items()}
    return {
        kind: tuple(_bound(found, _MESSAGE_CHARS if kind == "message" else _LINE_CHARS))
        for kind, found in cleaned.items()
        if found
    }


def _bound(texts: Sequence[str], most: int) -> list[str]:
    """The first texts, and of each the beginning; what is left out differs where it is another."""
    rest = " ".join(texts[_MOST_TEXTS:])
    return list_lines([_cut(text, most) for text in texts], _MOST_TEXTS, f"… and {{}} more ({_digest(rest)})")


def _cut(text: str, most: int) -> str:
    """The beginning of a long text, with what tells it from another that begins alike."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… and {len(text) - most} more characters ({_digest(text)})"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _write_message(attempt: Attempt, payload: Mapping[str, Any]) -> str:
    """As it would be sent: with the business's name, and the cards that it names."""
    cards = [f"- {card['title']}" for card in payload["cards"]]
    lines = [f"{attempt.host.config.business.name}: {payload['subject']}", "", payload["text"], *cards]
    return "\n".join(lines)


def _in_one_line(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return " ".join(text.split())
