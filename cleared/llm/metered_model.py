"""A model whose every call is recorded before and after, and held to the budgets. Imports pydantic-ai."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from pydantic_ai import RunContext
from pydantic_ai.exceptions import (
    CostCalculationFailedWarning,
    CostNotFoundWarning,
    ModelAPIError,
    ModelConnectionError,
    UsageExtractionFailedWarning,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from cleared.llm.failures import name_failure
from cleared.llm.prices import TokenCount, count_tokens, read_reported_cost
from cleared.llm.spending import Spending

_CHARS_PER_TOKEN: Final = 4
_TOKENS_PER_TOOL: Final = 150
_TOKENS_PER_FILE: Final = 1_500
_OF_NO_USE: Final = (CostNotFoundWarning, CostCalculationFailedWarning, UsageExtractionFailedWarning)
"""Warnings about what is done here: tokens and costs are counted and checked."""
_MISREAD: Final = (TypeError, AttributeError, LookupError, ValueError, AssertionError, RecursionError)
_CERTAINLY_FREE: Final = frozenset(
    {
        "authentication",
        "not_found",
        "rate_limit",
        "quota",
        "context_length",
        "unavailable",
        "rejected",
        "wrong_setting",
    }
)
"""Failures after which a provider charges nothing: it said no before it began."""


class MeteredModel(WrapperModel):
    """Each request, each attempt of one too, is one row in the store. Requests raise ``SpendingStopped``."""

    def __init__(self, wrapped: Model, spending: Spending, *, is_remote: bool = True) -> None:
        """``is_remote``: answers come from a provider, so that what they break in reading is the provider's fault."""
        super().__init__(wrapped)
        for category in _OF_NO_USE:
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)  # of wrong counts
        self.spending = spending
        self._misread: tuple[type[Exception], ...] = _MISREAD if is_remote else ()

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        tokens = estimate_tokens(messages, model_request_parameters)
        number = self.spending.begin_call(tokens)
        try:
            with self._blame_provider():
                response = await super().request(messages, model_settings, model_request_parameters)
        except BaseException as error:
            self._end_failed(number, tokens, error, None)
            raise
        self._end_answered(number, tokens, response)
        return mend_arguments(response)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        tokens = estimate_tokens(messages, model_request_parameters)
        number = self.spending.begin_call(tokens)
        stream: StreamedResponse | None = None
        try:
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as stream:
                with self._blame_provider():
                    yield stream
        except BaseException as error:
            self._end_failed(number, tokens, error, stream.get() if stream is not None else None)
            raise
        self._end_answered(number, tokens, stream.get())

    @contextmanager
    def _blame_provider(self) -> Iterator[None]:
        """An answer of a wrong form breaks the packages that read it in many ways; to a caller it is one."""
        try:
            yield
        except self._misread as error:
            raise ModelAPIError(self.model_name, f"{type(error).__name__} while reading it") from error

    def _end_answered(self, number: int, estimate: int, response: ModelResponse) -> None:
        tokens = count_tokens(response.usage)
        reported = read_reported_cost(response.provider_details)
        if reported is None and not (tokens.input_tokens or tokens.output_tokens):
            # A server that counts nothing does not work for nothing.
            tokens = TokenCount(estimate, _count_text(response.parts))
        cost = self.spending.price.calculate_cost(tokens) if reported is None else reported
        self.spending.end_call(number, tokens, cost, "ok")

    def _end_failed(self, number: int, estimate: int, error: BaseException, partial: ModelResponse | None) -> None:
        kind = name_failure(error)
        outcome = kind or ("cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "error")
        unsent = isinstance(error, ModelConnectionError) and error.phase in ("pool", "connect")
        if (kind in _CERTAINLY_FREE or unsent) and partial is None:
            self.spending.end_call(number, TokenCount(), Decimal(0), outcome)
            return
        # It was sent, and what it cost is not told: at least what was sent, and what came of the answer.
        tokens = TokenCount(estimate)
        cost = self.spending.estimate_cost(estimate)
        if partial is not None:
            counted = count_tokens(partial.usage)
            written = max(counted.output_tokens, _count_text(partial.parts))
            tokens = TokenCount(max(estimate, counted.input_tokens), written, counted.cache_read_tokens)
            cost = self.spending.price.calculate_cost(tokens)
        self.spending.end_call(number, tokens, cost, outcome)


def mend_arguments(response: ModelResponse) -> ModelResponse:
    """The answer, with arguments of tool calls as texts where they are no objects: the history must stay readable."""

    def mend(part: ModelResponsePart) -> ModelResponsePart:
        if isinstance(part, ToolCallPart) and not isinstance(part.args, str | dict | None):
            return replace(part, args=json.dumps(part.args, default=str))
        return part

    return replace(response, parts=[mend(part) for part in response.parts])


def estimate_tokens(messages: Iterable[ModelMessage], parameters: ModelRequestParameters) -> int:
    """About how many tokens will be sent, quickly: what the last answer counted, and what came after it."""
    total = _TOKENS_PER_TOOL * len(parameters.function_tools)
    for message in reversed(list(messages)):
        if isinstance(message, ModelResponse) and (counted := count_tokens(message.usage)).input_tokens:
            return total + counted.input_tokens + counted.output_tokens
        total += _count_text(message.parts) + len(getattr(message, "instructions", None) or "") // _CHARS_PER_TOKEN
    return total


def _count_text(parts: Iterable[Any]) -> int:
    total = 0
    for part in parts:
        content = getattr(part, "content", None)
        content = getattr(part, "args", None) if content is None else content
        pieces = content if isinstance(content, list | tuple) else [content]
        for piece in pieces:
            if isinstance(piece, str | dict):
                total += len(str(piece)) // _CHARS_PER_TOKEN + 1
            elif piece is not None:
                total += _TOKENS_PER_FILE
    return total
