"""Sessions with a scripted model and tools that keep what they did on the disk, so that a killed one can go on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness import Workspace
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from cleared.base.clock import FixedClock
from cleared.base.errors import ClearedError
from cleared.changes.workspace_opening import open_workspace
from cleared.llm.api_keys import ModelChoice
from cleared.llm.failures import explain_failure
from cleared.meta.context_window import Limits
from cleared.meta.session_loop import LoopLimits, Outcome, SessionLoop
from cleared.meta.session_store import SessionStore, create_session
from cleared.meta.tools.overlay import Overlay
from cleared.meta.tools.tool import Evidence, Tool, ToolResult, make_schema
from cleared.meta.tools.tool_set import open_tool_set
from cleared.workspace.settings.secrets import Redactor

NOW = datetime(2025, 2, 1, 6, tzinfo=UTC)
Reply = str | list[tuple[str, Any]]
"""What a scripted model says: a text, or calls as (tool, arguments)."""


@dataclass
class DiskTools:
    """Tools over one JSON file: ``write`` and ``propose`` act, and count how often they did."""

    path: Path
    big: int = 40
    """Characters that ``read`` gives."""
    fail: Callable[[str], None] = lambda name: None
    called: list[tuple[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        schema = make_schema(name={"type": "string"})
        self.tools: Mapping[str, Tool] = {
            name: Tool(name, f"the tool {name}", schema, lambda _: "", acts=name in ("write", "propose"))
            for name in ("read", "write", "propose")
        }

    @property
    def state(self) -> dict[str, Any]:
        return json.loads(self.path.read_text()) if self.path.exists() else {"writes": [], "proposals": []}

    def call(self, name: str, arguments: Any) -> ToolResult:
        self.called.append((name, arguments))
        if name not in self.tools:
            return ToolResult(f"[invalid call] There is no tool {name!r}.", "invalid")
        state = self.state
        if name == "write":
            state["writes"].append(arguments.get("name", ""))
        elif name == "propose":
            state["proposals"].append(len(state["writes"]))
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(state))
        temporary.replace(self.path)
        self.fail(name)
        if name == "propose":
            return ToolResult(f"proposed as P{len(state['proposals'])}")
        return ToolResult("written" if name == "write" else f"{arguments.get('name', '')}: " + "x" * self.big)

    def initial_state(self) -> str:
        return "agents/ingest.py"

    def draft_state(self) -> str:
        return json.dumps(self.state["writes"])

    def evidence(self) -> Evidence:
        state = self.state
        if not state["writes"]:
            return Evidence("nothing_written")
        paths = tuple(state["writes"])
        if state["proposals"] and state["proposals"][-1] == len(paths):
            return Evidence("proposed", f"P{len(state['proposals'])}", (), paths)
        return Evidence("blocked", None, ("agents/a.py:3: import is not allowed. Remove it.",), paths)


@dataclass
class FakeDoor:
    """A door to a model function. ``replies`` is asked with the messages of each request."""

    answer: Callable[[list[ModelMessage], AgentInfo], Reply]
    spent: Decimal = Decimal(0)
    price: Decimal = Decimal("0.01")
    requests: list[tuple[list[ModelMessage], AgentInfo]] = field(default_factory=list)

    def __post_init__(self) -> None:
        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            self.requests.append((messages, info))
            self.spent += self.price
            reply = self.answer(messages, info)
            if isinstance(reply, str):
                if not reply:
                    yield ""
                for at in range(0, len(reply), 1 + len(reply) // 4):
                    yield reply[at : at + 1 + len(reply) // 4]
                return
            for number, (tool, arguments) in enumerate(reply):
                text = arguments if isinstance(arguments, str) else json.dumps(arguments)
                yield {number: DeltaToolCall(name=tool, json_args=text, tool_call_id=f"c{number}")}

        self.model = FunctionModel(stream_function=stream)

    def capabilities(self) -> list[Any]:
        return []

    def explain_failure(self, error: BaseException) -> ClearedError | None:
        return explain_failure(error, ModelChoice("openai", "function", None), Redactor(()))

    def settings(self) -> dict[str, Any]:
        return {"max_tokens": 1000}

    marks_messages = False

    def cache_settings(self) -> dict[str, Any]:
        return {}

    async def wait_to_retry(self, error: BaseException, attempt: int) -> bool:
        return False


def play(*replies: Reply) -> Callable[[list[ModelMessage], AgentInfo], Reply]:
    """A model that says these, one after the other, then repeats the last."""
    left = list(replies)
    return lambda messages, info: left.pop(0) if len(left) > 1 else left[0]


def last_text(messages: list[ModelMessage]) -> str:
    """The last thing that a model reads."""
    part = messages[-1].parts[-1]
    return part.content if isinstance(part.content, str) else str(part.content)


def open_loop(
    store: SessionStore,
    door: FakeDoor,
    tools: DiskTools,
    *,
    events: list[dict[str, Any]] | None = None,
    window: int = 200_000,
    max_iterations: int = 200,
    **rest: Any,
) -> SessionLoop:
    limits = LoopLimits(Limits(window, **rest.pop("context", {})), max_iterations)
    if events is not None:
        rest["emit"] = events.append
    return SessionLoop(store, door, tools, limits=limits, clock=FixedClock(NOW), **rest)


def new_store(folder: Path, request: str = "Batch my notifications") -> SessionStore:
    return create_session(
        folder / ".cleared", request=request, author="chat", clock=FixedClock(NOW), system_prompt="You write agents."
    )


def start_session(ws: Workspace, request: str) -> SessionStore:
    """A session in a whole workspace, for ``work_on``."""
    host = open_workspace(ws.root)
    return create_session(
        host.layout.state_dir, request=request, author="chat", clock=FixedClock(NOW), system_prompt="You write agents."
    )


def work_on(ws: Workspace, store: SessionStore, door: FakeDoor, **options: Any) -> Outcome:
    """Run the session as a command does, on everything real but the model."""
    host = open_workspace(ws.root)
    with ExitStack() as stack:
        tools = open_tool_set(host, Overlay(store.overlay), session_id=store.info.id, author="chat")
        stack.callback(tools.close)
        limits = LoopLimits(Limits(200_000))
        loop = stack.enter_context(SessionLoop(store, door, tools, limits=limits, clock=FixedClock(NOW), **options))
        return loop.run(None)
