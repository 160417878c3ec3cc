"""Tokens that requests of an owner take: seven recorded ones, replayed (``tests/support/recorded_requests.py``)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from bench.measure import Result

_REPLAY = Path(__file__).resolve().parents[1] / "tests/support/recorded_requests.py"
BEFORE = {
    "coffee": 118_000,
    "morning_email": 82_000,
    "low_march": 46_000,
    "unpaid_customers": 110_000,
    "new_bank": 62_000,
    "price_lists": 47_000,
    "refusal": 20_000,
}
"""What a capable model took for each before, in its provider's tokens."""
MOST = 0.6
"""Of that, it may take so much now."""


def count_tokens(name: str, _: bool) -> Result:
    """All that is sent and received for one request, a token for four bytes."""
    found = _replay_all()[name]
    ratio = found["tokens"] / BEFORE[name]
    return Result(
        f"tokens of the request: {name.replace('_', ' ')} / before",
        f"{found['tokens']:,}",
        f"{BEFORE[name]:,}",
        ratio,
        f"≤ {MOST:g}×",
        ratio <= MOST and not found["failed"],
        f"{found['requests']} replies of the model",
    )


@cache
def _replay_all() -> dict[str, dict[str, int]]:
    """In a process of its own: it takes another environment and another clock."""
    done = subprocess.run([sys.executable, str(_REPLAY)], capture_output=True, text=True, check=True)
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


FIGURES: dict[str, Callable[[bool], Result]] = {f"request_{name}": partial(count_tokens, name) for name in BEFORE}
