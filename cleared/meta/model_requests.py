"""One request to the model, streamed, through pydantic-ai: nothing of its agent's own loop is used.

The agent gives the door's capabilities (retries, records, caps) and the provider's wire format; which calls are made
and what is remembered is decided by ``session_loop``.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from cleared.base.errors import CheckFailed, ClearedError
from cleared.llm.failures import ModelFailed
from cleared.meta.context_window import limit_images
from cleared.meta.tools.tool import Tool, shorten_schema

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse


MAX_REPLY_CHARACTERS: Final = 512 << 10
"""A longer reply is broken off; ``max_tokens`` of a well-behaved provider ends it far earlier."""
_CACHE_MARKED: Final = 2

ShowText = Callable[[str], None]
"""Takes each piece of the reply's text as it comes."""


class Door(Protocol):
    """What is used of ``cleared.llm.model_door.ModelDoor``."""

    @property
    def model(self) -> Any: ...

    def capabilities(self) -> list[Any]: ...

    def settings(self) -> Any: ...

    @property
    def marks_messages(self) -> bool: ...

    def cache_settings(self) -> dict[str, Any]: ...

    async def wait_to_retry(self, error: BaseException, attempt: int) -> bool: ...

    def explain_failure(self, error: BaseException) -> ClearedError | None: ...


class ContextTooLong(CheckFailed):
    """The model does not take a request of this length."""


class RequestCancelled(Exception):
    """``ModelRequests.cancel`` was called while the model spoke."""


class _ReplyTooLong(Exception):
    """Leaves the stream of a reply that does not end."""


class _ShowFailed(Exception):
    """What takes the text raised ``cause``, such as a closed pipe; that is nothing of the model's."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class ModelRequests:
    """Requests of one session, all on one event loop of its own. Not for use inside another running loop."""

    def __init__(self, door: Door, tools: Mapping[str, Tool], system_prompt: str) -> None:
        self._door, self._system_prompt = door, system_prompt
        self._definitions = [_define_tool(tool) for tool in tools.values()]
        self._runner: asyncio.Runner | None = None
        self._agent: Any = None
        self._task: asyncio.Task[Any] | None = None

    def ask(self, messages: Sequence[ModelMessage], max_images: int, show_text: ShowText) -> ModelResponse:
        """The model's next reply to these messages.

        Raises ``ContextTooLong``, ``RequestCancelled``, ``KeyboardInterrupt``, and as the door does ``ModelFailed`` and
        ``SpendingStopped``.
        """
        if self._agent is None:
            self._agent = self._make_agent(self._system_prompt, self._definitions)
        limited, _ = limit_images(messages, max_images)
        prepared = mark_for_cache(limited, marked=self._door.marks_messages)
        settings = {**self._door.settings(), **self._door.cache_settings()}
        return self._run(self._agent, prepared, settings, show_text)

    def summarize(self, system: str, text: str, max_tokens: int) -> ModelResponse:
        """A reply without tools, outside of the conversation. Raises as ``ask`` does."""
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        agent = self._make_agent(system, [])
        settings = {**self._door.settings(), "max_tokens": max_tokens}
        return self._run(agent, [ModelRequest(parts=[UserPromptPart(text)])], settings, lambda _: None)

    def cancel(self) -> None:
        """End the request that runs now, from another thread."""
        task = self._task
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _make_agent(self, system: str, definitions: list[Any]) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.toolsets import ExternalToolset

        toolsets = [ExternalToolset(definitions)] if definitions else []
        return Agent(
            self._door.model,
            instructions=system,
            toolsets=toolsets,
            capabilities=self._door.capabilities(),
            name="cleared-session",
        )

    def _run(self, agent: Any, messages: list[ModelMessage], settings: Any, show_text: ShowText) -> ModelResponse:
        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            return self._runner.run(self._stream(agent, messages, settings, show_text))
        except asyncio.CancelledError:
            raise RequestCancelled from None
        except _ShowFailed as error:
            raise error.cause from None
        except Exception as error:
            refusal = self._door.explain_failure(error)
            if refusal is None:
                raise
            if isinstance(refusal, ModelFailed) and refusal.kind == "context_length":
                raise ContextTooLong(refusal.message, remedy=refusal.remedy) from error
            raise refusal from error

    async def _stream(
        self, agent: Any, messages: list[ModelMessage], settings: Any, show_text: ShowText
    ) -> ModelResponse:
        self._task = asyncio.current_task()
        attempt = 1
        try:
            while True:
                progress = _Progress(show_text)
                try:
                    return await self._stream_once(agent, messages, settings, progress)
                except (ClearedError, _ShowFailed):
                    raise
                except Exception as error:
                    # A request that does not begin is sent again by the door's own capability.
                    if not progress.has_begun or not await self._door.wait_to_retry(error, attempt):
                        raise
                attempt += 1
                if progress.has_shown:
                    progress.show("\n")
        finally:
            self._task = None

    async def _stream_once(
        self, agent: Any, messages: list[ModelMessage], settings: Any, progress: _Progress
    ) -> ModelResponse:
        async with agent.iter(None, message_history=messages, model_settings=settings) as run:
            node = run.next_node
            while not agent.is_model_request_node(node):
                node = await run.next(node)
            return await _read_stream(node, run, progress)


class _Progress:
    """How far a reply got."""

    def __init__(self, show_text: ShowText) -> None:
        self._show_text = show_text
        self.has_begun = self.has_shown = False

    def show(self, text: str) -> None:
        self.has_shown = True
        try:
            self._show_text(text)
        except Exception as error:
            raise _ShowFailed(error) from error


async def _read_stream(node: Any, run: Any, progress: _Progress) -> ModelResponse:
    from pydantic_ai.messages import ModelResponse

    size = 0
    partial: ModelResponse | None = None
    try:
        async with node.stream(run.ctx) as stream:
            async for event in stream:
                text, length = _read_event(event)
                size += length
                if size > MAX_REPLY_CHARACTERS:
                    partial = stream.response
                    raise _ReplyTooLong
                progress.has_begun = True
                if text:
                    progress.show(text)
    except _ReplyTooLong:
        assert partial is not None
        return dataclasses.replace(partial, finish_reason="length")
    reply = run.all_messages()[-1]
    if not isinstance(reply, ModelResponse):
        raise ModelFailed("garbage", "the model gave no reply", "Resume the session.")
    return reply


def _read_event(event: Any) -> tuple[str, int]:
    """Text for the user, and how many characters came with this event."""
    source = {"part_start": "part", "part_delta": "delta"}.get(getattr(event, "event_kind", ""))
    if source is None:
        return "", 0
    piece = getattr(event, source)
    text = getattr(piece, "content", None) or getattr(piece, "content_delta", None) or ""
    arguments = getattr(piece, "args", None) or getattr(piece, "args_delta", None) or ""
    text = text if isinstance(text, str) else ""
    is_text = "text" in (getattr(piece, "part_kind", ""), getattr(piece, "part_delta_kind", ""))
    return text if is_text else "", len(text) + len(arguments if isinstance(arguments, str) else str(arguments))


def mark_for_cache(messages: Sequence[ModelMessage], *, marked: bool) -> list[ModelMessage]:
    """Copies of the messages that the framework may change; the last two requests end with a mark for the cache."""
    from pydantic_ai.messages import CachePoint, ModelRequest, UserPromptPart

    prepared, left = list(messages), _CACHE_MARKED if marked else 0
    for at in range(len(prepared) - 1, -1, -1):
        message = prepared[at]
        if isinstance(message, ModelRequest) and (left or at == len(prepared) - 1):
            parts = [*message.parts, UserPromptPart([CachePoint()])] if left else list(message.parts)
            prepared[at] = dataclasses.replace(message, parts=parts)
            left = max(0, left - 1)
        if not left:
            break
    return prepared


def _define_tool(tool: Tool) -> Any:
    from pydantic_ai import ToolDefinition

    schema = shorten_schema(tool.parameters)
    return ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=schema)
