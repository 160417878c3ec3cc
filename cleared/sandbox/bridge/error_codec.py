"""Errors as the ``data`` of a JSON-RPC error, and back."""

from __future__ import annotations

from typing import Any, Final, get_args

from cleared.base import errors
from cleared.base.errors import ClearedError, Place, PrimitiveError
from cleared.sandbox.bridge.jsonrpc import SERVER_ERROR, RpcError
from cleared.sandbox.script_failure import (
    FailureKind,
    Frame,
    HostCallFailed,
    Position,
    ScriptError,
    clip_message,
    format_traceback,
)

_KINDS: Final = get_args(FailureKind)


class HostRefused(ClearedError):
    """The host answered a call with an error; ``type`` is what it calls it."""

    def __init__(self, message: str, *, type: str, field: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message, place=Place(field=field) if field else None, remedy=remedy)
        self.type = type


def refusal_error(error: ClearedError, code: int = SERVER_ERROR) -> RpcError:
    """An error as a client of ``cleared rpc`` sees it."""
    return RpcError(
        code,
        error.message[:1_000],
        {
            "type": type(error).__name__,
            "message": error.message,
            "place": place_data(error.place),
            "remedy": error.remedy,
            "exit_code": int(error.exit_code),
        },
    )


def place_data(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {"file": place.file, "line": place.line, "column": place.column, "field": place.field}


def script_failure_error(error: ClearedError) -> RpcError:
    """How a script ended, as the host of a bridge sees it."""
    place = error.place or Place()
    data: dict[str, Any] = {
        "type": type(error).__name__,
        "traceback": None,
        "kind": None,
        "message": error.message,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "remedy": error.remedy,
        "exit_code": int(error.exit_code),
    }
    if isinstance(error, ScriptError):
        data |= {
            "type": error.type,
            "kind": error.kind,
            "traceback": error.traceback,
            "frames": _frames_data(error.frames),
        }
    elif isinstance(error, HostCallFailed):
        original = error.original
        name = original.type if isinstance(original, HostRefused) else type(original).__name__
        text = format_traceback(error.frames, f"{name}: {error.message}")
        data |= {"type": name, "kind": "call", "primitive": error.name, "traceback": text}
        data |= {"field": place.field, "frames": _frames_data(error.frames)}
    else:
        data["traceback"] = f"{type(error).__name__}: {error}"
    return RpcError(
        SERVER_ERROR, clip_message(f"{data['type']}: {_without_type(error.message, str(data['type']))}"), data
    )


def read_script_error(reply: dict[str, Any], file: str) -> ClearedError:
    """The exception that a bridge's error reply means."""
    data = reply.get("data")
    data = data if isinstance(data, dict) else {}
    message = str(data.get("message") or reply.get("message") or "the bridge gave no reason")
    remedy = data.get("remedy") if isinstance(data.get("remedy"), str) else None
    place = Place(
        _text_or_none(data.get("file")) or file, _int_or_none(data.get("line")), _int_or_none(data.get("column"))
    )
    name = str(data.get("type") or "RuntimeError")
    if data.get("kind") in _KINDS:
        frames = read_frames(data.get("frames"))
        return ScriptError(message, kind=data["kind"], type=name, place=place, remedy=remedy, frames=frames)
    if data.get("kind") == "call":  # refused by the bridge; what the host refused it knows itself
        frames = read_frames(data.get("frames"))
        at = Position(place.file or file, place.line or 1, place.column or 1)
        field = _text_or_none(data.get("field"))
        original = PrimitiveError(message, place=Place(field=field) if field else None, remedy=remedy)
        return HostCallFailed(original, name=str(data.get("primitive")), position=at, frames=frames)
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, ClearedError):
        return known(message, place=place if data.get("file") else None, remedy=remedy)
    return ScriptError(
        f"the bridge failed: {message}",
        kind="crash",
        type=name,
        place=Place(file),
        remedy=remedy or "Run it again; other runs are unaffected.",
    )


def read_host_refusal(reply: dict[str, Any]) -> HostRefused:
    """The host's error reply to a call of a script's."""
    data = reply.get("data")
    data = data if isinstance(data, dict) else {}
    message = _text_or_none(data.get("message")) or _text_or_none(reply.get("message")) or "the host gave no reason"
    field, remedy = _text_or_none(data.get("field")), _text_or_none(data.get("remedy"))
    return HostRefused(message, type=_text_or_none(data.get("type")) or "RuntimeError", field=field, remedy=remedy)


def _frames_data(frames: tuple[Frame, ...]) -> list[dict[str, Any]]:
    return [
        {"file": f.file, "line": f.line, "column": f.column, "function": f.function, "source_line": f.source_line[:500]}
        for f in frames
    ]


def read_frames(data: Any) -> list[Frame]:
    """The frames of an error's ``data``; what is malformed is left out, it is only for people."""
    frames = []
    for item in data if isinstance(data, list) else []:
        match item:
            case {
                "file": str(file),
                "line": int(line),
                "column": int(column),
                "function": str(function),
                "source_line": str(source_line),
            }:
                frames.append(Frame(file, line, column, function, source_line))
    return frames


def _without_type(message: str, type: str) -> str:
    return message.removeprefix(f"{type}: ")


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _int_or_none(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
