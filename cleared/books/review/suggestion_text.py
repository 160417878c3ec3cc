"""The text of a suggested account or split, as the form of a page sends it back."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

from cleared.base.errors import UsageError
from cleared.books.decisions.entry_correction import Correction

_MOST_PARTS: Final = 100


def read_suggestion(value: str) -> Correction:
    """The correction that a suggestion's choice stands for. Raises ``UsageError`` for anything else."""
    lines: list[tuple[int, Decimal | None]] = []
    try:
        for word in value.split()[:_MOST_PARTS]:
            account, _, digits = word.partition("=")
            if not (account.isascii() and account.isdecimal() and len(account) <= 10):
                raise ValueError
            amount = Decimal(digits) if digits else None
            if amount is not None and not amount.is_finite():
                raise ValueError
            lines.append((int(account), amount))
    except (ValueError, InvalidOperation):
        lines = []
    if len(lines) == 1 and lines[0][1] is None:
        return Correction(lines[0][0])
    parts = tuple((account, amount) for account, amount in lines if amount is not None)
    if not parts or len(parts) != len(lines):
        raise UsageError("choose an account", remedy="Tap one of the list.")
    return Correction(lines=parts, mixed=True)  # all parts were shown, and split so before
