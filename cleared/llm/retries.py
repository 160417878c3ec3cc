"""Which failed calls are tried again, and when (H13)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from cleared.llm.failures import Kind, name_failure

Sleep = Callable[[float], Awaitable[None]]

_PASSING: Final[frozenset[Kind]] = frozenset({"rate_limit", "unavailable", "timeout", "connection"})
"""What may be over a moment later. A wrong key, an unknown model or too long a text is the same next time."""


class RetryPolicy(Struct, frozen=True):
    """At most so many attempts, with pauses in seconds that double. A provider may ask for a longer pause, up to
    ``longest_pause``; where it asks for more than that, the failure is told instead of waited for."""

    most_attempts: int = 5
    first_pause: float = 1.0
    longest_pause: float = 60.0

    def next_pause(self, error: BaseException, attempt: int) -> float | None:
        """Seconds to wait before the call is sent again after attempt number ``attempt`` (from 1) failed so; None
        where it is not. For a stream that breaks off, ask this too before the step is begun again."""
        if attempt >= self.most_attempts or name_failure(error) not in _PASSING:
            return None
        pause = min(self.first_pause * 2 ** (attempt - 1), self.longest_pause)
        asked: object = getattr(error, "retry_after", None)
        wanted = max(pause, float(asked)) if isinstance(asked, int | float) else pause
        return wanted if wanted <= self.longest_pause else None
