"""What a call costs. A model whose price is not known is not asked: no budget could hold it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.errors import Place, WorkspaceError
from cleared.llm.api_keys import ModelChoice
from cleared.workspace.settings.model import ModelPrice

_MILLION: Final = Decimal(1_000_000)
_MOST_TOKENS: Final = 10**9
_MOST_PLAUSIBLE: Final = Decimal(10_000)
"""Dollars; a provider that names more for one call is not believed."""


class TokenCount(Struct, frozen=True):
    """Tokens of one call. ``input_tokens`` includes those that the provider had in its cache, or put there."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


def count_tokens(usage: Any) -> TokenCount:
    """The tokens of a reply (RequestUsage of pydantic-ai), within what can be: a provider may say anything."""
    read = (getattr(usage, name, 0) for name in TokenCount.__struct_fields__)
    whole, written, *cached = (min(max(0, count if isinstance(count, int) else 0), _MOST_TOKENS) for count in read)
    return TokenCount(max(whole, sum(cached)), written, *cached)


class Price(Struct, frozen=True):
    """US dollars for a million tokens. ``source``: where the figures are from. ``listed``: the name under which the
    price list has the model, whose finer rules (long prompts, cache writes) then count."""

    input: Decimal
    output: Decimal
    cached_input: Decimal
    source: str
    listed: tuple[str, str] | None = None

    @property
    def is_free(self) -> bool:
        """Whether no call costs anything."""
        return not (self.input or self.output or self.cached_input)

    def calculate_cost(self, tokens: TokenCount) -> Decimal:
        """US dollars for these tokens; never less than nothing."""
        cached = min(tokens.cache_read_tokens, tokens.input_tokens)
        sent = (tokens.input_tokens - cached) * self.input + cached * self.cached_input
        plain = (sent + tokens.output_tokens * self.output) / _MILLION
        if self.listed is None:
            return plain
        listed = calculate_listed(tokens, *self.listed)
        return plain if listed is None else listed


FREE: Final = Price(Decimal(0), Decimal(0), Decimal(0), "a model of a test")


def find_price(choice: ModelChoice, configured: Mapping[str, ModelPrice]) -> Price:
    """The price of a model. On the provider's own server the price list counts first, so that ``llm.prices``, which
    nobody approves, cannot make a model cheaper; elsewhere ``llm.prices`` does. Raises ``WorkspaceError``."""
    listed = _find_listed(choice)
    own = configured.get(choice.model)
    stated = None
    if own is not None:
        cached = own.input if own.cached_input is None else own.cached_input
        stated = Price(own.input, own.output, cached, "llm.prices in config.yaml")
    price = (listed or stated) if choice.base_url is None else (stated or listed)
    if price is None:
        raise WorkspaceError(
            f"what {choice.model} costs is not known, so no budget could hold it",
            place=Place("config.yaml", field="llm.prices"),
            remedy="Look whether the name is right, or say it in US dollars per million tokens: cleared config set "
            f"llm.prices.{choice.model} '{{ input: 0, output: 0 }}'. 0 is for a model of your own.",
        )
    return price


def read_reported_cost(details: Mapping[str, Any] | None) -> Decimal | None:
    """US dollars that the provider itself says a call cost (OpenRouter's ``usage.cost``, and what the provider behind
    it charges besides); None where it says nothing that can be believed."""
    parts = [(details or {}).get(name) for name in ("cost", "upstream_inference_cost")]
    if isinstance(parts[0], bool) or not isinstance(parts[0], int | float):
        return None
    amounts = [Decimal(str(part)) for part in parts if isinstance(part, int | float)]
    if any(not amount.is_finite() or amount < 0 or amount > _MOST_PLAUSIBLE for amount in amounts):
        return None
    return sum(amounts, Decimal(0))


def _find_listed(choice: ModelChoice) -> Price | None:
    thousand = 1_000  # longer prompts may have another price

    def per_million(tokens: TokenCount) -> Decimal | None:
        amount = calculate_listed(tokens, choice.model, choice.provider)
        return None if amount is None else amount * thousand

    plain, output = per_million(TokenCount(thousand)), per_million(TokenCount(0, thousand))
    cached = per_million(TokenCount(thousand, 0, thousand))
    if plain is None or output is None or cached is None:
        return None
    return Price(plain, output, cached, "the price list of genai-prices", (choice.model, choice.provider))


def calculate_listed(tokens: TokenCount, model: str, provider: str) -> Decimal | None:
    """US dollars by the list of prices; None where it has no such model, or is not installed."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    usage = Usage(**{name: count for name, count in asdict(tokens).items() if count})
    try:
        amount = calc_price(usage, model, provider_id=provider).total_price
    except (LookupError, ValueError, ArithmeticError):
        return None
    return amount if amount.is_finite() and amount >= 0 else None
