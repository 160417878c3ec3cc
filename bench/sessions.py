"""What the loop of a session costs a turn, on top of asking the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from bench.measure import Result, interleave, seconds
from bench.workspaces import place
from cleared.base.clock import FixedClock
from cleared.base.errors import ClearedError
from cleared.meta.context_window import Limits
from cleared.meta.session_history import read_history
from cleared.meta.session_loop import LoopLimits, SessionLoop
from cleared.meta.session_store import create_session
from cleared.meta.tools.tool import Evidence, Tool, ToolResult, make_schema

STEPS = 100
"""Each a reply with a call, and its result: 200 messages."""
TURNS = 10
SYSTEM = "You write agents. " * 400
RESULT = "a line of a file\n" * 100
CLOCK = FixedClock(datetime(2025, 2, 1, 6, tzinfo=UTC))


class _Tools:
    """One tool that gives a page of text."""

    tools = {"read": Tool("read", "Reads.", make_schema(name={"type": "string"}), lambda _: "")}  # noqa: RUF012

    def call(self, name: str, arguments: Any) -> ToolResult:
        return ToolResult(f"{arguments['name']}\n{RESULT}")

    def initial_state(self) -> str:
        return "agents/ingest.py"

    def draft_state(self) -> str:
        return ""

    def evidence(self) -> Evidence:
        return Evidence("nothing_written")


class _Door:
    """A model that reads another file each time, without a provider."""

    spent = Decimal(0)
    marks_messages = False

    def __init__(self) -> None:
        from pydantic_ai.models.function import DeltaToolCall, FunctionModel

        turn = [0]

        async def stream(messages: Any, info: Any) -> Any:
            turn[0] += 1
            yield {0: DeltaToolCall(name="read", json_args=f'{{"name": "{turn[0]}"}}', tool_call_id=f"t{turn[0]}")}

        self.model = FunctionModel(stream_function=stream)

    def capabilities(self) -> list[Any]:
        return []

    def settings(self) -> dict[str, Any]:
        return {}

    def cache_settings(self) -> dict[str, Any]:
        return {}

    async def wait_to_retry(self, error: BaseException, attempt: int) -> bool:
        return False

    def explain_failure(self, error: BaseException) -> ClearedError | None:
        return None


def session_turn(quick: bool) -> Result:
    """Turns at 200 messages and more: the loop with its records and events, beside pydantic-ai's bare requests."""
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

    def fill(record: Callable[[ModelResponse, ToolReturnPart], None]) -> None:
        for number in range(STEPS):
            call = ToolCallPart("read", {"name": str(number)}, f"c{number}")
            record(ModelResponse([call]), ToolReturnPart("read", f"{number}\n{RESULT}", call.tool_call_id))

    def ours() -> Callable[[], object]:
        store = create_session(place(), request="Go on", author="bench", clock=CLOCK, system_prompt=SYSTEM)
        history = read_history(store)
        history.record_prompt("instruction", ["Go on"])

        def record(reply: ModelResponse, result: ToolReturnPart) -> None:
            history.record_reply(reply, fault=None, text=None, cost=Decimal(0))
            history.record_result(result, None)

        fill(record)
        store.close()
        limits = LoopLimits(Limits(1_000_000), STEPS + TURNS)
        loop = SessionLoop(store, _Door(), _Tools(), limits=limits, clock=CLOCK, emit=lambda _: None)

        def act() -> None:
            assert loop.run(None).reason == "max_iterations"
            loop.close()

        return act

    def bare() -> Callable[[], object]:
        from pydantic_ai import Agent, ToolDefinition
        from pydantic_ai.toolsets import ExternalToolset

        definition = ToolDefinition(
            name="read", description="Reads.", parameters_json_schema=make_schema(name={"type": "string"})
        )
        agent: Any = Agent(_Door().model, instructions=SYSTEM, toolsets=[ExternalToolset([definition])])
        messages: list[ModelMessage] = [ModelRequest.user_text_prompt("Go on")]
        fill(lambda reply, result: messages.extend([reply, ModelRequest([result])]))

        async def ask() -> Any:
            async with agent.iter(None, message_history=messages) as run:
                node = run.next_node
                while not agent.is_model_request_node(node):
                    node = await run.next(node)
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass
                return run.all_messages()[-1]

        def act() -> None:
            with asyncio.Runner() as runner:
                for _ in range(TURNS):
                    reply = runner.run(ask())
                    call = reply.parts[0]
                    messages.extend([reply, ModelRequest([ToolReturnPart("read", RESULT, call.tool_call_id)])])

        return act

    whole, baseline = interleave(ours, bare, 3 if quick else 15)
    own = (whole - baseline) / TURNS
    ratio = whole / baseline
    return Result(
        "session_turn",
        seconds(whole / TURNS),
        seconds(baseline / TURNS),
        ratio,
        "≤ 1.5×",
        ratio <= 1.5,
        f"a turn at {2 * STEPS} messages; of it the loop's own {seconds(max(own, 0.0))} (5 ms allowed)",
    )
