"""The one door to the configured model: everything that asks a model asks through it.

Importing this module imports none of the packages for models; opening a door does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol

from cleared.base.clock import Clock
from cleared.base.errors import ClearedError, UsageError, WorkspaceError
from cleared.llm.api_keys import ModelChoice, read_model_choice, require_api_key
from cleared.llm.failures import explain_failure
from cleared.llm.prices import FREE, Price, find_price
from cleared.llm.retries import RetryPolicy, Sleep
from cleared.llm.spending import Spending
from cleared.llm.usage_store import UsageStore
from cleared.trust.policy_in_force import SettingsInForce
from cleared.workspace.location import Layout
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.secrets import Redactor

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

INSTALL: Final = "pip install '.[llm]'"
COMMON_WINDOW: Final = 128_000
"""Tokens that a model is taken to read at once where nothing is known."""


class OpenWorkspace(Protocol):
    """What of a ``Host`` is used here."""

    @property
    def config(self) -> Config: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def policy(self) -> SettingsInForce | None: ...
    @property
    def redactor(self) -> Redactor: ...
    @property
    def show_message(self) -> Callable[[str], None]: ...

    def refuse_invalid_policy(self) -> None: ...
    def add_secrets(self, *secrets: str) -> None: ...


@dataclass(slots=True)
class ModelDoor:
    """``model`` is metered: every call through it is recorded and held to the budgets. ``context_window`` in tokens."""

    choice: ModelChoice
    model: Model
    context_window: int
    price: Price
    spending: Spending
    retry_policy: RetryPolicy
    _host: OpenWorkspace = field(repr=False)
    _sleep: Sleep = field(repr=False)

    @property
    def spent(self) -> Decimal:
        """US dollars of the session so far; without a session, of this door."""
        return self.spending.spent

    def capabilities(self) -> list[Any]:
        """For ``Agent(capabilities=…)``: passing failures are tried again (H13)."""
        from cleared.llm.models import RetryPassingFailures

        return [RetryPassingFailures(self.wait_to_retry)]

    def settings(self) -> ModelSettings:
        """For ``Agent(model_settings=…)``. No marks for a cache are among them: those pay in a session only, which
        sets ``cache_settings`` besides."""
        llm = self._host.config.llm
        settings: dict[str, Any] = {"max_tokens": llm.max_tokens, "request_timeout": llm.timeout + llm.max_tokens}
        if self.choice.provider == "openrouter":
            settings["openrouter_usage"] = {"include": True}
        return settings  # type: ignore[return-value]

    @property
    def marks_messages(self) -> bool:
        """Whether a session should end its last two messages with a mark for the provider's cache (H10). Where
        OpenRouter leads to such a provider, ``cache_settings`` does that; others need no marks."""
        return self._host.config.llm.cache_enabled and self.choice.provider == "anthropic"

    def cache_settings(self) -> dict[str, Any]:
        """The settings that mark the system prompt, and with OpenRouter the last message (H10)."""
        claude = self.choice.provider == "openrouter" and self.choice.model.startswith(("anthropic/", "~anthropic/"))
        if self.marks_messages:
            return {"anthropic_cache_instructions": True}
        if claude and self._host.config.llm.cache_enabled:
            return {"openrouter_cache_instructions": True, "openrouter_cache_messages": True}
        return {}

    async def wait_to_retry(self, error: BaseException, attempt: int) -> bool:
        """Whether a request that failed is to be sent again, after the pause that this tells and waits."""
        pause = self.retry_policy.next_pause(error, attempt)
        if pause is None:
            return False
        why = self.explain_failure(error)
        self._host.show_message(f"{why.message if why else 'the model failed'}; trying again in {pause:g} s")
        await self._sleep(pause)
        return True

    def explain_failure(self, error: BaseException) -> ClearedError | None:
        """The refusal that a user reads for what a request raised; None for what is to be raised as it is."""
        return explain_failure(error, self.choice, self._host.redactor)

    def close(self) -> None:
        """Close what is open. The door may be used again."""
        self.spending.store.close()


def require_packages(choice: ModelChoice) -> None:
    """Raises ``UsageError`` where the packages for models are not installed."""
    needed = ("pydantic_ai", "genai_prices", "anthropic" if choice.provider == "anthropic" else "openai")
    for name in needed:
        if find_spec(name) is None:
            raise UsageError("asking a language model needs more packages", remedy=f"In the checkout: {INSTALL}.")


def read_approved_choice(host: OpenWorkspace) -> ModelChoice:
    """The model that the approved settings name. Raises ``WorkspaceError``, ``PolicyError``."""
    host.refuse_invalid_policy()
    try:
        return read_model_choice(host.config.llm)
    except WorkspaceError as error:
        waiting = [key for key, *_ in (host.policy.unapproved if host.policy else ()) if key.startswith("llm.")]
        if waiting:
            error.remedy = f"{', '.join(waiting)} in config.yaml waits for approval: cleared config approve."
        raise


def open_model_door(
    host: OpenWorkspace,
    *,
    purpose: str,
    session: str | None = None,
    max_cost: Decimal | None = None,
    model: Model | None = None,
    environ: Mapping[str, str] = os.environ,
    sleep: Sleep = asyncio.sleep,
) -> ModelDoor:
    """The door for one piece of work. ``purpose`` and ``session`` stand in the record; ``max_cost`` in US dollars.

    ``model``: a model of a test in place of the configured one, free where ``llm.prices`` says nothing of it.
    Raises ``UsageError`` (packages), ``WorkspaceError`` (settings, key, price), ``PolicyError``, ``ModelFailed``.
    """
    llm = host.config.llm
    is_remote = model is None
    if model is None:
        choice = read_approved_choice(host)
        require_packages(choice)
        key = require_api_key(choice, environ)
        if key is not None:
            host.add_secrets(key.text)
        price = find_price(choice, llm.prices)
        model = _build_model(choice, key, host)
    else:
        choice = ModelChoice(llm.provider or "openai", model.model_name, llm.base_url)
        price = find_price(choice, llm.prices) if choice.model in llm.prices else FREE
    import pydantic_ai

    from cleared.llm.metered_model import MeteredModel

    pydantic_ai.BANNER_ENABLED = False  # what is on the terminal is ours
    spending = Spending(
        UsageStore(host.layout.state_dir), host.config, host.clock, choice, price, purpose, session, max_cost
    )
    window = llm.context_window or model.context_window or COMMON_WINDOW
    metered = MeteredModel(model, spending, is_remote=is_remote)
    return ModelDoor(choice, metered, window, price, spending, RetryPolicy(1 + llm.retries), host, sleep)


def _build_model(choice: ModelChoice, key: Any, host: OpenWorkspace) -> Model:
    from cleared.llm.models import build_model

    try:
        return build_model(choice, key, host.config.llm.timeout)
    except Exception as error:
        refusal = explain_failure(error, choice, host.redactor)
        if refusal is None:
            raise
        raise refusal from None
