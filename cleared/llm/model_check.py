"""Whether the configured model can be asked, what it costs, and where its key is from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, TypeVar

from msgspec import Struct

from cleared.base.errors import ClearedError, UsageError
from cleared.llm.api_keys import ModelChoice, find_api_key, require_api_key
from cleared.llm.model_door import OpenWorkspace, open_model_door, read_approved_choice, require_packages
from cleared.llm.prices import Price, TokenCount, find_price
from cleared.llm.single_call import ask_once

_T = TypeVar("_T")
_TYPICAL: Final = TokenCount(10_000, 1_000)
"""A call of a session, in its middle."""
_SMALLEST_ANSWER: Final = 64
"""Tokens; some models think a little before they say anything."""


class ModelCheck(Struct):
    """What is known; ``problems`` are what keeps the model from being asked. ``answer_cost`` is of the one call."""

    choice: ModelChoice | None = None
    key_source: str | None = None
    price: Price | None = None
    problems: list[ClearedError] = []
    has_answered: bool | None = None
    answer_cost: Decimal | None = None

    @property
    def typical_cost(self) -> Decimal | None:
        """US dollars for 10,000 tokens sent and 1,000 received."""
        return None if self.price is None else self.price.calculate_cost(_TYPICAL)


def check_model(host: OpenWorkspace, environ: Mapping[str, str], *, with_call: bool) -> ModelCheck:
    """Look at the settings, the packages, the key and the price; ``with_call``: ask the model one thing, too."""
    check = ModelCheck()

    def attempt(look: Callable[[], _T]) -> _T | None:
        try:
            return look()
        except ClearedError as error:
            check.problems.append(error)
            return None

    choice = check.choice = attempt(lambda: read_approved_choice(host))
    if choice is None:
        return check
    attempt(lambda: require_api_key(choice, environ))
    key = find_api_key(choice, environ) if not check.problems else None
    if key is not None:
        check.key_source = key.source
        host.add_secrets(key.text)
    attempt(lambda: require_packages(choice))
    if all(not isinstance(problem, UsageError) for problem in check.problems):
        check.price = attempt(lambda: find_price(choice, host.config.llm.prices))
    if with_call and not check.problems:
        check.has_answered = bool(attempt(lambda: _ask_something(host, environ, check)))
    return check


def _ask_something(host: OpenWorkspace, environ: Mapping[str, str], check: ModelCheck) -> bool:
    door = open_model_door(host, purpose="check", environ=environ)
    try:
        ask_once(door, "Answer with one word.", "Say OK.", max_tokens=_SMALLEST_ANSWER)
        check.answer_cost = door.spent
    finally:
        door.close()
    return True
