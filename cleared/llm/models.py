"""The models of pydantic-ai, as the approved settings name them, and how their requests are tried again. Imports
pydantic-ai, so it is imported where it is used.

A call goes to the approved address and nowhere else: a redirect is an error, and nothing that the packages of the
providers would read from the environment (another address, another way to sign in) counts.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, ModelRequestContext

from cleared.llm.api_keys import ApiKey, ModelChoice
from cleared.llm.failures import UnreadableReply

MAX_REPLY_BYTES: Final = 8 * 1024 * 1024
"""The longest answer, as it is on the wire."""
_CONNECT_SECONDS: Final = 10.0
_NO_KEY: Final = "none"
_KEY_HEADERS: Final = ("authorization", "x-api-key")
_ACCOUNT_HEADERS: Final = ("openai-organization", "openai-project")


def build_model(choice: ModelChoice, key: ApiKey | None, silence: float) -> Model:
    """The model of ``choice``, which may say nothing for ``silence`` seconds.

    Raises pydantic-ai's ``UserError`` for a name that cannot be one."""
    client = _make_http_client(choice, silence, has_key=key is not None)
    options: dict[str, Any] = {
        "api_key": key.text if key is not None else _NO_KEY,
        "base_url": choice.url,
        "max_retries": 0,
        "http_client": client,
    }
    if choice.provider == "anthropic":
        return _build_anthropic(choice, options)
    from openai import AsyncOpenAI

    if choice.provider == "openrouter":
        from pydantic_ai.models.openrouter import OpenRouterModel
        from pydantic_ai.providers.openrouter import OpenRouterProvider

        return OpenRouterModel(choice.model, provider=OpenRouterProvider(openai_client=AsyncOpenAI(**options)))
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    if choice.base_url is None:
        return OpenAIChatModel(choice.model, provider=OpenAIProvider(openai_client=AsyncOpenAI(**options)))
    compatible = OpenAICompatibleProvider(
        "openai-compatible",
        openai_client=AsyncOpenAI(**options),
        profile=OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False),
    )
    return OpenAIChatModel(choice.model, provider=compatible)


def _build_anthropic(choice: ModelChoice, options: dict[str, Any]) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(choice.model, provider=AnthropicProvider(anthropic_client=AsyncAnthropic(**options)))


def _make_http_client(choice: ModelChoice, silence: float, *, has_key: bool) -> httpx2.AsyncClient:
    async def prepare(request: httpx2.Request) -> None:
        unwanted = (() if has_key else _KEY_HEADERS) + (() if choice.base_url is None else _ACCOUNT_HEADERS)
        for name in unwanted:
            request.headers.pop(name, None)
        request.headers["accept-encoding"] = "identity"

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise UnreadableReply("the answer is compressed, though that was not asked for")
        if response.is_redirect:
            raise UnreadableReply("the answer leads to another address, which is not followed")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream)

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(silence, connect=_CONNECT_SECONDS),
        follow_redirects=False,
        # To load the certificates takes 25 ms: not where none is looked at. Without them no server would be believed.
        verify=choice.url.lower().startswith("https:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        # A proxy of the environment is for the network, not for a server on this machine.
        trust_env=not choice.is_local,
        # A connection belongs to the event loop that made it; the next call may be in another.
        limits=httpx2.Limits(max_keepalive_connections=0),
        event_hooks={"request": [prepare], "response": [bound]},
    )


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of an answer, up to a bound."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self._stream:
            seen += len(chunk)
            if seen > MAX_REPLY_BYTES:
                raise UnreadableReply(f"the answer is longer than {MAX_REPLY_BYTES // 1024 // 1024} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


@dataclass
class RetryPassingFailures(AbstractCapability[Any]):
    """H13: a call that failed for a passing reason is sent again after a pause; every other failure is raised."""

    wait_to_retry: Callable[[BaseException, int], Awaitable[bool]]

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Wait and have it sent again, or raise ``error``."""
        if not await self.wait_to_retry(error, request_context.attempt):
            raise error
        raise RetryModelRequest
