"""How often programs call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic


@dataclass
class CallRates:
    """How often each secret was used lately: a bucket that fills up within a minute. Thread-safe."""

    now: Callable[[], float] = monotonic
    _levels: dict[str, tuple[float, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seconds_to_wait(self, secret: str, a_minute: int) -> float:
        """0 where one more call is taken now; else the seconds until one is."""
        with self._lock:
            now = self.now()
            level, at = self._levels.get(secret, (float(a_minute), now))
            level = min(float(a_minute), level + max(0.0, now - at) * a_minute / 60)
            if level < 1:
                self._levels[secret] = (level, now)
                return (1 - level) * 60 / a_minute
            self._levels[secret] = (level - 1, now)
            return 0.0
