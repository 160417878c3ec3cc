"""A tool as a model sees it, what a call of it gives back, and how a tool says no. No framework is imported here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from msgspec import Struct

Outcome = Literal["ok", "failed", "invalid"]
"""``failed``: the call was understood, and cannot be done. ``invalid``: it is no call of a tool there is."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for the model to look at. ``media_type`` is taken from the content, never from the name."""

    media_type: str
    data: bytes = field(repr=False)


class ToolResult(Struct, frozen=True):
    """What a call gave. ``text`` is for the model: bounded, without secrets. ``cached``: it was read before."""

    text: str
    outcome: Outcome = "ok"
    cached: bool = False
    images: tuple[Image, ...] = ()


class ToolFailed(Exception):
    """Raised by a tool that cannot do what it was asked. ``remedy``: what the model can do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message, self.remedy = message, remedy


@dataclass(frozen=True, slots=True)
class Tool:
    """``parameters`` is a JSON Schema of the arguments. ``cacheable``: equal calls give equal results until something
    is written. ``acts``: repeating a call after a crash would do something twice."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], ToolResult | str] = field(repr=False)
    cacheable: bool = False
    acts: bool = False


class Evidence(Struct, frozen=True):
    """What the gate last said of exactly what the session's draft holds now.

    ``nothing_written``: the draft differs in no file from what is approved. ``unchecked``: it was not checked as it is.
    ``blocked``: ``findings`` keep it from being proposed. ``passed``: it could be proposed. ``proposed``: it is.
    """

    state: Literal["nothing_written", "unchecked", "blocked", "passed", "proposed"]
    proposal: str | None = None
    """The id of the proposal of exactly this draft, ``P7``."""
    findings: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """The files that the draft changes."""
    card: str = ""
    """Of what is proposed: what the owner reads."""


_NOT_SENT: Final = frozenset({"minLength", "maxLength", "maxItems", "minimum", "maximum", "additionalProperties"})


def shorten_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as a model is sent it: without bounds, which a refusal names where a call does not keep them."""
    sent: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            sent[key] = {name: shorten_schema(each) for name, each in value.items()}
        elif key not in _NOT_SENT and value != []:
            sent[key] = shorten_schema(value) if isinstance(value, Mapping) else value
    return sent


def make_schema(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments; no others are accepted."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
