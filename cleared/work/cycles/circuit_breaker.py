"""The circuit breaker: after so many failures in a row it opens, and what runs cools down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CircuitBreaker:
    """Counts failures in a row. ``threshold``: the count at which it opens."""

    threshold: int
    failures: int = 0

    def record_success(self) -> None:
        self.failures = 0

    def record_failure(self) -> bool:
        """Count a failure; whether the breaker opens by it."""
        self.failures += 1
        return self.failures >= self.threshold

    def close_again(self) -> None:
        """After the cooldown: the count begins anew."""
        self.failures = 0
