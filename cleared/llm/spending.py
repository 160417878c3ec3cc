"""Budgets: the lowest of what the command allows, the session's and the day's ends the spending, with its reason."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

from cleared.base.clock import Clock, find_day, format_iso
from cleared.base.errors import ClearedError, ExitCode
from cleared.llm.api_keys import ModelChoice
from cleared.llm.prices import Price, TokenCount
from cleared.llm.usage_store import BegunCall, EndedCall, Spent, UsageStore
from cleared.workspace.settings.model import Config

Reason = Literal["max_cost", "session_budget", "daily_budget"]

RESERVED_OUTPUT: Final = 4_096
"""Tokens that a call is taken to have written as long as nothing else is known of it."""
_CAPS: Final[dict[Reason, str]] = {
    "max_cost": "what this work may cost",
    "session_budget": "the budget of this session",
    "daily_budget": "the budget of today",
}
_REMEDIES: Final[dict[Reason, str]] = {
    "max_cost": "Allow more for it (--max-cost, or the dollars in the agent's grant).",
    "session_budget": "Begin a new session, or raise it: cleared config set llm.session_budget AMOUNT.",
    "daily_budget": "Go on tomorrow, or raise it: cleared config set llm.daily_budget AMOUNT.",
}


class SpendingStopped(ClearedError):
    """A call was not sent, because a budget would not hold it."""

    exit_code = ExitCode.FAILED

    def __init__(self, reason: Reason, spent: Decimal, cap: Decimal, least: Decimal) -> None:
        text = f"{_CAPS[reason]} does not hold another call: {format_dollars(spent)} of {format_dollars(cap)} is spent"
        text += f", and what is to be sent alone costs about {format_dollars(least)}" if least else ""
        super().__init__(text[0].upper() + text[1:], remedy=_REMEDIES[reason])
        self.reason: Reason = reason
        self.least = least


def format_dollars(amount: Decimal) -> str:
    """``$0.0123``: to the cent, or to four places below a dollar."""
    return f"${amount:.2f}" if amount >= 1 else f"${amount:.4f}".rstrip("0").ljust(5, "0")


def find_business_day(instant: datetime, zone: str) -> str:
    """``2025-02-10``: the day of an instant in a time zone."""
    return find_day(instant, zone).isoformat()


@dataclass(slots=True)
class Spending:
    """What one session, or one piece of work without a session, spends on one model.

    ``session``: its id, which lasts; None: only this piece of work counts, and the session's budget does not hold.
    """

    store: UsageStore
    config: Config
    clock: Clock
    choice: ModelChoice
    price: Price
    purpose: str
    session: str | None = None
    max_cost: Decimal | None = None
    _account: str = field(init=False)
    _before: Decimal = field(init=False, default=Decimal(0))

    def __post_init__(self) -> None:
        self._account = self.session or f"{self.purpose}:{secrets.token_hex(6)}"
        self._before = self.spent if self.session else Decimal(0)

    @property
    def today(self) -> str:
        """The day in the business's time zone."""
        return find_business_day(self.clock.now(), self.config.business.timezone)

    @property
    def spent(self) -> Decimal:
        """US dollars so far."""
        return self.store.sum_spent(self._account, self.today).session

    def begin_call(self, input_tokens: int) -> int:
        """Record that a call of about so many tokens is sent now, and return its number. Raises ``SpendingStopped``."""
        least = self.price.calculate_cost(TokenCount(input_tokens))
        begun = BegunCall(
            format_iso(self.clock.now()),
            self.today,
            self.choice.provider,
            self.choice.model,
            self.purpose,
            self._account,
            input_tokens,
            self.estimate_cost(input_tokens),
        )
        return self.store.begin_call(begun, lambda spent: self._check(spent, least))

    def end_call(self, number: int, tokens: TokenCount, cost: Decimal, outcome: str) -> None:
        """Record what came of a call."""
        ended = EndedCall(
            format_iso(self.clock.now()),
            tokens.input_tokens,
            tokens.output_tokens,
            tokens.cache_read_tokens,
            cost,
            outcome,
        )
        self.store.end_call(number, ended)

    def estimate_cost(self, input_tokens: int) -> Decimal:
        """What a call is taken to cost of which nothing is known but what was sent."""
        written = min(RESERVED_OUTPUT, self.config.llm.max_tokens)
        return self.price.calculate_cost(TokenCount(input_tokens, written))

    def _check(self, spent: Spent, least: Decimal) -> None:
        if self.price.is_free and not spent.session:  # what a provider reports counts, whatever the settings say
            return
        llm = self.config.llm
        caps: list[tuple[Reason, Decimal, Decimal]] = [("daily_budget", spent.day, llm.daily_budget)]
        if self.session is not None:
            caps.append(("session_budget", spent.session, llm.session_budget))
        if self.max_cost is not None:
            caps.append(("max_cost", spent.session - self._before, self.max_cost))
        reason, used, cap = min(caps, key=lambda each: each[2] - each[1])
        if used >= cap or used + least > cap:
            raise SpendingStopped(reason, used, cap, least)
