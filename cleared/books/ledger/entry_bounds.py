"""What an entry may be at most."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Bounds:
    """Beyond these a value is taken for a mistake."""

    places: int = 2
    max_amount: Decimal = Decimal(10) ** 12
    min_date: date = date(1970, 1, 1)
    max_date: date = date(2199, 12, 31)
    max_text_bytes: int = 10_240
