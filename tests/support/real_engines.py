"""Today's real engines against APIs of this machine: Claude Code and Codex, as their packages on PyPI bundle them."""

from __future__ import annotations

import importlib.util
import json
import os
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fake_provider import Call, FakeProvider, Reply, Request

PACKAGES = {
    "claude": ("claude_agent_sdk", "_bundled/claude", "claude-agent-sdk"),
    "codex": ("codex_cli_bin", "bin/codex", "openai-codex-cli-bin"),
}
CODEX_CONFIG = """model_provider = "fake"
model = "gpt-5"
[model_providers.fake]
name = "fake"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
stream_max_retries = 2
"""

Work = Callable[[str], str]
"""What an engine is told to run for all that it has sent; empty: it says that it is done."""


def locate_engine(name: str) -> Path | None:
    """Its program: the one that CLEARED_REAL_CLAUDE or CLEARED_REAL_CODEX names, else that of its package."""
    module, path, _ = PACKAGES[name]
    spec = importlib.util.find_spec(module)
    bundled = Path(spec.origin).parent / path if spec is not None and spec.origin is not None else None
    named = os.environ.get(f"CLEARED_REAL_{name.upper()}")
    found = Path(named) if named else bundled
    return found if found is not None and found.is_file() else None


def find_engine(name: str) -> Path:
    """The same; the test is skipped where there is none."""
    found = locate_engine(name)
    if found is None:
        pytest.skip(f"the real engine is not installed: pip install --no-deps {PACKAGES[name][2]}")
    return found


def play_claude(work: Work) -> FakeProvider:
    """Anthropic's API: one command of ``work`` for each run of the engine, then the end."""

    def answer(request: Request) -> Reply:
        if not request.body.get("tools"):
            return Reply("A title.")
        if "tool_result" in json.dumps(request.body["messages"][-1]):
            return Reply("All done.")
        command = work(request.text)
        return Reply(calls=(Call("Bash", {"command": command, "description": "Work"}),)) if command else Reply("Done.")

    return FakeProvider(answer)


class CodexApi:
    """OpenAI's responses API, likewise. ``drops``: so many streams are cut before they are complete."""

    def __init__(self, work: Work, drops: int = 0) -> None:
        self.work, self.drops_left = work, drops
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_CodexHandler,), {"api": self}))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def list_events(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """What is answered to a request."""
        is_done = any("_output" in str(item.get("type")) for item in body["input"])
        command = "" if is_done else self.work(json.dumps(body, ensure_ascii=False))
        message = {
            "type": "message",
            "role": "assistant",
            "id": "m",
            "content": [{"type": "output_text", "text": "Done."}],
        }
        arguments = json.dumps({"cmd": command})
        call = {"type": "function_call", "id": "f", "call_id": "c", "name": "exec_command", "arguments": arguments}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": call if command else message},
            {"type": "response.completed", "response": {"id": "r", "usage": usage}},
        ]
        if self.drops_left:
            self.drops_left -= 1
            return events[:1]
        return events


class _CodexHandler(BaseHTTPRequestHandler):
    api: CodexApi

    def do_GET(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        events = self.api.list_events(body)
        data = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""
