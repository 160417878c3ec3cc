"""``decimal`` and ``money_*``: exact numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from cleared.base import money
from cleared.base.errors import Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Amount, Text, Weight

_NUMBER: Final = r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?"


@primitive(effect=Effect.READ, grant="money.read")
def money_allocate(ctx: Context, total: Amount, weights: list[Weight]) -> list[Decimal]:
    """Split ``total`` in proportion to ``weights``; the parts sum to it exactly (largest remainder).

    The one way to split an amount: three equal parts of 10.00 are 3.34, 3.33 and 3.33.
    """
    try:
        return money.allocate(total, weights, ctx.env.places)
    except ValueError as e:
        raise PrimitiveError(str(e), place=Place(field="weights"), remedy="Pass at least one weight above 0.") from None


@primitive(effect=Effect.READ, grant="money.read")
def decimal(ctx: Context, text: Text) -> Decimal:
    """The exact number that a text says: ``"12.50"``, ``"-3"``, ``"1,234.50"``. Refused: anything else.

    Blanks around it do not count. Other currencies' commas and signs are the script's: ``text.replace(",", ".")``.
    """
    plain = text.strip()
    if not re.fullmatch(_NUMBER, plain):
        raise PrimitiveError(
            f"{text[:40]!r} is not a number",
            place=Place(field="text"),
            remedy="Pass digits with a point, such as 1,234.50: take signs and units away first.",
        )
    try:
        return money.require_bounded(Decimal(plain.replace(",", "")))
    except ValueError as e:
        raise PrimitiveError(str(e), place=Place(field="text"), remedy="Pass fewer digits.") from None
