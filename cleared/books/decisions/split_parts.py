"""Whether the parts of a split make sense together. All places that take a split ask here."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from cleared.base import money
from cleared.base.errors import UsageError

MIXED_WORD: Final = "mixed"
"""What is typed behind the parts of a split that has parts of both signs on purpose."""


def describe_odd_part(whole: Decimal, lines: Iterable[tuple[int, Decimal]]) -> str:
    """Why a split of ``whole`` looks like a mistake: a part is larger than all of it, or has the other sign; empty
    where none does. Of nothing, such as an entry without a bank, parts have both signs."""
    if not whole:
        return ""
    shown = money.format_amount(whole)
    for account, amount in lines:
        part = f"{account}={money.format_amount(amount)}"
        if (amount > 0) != (whole > 0):
            return f"{part} goes the other way than the {shown} to be split"
        if abs(amount) > abs(whole):
            return f"{part} is more than the {shown} to be split"
    return ""


def refuse_odd_parts(whole: Decimal, lines: Iterable[tuple[int, Decimal]], *, is_meant: bool) -> None:
    """Raises ``UsageError`` for such a split, unless whoever made it says that it is meant."""
    odd = "" if is_meant else describe_odd_part(whole, lines)
    if odd:
        raise UsageError(odd, remedy=f"Correct the amounts. Where parts of both signs are meant: --{MIXED_WORD}.")
