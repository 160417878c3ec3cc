"""What is added to pydantic-ai's requests: trying again. Imports pydantic-ai."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import ModelResponse
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
