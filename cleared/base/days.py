"""Months and days as people write them."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from cleared.base.errors import UsageError

_MONTH: Final = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])", re.ASCII)


def parse_month(text: str) -> tuple[int, int]:
    """``2025-01`` → ``(2025, 1)``. Raises ``UsageError``."""
    match = _MONTH.fullmatch(text)
    if not match or not int(match[1]):
        raise UsageError(f"{text!r} is not a month", remedy="Write it like 2025-01.")
    return int(match[1]), int(match[2])


def parse_day(text: str) -> date:
    """``2025-01-31`` as a day. Raises ``UsageError``."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a date", remedy="Write it like 2025-01-31.") from None
