"""JSON-RPC 2.0, one JSON value a line (https://www.jsonrpc.org/specification). Knows no transport and no methods.

What arrives is hostile: lines are bounded in length and depth, NaN and Infinity (1e999 too) are refused.
What is sent is ASCII, so neither a line break in a text nor a lone surrogate can break a frame.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final

from msgspec import Struct

from cleared.base.json_values import is_nested_deeply, refuse_unstorable

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
SERVER_ERROR: Final = -32000
"""A script or a primitive failed; ``data`` has the details."""

MESSAGES: Final = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
}

MAX_LINE: Final = 128 << 20
"""Bytes. 200,000 bank rows, which is what an import may have, fit in one line."""
MAX_DEPTH: Final = 200
MAX_BATCH: Final = 10_000
MAX_ID: Final = 10_000
"""Characters of an id. Each reply repeats it: one that fills a line would fit into no reply."""

Id = str | int | float | None
Frame = dict[str, Any]


class RpcError(Exception):
    """An error reply. ``data`` is JSON with the details."""

    def __init__(self, code: int, message: str | None = None, data: Any = None) -> None:
        super().__init__(message or MESSAGES[code])
        self.code = code
        self.message = message or MESSAGES[code]
        self.data = data


class Request(Struct, frozen=True):
    """A call, or, where it has no id, a notification, which is never answered."""

    method: str
    params: list[Any] | dict[str, Any]
    id: Id = None
    notification: bool = False


class Response(Struct, frozen=True):
    """A reply to a request that was sent from here: either ``result`` or ``error`` counts."""

    id: Id
    result: Any = None
    error: dict[str, Any] | None = None


class Invalid(Struct, frozen=True):
    """A message that is neither; ``id`` is its id, where it has a readable one."""

    error: RpcError
    id: Id = None


Message = Request | Response | Invalid


def read_line(stream: BinaryIO) -> bytes | None:
    """The next line that is not blank, None at the end. Raises ``RpcError`` for one that is too long, and skips it."""
    while True:
        line = stream.readline(MAX_LINE + 1)
        if not line:
            return None
        if len(line) > MAX_LINE:
            while line and not line.endswith(b"\n"):
                line = stream.readline(1 << 20)
            raise RpcError(PARSE_ERROR, data=f"the line has more than {MAX_LINE} bytes")
        if not line.isspace():
            return line


def parse_value(data: bytes) -> Any:
    """A JSON value, within bounds of depth and of numbers. Raises ``ValueError``."""
    try:
        text = data.strip(b" \t\n\r").decode("utf-8")
        value, end = _DECODER.raw_decode(text)  # ``decode`` looks for white space with two searches
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 (byte {error.start})") from None
    except (json.JSONDecodeError, _NoNumber):
        raise
    except ValueError:  # Python's own words are about its settings
        raise ValueError("a number has too many digits") from None
    if end != len(text):
        raise ValueError(f"Extra data: line 1 column {end + 1} (char {end})")
    if is_nested_deeply(value, data, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return value


def parse_payload(data: bytes) -> Any:
    """As ``parse_value``, for what is stored, see ``refuse_unstorable``."""
    value = parse_value(data)
    refuse_unstorable(value)
    return value


def parse_line(line: bytes) -> Message | list[Message]:
    """The message of a line, or the messages of a batch. Never raises: what is wrong is an ``Invalid``."""
    try:
        value = parse_value(line)
    except ValueError as e:
        return Invalid(RpcError(PARSE_ERROR, data=str(e)[:200]))
    if isinstance(value, list):
        if not value or len(value) > MAX_BATCH:
            return Invalid(RpcError(INVALID_REQUEST, data=f"a batch has 1 to {MAX_BATCH} messages"))
        return [_parse_message(v) for v in value]
    return _parse_message(value)


def _parse_message(value: Any) -> Message:
    if not isinstance(value, dict):
        return Invalid(RpcError(INVALID_REQUEST, data="a message is an object"))
    identity = value.get("id")
    if isinstance(identity, bool) or not isinstance(identity, str | int | float | None):
        return Invalid(RpcError(INVALID_REQUEST, data="an id is a string, a number or null"))
    if isinstance(identity, str) and len(identity) > MAX_ID:
        return Invalid(RpcError(INVALID_REQUEST, data=f"an id has {MAX_ID:,} characters at most"))
    if "method" not in value and "id" in value:
        error = value.get("error")
        if isinstance(error, dict):
            return Response(identity, error=error)
        if error is not None:
            return Response(identity, error={"message": str(error)})
        if "result" in value:
            return Response(identity, value["result"])
    if value.get("jsonrpc") != "2.0":
        return Invalid(RpcError(INVALID_REQUEST, data='"jsonrpc" must be "2.0"'), identity)
    method, params = value.get("method"), value.get("params")
    if params is None:  # what clients in some languages write for none
        params = []
    if not isinstance(method, str):
        return Invalid(RpcError(INVALID_REQUEST, data='"method" must be a string'), identity)
    if not isinstance(params, list | dict):
        return Invalid(RpcError(INVALID_REQUEST, data='"params" must be an array or an object'), identity)
    return Request(method, params, identity, "id" not in value)


def without_nulls(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members without those that are null: null stands for a member that is absent."""
    return {name: value for name, value in members.items() if value is not None}


def result_frame(identity: Id, result: Any) -> Frame:
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def error_frame(identity: Id, error: RpcError) -> Frame:
    members: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        members["data"] = error.data
    return {"jsonrpc": "2.0", "id": identity, "error": members}


def request_frame(method: str, params: Any, identity: Id = None) -> Frame:
    """A request; without ``identity`` a notification."""
    frame = {"jsonrpc": "2.0", "method": method, "params": params}
    return frame if identity is None else {**frame, "id": identity}


def encode_frame(frame: Frame | list[Frame]) -> bytes:
    """The line. Raises ``ValueError`` for what JSON cannot hold, or where it would be too long."""
    try:
        text = _ENCODER.encode(frame)
    except (TypeError, RecursionError) as e:
        raise ValueError(str(e)) from None
    if len(text) >= MAX_LINE:
        raise ValueError(f"it has more than {MAX_LINE} bytes")
    return text.encode("ascii") + b"\n"


def encode_reply(frame: Frame) -> bytes:
    """The line of a reply; where it cannot be written, of an error that says so."""
    try:
        return encode_frame(frame)
    except ValueError as e:
        error = RpcError(INTERNAL_ERROR, data=f"the result cannot be written as JSON: {e}"[:300])
        return encode_frame(error_frame(frame["id"], error))


def answer_line(line: bytes, handle: Callable[[Request], Any]) -> bytes | None:
    """A server's answer to a line: one reply, a batch of them, or None.

    ``handle`` gives a request's result or raises ``RpcError``; anything else it raises is an internal error.
    """
    message = parse_line(line)
    if not isinstance(message, list):
        return _answer_message(message, handle)
    replies = [reply for m in message if (reply := _answer_message(m, handle)) is not None]
    return b"[" + b",".join(r.rstrip(b"\n") for r in replies) + b"]\n" if replies else None


def _answer_message(message: Message, handle: Callable[[Request], Any]) -> bytes | None:
    if isinstance(message, Response):
        return None  # nothing was asked; answering an answer would never end
    if isinstance(message, Invalid):
        return encode_reply(error_frame(message.id, message.error))
    try:
        frame = result_frame(message.id, handle(message))
    except RpcError as e:
        frame = error_frame(message.id, e)
    except Exception as e:  # noqa: BLE001  (a fault of ours is told to the client, and the next request is served)
        frame = error_frame(message.id, RpcError(INTERNAL_ERROR, data={"type": type(e).__name__, "message": str(e)}))
    return None if message.notification else encode_reply(frame)


class _NoNumber(ValueError):
    """What stands for a number is none that can be taken."""


def _refuse_constant(text: str) -> float:
    raise _NoNumber(f"{text} is not JSON")


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NoNumber(f"{text[:40]} is too large")
    return number


# Made once: the functions of ``json`` make one at each call that has options.
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_float)
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def serve_lines(source: BinaryIO, sink: BinaryIO, handle: Callable[[Request], Any]) -> None:
    """Answer line by line, until the end of ``source`` or until nobody reads ``sink``."""
    while True:
        try:
            line = read_line(source)
            reply = answer_line(line, handle) if line is not None else None
        except RpcError as e:
            line, reply = b"\n", encode_frame(error_frame(None, e))
        except OSError:
            return
        if line is None:
            return
        if reply is not None:
            try:
                sink.write(reply)
                sink.flush()
            except (OSError, ValueError):
                return
