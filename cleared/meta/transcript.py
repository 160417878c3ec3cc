"""A session as people read it: who said what, each step in words, how each request ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from cleared.base.short_text import shorten_line

Kind = Literal["asked", "reply", "said", "step", "failed", "host"]
"""``asked``: by the owner. ``reply``: the one that counts. ``said``: beside calls. ``host``: what this program says."""

_MOST_OF_STEP: Final = 200
_OUTCOMES: Final = {"failed": "did not work", "invalid": "is no call", "interrupted": "was interrupted"}
_DROPPED: Final = {
    "empty": "An empty reply; the model is asked again.",
    "cut_off": "A reply was cut off at its greatest length; it is not taken, and the model is asked again.",
    "barred": "The provider broke a reply off; it is not taken, and the model is asked again.",
}
_ENDINGS: Final = {
    "done": "Done: it is proposed.",
    "answered": "Answered.",
    "asks": "The model asks you, and goes on when you answer.",
    "cannot": "The model says that it cannot:",
    "stopped": "Stopped:",
    "failed": "Failed:",
    "interrupted": "Interrupted:",
}


class Step(Struct, frozen=True):
    """``text``: of a model or its owner as it is, of several lines; else one line of this program's."""

    kind: Kind
    text: str
    at: str = ""


def read_transcript(events: Iterable[Mapping[str, Any]]) -> Iterator[Step]:
    """The steps of a session's kept events, in order. A reply that the model corrected is left out."""
    said: Step | None = None
    for event in events:
        at, text = str(event.get("time") or ""), str(event.get("text") or "")
        if event["type"] == "message.text":
            if event.get("purpose") == "reply":
                if said is not None:
                    yield said
                said = Step("said", text, at)
            continue
        if event["type"] == "session.ended":
            if text.strip():
                yield Step("reply", text, at)
            said = None
            yield Step("host", describe_ending(event), at)
        elif step := describe_step(event):
            if said is not None:
                yield said
            said = None
            yield step
    if said is not None:
        yield said


def describe_step(event: Mapping[str, Any]) -> Step | None:
    """The step that this one event is, if it is worth showing."""
    kind, at = event["type"], str(event.get("time") or "")
    if kind == "session.started" and event.get("request"):
        return Step("asked", str(event["request"]), at)
    if kind == "tool.called":
        return Step("step", str(event.get("words") or event.get("tool")), at)
    if kind == "tool.finished" and event.get("outcome") != "ok":
        outcome = _OUTCOMES.get(str(event.get("outcome")), "did not work")
        return Step("failed", f"that {outcome}: {shorten_line(str(event.get('text')), _MOST_OF_STEP)}", at)
    if kind == "message.dropped":
        return Step("failed", _DROPPED.get(str(event.get("reason")), "A reply was not taken."), at)
    if kind == "context.compacted":
        return Step("step", "older steps were summed up to save room", at)
    return None


def describe_ending(event: Mapping[str, Any]) -> str:
    """How a request ended, and what was proposed for it, in the host's words on one line."""
    words = _ENDINGS.get(str(event.get("status")), "Ended:")
    message = shorten_line(str(event.get("message") or event.get("reason")).rstrip("."), 2 * _MOST_OF_STEP)
    ending = f"{words} {message}." if words.endswith(":") else words
    return f"{ending} {event.get('note') or ''}".strip()
