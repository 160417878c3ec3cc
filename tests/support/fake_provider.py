"""A provider of language models on this machine: a real HTTP server that speaks the wire protocols of two of them.

``POST /v1/messages`` is Anthropic's, ``POST /v1/chat/completions`` is OpenAI's (and OpenRouter's), each plain or as a
stream, as the request asks. A test says what is answered, in order, and reads afterwards what was sent::

    with FakeProvider() as provider:
        provider.script(Reply("Good morning."), too_many_requests(retry_after=2), Reply(calls=(Call("look", {}),)))
        ...
        provider.requests[0].body["messages"]
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from patience import PATIENCE

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call. ``arguments`` as a text goes out as it is, so that it may be no JSON."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""


@dataclass(frozen=True)
class Reply:
    """One answer. ``cut_after``: bytes of the body, after which the connection is cut. ``delay``: seconds before each
    part. ``raw`` is sent instead of everything else. ``cost``: dollars, as OpenRouter says them. ``hold``: an event
    that is waited for before the answer begins."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 0
    cost: float | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    cut_after: int | None = None
    delay: float = 0.0
    hold: threading.Event | None = None
    stop_reason: str = ""
    kind: str = ""
    """Of an error: its type in Anthropic's words."""
    code: str = ""
    """Of an error: its code in OpenAI's words."""


def an_error(status: int, kind: str, message: str, *, code: str = "", **headers: str) -> Reply:
    """A refusal in the provider's own form."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(message, status=status, kind=kind, code=code, headers=named)


def bad_key() -> Reply:
    """401: the key is wrong."""
    return an_error(401, "authentication_error", "invalid x-api-key", code="invalid_api_key")


def too_many_requests(retry_after: float | None = None) -> Reply:
    """429, with the seconds to wait where they are given."""
    headers = {} if retry_after is None else {"retry_after": f"{retry_after:g}"}
    return an_error(429, "rate_limit_error", "slow down", code="rate_limit_exceeded", **headers)


def overloaded(status: int = 529) -> Reply:
    """A 5xx."""
    return an_error(status, "overloaded_error" if status == 529 else "api_error", "Overloaded")


def context_too_long() -> Reply:
    """400: the messages do not fit into the model's window."""
    message = "prompt is too long: 250000 tokens > 200000 maximum"
    return an_error(400, "invalid_request_error", message, code="context_length_exceeded")


def no_such_model() -> Reply:
    """404: the model's name is wrong."""
    return an_error(404, "not_found_error", "model: no-such-model", code="model_not_found")


def huge(size: int = 10_000_000) -> Reply:
    """An answer of ten megabytes."""
    return Reply("ha" * (size // 2))


@dataclass(frozen=True)
class Request:
    """What the provider got. ``body`` is the JSON; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Json

    @property
    def marks(self) -> list[str]:
        """Where marks for the provider's cache are: ``system``, ``tools``, ``request``, ``messages.N``."""
        return [path for path, holder in self._holders() if "cache_control" in json.dumps(holder)]

    def _holders(self) -> Iterator[tuple[str, Any]]:
        yield "request", {key: value for key, value in self.body.items() if key == "cache_control"}
        yield "system", self.body.get("system")
        yield "tools", self.body.get("tools")
        for number, message in enumerate(self.body.get("messages", ())):
            yield f"messages.{number}", message

    @property
    def text(self) -> str:
        """The whole body, for a look at what left the machine."""
        return json.dumps(self.body, ensure_ascii=False)


Answer = Reply | Callable[[Request], Reply]


class FakeProvider:
    """Answers are given in order; the last of ``always`` is given whenever there is no other."""

    def __init__(self, always: Answer | None = None) -> None:
        self.requests: list[Request] = []
        self._answers: list[Answer] = []
        self._always = always
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.provider = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeProvider:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server; what a connection still waits for is let go."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def anthropic_url(self) -> str:
        """For ``llm.base_url`` with ``provider: anthropic``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """For ``llm.base_url`` with ``provider: openai`` or ``openrouter``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *answers: Answer | str) -> None:
        """Answer so, in this order, after what was scripted before. A text is a ``Reply`` of it."""
        with self._lock:
            self._answers += [Reply(answer) if isinstance(answer, str) else answer for answer in answers]

    @property
    def left(self) -> int:
        """How many answers nobody has asked for yet."""
        return len(self._answers)

    def take_answer(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            answer = self._answers.pop(0) if self._answers else self._always
        if answer is None:
            return an_error(400, "invalid_request_error", "the test has scripted no further answer")
        return answer if isinstance(answer, Reply) else answer(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    provider: FakeProvider

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        reply = self.server.provider.take_answer(request)
        if reply.hold is not None:
            reply.hold.wait(PATIENCE)
        is_anthropic = self.path.partition("?")[0].endswith("/messages")
        if reply.raw is not None:
            self._send_parts(reply, "application/json", [reply.raw])
        elif reply.status >= 400:
            self._send_parts(reply, "application/json", [_dump(_error_body(reply, is_anthropic))])
        elif body.get("stream"):
            events = _anthropic_events(reply, body) if is_anthropic else _openai_events(reply, body)
            self._send_parts(reply, "text/event-stream", list(events))
        else:
            whole = _anthropic_message(reply, body) if is_anthropic else _openai_completion(reply, body)
            self._send_parts(reply, "application/json", [_dump(whole)])

    def _send_parts(self, reply: Reply, content_type: str, parts: list[bytes]) -> None:
        self.send_response(reply.status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(sum(map(len, parts))))
        self.send_header("connection", "close")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        left = reply.cut_after
        for part in parts:
            if reply.delay:
                time.sleep(reply.delay)
            if left is not None:
                part, left = part[:left], left - len(part)
            self.wfile.write(part)
            self.wfile.flush()
            if left is not None and left <= 0:
                break
        self.close_connection = True


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _event(value: Any, name: str = "") -> bytes:
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + _dump(value) + b"\n\n"


def _error_body(reply: Reply, is_anthropic: bool) -> Json:
    if is_anthropic:
        return {"type": "error", "error": {"type": reply.kind, "message": reply.text}, "request_id": "req_1"}
    return {"error": {"message": reply.text, "type": reply.kind, "code": reply.code or None, "param": None}}


def _numbered(reply: Reply) -> Iterator[tuple[str, Call]]:
    for number, call in enumerate(reply.calls):
        yield call.id or f"call_{number}_{call.name}", call


def _arguments(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


# --- Anthropic -------------------------------------------------------------------------------------------------------


def _anthropic_usage(reply: Reply) -> Json:
    return {
        "input_tokens": reply.input_tokens - reply.cached_tokens,
        "output_tokens": reply.output_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": 0,
    }


def _anthropic_blocks(reply: Reply) -> list[Json]:
    blocks: list[Json] = [{"type": "text", "text": reply.text}] if reply.text or not reply.calls else []
    for id_, call in _numbered(reply):
        arguments: Any = call.arguments
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                pass  # goes out as a text, which is no object either
        blocks.append({"type": "tool_use", "id": id_, "name": call.name, "input": arguments})
    return blocks


def _anthropic_message(reply: Reply, asked: Json) -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", ""),
        "content": _anthropic_blocks(reply),
        "stop_sequence": None,
        "stop_reason": reply.stop_reason or ("tool_use" if reply.calls else "end_turn"),
        "usage": _anthropic_usage(reply),
    }


def _anthropic_events(reply: Reply, asked: Json) -> Iterator[bytes]:
    whole = _anthropic_message(reply, asked)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield _event({"type": "message_start", "message": begun}, "message_start")
    texts = [("text_delta", "text", reply.text)] if reply.text or not reply.calls else []
    deltas = texts + [("input_json_delta", "partial_json", _arguments(call)) for call in reply.calls]
    for index, (block, (kind, key, text)) in enumerate(zip(whole["content"], deltas, strict=True)):
        empty = {**block, **({"text": ""} if kind == "text_delta" else {"input": {}})}
        yield _event({"type": "content_block_start", "index": index, "content_block": empty}, "content_block_start")
        for piece in _pieces(text):
            delta = {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}}
            yield _event(delta, "content_block_delta")
        yield _event({"type": "content_block_stop", "index": index}, "content_block_stop")
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": whole["usage"]}, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")


# --- OpenAI ----------------------------------------------------------------------------------------------------------


def _openai_usage(reply: Reply) -> Json:
    usage: Json = {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }
    if reply.cost is not None:
        usage["cost"] = reply.cost
    return usage


def _openai_calls(reply: Reply) -> list[Json]:
    return [
        {"id": id_, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
        for id_, call in _numbered(reply)
    ]


def _openai_completion(reply: Reply, asked: Json) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = _openai_calls(reply)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": asked.get("model", ""),
        "provider": "Fake",
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "native_finish_reason": "stop",
                "finish_reason": reply.stop_reason or ("tool_calls" if reply.calls else "stop"),
            }
        ],
        "usage": _openai_usage(reply),
    }


def _openai_events(reply: Reply, asked: Json) -> Iterator[bytes]:
    whole = _openai_completion(reply, asked)
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": whole["model"],
        "provider": "Fake",
    }

    def chunk(delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "native_finish_reason": reason, "logprobs": None}
        return _event({**head, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(_openai_calls(reply)):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield chunk({"tool_calls": [{**call, "index": index, "function": function}]})
        for piece in _pieces(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, whole["choices"][0]["finish_reason"])
    if (asked.get("stream_options") or asked.get("usage") or {}).get("include_usage") or asked.get("usage"):
        yield _event({**head, "choices": [], "usage": whole["usage"]})
    yield b"data: [DONE]\n\n"


def _pieces(text: str) -> Iterator[str]:
    size = max(1, len(text) // 4 + 1) if len(text) < 4_000 else 65_536
    yield from (text[at : at + size] for at in range(0, len(text), size))
