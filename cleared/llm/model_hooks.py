"""What is added to pydantic-ai's requests: trying again, and marks for the provider's cache. Imports pydantic-ai."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import CachePoint, ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import ModelRequestContext

from cleared.llm.failures import name_failure
from cleared.llm.retries import RetryPolicy, Sleep


@dataclass
class RetryPassingFailures(AbstractCapability[Any]):
    """H13: a call that failed for a passing reason is sent again after a pause; every other failure is raised."""

    policy: RetryPolicy
    sleep: Sleep
    show_message: Callable[[str], None]

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Wait and have it sent again, or raise ``error``."""
        pause = self.policy.next_pause(error, request_context.attempt)
        if pause is None:
            raise error
        self.show_message(f"the model: {str(name_failure(error)).replace('_', ' ')}; trying again in {pause:g} s")
        await self.sleep(pause)
        raise RetryModelRequest


@dataclass
class MarkForCache(AbstractCapability[Any]):
    """H10: the last two messages that are sent are marked; the marks are in no history."""

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The request with its marks."""
        return replace(request_context, messages=mark_last_messages(request_context.messages))


def mark_last_messages(messages: list[ModelMessage], most: int = 2) -> list[ModelMessage]:
    """A copy in which the last ``most`` requests end in a mark. (An answer of the model's takes none.)"""
    marked = list(messages)
    left = most
    for position in range(len(marked) - 1, -1, -1):
        message = marked[position]
        if left and isinstance(message, ModelRequest) and message.parts:
            marked[position] = replace(message, parts=[*message.parts, UserPromptPart([CachePoint()])])
            left -= 1
    return marked
